"""Finds the data files (icons, themes, translations) that lie beside the source."""

from __future__ import annotations

from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent / "resources"


def resource_path(*parts: str) -> Path:
    """The path of a file under resources/, e.g. ``resource_path("icons", "send.svg")``."""
    return _ROOT.joinpath(*parts)
