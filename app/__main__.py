"""`colibri` (also `python -m app`): finds the sub-command that was asked for and runs it; without one, the window."""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import sys
from collections.abc import Sequence
from importlib import metadata

from engine.errors import ColibriError

logger = logging.getLogger(__name__)

COMMANDS = ("window", "chat", "inspect", "convert", "calibrate", "prove", "carve", "bench", "doctor", "starter")
_INTERRUPTED = 130  # what shells give a program that Ctrl-C ended
_VERSION = "0.1.0"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return the exit code: 0 done, 1 failed with a message, 2 called wrongly."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = build_parser(given).parse_args(given)
    logging.basicConfig(
        level=logging.DEBUG if options.verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except ColibriError as error:
        print(f"colibri {options.command}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:  # the reader of our output is gone: end quietly, also when Python closes the stream
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        logger.debug("the command failed", exc_info=True)
        print(f"colibri {options.command}: {type(error).__name__}: {error}", file=sys.stderr)
        print("This is a fault of Colibri; `colibri -v ...` shows where it is.", file=sys.stderr)
        return 1
    return code


def build_parser(given: Sequence[str]) -> argparse.ArgumentParser:
    """The parser; when `given` names a command, only that command's module is imported."""
    parser = argparse.ArgumentParser(prog="colibri", description="Chat with language models on this computer's CPU.")
    parser.add_argument("--version", action="version", version=f"colibri {version()}")
    parser.add_argument("-v", "--verbose", action="store_true", help="log what happens to standard error")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    named = next((word for word in given if not word.startswith("-")), "window" if not _asks_for_help(given) else None)
    for command in COMMANDS:
        if named is None or named not in COMMANDS or named == command:
            importlib.import_module(f"app.commands.{command}").add_parser(subparsers)
    if named == "window" and "window" not in given:
        parser.set_defaults(**vars(subparsers.choices["window"].parse_args([])), command="window")
    return parser


def version() -> str:
    """The program's version."""
    try:
        return metadata.version("colibri")
    except metadata.PackageNotFoundError:  # run from the source tree
        return _VERSION


def _asks_for_help(given: Sequence[str]) -> bool:
    return any(word in ("-h", "--help") for word in given)


if __name__ == "__main__":
    raise SystemExit(main())
