"""`colibri starter`: fetches the starter model, or says where it is."""

from __future__ import annotations

import argparse
import asyncio
import sys

from app import paths, starter
from app.commands.progress_line import ProgressLine
from app.jobs import Job
from app.library import Library
from app.settings import Settings


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command `starter`."""
    parser = subparsers.add_parser(
        "starter",
        help="fetch the starter model",
        description="Fetch the starter model (98 MB), verify it, and print where it is. A sound copy is kept as it is.",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--path", action="store_true", help="only print where it is; fail when it is not there")
    which.add_argument("--if-none", action="store_true", help="do nothing when there is any model to talk to")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Fetch, verify, print the path."""
    if options.path:
        if not starter.is_present():
            raise starter.StarterError("The starter model is not there yet: `colibri starter` fetches it.")
        print(starter.starter_path())
        return 0
    if options.if_none and _has_model():
        return 0
    job = Job("Starter model")
    with ProgressLine(job):
        path = job.run_blocking(lambda job: starter.ensure(job, verify_again=True))
    if options.if_none:
        print(f"The starter model is ready: {path}", file=sys.stderr)
    else:
        print(path)
    return 0


def _has_model() -> bool:
    library = Library(lambda: Settings.load(paths.settings_file()))
    asyncio.run(library.refresh())
    return library.default() is not None
