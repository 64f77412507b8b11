"""Reads answers with a format's parser, cut into pieces of any length."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.chat import AnswerParser, ChatFormat, Piece


@dataclass
class Read:
    """An answer, taken apart."""

    answer: str = ""
    reasoning: str = ""
    calls: list[tuple[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def read(
    source: str,
    text: str,
    *,
    tools: Sequence[Any] | None = None,
    prompt_end: str = "",
    control: Collection[str] = (),
    cuts: Iterable[int] = (),
) -> Read:
    """The answer `text` to a prompt that ends with `prompt_end`. `control`: its control tokens, each in one piece."""
    parser = ChatFormat(source, control).parser(prompt_end, tools)
    return collected(feed(parser, text, control, cuts))


def feed(parser: AnswerParser, text: str, control: Collection[str], cuts: Iterable[int] = ()) -> list[Piece]:
    """All pieces; ordinary text arrives cut at the places `cuts`, or character by character."""
    pieces: list[Piece] = []
    pattern = f"({'|'.join(map(re.escape, control))})" if control else "(?!)()"
    for part in re.split(pattern, text):
        if part in control:
            pieces += parser.push_control(part)
            continue
        places = sorted({0, len(part), *(cut for cut in cuts if cut < len(part))}) if cuts else range(len(part) + 1)
        for begin, end in zip(places, [*places][1:], strict=False):
            pieces += parser.push(part[begin:end])
    return pieces + parser.finish()


def collected(pieces: Iterable[Piece]) -> Read:
    """The pieces of each kind together."""
    result = Read()
    for piece in pieces:
        if piece.call is not None:
            result.calls.append((piece.call.name, json.loads(piece.call.arguments)))
        elif piece.kind == "reasoning":
            result.reasoning += piece.text
        else:
            result.answer += piece.text
        if piece.problem:
            result.problems.append(piece.problem)
    return result
