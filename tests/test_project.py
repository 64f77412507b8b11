"""The project's own promises: locks with hashes and no hosts, a licence, a set-up that explains itself."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ("requirements.txt", "requirements-dev.txt")
_PINNED = re.compile(r"^([a-z0-9-]+)==(\S+) \\$", re.MULTILINE)


def pins(name: str) -> dict[str, str]:
    """Package -> version, as a lock file has them."""
    return dict(_PINNED.findall((ROOT / name).read_text()))


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_names_no_host_no_path_and_no_option(name: str) -> None:
    for line in (ROOT / name).read_text().splitlines():
        assert re.fullmatch(r"[a-z0-9-]+==\S+ \\|    --hash=sha256:[0-9a-f]{64}( \\)?|    # via [\w ,.-]+", line), line


@pytest.mark.parametrize("name", LOCKS)
def test_every_pinned_package_has_hashes(name: str) -> None:
    text = (ROOT / name).read_text()
    assert len(pins(name)) > 25
    for block in re.split(r"\n(?=[a-z0-9])", text.strip()):
        assert "--hash=sha256:" in block


def test_developers_use_the_versions_that_users_get() -> None:
    users, developers = pins(LOCKS[0]), pins(LOCKS[1])
    assert {name: developers.get(name) for name in users} == users


def test_every_named_dependency_is_locked() -> None:
    for name, lock in (("requirements.in", LOCKS[0]), ("requirements-dev.in", LOCKS[1])):
        lines = [line for line in (ROOT / name).read_text().splitlines() if line and line[0] not in "#-"]
        named = [re.split(r"[=<>!~;#\s]", line)[0] for line in lines]
        assert named
        assert set(named) <= set(pins(lock))


def test_the_tests_run_with_the_locked_versions() -> None:
    installed = {name: metadata.version(name) for name in pins(LOCKS[1])}
    assert installed == pins(LOCKS[1])


def test_the_licence_is_apache_2() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert text.lstrip().startswith("Apache License")
    assert "Version 2.0, January 2004" in text
    assert len(text.splitlines()) > 200


def fake_python(folder: Path, version: tuple[int, int, int]) -> Path:
    """A program that takes itself for a Python of another version."""
    path = folder / "python3"
    path.write_text(f'#!/bin/sh\nCODE="$2" exec "{sys.executable}" "{folder / "as_other.py"}"\n')
    (folder / "as_other.py").write_text(f"import os, sys\nsys.version_info = {version}\nexec(os.environ['CODE'])\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def find_python(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the search where this folder's python3 is the only Python."""
    environment = {"PATH": str(folder)}
    script = ROOT / "scripts" / "find-python"
    return subprocess.run(["/bin/sh", script], env=environment, capture_output=True, text=True, check=False)


def test_an_older_python_is_refused_with_what_to_install(tmp_path: Path) -> None:
    fake_python(tmp_path, (3, 10, 12))
    done = find_python(tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "needs Python 3.11 or newer; found: python3 is 3.10.12" in done.stderr
    assert "sudo apt-get install" in done.stderr


def test_no_python_at_all_is_said_so(tmp_path: Path) -> None:
    done = find_python(tmp_path)
    assert done.returncode == 1
    assert "found: none" in done.stderr


def test_a_newer_python_is_taken(tmp_path: Path) -> None:
    fake_python(tmp_path, (3, 13, 1))
    done = find_python(tmp_path)
    assert (done.returncode, done.stdout.strip()) == (0, sys.executable)


def test_a_second_set_up_does_nothing_and_needs_no_network() -> None:
    environment = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_CONFIG_FILE": os.devnull}
    if not (ROOT / ".venv" / ".colibri-requirements-dev").is_file():
        pytest.skip("the environment was not made by `make setup`")
    done = subprocess.run(
        [sys.executable, "scripts/setup.py", "--dev"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert "Installing" not in done.stderr
