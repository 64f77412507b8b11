"""Text with values in it that can still be translated: the app floor knows no Qt, and the window no wording."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

CONTEXT = "SystemCheck"
_NOTHING: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True)
class Message:
    """A template with named places, and what goes into them (text, numbers, other messages)."""

    template: str
    values: Mapping[str, object] = field(default_factory=lambda: _NOTHING)

    def format(self, **values: object) -> Message:
        """The same template with values, as str.format has them."""
        return Message(self.template, values)

    def render(self, translate: Callable[[str], str]) -> str:
        """The text in the language of `translate`, which gets each template."""
        values = {
            name: value.render(translate) if isinstance(value, Message) else value
            for name, value in self.values.items()
        }
        return translate(self.template).format(**values) if values else translate(self.template)

    def __str__(self) -> str:
        return self.render(lambda template: template)


def text(context: str, template: str) -> Message:
    """A message whose template Qt's lupdate finds: both arguments must be literals, the first is CONTEXT."""
    assert context == CONTEXT
    return Message(template)


def verbatim(words: str) -> Message:
    """Names and figures, which are the same in all languages."""
    return Message("{words}", {"words": words})


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
