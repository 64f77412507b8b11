"""The system check's texts, which the window translates: the app floor knows no Qt, and the window no wording."""

from __future__ import annotations

from engine.message import Message, verbatim

__all__ = ["CONTEXT", "Message", "binary_size", "gigahertz", "size", "text", "verbatim"]

CONTEXT = "SystemCheck"


def text(context: str, template: str) -> Message:
    """A message whose template Qt's lupdate finds: both arguments must be literals, the first is CONTEXT."""
    assert context == CONTEXT
    return Message(template)


def size(n_bytes: float) -> str:
    """A size in decimal units: "8.4 MB", "16 GB"."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "bytes" or n_bytes >= 100 else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} TB"


def binary_size(n_bytes: float) -> str:
    """A size of a cache or page in binary units: "32 KiB", "2 MiB"."""
    for unit in ("bytes", "KiB", "MiB"):
        if n_bytes < 1024:
            return f"{n_bytes:g} {unit}"
        n_bytes /= 1024
    return f"{n_bytes:g} GiB"


def gigahertz(khz: float) -> str:
    """A frequency: "3.80 GHz"."""
    return f"{khz / 1e6:.2f} GHz"
