"""JSON files of a checkpoint, read with a limit on their size and with every key once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.errors import MissingFileError, ModelFormatError

MAX_JSON_BYTES = 256 * 1024 * 1024  # the largest tokenizer.json in use has some 40 MB


def read_text(path: Path) -> str | None:
    """The text of the file at `path`, or None if there is none; raises ModelFormatError if it cannot be read."""
    try:
        if not path.is_file():
            return None
        n_bytes = path.stat().st_size
        if n_bytes > MAX_JSON_BYTES:
            raise ModelFormatError(f"{path}: expected at most {MAX_JSON_BYTES:,} bytes, found {n_bytes:,}.")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        kind = MissingFileError if isinstance(error, OSError) else ModelFormatError
        raise kind(
            f"{path}: expected a text file in UTF-8 that can be read, found: {error}. Download it again."
        ) from error


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in the file at `path`, or None if there is none.

    Raises ModelFormatError for what is no JSON object or has a key twice: which of the two counts would be a guess.
    """
    text = read_text(path)
    if text is None:
        return None
    try:
        value = json.loads(text, object_pairs_hook=lambda pairs: _without_duplicates(path, pairs))
    except (ValueError, RecursionError) as error:
        raise ModelFormatError(
            f"{path}: expected JSON, found text that is not ({error}). Download it again."
        ) from error
    if not isinstance(value, dict):
        raise ModelFormatError(f"{path}: expected a JSON object, found a {type(value).__name__}. Download it again.")
    return value


def list_of(values: Mapping[str, Any], name: str, path: Path) -> list[Any]:
    """The list called `name`, empty if it is missing or null; raises ModelFormatError if it is something else."""
    value = values.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise ModelFormatError(f"{path}: expected a list in {name}, found {value!r:.80}. Download it again.")
    return value


def _without_duplicates(path: Path, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ModelFormatError(f"{path}: expected each key once, found {key[:200]!r} twice. Repair the file.")
        found[key] = value
    return found
