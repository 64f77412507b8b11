"""Where other programs of this machine keep their models: LM Studio, Ollama, the Hugging Face cache.

Nothing of theirs is changed; what they index in files of their own (Ollama's manifests) is read as far as it is sound.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from app.model_files import model_files

logger = logging.getLogger(__name__)

_SHA256 = re.compile(r"(?:sha256[-:])?([0-9a-f]{64})$")
_OLLAMA_MODEL = "application/vnd.ollama.image.model"
_MOST_MANIFEST_BYTES = 1 << 20
_MOST_MANIFESTS = 10_000
_OLLAMA_SERVICES = ("/usr/share/ollama", "/var/lib/ollama")  # homes of the system service


class Place(StrEnum):
    """Whose a model is."""

    FOLDER = "folder"  # one of the user's, or opened by itself
    COLIBRI = "colibri"
    LM_STUDIO = "lm-studio"
    OLLAMA = "ollama"
    HUGGING_FACE = "hugging-face"


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model file of another program; `name` is what that program calls it, "" when it does not."""

    path: Path
    place: Place
    name: str = ""


def models_of_other_programs() -> Iterator[FoundModel]:
    """The GGUF files of the programs that are found, each once; what cannot be read is left out."""
    for folder in lm_studio_folders():
        for path in model_files(folder):
            yield FoundModel(path, Place.LM_STUDIO)
    blobs: set[Path] = set()
    for folder in hugging_face_folders():
        for repository in _folders(folder, "models--*"):
            for path in model_files(repository / "snapshots"):
                blob = path.resolve()  # of several revisions one is enough
                if blob not in blobs:
                    blobs.add(blob)
                    yield FoundModel(path, Place.HUGGING_FACE)
    for folder in ollama_folders():
        yield from _ollama_models(folder)


def checkpoints_of_other_programs() -> Iterator[Path]:
    """Folders with a config.json and safetensors files: what can be converted."""
    for folder in hugging_face_folders():
        for repository in _folders(folder, "models--*"):
            yield from filter(is_checkpoint, _folders(repository / "snapshots", "*"))
    for folder in lm_studio_folders():
        for publisher in _folders(folder, "*"):
            yield from filter(is_checkpoint, _folders(publisher, "*"))


def is_checkpoint(folder: Path) -> bool:
    """Whether a folder looks like a published checkpoint. Reads its list of files only."""
    try:
        return (folder / "config.json").is_file() and any(folder.glob("*.safetensors"))
    except OSError:
        return False


def checkpoint_name(folder: Path) -> str:
    """What a checkpoint is called: its folder, or for one in the Hugging Face cache `publisher/model`."""
    if folder.parent.name == "snapshots" and folder.parent.parent.name.startswith("models--"):
        return folder.parent.parent.name.removeprefix("models--").replace("--", "/")
    return folder.name


def known_sha256(path: Path) -> str | None:
    """The checksum that a file's program promises by the name of its file or of the blob behind it; None if none."""
    try:
        found = _SHA256.search(path.resolve().name)
    except OSError:
        return None
    return found[1] if found else None


def lm_studio_folders() -> list[Path]:
    """LM Studio's model folders that exist."""
    home = _home()
    candidates = [home / ".lmstudio" / "models", home / ".cache" / "lm-studio" / "models"]
    try:
        pointer = (home / ".lmstudio-home-pointer").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        pointer = ""
    if pointer:
        candidates.insert(0, Path(pointer) / "models")
    return _existing(candidates)


def ollama_folders() -> list[Path]:
    """Ollama's model stores that exist: the user's and the system service's."""
    named = os.environ.get("OLLAMA_MODELS")
    candidates = [Path(named)] if named else []
    candidates += [_home() / ".ollama" / "models"]
    candidates += [Path(root) / ".ollama" / "models" for root in _OLLAMA_SERVICES]
    return _existing(candidates)


def hugging_face_folders() -> list[Path]:
    """The Hugging Face cache, if it exists."""
    environment = os.environ
    for variable, below in (("HF_HUB_CACHE", ""), ("HUGGINGFACE_HUB_CACHE", ""), ("HF_HOME", "hub")):
        if value := environment.get(variable):
            return _existing([Path(value).expanduser() / below])
    cache = Path(environment.get("XDG_CACHE_HOME") or _home() / ".cache")
    return _existing([cache / "huggingface" / "hub"])


def _ollama_models(folder: Path) -> Iterator[FoundModel]:
    seen: set[Path] = set()
    manifests = folder / "manifests"
    for number, manifest in enumerate(sorted(manifests.glob("*/*/*/*"))):
        if number >= _MOST_MANIFESTS:
            logger.info("%s has more than %d manifests; the rest is left out", manifests, _MOST_MANIFESTS)
            return
        for digest in _ollama_digests(manifest):
            blob = folder / "blobs" / f"sha256-{digest}"
            if blob.is_file() and blob not in seen:
                seen.add(blob)
                yield FoundModel(blob, Place.OLLAMA, _ollama_name(manifest.relative_to(manifests)))


def _ollama_digests(manifest: Path) -> Iterator[str]:
    try:
        if not manifest.is_file() or manifest.stat().st_size > _MOST_MANIFEST_BYTES:
            return
        values: Any = json.loads(manifest.read_bytes())
        layers = values["layers"]
        for layer in layers:
            if layer["mediaType"] == _OLLAMA_MODEL:
                found = _SHA256.fullmatch(layer["digest"])
                if found:
                    yield found[1]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        logger.info("%s is left out: %s", manifest, error)


def _ollama_name(inside: Path) -> str:
    """`registry.ollama.ai/library/qwen3/30b` -> `qwen3:30b`, as Ollama itself prints it."""
    registry, publisher, model, tag = inside.parts
    if publisher == "library" and registry == "registry.ollama.ai":
        return f"{model}:{tag}"
    prefix = publisher if registry == "registry.ollama.ai" else f"{registry}/{publisher}"
    return f"{prefix}/{model}:{tag}"


def _home() -> Path:
    return Path.home()


def _existing(folders: list[Path]) -> list[Path]:
    found: list[Path] = []
    for folder in folders:
        try:
            if folder.is_dir() and not any(folder.samefile(other) for other in found):
                found.append(folder)
        except OSError as error:
            logger.info("%s is left out: %s", folder, error)
    return found


def _folders(folder: Path, pattern: str) -> list[Path]:
    try:
        return sorted(path for path in folder.glob(pattern) if path.is_dir())
    except OSError as error:
        logger.info("%s is left out: %s", folder, error)
        return []
