"""The memory that kernels work in: named buffers on huge pages where the system gives them, counted by kind."""

from __future__ import annotations

import bisect
import ctypes
import mmap
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import psutil

from engine.errors import OutOfMemoryPlanError

_ALIGNMENT = 64
_PAGE_BYTES = mmap.PAGESIZE
_HUGE_PAGE_BYTES = 2 << 20
# Smaller buffers share mappings, one behind the other: huge pages are not to be left half empty at each one's end.
_OWN_MAPPING_BYTES, _SHARED_MAPPING_BYTES = 16 << 20, 64 << 20
_MAP_HUGETLB = 0x40000
_MADV_HUGEPAGE, _MADV_DONTNEED, _MADV_WILLNEED = 14, 4, 3
_READ_AHEAD_BYTES = 128 << 10  # Linux cuts a single wish off at what it reads ahead at most: this at least
_KEPT_FREE_BYTES = 256 << 20  # what a plan leaves to the rest of the system

_libc = ctypes.CDLL(None)
_libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


@dataclass(frozen=True, slots=True)
class Buffer:
    """`n_bytes` of memory at `address`, a multiple of 64."""

    name: str
    address: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Bytes that a model takes once it is open, by kind; what it reads through the page cache is not counted."""

    weights_bytes: int  # resident: attention, router, norms, shared experts, output
    expert_bytes: int  # slabs for routed experts
    kv_bytes: int
    buffer_bytes: int  # activations, logits, tables
    page_kinds: Mapping[str, int]  # bytes by what they lie on: "hugetlb", "transparent huge pages", "4 KiB pages"

    @property
    def total_bytes(self) -> int:
        return self.weights_bytes + self.expert_bytes + self.kv_bytes + self.buffer_bytes


class Memory:
    """Hands out buffers and knows them again: the verifier asks it whether an extent lies inside one.

    Buffers are only reserved until `commit`: nothing may touch them before, and what fills them waits for `fill`. So a
    plan is made once, with its addresses, and refused without having taken anything. With `measure_only` nothing is
    reserved either; addresses are made up.
    """

    def __init__(self, *, measure_only: bool = False) -> None:
        self._measure_only = measure_only
        self._mappings: list[Any] = []
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._writable: list[bool] = []
        self._bytes_by_kind: Counter[str] = Counter()
        self._bytes_by_page: Counter[str] = Counter()
        self._shared_next = self._shared_end = 0
        self._shared_pages = ""  # the kind of pages of the mapping that is shared now
        self._made_up = 1 << 40
        self._refusal: OutOfMemoryPlanError | None = None
        self._fills: list[Callable[[], None]] = []

    def allocate(self, name: str, n_bytes: int, kind: str) -> Buffer:
        """Zeroed memory, to be used after `commit`; `kind` is "weights", "experts", "kv" or "buffers"."""
        n_bytes = -(-max(n_bytes, 1) // _ALIGNMENT) * _ALIGNMENT
        self._bytes_by_kind[kind] += n_bytes
        if n_bytes >= _OWN_MAPPING_BYTES:
            address, page_kind = self._map(n_bytes)
        else:
            if self._shared_end - self._shared_next < n_bytes:
                self._shared_next, self._shared_pages = self._map(_SHARED_MAPPING_BYTES)
                self._shared_end = self._shared_next + _SHARED_MAPPING_BYTES
            address, page_kind = self._shared_next, self._shared_pages
            self._shared_next += n_bytes
        if page_kind:
            self._bytes_by_page[page_kind] += n_bytes
        self._note(address, n_bytes, writable=True)
        return Buffer(name, address, n_bytes)

    def fill_later(self, fill: Callable[[], None]) -> None:
        """Keep `fill`, which writes into buffers, for the method `fill`, which calls all of them in this order."""
        if not self._measure_only:
            self._fills.append(fill)

    def commit(self) -> None:
        """Let the buffers be used. Raises OutOfMemoryPlanError when they do not fit into this machine's memory."""
        check_fits(self.plan())
        if self._refusal:
            raise self._refusal

    def fill(self) -> None:
        """Write what buffers begin with."""
        fills, self._fills = self._fills, []
        for fill in fills:
            fill()

    def know(self, address: int, n_bytes: int) -> None:
        """Count `n_bytes` at `address`, that somebody else holds (a mapped file), as known and only to be read."""
        self._note(address, n_bytes, writable=False)

    def _note(self, address: int, n_bytes: int, *, writable: bool) -> None:
        place = bisect.bisect(self._starts, address)
        self._starts.insert(place, address)
        self._ends.insert(place, address + n_bytes)
        self._writable.insert(place, writable)

    def contains(self, address: int, n_bytes: int, *, writable: bool = False) -> bool:
        """Whether the extent lies inside one known buffer, and with `writable` whether that may be written too."""
        place = bisect.bisect(self._starts, address) - 1
        return place >= 0 and address + n_bytes <= self._ends[place] and (self._writable[place] or not writable)

    def plan(self) -> MemoryPlan:
        kinds = self._bytes_by_kind
        return MemoryPlan(kinds["weights"], kinds["experts"], kinds["kv"], kinds["buffers"], dict(self._bytes_by_page))

    def close(self) -> None:
        """Give all memory back; no address from here may be used afterwards."""
        self._mappings.clear()
        self._fills.clear()
        self._starts.clear()
        self._ends.clear()
        self._writable.clear()

    def _map(self, n_bytes: int) -> tuple[int, str]:
        """The address of a new mapping, and the kind of its pages: "" where it is made up."""
        if self._measure_only or self._refusal:
            return self._make_up(n_bytes)
        try:
            mapping, page_kind = _anonymous_mapping(n_bytes)
        except OutOfMemoryPlanError as refusal:
            self._refusal = refusal  # the plan is made to its end, so that `commit` can say what all of it takes
            return self._make_up(n_bytes)
        array = np.frombuffer(mapping, np.uint8)
        self._mappings.append(array)
        return _aligned(array.ctypes.data), page_kind

    def _make_up(self, n_bytes: int) -> tuple[int, str]:
        address = self._made_up
        self._made_up += -(-n_bytes // _HUGE_PAGE_BYTES) * _HUGE_PAGE_BYTES
        return address, ""


def _aligned(address: int) -> int:
    return -(-address // _HUGE_PAGE_BYTES) * _HUGE_PAGE_BYTES


def _anonymous_mapping(n_bytes: int) -> tuple[mmap.mmap, str]:
    """A private mapping with room to start on a huge page, and the kind of pages it was asked for."""
    padded = (-(-n_bytes // _HUGE_PAGE_BYTES) + 1) * _HUGE_PAGE_BYTES
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    try:
        return mmap.mmap(-1, padded, flags=private | _MAP_HUGETLB), "hugetlb"
    except (OSError, ValueError, OverflowError):
        pass
    try:
        mapping = mmap.mmap(-1, padded, flags=private)
    except (OSError, ValueError, OverflowError) as error:
        raise OutOfMemoryPlanError(
            f"The system refused {_gigabytes(n_bytes)} of memory ({error}). Close other programs, lower the context "
            "length, or give the expert cache a limit."
        ) from None
    try:
        mapping.madvise(_MADV_HUGEPAGE)
    except (OSError, ValueError, AttributeError):
        return mapping, "4 KiB pages"
    return mapping, "transparent huge pages"


def check_fits(plan: MemoryPlan) -> None:
    """Raise OutOfMemoryPlanError if this machine has less memory available than `plan` takes."""
    available = psutil.virtual_memory().available - _KEPT_FREE_BYTES
    if plan.total_bytes > available:
        raise OutOfMemoryPlanError(
            f"This model needs {_gigabytes(plan.total_bytes)} of memory (weights {_gigabytes(plan.weights_bytes)}, "
            f"experts {_gigabytes(plan.expert_bytes)}, KV cache {_gigabytes(plan.kv_bytes)}, "
            f"buffers {_gigabytes(plan.buffer_bytes)}), and {_gigabytes(max(available, 0))} are available. "
            "Close other programs, lower the context length, or give the expert cache a limit."
        )


def _gigabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.2f} GB"


def give_back(address: int, n_bytes: int) -> None:
    """Drop the pages of a mapped file that have been read and are not needed again; they stay on disk."""
    first = -(-address // _PAGE_BYTES) * _PAGE_BYTES
    last = (address + n_bytes) // _PAGE_BYTES * _PAGE_BYTES
    if last > first:
        _libc.madvise(first, last - first, _MADV_DONTNEED)


def ask_for_pages(address: int, n_bytes: int) -> None:
    """Ask for the pages of a mapped file to be read; whoever touches one before it is there waits for it."""
    last = address + n_bytes
    for start in range(address // _PAGE_BYTES * _PAGE_BYTES, last, _READ_AHEAD_BYTES):
        _libc.madvise(start, min(_READ_AHEAD_BYTES, last - start), _MADV_WILLNEED)


def view(buffer: Buffer, dtype: np.dtype[Any] | type[np.generic[Any]], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The start of the buffer's memory as an array; it must not outlive the memory."""
    n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if n_bytes > buffer.n_bytes:
        raise ValueError(f"{buffer.name} has {buffer.n_bytes} bytes, a view of {n_bytes} was asked for")
    memory = (ctypes.c_uint8 * n_bytes).from_address(buffer.address)
    array: np.ndarray[Any, Any] = np.frombuffer(memoryview(memory), np.dtype(dtype))
    return array.reshape(shape)
