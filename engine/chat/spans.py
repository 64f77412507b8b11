"""What an answer's stretches are marked by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.chat.marks import Spelling
from engine.chat.pieces import ToolCall

Parse = Callable[[str, Sequence[Any]], list[ToolCall]]


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch between two markers: reasoning, or with `parse` calls of tools.

    `closer` "" means: to the end of the answer, or to the next call. `keeps_markers`: they are part of the content.
    `only_first`: counts only where nothing was said yet. `is_tentative`: what turns out to be no call was an ordinary
    answer, and no mistake.
    """

    opener: str
    closer: str
    parse: Parse | None = None
    keeps_markers: bool = False
    only_first: bool = False
    is_tentative: bool = False

    def spelled(self, spelling: Spelling) -> Span:
        """The same, its markers as they stand in marked text."""
        return replace(self, opener=spelling.of(self.opener), closer=spelling.of(self.closer))


@dataclass(frozen=True, slots=True)
class Wrapper:
    """Two markers that are hidden, while what is between them is treated as if they were not there."""

    opener: str
    closer: str
    only_first: bool = False

    def spelled(self, spelling: Spelling) -> Wrapper:
        """The same, its markers as they stand in marked text."""
        return replace(self, opener=spelling.of(self.opener), closer=spelling.of(self.closer))
