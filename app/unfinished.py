"""Remembers the conversion under way, so that one that a crash or a closed window interrupted can be taken up again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from app.remembered import Remembered

INCLUDED_TEXTS = "included"  # those that come with Colibri


@dataclass(frozen=True, slots=True)
class ConversionRequest:
    """What the user asked for. `type_key` as in app.file_types; `router` as the command takes it.

    `calibration`: INCLUDED_TEXTS, the path of the user's own, or "". `proves`: compare the result with its source.
    """

    source: str
    target: str
    type_key: str
    router: str = "fp32"
    top_k: int | None = None
    name: str | None = None
    calibration: str = ""
    proves: bool = True


_remembered = Remembered(ConversionRequest, "conversion.json")


def remember(request: ConversionRequest) -> None:
    """Write down what is about to be done. Raises OSError."""
    _remembered.remember(request)


def forget() -> None:
    """The conversion has come to an end of its own."""
    _remembered.forget()


def unfinished() -> ConversionRequest | None:
    """The conversion that was interrupted; None if there is none, or it cannot be taken up any more."""
    request = _remembered.recall()
    is_usable = request is not None and Path(request.source).exists() and not Path(request.target).exists()
    return request if is_usable else None


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
