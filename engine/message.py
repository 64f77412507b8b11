"""Text with values in it that can still be translated: whoever finds something knows no language but English."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

MODEL_CHECKS = "ModelChecks"  # the context under which what is found in model files is translated
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
    """A message whose template Qt's lupdate finds: both arguments must be literals, the first is MODEL_CHECKS."""
    assert context == MODEL_CHECKS
    return Message(template)


def verbatim(words: str) -> Message:
    """Names and figures, which are the same in all languages."""
    return Message("{words}", {"words": words})
