"""Options that commands share which read a text with a model, or write a model's file."""

from __future__ import annotations

import argparse
from pathlib import Path

from app.commands.chat_options import whole


def add_text(parser: argparse.ArgumentParser, default: str, *, passages: int | None) -> None:
    """`--text` and `--passages`. default: what is read without --text; passages: how many (None: all there are)."""
    parser.add_argument("--text", type=Path, metavar="FILE", help=f"a text of your own (default: {default})")
    parser.add_argument(
        "--passages",
        type=whole(1),
        default=passages,
        metavar="N",
        help=f"read at most N passages of 512 tokens (default: {'all' if passages is None else passages})",
    )


def add_replace(parser: argparse.ArgumentParser) -> None:
    """`--replace`, without which a file that is there stays."""
    parser.add_argument("--replace", action="store_true", help="replace a file that is there already")
