"""Remembers the conversion under way, so that one that a crash or a closed window interrupted can be taken up again."""

from __future__ import annotations

import json
import logging
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from app import paths

logger = logging.getLogger(__name__)

_FILE = "conversion.json"


@dataclass(frozen=True, slots=True)
class ConversionRequest:
    """What the user asked for. `type_key` as in app.file_types; `router` as the command takes it."""

    source: str
    target: str
    type_key: str
    router: str = "fp32"
    top_k: int | None = None
    name: str | None = None


def remember(request: ConversionRequest) -> None:
    """Write down what is about to be done."""
    path = _path()
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(asdict(request), ensure_ascii=False), encoding="utf-8")
    temporary.replace(path)


def forget() -> None:
    """The conversion has come to an end of its own."""
    _path().unlink(missing_ok=True)


def unfinished() -> ConversionRequest | None:
    """The conversion that was interrupted; None if there is none, or it cannot be taken up any more."""
    try:
        values = json.loads(_path().read_text(encoding="utf-8"))
        request = ConversionRequest(**values)
        kinds = {"source": str, "target": str, "type_key": str, "router": str, "top_k": int, "name": str}
        if not all(value is None or isinstance(value, kinds[key]) for key, value in values.items()):
            raise TypeError(f"values of other kinds than expected: {values}")
        return request if Path(request.source).exists() and not Path(request.target).exists() else None
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        logger.warning("%s is left out: %s", _path(), error)
        return None


def left_overs(target: Path) -> list[Path]:
    """What an interrupted run left beside its target."""
    try:
        return [path for path in target.parent.iterdir() if _is_left_over(path.name, target.name)]
    except OSError:
        return []


def discard(request: ConversionRequest) -> None:
    """Give an interrupted conversion up, and take away what it left."""
    for path in left_overs(Path(request.target)):
        path.unlink(missing_ok=True)
    forget()


def _is_left_over(name: str, target_name: str) -> bool:
    return name.startswith(f".{target_name}.") and name.endswith(".part")


def _path() -> Path:
    return paths.data_dir() / _FILE
