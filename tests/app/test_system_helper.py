"""The privileged helper makes its four changes on a throw-away root, undoes them, and refuses everything else."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app import system_helper
from app.system_helper import LIMITS_FILE, RefusedError, apply
from engine.hardware.frequency import read_frequency
from engine.hardware.system_files import SystemFiles
from tests.support.recorded_machines import write_machine

POOL = "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
MODE = "sys/kernel/mm/transparent_hugepage/enabled"
SCRIPT = Path(system_helper.__file__)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    machine = write_machine("amd-desktop", tmp_path / "root").root
    (machine / "etc/security/limits.d").mkdir(parents=True)
    return machine


def snapshot(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_governors_are_set_and_put_back(root: Path) -> None:
    (root / "sys/devices/system/cpu/cpu3/cpufreq/scaling_governor").write_text("schedutil\n")
    result = apply("set-governor", ["performance"], root)
    assert set(read_frequency(SystemFiles(root)).governors.values()) == {"performance"}
    undone = apply("set-governor", list(map(str, result["before"])), root)  # type: ignore[call-overload]
    governors = read_frequency(SystemFiles(root)).governors
    assert governors[3] == "schedutil" and governors[0] == governors[15] == "powersave"
    assert undone["before"] == ["performance@0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15"]


def test_a_governor_can_be_set_for_some_cpus(root: Path) -> None:
    apply("set-governor", ["performance@0-1,15"], root)
    governors = read_frequency(SystemFiles(root)).governors
    assert [cpu for cpu, governor in governors.items() if governor == "performance"] == [0, 1, 15]


def test_huge_pages_are_reserved_and_given_back(root: Path) -> None:
    result = apply("set-nr-hugepages", ["3005"], root)
    assert ((root / POOL).read_text(), result["before"], result["after"]) == ("3005", ["0"], ["3005"])
    apply("set-nr-hugepages", ["0"], root)
    assert (root / POOL).read_text() == "0"


def test_transparent_huge_pages_change_their_mode(root: Path) -> None:
    result = apply("set-thp", ["madvise"], root)
    assert ((root / MODE).read_text(), result["before"]) == ("madvise", ["never"])


def test_the_limit_on_locked_memory_is_a_drop_in_that_can_be_removed(root: Path) -> None:
    assert apply("set-memlock", ["unlimited"], root, "ada")["before"] == ["remove"]
    assert "\nada - memlock unlimited\n" in (root / LIMITS_FILE).read_text()
    assert apply("set-memlock", ["4000000"], root, "ada")["before"] == ["unlimited"]
    apply("set-memlock", ["unlimited"], root, "grace")
    apply("set-memlock", ["remove"], root, "ada")
    assert "ada" not in (root / LIMITS_FILE).read_text() and "grace" in (root / LIMITS_FILE).read_text()
    apply("set-memlock", ["remove"], root, "grace")
    assert not (root / LIMITS_FILE).exists()


def test_a_link_in_the_place_of_the_drop_in_is_not_followed(root: Path) -> None:
    victim = root / "victim"
    victim.write_text("precious")
    (root / LIMITS_FILE).symlink_to(victim)
    apply("set-memlock", ["unlimited"], root, "ada")
    assert victim.read_text() == "precious"
    assert not (root / LIMITS_FILE).is_symlink()


@pytest.mark.parametrize(
    ("verb", "values", "user"),
    [
        ("set-governor", [], ""),
        ("set-governor", ["turbo"], ""),
        ("set-governor", ["performance@99"], ""),
        ("set-governor", ["performance@0;reboot"], ""),
        ("set-governor", ["../../../etc/passwd"], ""),
        ("set-nr-hugepages", ["-1"], ""),
        ("set-nr-hugepages", ["999999999"], ""),
        ("set-nr-hugepages", ["10", "20"], ""),
        ("set-nr-hugepages", ["1e3"], ""),
        ("set-thp", ["[always]"], ""),
        ("set-thp", ["always\n"], ""),
        ("set-memlock", ["unlimited"], ""),
        ("set-memlock", ["unlimited"], "root"),
        ("set-memlock", ["unlimited"], "ada\nroot"),
        ("set-memlock", ["unlimited # x"], "ada"),
        ("set-swappiness", ["10"], ""),
        ("", [], ""),
    ],
)
def test_anything_else_is_refused_and_changes_nothing(root: Path, verb: str, values: list[str], user: str) -> None:
    before = snapshot(root)
    with pytest.raises(RefusedError, match=r"expected|knows|has no"):
        apply(verb, values, root, user)
    assert snapshot(root) == before


def test_a_governor_that_the_driver_lacks_is_refused_by_name(tmp_path: Path) -> None:
    root = write_machine("intel-hybrid-laptop", tmp_path).root
    with pytest.raises(RefusedError, match="knows the governors performance, powersave, not schedutil"):
        apply("set-governor", ["schedutil"], root)


def test_a_machine_without_governors_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="found none"):
        apply("set-governor", ["performance"], write_machine("kvm-guest", tmp_path).root)


def test_it_needs_nothing_but_the_standard_library() -> None:
    tree = ast.parse(SCRIPT.read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module).split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in imported} <= set(sys.stdlib_module_names)
    assert not imported & {"subprocess", "shutil", "ctypes"}


@pytest.mark.skipif(os.geteuid() == 0, reason="only root may go on")
def test_it_refuses_to_run_as_a_user() -> None:
    ended = subprocess.run(
        [sys.executable, "-I", SCRIPT, "set-thp", "madvise"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2 and "pkexec" in ended.stderr


def test_a_wrong_call_of_the_program_is_refused_with_an_exit_code() -> None:
    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-I", SCRIPT, *arguments], capture_output=True, text=True, check=False)

    assert call().returncode == 2
    refused = call("set-thp", "sometimes")
    assert refused.returncode in (1, 2) and "expected" in refused.stderr
