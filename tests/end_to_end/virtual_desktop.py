"""A screen that nobody sees: starts Xvfb and, on it, the real program; types, clicks, and takes pictures."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from tests.support.waiting import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
_TOOLS = ("Xvfb", "xdotool", "import")
_PACKAGES = "xvfb xdotool imagemagick"


class VirtualDesktop:
    """An X server of its own; a context manager."""

    def __init__(self, width: int = 1280, height: int = 820) -> None:
        missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
        if missing:
            raise RuntimeError(f"{', '.join(missing)} not found: install {_PACKAGES} (make setup does it)")
        self._size = f"{width}x{height}x24"
        self._server: subprocess.Popen[bytes] | None = None
        self.display = ""

    def __enter__(self) -> VirtualDesktop:
        read_end, write_end = os.pipe()
        command = ["Xvfb", "-displayfd", str(write_end), "-screen", "0", self._size, "-nolisten", "tcp", "-noreset"]
        self._server = subprocess.Popen(command, pass_fds=[write_end], stderr=subprocess.DEVNULL)
        os.close(write_end)
        with os.fdopen(read_end) as number:
            self.display = f":{number.readline().strip()}"
        if self.display == ":":
            raise RuntimeError("Xvfb did not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.terminate()
            self._server.wait(PATIENCE_S)

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of programs on this screen."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("QT_", "WAYLAND_"))}
        return {**kept, "DISPLAY": self.display, "QT_QPA_PLATFORM": "xcb", "LANG": "C.UTF-8", **more}

    def run(self, *command: str) -> str:
        """Run a tool on this screen and return what it prints."""
        done = subprocess.run(
            command, env=self.environment(), check=True, capture_output=True, text=True, timeout=PATIENCE_S
        )
        return done.stdout

    def key(self, *keys: str) -> None:
        """Press keys, e.g. ``key("ctrl+n")``."""
        self.run("xdotool", "key", "--delay", "30", *keys)

    def type(self, text: str) -> None:
        """Type a text into whatever has the focus."""
        self.run("xdotool", "type", "--delay", "15", text)

    def click(self, x: int, y: int) -> None:
        self.run("xdotool", "mousemove", str(x), str(y), "click", "1")

    def picture(self, path: Path) -> None:
        """Save what the screen shows as a PNG file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.run("import", "-window", "root", str(path))


class Program:
    """Colibri's window on a virtual desktop; a context manager that closes it as a user would."""

    def __init__(self, desktop: VirtualDesktop, home: Path, *arguments: str, **environment: str) -> None:
        self._desktop = desktop
        self.output = home / "output.txt"
        self._file = self.output.open("a", encoding="utf-8")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "app", "window", *arguments],
            cwd=ROOT,
            env=desktop.environment(COLIBRI_HOME=str(home), COLIBRI_TIMINGS="1", **environment),
            stdout=self._file,
            stderr=subprocess.STDOUT,
        )
        self._seen = len(self.text())

    def text(self) -> str:
        """Everything printed so far."""
        return self.output.read_text(encoding="utf-8", errors="replace")

    def wait_for(self, text: str, seconds: float = PATIENCE_S) -> None:
        """Wait until this run of the program has printed ``text``."""
        wait_until(
            lambda: text in self.text()[self._seen :], seconds, f"“{text}” in\n{self.text()[self._seen :]}", self
        )

    def focus(self) -> None:
        """Give the window the keyboard, as a window manager would."""
        windows = self._desktop.run("xdotool", "search", "--sync", "--onlyvisible", "--name", "Colibri").split()
        self._desktop.run("xdotool", "windowfocus", "--sync", windows[-1])

    def close(self) -> float:
        """Close the window with Ctrl+Q; returns how many seconds it took to end."""
        started = time.perf_counter()
        self._desktop.key("ctrl+q")
        self.process.wait(PATIENCE_S)
        return time.perf_counter() - started

    def __enter__(self) -> Program:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(PATIENCE_S)
        self._file.close()


def wait_until(condition: Callable[[], bool], seconds: float, what: str, program: Program | None = None) -> None:
    """Wait for a condition; fail with ``what`` was expected when the time is over or the program has ended."""
    end = time.monotonic() + seconds
    while not condition():
        if program is not None and program.process.poll() is not None:
            raise AssertionError(f"the program ended with {program.process.returncode}, expected {what}")
        if time.monotonic() > end:
            raise AssertionError(f"after {seconds} s there was no {what}")
        time.sleep(0.05)
