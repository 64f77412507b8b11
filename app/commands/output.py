"""Where commands put their words: a model's text on standard output, Colibri's own on standard error."""

from __future__ import annotations

import sys


def write(text: str) -> None:
    """Put a piece of an answer on standard output at once; a terminal gets no control characters from a model."""
    if sys.stdout.isatty():
        text = "".join(letter for letter in text if letter.isprintable() or letter in "\n\t")
    sys.stdout.write(text)
    sys.stdout.flush()


def say(text: str) -> None:
    """Speak beside the conversation."""
    print(text, file=sys.stderr, flush=True)
