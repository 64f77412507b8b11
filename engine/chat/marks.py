"""Control tokens inside of text, told apart from text that merely looks like them.

A control token is spelled between two code points that are no characters (U+10FFFE, U+10FFFF) and that ordinary text is
freed of; so one search finds markers of both kinds, and those that are made of both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_BEFORE, _AFTER = "\U0010fffe", "\U0010ffff"
_CONTROL = re.compile(f"{_BEFORE}[^{_AFTER}]*{_AFTER}")
_SIGNS = re.compile(f"[{_BEFORE}{_AFTER}]")


def control(token: str) -> str:
    """A control token as it stands in marked text."""
    return f"{_BEFORE}{token}{_AFTER}"


def ordinary(text: str) -> str:
    """Ordinary text, which cannot pass for a control token."""
    return text if text.isascii() else _SIGNS.sub("\ufffd", text)


def shown(marked: str) -> str:
    """Marked text without its control tokens."""
    return _CONTROL.sub("", marked)


def spelled_out(marked: str) -> str:
    """Marked text with its control tokens as ordinary text."""
    return _SIGNS.sub("", marked)


def has_control(marker: str) -> bool:
    """Whether a control token is part of the marker, so that no ordinary text can be it."""
    return _BEFORE in marker


class Spelling:
    """How one vocabulary spells markers: which parts of them are control tokens."""

    def __init__(self, control_tokens: Iterable[str]) -> None:
        by_length = sorted((token for token in control_tokens if token), key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, by_length))) if by_length else None

    def of(self, marker: str) -> str:
        """The marker as it stands in marked text."""
        return marker if self._pattern is None else self._pattern.sub(lambda found: control(found[0]), marker)


class Scanner:
    """Finds markers in marked text that arrives in pieces, and holds back what could still become one."""

    def __init__(self) -> None:
        self._held = ""

    def push(self, marked: str) -> None:
        """Add some text at the end."""
        self._held += marked

    def next(self, markers: Iterable[str]) -> tuple[str, str | None]:
        """The text up to the first of the markers, and that marker; without one the text that is surely none."""
        held, place, first = self._held, len(self._held), None
        for marker in markers:
            found = held.find(marker)
            if 0 <= found < place or (found == place and first is not None and len(marker) > len(first)):
                place, first = found, marker
        if first is not None:
            self._held = held[place + len(first) :]
            return held[:place], first
        place = len(held) - max((_overlap(held, marker) for marker in markers), default=0)
        self._held = held[place:]
        return held[:place], None

    def flush(self) -> str:
        """What is held."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, marker: str) -> int:
    """The length of the longest end of the text that begins the marker."""
    longest = min(len(marker) - 1, len(text))
    return next((n for n in range(longest, 0, -1) if text.endswith(marker[:n])), 0)
