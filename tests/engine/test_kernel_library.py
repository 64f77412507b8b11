"""Compiled kernels in the cache: built when needed, damage repaired, one process builds for all, progress ends at 1.

Compiling takes long, so here "building" copies what has been built already; the rest is the real thing.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from engine.errors import KernelBuildError
from engine.kernels import library
from engine.kernels.library import CACHE_VARIABLE, KernelLibrary, load_library
from engine.kernels.tiers import ISA_VARIABLE, TIERS, Tier, choose_tier
from tests.support.program import ROOT
from tests.support.waiting import PATIENCE_S

SOME = ("add", "rms_norm", "walk")


@pytest.fixture(scope="module")
def tier() -> Tier:
    return choose_tier()


@pytest.fixture(scope="module")
def built(tier: Tier, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the kernels SOME of this tier."""
    load_library(tier).require(SOME)
    cached = library.cache_root() / library._folder_name(tier)
    folder = tmp_path_factory.mktemp("built") / cached.name
    folder.mkdir()
    index = {name: entry for name, entry in library.read_index(cached).items() if name in SOME}
    (folder / "index.json").write_text(json.dumps(index), encoding="utf-8")
    for name in index:
        shutil.copy(cached / f"{name}.o", folder)
    return folder


@dataclass
class Build:
    """What was asked to be built, and where."""

    folder: Path
    names: set[str]
    whole_families: bool


