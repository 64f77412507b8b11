"""The compiled kernels of a tier, built when they are first needed and kept in the user's cache."""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import hashlib
import json
import logging
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs

from engine.errors import KernelBuildError
from engine.kernels.layout import OP_BYTES, OPERANDS_OFFSET
from engine.kernels.linking import Linker
from engine.kernels.tiers import Tier

CACHE_VARIABLE = "COLIBRI_KERNEL_CACHE"
Progress = Callable[[str, float], None]
Operands = tuple[tuple[str, str], ...]

_BUILDING = "building-"  # begins the name of a temporary folder; the name of the one to be filled follows
_QUEUE = bytes(range(256))  # numbers of work for the build processes (see build.py): more than there are groups

_log = logging.getLogger(__name__)
_SOURCES = Path(__file__).parent
_DATA_SOURCES = [_SOURCES.parent / "gguf" / name for name in ("codebooks.py", "expansions/tables.py")]  # in kernels too
_ENTRY_KEYS = {"symbol", "sha256", "operands"}
_ENTRY = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64
)


class KernelLibrary:
    """Native code of one tier's kernels. A kernel is compiled when it is first needed by this machine, and kept."""

    def __init__(self, tier: Tier) -> None:
        """Nothing is read or compiled yet."""
        self.tier = tier
        self._name = _folder_name(tier)
        self._roots = [cache_root()]
        self._lock = threading.RLock()
        self._schemas: dict[str, Operands] = {}
        self._objects: dict[str, tuple[str, bytes]] = {}  # symbol and object code, of kernels not linked yet
        self._addresses: dict[str, int] = {}
        self._linker = Linker()

    def require(self, names: Iterable[str], progress: Progress | None = None) -> None:
        """Have these kernels at hand: read from the cache, or compiled now (`progress`: kernel name, fraction).

        Raises KernelBuildError when they cannot be compiled.
        """
        with self._lock:
            missing = self._read(names)
            if missing:
                self._obtain(missing, progress, whole_families=False)

    def address(self, name: str) -> int:
        """Where the kernel's code is. Raises KernelBuildError if it cannot be compiled, or is not in its object."""
        if name not in self._addresses:
            with self._lock:
                self.schema(name)
                if name not in self._addresses:
                    self._link(name)
        return self._addresses[name]

    def schema(self, name: str) -> Operands:
        """Names and kinds of a kernel's operands, in the order of the record."""
        with self._lock:
            if self._read((name,)):  # nobody has asked for it before, so relatives will be wanted too
                self._obtain({name}, None, whole_families=True)
            return self._schemas[name]

    def pack(self, name: str, operands: dict[str, float]) -> np.ndarray[Any, Any]:
        """The record of one operation: `operands` by the names in the kernel's signature, all of them."""
        schema = self.schema(name)
        if operands.keys() != {operand for operand, _ in schema}:
            raise TypeError(f"{name} takes {[operand for operand, _ in schema]}, not {sorted(operands)}")
        record = np.zeros(OP_BYTES // 8, np.int64)
        record[0] = self.address(name)
        for cell, (operand, kind) in enumerate(schema, OPERANDS_OFFSET // 8):
            if kind == "float":
                record[cell : cell + 1].view(np.float64)[0] = operands[operand]
            else:
                record[cell] = operands[operand]
        return record

    def function(self, name: str) -> Callable[[int, int, int], None]:
        """The kernel as a call (record address, chunk, scratch address) that holds no GIL."""
        entry = _ENTRY(self.address(name))
        unused = (ctypes.c_int64 * 2)()  # Numba's calling convention returns through pointers; kernels return nothing
        result, error = ctypes.addressof(unused), ctypes.addressof(unused) + 8

        def call(record: int, chunk: int, scratch: int) -> None:
            entry(result, error, record, chunk, scratch)

        call.keep = unused  # type: ignore[attr-defined]
        return call

    def run(self, name: str, chunk: int = 0, scratch: int = 0, **operands: float) -> None:
        """Run one chunk of a kernel on the calling thread: for tests and for work outside of plans."""
        record = self.pack(name, operands)
        self.function(name)(record.ctypes.data, chunk, scratch)

    def _obtain(self, names: set[str], progress: Progress | None, *, whole_families: bool) -> None:
        _log.info("%d kernels for %s are not built yet", len(names), self.tier.name)
        if len(self._roots) == 1 and (root := _writable_cache_root()) != self._roots[0]:
            self._roots.append(root)
        root = self._roots[-1]
        with _locked(root / "lock"):
            _keep_left_behind(root / self._name)
            missing = self._read(names)  # another process may have built them while we waited
            if missing:
                _build(self.tier, root / self._name, missing, progress, whole_families=whole_families)
                missing = self._read(missing)
        if missing:
            raise KernelBuildError(
                f"The kernels {', '.join(sorted(missing))} were compiled, but cannot be read in {root}. "
                "Look whether the disk is full, delete that folder and start again."
            )

    def _read(self, names: Iterable[str]) -> set[str]:
        """Take those of the kernels that are not here from the cache. Returns what it has not, or only damaged."""
        missing = {name for name in names if name not in self._schemas}
        for root in self._roots if missing else ():
            folder = root / self._name
            try:
                index = read_index(folder)
                for name in sorted(missing & index.keys()):
                    entry = index[name]
                    self._objects[name] = entry["symbol"], _read_object(folder, name, entry["sha256"])
                    self._schemas[name] = tuple((operand, kind) for operand, kind in entry["operands"])
                    missing.remove(name)
            except OSError:
                pass  # there is none yet, or a part of it is gone
            except KernelBuildError as damaged:
                _log.warning("%s It is built again.", damaged)
        return missing

    def _link(self, name: str) -> None:
        symbol, object_code = self._objects[name]
        try:
            address = self._linker.link(symbol, object_code)
        except OSError as error:
            raise KernelBuildError(
                f"The kernel {name} cannot be run: {error}. Run `colibri doctor`: it tells what forbids this."
            ) from error
        if not address:
            raise KernelBuildError(
                f"The kernel {name} has no code in {self._roots[-1] / self._name}. Delete that folder and start again."
            )
        self._addresses[name] = address
        del self._objects[name]


_loaded: dict[str, KernelLibrary] = {}


def load_library(tier: Tier) -> KernelLibrary:
    """The kernels of `tier`, the same object each time."""
    return _loaded.setdefault(tier.name, _loaded.get(tier.name) or KernelLibrary(tier))


def cache_root() -> Path:
    """The folder of compiled kernels; it need not exist."""
    return Path(os.environ.get(CACHE_VARIABLE) or platformdirs.user_cache_path("colibri", appauthor=False) / "kernels")


def _writable_cache_root() -> Path:
    """The cache folder, or a temporary one, gone when the program ends, where it cannot be written."""
    root = cache_root()
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root):
            return root
    except OSError as error:
        _log.warning("cannot keep compiled kernels in %s (%s); they are compiled for this run only", root, error)
        temporary = Path(tempfile.mkdtemp(prefix="colibri-kernels-"))
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        return temporary


def build_facts(tier: Tier) -> bytes:
    """What compiled code depends on beside its sources: the compilers, the tier and the kind of processor."""
    facts = (version("numba"), version("llvmlite"), tier.cpu_name, tier.features, platform.machine())
    return b"".join(fact.encode() + b"\0" for fact in facts)


def _folder_name(tier: Tier) -> str:
    digest = hashlib.sha256()
    for source in (*sorted(_SOURCES.glob("*.py")), *_DATA_SOURCES):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    digest.update(build_facts(tier))
    return f"{tier.name}-{digest.hexdigest()[:16]}"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def read_index(folder: Path) -> dict[str, dict[str, Any]]:
    """What is in a folder of kernels: of each its symbol, operands, and digests of its object and of its sources.

    Raises OSError if there is no such folder, KernelBuildError if the index is damaged.
    """
    content = (folder / "index.json").read_bytes()
    try:
        index: dict[str, dict[str, Any]] = json.loads(content)
        complete = all(entry.keys() >= _ENTRY_KEYS for entry in index.values())
    except (ValueError, TypeError, AttributeError) as error:
        raise KernelBuildError(f"The kernel index in {folder} is damaged ({error}).") from None
    if not complete:
        raise KernelBuildError(f"The kernel index in {folder} is damaged (entries are missing).")
    return index


def _read_object(folder: Path, name: str, sha256: str) -> bytes:
    code = (folder / f"{name}.o").read_bytes()
    if hashlib.sha256(code).hexdigest() != sha256:
        raise KernelBuildError(f"The compiled kernel {name} in {folder} does not match its checksum.")
    return code


def _build(
    tier: Tier, folder: Path, names: Collection[str], progress: Progress | None, *, whole_families: bool
) -> None:
    """Compile in as many processes as there are cores, into a temporary folder whose files are then moved to `folder`.

    The caller holds the lock of the cache. What is whole is kept, also when it is cut short.
    """
    n_parts = min(4, os.cpu_count() or 1, 4 if whole_families else len(names))
    building = Path(tempfile.mkdtemp(prefix=f"{_BUILDING}{folder.name}-", dir=folder.parent))
    how = "families" if whole_families else "kernels"
    command = [sys.executable, "-m", "engine.kernels.build", tier.name, str(building), how, *sorted(names)]
    errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the processes, below)
    project = _SOURCES.parent.parent
    queue, queue_end = os.pipe()
    os.write(queue_end, _QUEUE)
    os.close(queue_end)
    if progress is not None:
        progress(min(names), 0.0)
    parts = [
        # from the project's folder, so that it is these sources which are compiled
        subprocess.Popen(command, cwd=project, stdin=queue, stdout=subprocess.PIPE, stderr=errors, text=True)
        for _ in range(n_parts)
    ]
    os.close(queue)
    try:
        _report(parts, progress)
        if any(part.wait() for part in parts):
            errors.seek(0)
            last_lines = errors.read().decode(errors="replace").strip()[-2000:]
            raise KernelBuildError(f"The kernels could not be compiled for {tier.name}:\n{last_lines}")
    finally:
        for part in parts:
            part.kill()
            part.wait()
        errors.close()
        _take_over(building, folder)


