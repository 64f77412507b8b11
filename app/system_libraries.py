"""Finds which of the system's libraries the window lacks, with the packages that bring them.

Uses the standard library alone: the set-up script runs it before anything is installed.
"""

from __future__ import annotations

import ctypes
import sys

# Shared object that Qt loads at start -> the Debian and Ubuntu package it comes from.
QT_LIBRARIES = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libgthread-2.0.so.0": "libglib2.0-0",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libX11-xcb.so.1": "libx11-xcb1",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-xinerama.so.0": "libxcb-xinerama0",
}


def missing_qt_packages() -> list[str]:
    """Debian packages whose libraries Qt needs and this system cannot load; empty where nothing is missing."""
    if not sys.platform.startswith("linux"):
        return []
    return [package for library, package in QT_LIBRARIES.items() if not _loads(library)]


def install_command(packages: list[str]) -> str:
    """The one command that a user can type to install `packages` on Debian or Ubuntu."""
    return "sudo apt-get install -y --no-install-recommends " + " ".join(packages)


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
