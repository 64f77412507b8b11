"""Where commands put their words: a model's text on standard output, Colibri's own on standard error."""

from __future__ import annotations

import sys

_DIM, _NORMAL = "\x1b[2m", "\x1b[22m"


def write(text: str) -> None:
    """Put a piece of an answer on standard output at once; a terminal gets no control characters from a model."""
    if sys.stdout.isatty():
        text = "".join(letter for letter in text if letter.isprintable() or letter in "\n\t")
    sys.stdout.write(text)
    sys.stdout.flush()


class ReasoningWriter:
    """Puts an answer on standard output with its reasoning before it, dim, if that is a terminal."""

    def __init__(self) -> None:
        self._is_open = False

    def reasoning(self, text: str) -> None:
        """Put a piece of reasoning there; nothing where no terminal is, so that a pipe gets the answer alone."""
        if sys.stdout.isatty():
            if not self._is_open:
                sys.stdout.write(_DIM)
            self._is_open = True
            write(text)

    def answer(self, text: str) -> None:
        """Put a piece of the answer there."""
        self.close()
        write(text)

    def close(self) -> None:
        """End the reasoning, if there was any."""
        if self._is_open:
            self._is_open = False
            sys.stdout.write(f"{_NORMAL}\n\n")
            sys.stdout.flush()


def say(text: str) -> None:
    """Speak beside the conversation."""
    print(text, file=sys.stderr, flush=True)