def _keep_left_behind(folder: Path) -> None:
    """Take over what builds for this folder had finished when their program was killed; clear away all others'."""
    for building in folder.parent.glob(f"{_BUILDING}*"):
        if building.name.startswith(f"{_BUILDING}{folder.name}-"):
            _take_over(building, folder)
        shutil.rmtree(building, ignore_errors=True)


def _take_over(building: Path, folder: Path) -> None:
    """Move what was built into the folder; the index names nothing before it is there whole."""
    folder.mkdir(exist_ok=True)
    try:
        index = read_index(folder)
    except (OSError, KernelBuildError):
        index = {}
    for entry in building.glob("*.json"):
        with suppress(OSError, ValueError):  # cut short while it was written
            facts = json.loads(entry.read_bytes())
            (building / f"{entry.stem}.o").replace(folder / f"{entry.stem}.o")
            index[entry.stem] = facts
    (building / "index").write_text(json.dumps(index), encoding="utf-8")
    (building / "index").replace(folder / "index.json")
    shutil.rmtree(building, ignore_errors=True)


def _report(parts: list[subprocess.Popen[str]], progress: Progress | None) -> None:
    """Turn the build processes' output lines into progress, until all have closed it."""
    import selectors  # noqa: PLC0415  (only a first start needs it)

    n_built = 0
    with selectors.DefaultSelector() as waiting:
        for part in parts:
            assert part.stdout is not None
            waiting.register(part.stdout, selectors.EVENT_READ)
        while waiting.get_map():
            for key, _ in waiting.select():
                line = key.fileobj.readline()  # type: ignore[union-attr]
                if not line:
                    waiting.unregister(key.fileobj)
                elif line.startswith("built "):
                    _, name, n_kernels = line.split()
                    n_built += 1
                    if progress is not None:
                        progress(name, n_built / int(n_kernels))
