"""Starts the real program and keeps what it said."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NO_DISPLAY = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")


def colibri(*arguments: str, text: str | bytes = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the program without a display and with this standard input."""
    inherited = {name: value for name, value in os.environ.items() if name not in NO_DISPLAY}
    done = subprocess.run(
        [sys.executable, "-m", "app", *arguments],
        cwd=ROOT,
        input=text.encode() if isinstance(text, str) else text,
        capture_output=True,
        env={**inherited, **environment},
        timeout=300,  # the first run of all compiles the kernels
        check=False,
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())