@pytest.fixture
def builds(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Build]:
    """An empty cache folder, and what was built in it."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    builds: list[Build] = []

    def build(_tier: Tier, folder: Path, names: set[str], _progress: object, *, whole_families: bool) -> None:
        builds.append(Build(folder, set(names), whole_families))
        index = library.read_index(built)
        building = tmp_path / f"building-{len(builds)}"
        building.mkdir()
        for name in names:
            shutil.copy(built / f"{name}.o", building)
            (building / f"{name}.json").write_text(json.dumps(index[name]), encoding="utf-8")
        library._take_over(building, folder)

    monkeypatch.setattr(library, "_build", build)
    return builds


def works(kernels: KernelLibrary) -> bool:
    """Whether one kernel, called, does what it should."""
    x, y = np.ones(16, np.float32), np.full(16, 2, np.float32)
    kernels.run("add", x=x.ctypes.data, y=y.ctypes.data, stride=64, n=16, scale=1.0)
    return bool((x == 3).all())


def opened(tier: Tier) -> KernelLibrary:
    """The library with SOME of its kernels, as a process that starts now has it."""
    kernels = KernelLibrary(tier)
    kernels.require(SOME)
    return kernels


def test_kernels_are_built_once_and_then_found(tier: Tier, builds: list[Build]) -> None:
    assert works(opened(tier))
    assert works(opened(tier))
    assert [build.names for build in builds] == [set(SOME)]


def test_only_what_is_needed_and_not_there_is_built(tier: Tier, builds: list[Build]) -> None:
    KernelLibrary(tier).require(["add"])
    kernels = KernelLibrary(tier)
    kernels.require(["walk", "add"])
    kernels.require(["walk", "add"])
    assert works(kernels)
    assert [(build.names, build.whole_families) for build in builds] == [({"add"}, False), ({"walk"}, False)]


def test_a_kernel_that_nobody_required_is_built_with_its_family(tier: Tier, builds: list[Build]) -> None:
    assert works(KernelLibrary(tier))
    assert [(build.names, build.whole_families) for build in builds] == [({"add"}, True)]


def test_a_cancelled_build_keeps_what_was_finished(tier: Tier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    told: list[str] = []

    def cancel(name: str, fraction: float) -> None:
        if fraction:
            told.append(name)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        KernelLibrary(tier).require(SOME, cancel)
    kept = library.read_index(tmp_path / library._folder_name(tier)).keys()
    assert kept >= set(told)
    assert not list(tmp_path.glob("building-*"))

    later: list[str] = []
    kernels = KernelLibrary(tier)
    kernels.require(SOME, lambda name, fraction: later.append(name) if fraction else None)
    assert set(later) == set(SOME) - kept
    assert works(kernels)


def test_what_a_killed_program_had_finished_is_kept(tier: Tier, built: Path, builds: list[Build]) -> None:
    root, entries = library.cache_root(), library.read_index(built)
    left, foreign = root / f"building-{library._folder_name(tier)}-1", root / "building-another-1"
    for folder in (left, foreign):
        folder.mkdir(parents=True)
    for name in ("add", "rms_norm"):
        shutil.copy(built / f"{name}.o", left)
    (left / "add.json").write_text(json.dumps(entries["add"]), encoding="utf-8")
    (left / "rms_norm.json").write_text(json.dumps(entries["rms_norm"])[:40], encoding="utf-8")
    (left / "walk.json").write_text(json.dumps(entries["walk"]), encoding="utf-8")  # and no object

    assert works(opened(tier))

    assert [build.names for build in builds] == [{"rms_norm", "walk"}]
    assert not list(root.glob("building-*"))


def flip_last_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "flipped bit in an object": lambda folder: flip_last_byte(folder / "rms_norm.o"),
    "truncated object": lambda folder: os.truncate(folder / "walk.o", 1000),
    "empty object": lambda folder: (folder / "add.o").write_bytes(b""),
    "missing object": lambda folder: (folder / "add.o").unlink(),
    "truncated index": lambda folder: os.truncate(folder / "index.json", 500),
    "empty index": lambda folder: (folder / "index.json").write_text(""),
    "index that is no text": lambda folder: (folder / "index.json").write_bytes(b"\xff\xfe{}"),
    "index of another form": lambda folder: (folder / "index.json").write_text("[1, 2]"),
    "index without kernels": lambda folder: (folder / "index.json").write_text("{}"),
    "index without checksums": lambda folder: (folder / "index.json").write_text('{"walk": {"symbol": "walk"}}'),
    "missing folder": shutil.rmtree,
    "missing index": lambda folder: (folder / "index.json").unlink(),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_noticed_and_repaired(tier: Tier, builds: list[Build], damage: str) -> None:
    opened(tier)
    DAMAGE[damage](builds[0].folder)
    assert works(opened(tier))
    assert len(builds) == 2
    assert works(opened(tier))
    assert len(builds) == 2


def test_a_kernel_whose_code_is_not_in_its_object_is_refused(tier: Tier, builds: list[Build]) -> None:
    opened(tier)
    path = builds[0].folder / "index.json"
    index = json.loads(path.read_text(encoding="utf-8"))
    index["add"]["symbol"] = "nowhere"
    path.write_text(json.dumps(index), encoding="utf-8")
    with pytest.raises(KernelBuildError, match="add has no code"):
        works(opened(tier))


def test_a_cache_that_cannot_be_written_is_replaced_for_this_run(
    tier: Tier, builds: list[Build], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "file" / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert works(opened(tier))
    assert builds[0].folder.parent.parent == tmp_path
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_cache_that_can_only_be_read_is_used_and_added_to_elsewhere(
    tier: Tier, builds: list[Build], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    KernelLibrary(tier).require(["add"])

    def refuse(**_: object) -> None:
        raise PermissionError("read-only file system")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    kernels = KernelLibrary(tier)
    assert works(kernels)
    assert len(builds) == 1
    kernels.require(["walk"])
    kernels.require(SOME)
    assert [build.names for build in builds[1:]] == [{"walk"}, {"rms_norm"}]
    assert {build.folder.parent.parent for build in builds[1:]} == {tmp_path}


TWO_AT_ONCE = """
import shutil, sys, time
from pathlib import Path
from engine.kernels import library
from engine.kernels.tiers import choose_tier

built, log = Path(sys.argv[1]), Path(sys.argv[2])

def build(tier, folder, names, progress, whole_families):
    with log.open("a") as lines:
        lines.write("built\\n")
    time.sleep(1)
    shutil.copytree(built, folder)

