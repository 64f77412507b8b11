"""Compiled kernels in the cache: damage is noticed and repaired, one process builds for all, progress ends at 1.

Compiling takes half a minute, so here "building" copies what has been built already; the rest is the real thing.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engine.errors import KernelBuildError
from engine.kernels import library
from engine.kernels.library import CACHE_VARIABLE, KernelLibrary, load_library
from engine.kernels.tiers import ISA_VARIABLE, TIERS, Tier, choose_tier
from tests.support.program import ROOT


@pytest.fixture(scope="module")
def tier() -> Tier:
    return choose_tier()


@pytest.fixture(scope="module")
def built(tier: Tier, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the folder in which this tier's kernels are."""
    load_library(tier)
    folder = library.cache_root() / library._folder_name(tier)
    return Path(shutil.copytree(folder, tmp_path_factory.mktemp("built") / folder.name))


@pytest.fixture
def builds(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """An empty cache folder, and the folders that were built in it."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    folders: list[Path] = []

    def build(_tier: Tier, folder: Path, _progress: object) -> None:
        folders.append(folder)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(built, folder)

    monkeypatch.setattr(library, "_build", build)
    return folders


def works(kernels: KernelLibrary) -> bool:
    """Whether one kernel, called, does what it should."""
    x, y = np.ones(16, np.float32), np.full(16, 2, np.float32)
    kernels.run("add", x=x.ctypes.data, y=y.ctypes.data, stride=64, n=16, scale=1.0)
    return bool((x == 3).all())


def test_kernels_are_built_once_and_then_found(tier: Tier, builds: list[Path]) -> None:
    assert works(library._load_or_build(tier, None))
    assert works(library._load_or_build(tier, None))
    assert len(builds) == 1


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
    "missing index": lambda folder: (folder / "index.json").unlink(),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_noticed_and_repaired(tier: Tier, builds: list[Path], damage: str) -> None:
    library._load_or_build(tier, None)
    DAMAGE[damage](builds[0])
    assert works(library._load_or_build(tier, None))
    assert len(builds) == 2
    assert works(library._load_or_build(tier, None))
    assert len(builds) == 2


def test_a_kernel_whose_code_is_not_in_its_object_is_refused(tier: Tier, built: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(built, tmp_path / "kernels"))
    index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    index["add"]["symbol"] = "nowhere"
    (folder / "index.json").write_text(json.dumps(index), encoding="utf-8")
    kernels = KernelLibrary(tier, folder)
    with pytest.raises(KernelBuildError, match="add has no code"):
        works(kernels)


def test_a_cache_that_cannot_be_written_is_replaced_for_this_run(
    tier: Tier, builds: list[Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "file" / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert works(library._load_or_build(tier, None))
    assert builds[0].parent.parent == tmp_path
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_cache_that_can_only_be_read_is_used(
    tier: Tier, builds: list[Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    library._load_or_build(tier, None)

    def refuse(**_: object) -> None:
        raise PermissionError("read-only file system")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    assert works(library._load_or_build(tier, None))
    assert len(builds) == 1


TWO_AT_ONCE = """
import shutil, sys, time
from pathlib import Path
from engine.kernels import library
from engine.kernels.tiers import choose_tier

built, log = Path(sys.argv[1]), Path(sys.argv[2])

def build(tier, folder, progress):
    with log.open("a") as lines:
        lines.write("built\\n")
    time.sleep(1)
    shutil.copytree(built, folder)

library._build = build
print(len(library._load_or_build(choose_tier(), None).operands))
"""


def test_two_processes_at_once_build_once(built: Path, tmp_path: Path) -> None:
    environment = {**os.environ, CACHE_VARIABLE: str(tmp_path / "cache")}
    log = tmp_path / "log"
    command = [sys.executable, "-c", TWO_AT_ONCE, str(built), str(log)]
    processes = [
        subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    counts = [int(process.communicate(timeout=60)[0]) for process in processes]
    assert counts[0] == counts[1] > 20
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
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))

    kernels = library._load_or_build(tier, None)

    assert works(kernels)
    now = tmp_path / library._folder_name(tier)
    anew = {name for name in index if (now / f"{name}.o").stat().st_size < (earlier / f"{name}.o").stat().st_size}
    assert anew == {"add", "rms_norm"}
