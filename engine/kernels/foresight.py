"""Choosing the next layer's experts in advance, so that the disk reads them while this layer is being computed.

The router of the next layer with experts is applied to what the router of this one sees. Those that it likes best and
that are not in memory are asked of the system, which reads them into its page cache; nothing waits, nothing is written,
and no result depends on it.

foresee   which experts to ask for; and what became of those that were asked for this layer
ask       asks for one expert: the pages of its three matrices in the mapped file
"""

from __future__ import annotations

import platform

from llvmlite import ir
from numba import types

from engine.kernels.memory import IS_LINUX, load_i32, load_i64, store_i64, zero_bytes
from engine.kernels.registry import helper, kernel
from engine.kernels.simd import I64, call_llvm, define

_CHOSEN, _FORESEEN = 1, 2  # marks of an expert
_PAGE_BYTES = 4096
_PIECE_BYTES = 128 << 10  # Linux cuts a single wish off at what it reads ahead at most: this at least
_SYS_MADVISE = {"x86_64": 28, "aarch64": 233}.get(platform.machine(), 0)
_MADV_WILLNEED = 3


def _will_need(b: ir.IRBuilder, address: ir.Value, n_bytes: ir.Value) -> None:
    """Let the system read these pages of a mapped file, without waiting for it (man 2 madvise); elsewhere nothing."""
    if IS_LINUX and _SYS_MADVISE:
        number, advice = ir.Constant(I64, _SYS_MADVISE), ir.Constant(I64, _MADV_WILLNEED)
        call_llvm(b, "syscall", I64, [number, address, n_bytes, advice, advice, advice])


will_need = define(types.void, (types.int64, types.int64), _will_need)


@helper
def mark(marks, experts, pairs, bit):
    for choice in range(pairs):
        cell = marks + 8 * load_i32(experts + 4 * choice)
        store_i64(cell, load_i64(cell) | bit)


@helper
def ask_for(address, n_bytes):
    last = address + n_bytes
    address = address // _PAGE_BYTES * _PAGE_BYTES
    while address < last:
        will_need(address, min(_PIECE_BYTES, last - address))
        address += _PIECE_BYTES


@kernel
def foresee(
    chunk,
    scratch,
    n_experts: int,
    top_k: int,
    n_tokens: int,
    n_foreseen: int,
    chosen: int,
    foreseen: int,
    asked: int,
    sums: int,
    next_foreseen: int,
    next_slots: int,
    next_asked: int,
    wanted: int,
    n_wanted: int,
    n_ranks: int,
    expert_bytes: int,
):
    """Write to `wanted` the experts that the next layer is expected to need and that are not in memory.

    The cells `n_tokens` and `n_foreseen` have the numbers of tokens whose experts are `chosen`, and whose experts are
    or were `foreseen` in advance (0: nothing is foreseen in this run). `foreseen` is 0 in the first layer with experts,
    `next_foreseen` in the last. Wanted are those foreseen as the first, second ... of a token, up to `n_ranks`, in this
    order. `asked` (n_experts,) is 1 for those that were asked for since this layer's last turn. `sums` grow: by the
    different experts that were needed where something was foreseen; by those of them that had been foreseen; by those
    asked for now, and their `expert_bytes`; by those that had been asked for this layer and were needed, and were not.
    """
    ahead, n_asked = load_i64(n_foreseen) * top_k, 0
    if next_foreseen != 0:
        for rank in range(n_ranks):
            for choice in range(rank, ahead, top_k):
                expert = load_i32(next_foreseen + 4 * choice)
                if load_i64(next_slots + 8 * expert) == 0 and load_i64(next_asked + 8 * expert) == 0:
                    store_i64(next_asked + 8 * expert, 1)
                    store_i64(wanted + 8 * n_asked, expert)
                    n_asked += 1
    store_i64(n_wanted, n_asked)
    zero_bytes(scratch, 8 * n_experts)
    mark(scratch, chosen, load_i64(n_tokens) * top_k, _CHOSEN)
    if foreseen != 0:
        mark(scratch, foreseen, ahead, _FORESEEN)
    n_needed, n_right, n_used, n_unused = 0, 0, 0, 0
    for expert in range(n_experts):
        marks, was_asked = load_i64(scratch + 8 * expert), load_i64(asked + 8 * expert)
        is_chosen = marks & _CHOSEN
        n_needed += is_chosen
        n_right += is_chosen & (marks >> 1)
        n_used += was_asked & is_chosen
        n_unused += was_asked & (1 - is_chosen)
        store_i64(asked + 8 * expert, 0)
    if foreseen != 0 and ahead > 0:
        store_i64(sums, load_i64(sums) + n_needed)
        store_i64(sums + 8, load_i64(sums + 8) + n_right)
    store_i64(sums + 16, load_i64(sums + 16) + n_asked)
    store_i64(sums + 24, load_i64(sums + 24) + n_asked * expert_bytes)
    store_i64(sums + 32, load_i64(sums + 32) + n_used)
    store_i64(sums + 40, load_i64(sums + 40) + n_unused)


@kernel
def ask(chunk, scratch, wanted: int, sources: int, gate_bytes: int, up_bytes: int, down_bytes: int):
    """Ask for the expert number `chunk` of `wanted`. `sources`: of each expert the addresses of its three matrices."""
    source = sources + 24 * load_i64(wanted + 8 * chunk)
    ask_for(load_i64(source), gate_bytes)
    ask_for(load_i64(source + 8), up_bytes)
    ask_for(load_i64(source + 16), down_bytes)