library._build = build
kernels = library.KernelLibrary(choose_tier())
kernels.require(["add", "walk"])
print(len(kernels.schema("add")))
"""


def test_two_processes_at_once_build_once(built: Path, tmp_path: Path) -> None:
    environment = {**os.environ, CACHE_VARIABLE: str(tmp_path / "cache")}
    log = tmp_path / "log"
    command = [sys.executable, "-c", TWO_AT_ONCE, str(built), str(log)]
    processes = [
        subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    counts = [int(process.communicate(timeout=PATIENCE_S)[0]) for process in processes]
    assert counts[0] == counts[1] > 3
    assert log.read_text() == "built\n"


def test_progress_names_each_kernel_and_ends_at_one() -> None:
    lines = "print('noise');print('built a 4');print('built b 4')", "print('built c 4');print('built d 4')"
    parts = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for code in lines]
    seen: list[tuple[str, float]] = []
    library._report(parts, lambda name, fraction: seen.append((name, fraction)))
    assert sorted(name for name, _ in seen) == ["a", "b", "c", "d"]
    assert [fraction for _, fraction in seen] == [0.25, 0.5, 0.75, 1.0]
    for part in parts:
        assert part.wait() == 0
        assert part.stdout is not None
        part.stdout.close()


def test_operands_are_asked_for_by_name(tier: Tier) -> None:
    kernels = load_library(tier)
    with pytest.raises(TypeError, match="add takes"):
        kernels.pack("add", {"x": 1})
    with pytest.raises(TypeError, match="add takes"):
        kernels.pack("add", {"x": 1, "y": 1, "stride": 64, "n": 16, "m": 1})


def test_an_unknown_tier_is_refused_with_those_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KernelBuildError, match=r"'sse9'.*avx512.*generic"):
        choose_tier("sse9")
    monkeypatch.setenv(ISA_VARIABLE, "mmx")
    with pytest.raises(KernelBuildError, match=f"'mmx'.*{ISA_VARIABLE}"):
        choose_tier()


def test_a_tier_that_this_cpu_lacks_is_refused_with_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.kernels.tiers.cpu_flags", lambda: frozenset({"avx2", "fma"}))
    with pytest.raises(KernelBuildError, match=r"'avx2'.*lacks bmi1, bmi2, f16c"):
        choose_tier("avx2")
    assert choose_tier() is TIERS["generic"]


def test_a_kernel_that_does_not_exist_is_refused_by_name(tier: Tier) -> None:
    with pytest.raises(KernelBuildError, match="no kernels called ad, subtract"):
        load_library(tier).require(["ad", "subtract"])


def test_an_update_compiles_only_what_has_changed(
    tier: Tier, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an earlier version left is marked by a byte at its end, so that it is known where it comes again."""
    earlier = Path(shutil.copytree(built, tmp_path / f"{tier.name}-earlier"))
    index = json.loads((earlier / "index.json").read_text(encoding="utf-8"))
    for name, entry in index.items():
        code = (earlier / f"{name}.o").read_bytes() + b"\0"
        (earlier / f"{name}.o").write_bytes(code)
        entry["sha256"] = hashlib.sha256(code).hexdigest()
    index["add"]["sources"] = "those of another version"
    index["rms_norm"]["symbol"] = "damaged"
    (earlier / "index.json").write_text(json.dumps(index), encoding="utf-8")
    (tmp_path / "building-left").mkdir()
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    seen: list[tuple[str, float]] = []

    kernels = KernelLibrary(tier)
    kernels.require(SOME, lambda name, fraction: seen.append((name, fraction)))

    assert works(kernels)
    assert {name for name, _ in seen} == set(SOME)
    assert seen[-1][1] == 1.0
    now = tmp_path / library._folder_name(tier)
    anew = {name for name in index if (now / f"{name}.o").stat().st_size < (earlier / f"{name}.o").stat().st_size}
    assert anew == {"add", "rms_norm"}
    assert not list(tmp_path.glob("building-*"))
