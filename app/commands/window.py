"""`colibri window`, and `colibri` alone: opens the window; without a display, the terminal chat."""

from __future__ import annotations

import argparse
import os
import sys

from app.system_libraries import install_command, missing_qt_packages


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command `window`."""
    parser = subparsers.add_parser(
        "window",
        help="open the window (the default)",
        description="Open the window. Where there is no display, the terminal chat with the same engine.",
    )
    parser.add_argument("-m", "--model", metavar="FILE", help="open this GGUF model instead of the one chosen last")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Open the window and return when it is closed."""
    obstacle = find_obstacle()
    if obstacle:
        print(f"{obstacle}\nOpening the terminal chat instead.", file=sys.stderr)
        return _chat(options)
    from ui.app import main as open_window  # noqa: PLC0415 - the window is loaded when it is wanted

    return open_window(["--model", options.model] if options.model else [])


def find_obstacle() -> str:
    """Why no window can be opened here; "" when nothing is in its way."""
    if not any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")):
        return "There is no display here (neither DISPLAY nor WAYLAND_DISPLAY is set)."
    missing = missing_qt_packages()
    if missing:
        return f"The window needs system libraries that are missing. Install them with:\n    {install_command(missing)}"
    return ""


def _chat(options: argparse.Namespace) -> int:
    from app.__main__ import main  # noqa: PLC0415 - only on this road

    return main(["chat", *(["--model", options.model] if options.model else [])])
