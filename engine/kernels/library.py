"""The compiled kernels of a tier, built on the first start and loaded from the user's cache on later ones."""

from __future__ import annotations

import atexit
import ctypes
import ctypes.util
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import platformdirs

from engine.errors import KernelBuildError
from engine.kernels.layout import C_SYMBOLS, OP_BYTES, OPERANDS_OFFSET
from engine.kernels.tiers import Tier

CACHE_VARIABLE = "COLIBRI_KERNEL_CACHE"
Progress = Callable[[str, float], None]

_QUEUE = bytes(range(256))  # numbers of work for the build processes (see build.py): more than there are groups

_log = logging.getLogger(__name__)
_C_LIBRARY = ctypes.CDLL(ctypes.util.find_library("m") or None)  # libm, and through it libc
_SOURCES = Path(__file__).parent
_DATA_SOURCES = [_SOURCES.parent / "gguf" / name for name in ("codebooks.py", "expansions/tables.py")]  # in kernels too
_ENTRY_KEYS = {"symbol", "sha256", "operands"}
_ENTRY = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64
)


class KernelLibrary:
    """Native code of all kernels of one tier. `address` and `operands` are what a plan needs of them."""

    def __init__(self, tier: Tier, folder: Path) -> None:
        """Read the objects in `folder`. Raises KernelBuildError if one is missing or damaged."""
        self.tier = tier
        self.operands: dict[str, tuple[tuple[str, str], ...]] = {}
        self._folder = folder
        self._objects: dict[str, tuple[str, bytes]] = {}  # symbol and object code of each kernel
        self._addresses: dict[str, int] = {}
        self._code: list[llvm.ExecutionEngine] = []
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        for symbol in C_SYMBOLS:
            llvm.add_symbol(symbol, ctypes.cast(getattr(_C_LIBRARY, symbol), ctypes.c_void_p).value)
        for name, entry in _read_index(folder).items():
            self._objects[name] = entry["symbol"], _read_object(folder, name, entry["sha256"])
            self.operands[name] = tuple((operand, kind) for operand, kind in entry["operands"])

    def address(self, name: str) -> int:
        """Where the kernel's code is; it is linked when first asked for, for no model needs them all.

        Raises KernelBuildError if the kernel is not in its object.
        """
        if name not in self._addresses:
            symbol, object_code = self._objects[name]
            # one engine an object: objects from different build processes may use the same inner names
            target = llvm.Target.from_default_triple().create_target_machine()
            code = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
            code.add_object_file(llvm.ObjectFileRef.from_data(object_code))
            code.finalize_object()
            address = code.get_function_address(symbol)
            if not address:
                raise KernelBuildError(
                    f"The kernel {name} has no code in {self._folder}. Delete that folder and start again."
                )
            self._code.append(code)
            self._addresses[name] = address
        return self._addresses[name]

    def pack(self, name: str, operands: dict[str, float]) -> np.ndarray[Any, Any]:
        """The record of one operation: `operands` by the names in the kernel's signature, all of them."""
        schema = self.operands[name]
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


_loaded: dict[str, KernelLibrary] = {}


def load_library(tier: Tier, progress: Progress | None = None) -> KernelLibrary:
    """The kernels of `tier`, compiled now if this machine has not done so before (`progress`: kernel name, fraction).

    Raises KernelBuildError when they cannot be compiled or loaded.
    """
    if tier.name not in _loaded:
        _loaded[tier.name] = _load_or_build(tier, progress)
    return _loaded[tier.name]


def _load_or_build(tier: Tier, progress: Progress | None) -> KernelLibrary:
    name = _folder_name(tier)
    try:
        return KernelLibrary(tier, cache_root() / name)  # it need not be writable
    except OSError:
        _log.info("kernels for %s are not built yet", tier.name)
    except KernelBuildError as damaged:
        _log.warning("%s They are built again.", damaged)
    root = _writable_cache_root()
    folder = root / name
    with _locked(root / "lock"):
        try:
            return KernelLibrary(tier, folder)  # another process may have built them while we waited
        except (FileNotFoundError, KernelBuildError):
            _build(tier, folder, progress)
    return KernelLibrary(tier, folder)


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


def _read_index(folder: Path) -> dict[str, Any]:
    content = (folder / "index.json").read_bytes()
    try:
        index: dict[str, Any] = json.loads(content)
        complete = "walk" in index and all(entry.keys() >= _ENTRY_KEYS for entry in index.values())
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


def _build(tier: Tier, folder: Path, progress: Progress | None) -> None:
    """Compile in as many processes as there are cores, into a temporary folder that is then moved into place whole."""
    n_parts = min(4, os.cpu_count() or 1)
    building = Path(tempfile.mkdtemp(prefix="building-", dir=folder.parent))
    command = [sys.executable, "-m", "engine.kernels.build", tier.name, str(building)]
    errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the processes, below)
    project = _SOURCES.parent.parent
    queue, queue_end = os.pipe()
    os.write(queue_end, _QUEUE)
    os.close(queue_end)
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
        index: dict[str, Any] = {}
        for part_index in building.glob("index.*.json"):
            index |= json.loads(part_index.read_text(encoding="utf-8"))
            part_index.unlink()
        (building / "index.json").write_text(json.dumps(index), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        building.rename(folder)
    finally:
        for part in parts:
            part.kill()
            part.wait()
        errors.close()
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
