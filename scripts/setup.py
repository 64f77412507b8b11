"""Sets Colibri up in `.venv`: environment, locked dependencies, the system's libraries. Quick when nothing changed.

Run by `make setup` (for users) and, with --dev, by `make test` and `make check`. Standard library only.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
USER_LOCK = ROOT / "requirements.txt"
DEVELOPER_LOCK = ROOT / "requirements-dev.txt"

sys.path.insert(0, str(ROOT))

from app.system_libraries import install_command, missing_qt_packages  # noqa: E402

# Programs that the tests start -> the package that brings them.
TEST_PROGRAMS = {"Xvfb": "xvfb", "xdotool": "xdotool", "import": "imagemagick"}


class SetupError(Exception):
    """A step that failed in a way that the user can mend; the text says how."""


def say(text: str) -> None:
    """Tell the user what is going on."""
    print(text, file=sys.stderr, flush=True)


def make_environment() -> None:
    """Create .venv with the running Python, unless a working one is there."""
    if _works(VENV_PYTHON):
        return
    if importlib.util.find_spec("ensurepip") is None:
        package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
        if not install_packages([package]):
            raise SetupError(
                f"{sys.executable} cannot make virtual environments: the package {package} is missing. "
                f"Install it with:\n    {install_command([package])}"
            )
    say(f"Making the virtual environment .venv with {sys.executable} ...")
    made = subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], check=False)
    if made.returncode != 0:
        raise SetupError(f"{sys.executable} -m venv failed (exit code {made.returncode}); its message is above.")


def install_dependencies(lock: Path) -> None:
    """Install what `lock` names, every file checked against its hash; nothing is done when it is installed already."""
    if installed(lock):
        return
    size = "600 MB" if lock == USER_LOCK else "100 MB"
    say(f"Installing what {lock.name} names (once; some {size} on disk) ...")
    command = [str(VENV_PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    if not sys.stderr.isatty():
        command.append("--quiet")
    command += ["--require-hashes", "--only-binary", ":all:", "--requirement", str(lock)]
    done = subprocess.run(command, check=False)
    if done.returncode != 0:
        raise SetupError(
            f"pip could not install {lock.name} (exit code {done.returncode}); its message is above. "
            "With a network this can simply be run again: what was fetched is kept."
        )
    _stamp(lock).write_text(_digest(lock))


def installed(lock: Path) -> bool:
    """Whether .venv has exactly what `lock` names, by the stamp that the installation left."""
    stamp = _stamp(lock)
    return stamp.is_file() and stamp.read_text() == _digest(lock)


def link_program() -> None:
    """Let `.venv/bin/colibri` and `import engine` work from any folder."""
    version = f"python{_venv_version()}"
    path_file = VENV / "lib" / version / "site-packages" / "colibri.pth"
    _write_if_changed(path_file, f"{ROOT}\n")
    launcher = VENV / "bin" / "colibri"
    _write_if_changed(launcher, f'#!/bin/sh\nexec "{VENV_PYTHON}" -m app "$@"\n')
    launcher.chmod(0o755)


def check_system(packages: list[str], purpose: str) -> bool:
    """Install the missing system packages where that is allowed, else print the command; True when none is missing."""
    if not packages or install_packages(packages):
        return True
    say(f"\nMissing for {purpose}: {', '.join(packages)}. Install with:\n    {install_command(packages)}\n")
    return False


def install_packages(packages: list[str]) -> bool:
    """Run apt-get as root or through password-less sudo; False where neither is possible or it failed."""
    if shutil.which("apt-get") is None:
        return False
    if os.geteuid() == 0:
        prefix = []
    elif shutil.which("sudo") and _quiet(["sudo", "-n", "true"]):
        prefix = ["sudo", "-n"]
    else:
        return False
    say(f"Installing system packages: {' '.join(packages)} ...")
    environment = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive"]
    install = [*environment, "apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
    if _quiet(install):
        return True
    return _quiet([*environment, "apt-get", "update", "-qq"]) and _quiet(install)


def _stamp(lock: Path) -> Path:
    return VENV / f".colibri-{lock.stem}"


def _digest(lock: Path) -> str:
    return hashlib.sha256(lock.read_bytes()).hexdigest()


def _quiet(command: list[str]) -> bool:
    output = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return output.returncode == 0


def _works(python: Path) -> bool:
    return python.exists() and _quiet([str(python), "-c", "import sys; assert sys.version_info >= (3, 11)"])


def _venv_version() -> str:
    output = subprocess.run(
        [str(VENV_PYTHON), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
        capture_output=True,
        text=True,
        check=True,
    )
    return output.stdout.strip()


def _write_if_changed(path: Path, text: str) -> None:
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)


def main() -> int:
    """Set up; the exit code is 0 when the program (with --dev: its tests, too) can run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--dev", action="store_true", help="also what developers need: pytest, ruff, mypy, a virtual display"
    )
    arguments = parser.parse_args()
    try:
        make_environment()
        install_dependencies(USER_LOCK)
        if arguments.dev:
            install_dependencies(DEVELOPER_LOCK)
        link_program()
    except SetupError as error:
        say(f"\n{error}")
        return 1
    check_system(missing_qt_packages(), "the window")
    if arguments.dev:
        missing = [package for program, package in TEST_PROGRAMS.items() if shutil.which(program) is None]
        if not check_system(missing, "the tests of the window"):
            return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
