"""What is asked for ahead, and what is counted about it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels.library import KernelLibrary
from tests.engine.kernels.operands import Array, at
from tests.support.cold_file import cold_file, n_pages_in_memory, wait_for_pages


def distinct_choices(rng: np.random.Generator, n_tokens: int, n_experts: int, top_k: int) -> Array:
    return np.array([rng.permutation(n_experts)[:top_k] for _ in range(n_tokens)], np.int32).reshape(-1, top_k)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_tokens=st.integers(1, 5),
    n_experts=st.integers(1, 40),
    foresees=st.booleans(),
    has_earlier=st.booleans(),
    has_next=st.booleans(),
    data=st.data(),
)
def test_the_likeliest_that_are_missing_are_wanted_and_everything_is_counted(
    library: KernelLibrary,
    seed: int,
    n_tokens: int,
    n_experts: int,
    foresees: bool,
    has_earlier: bool,
    has_next: bool,
    data: st.DataObject,
) -> None:
    top_k = data.draw(st.integers(1, n_experts))
    n_ranks = data.draw(st.integers(1, top_k))
    rng = np.random.default_rng(seed)
    chosen, foreseen, ahead = (distinct_choices(rng, n_tokens, n_experts, top_k) for _ in range(3))
    asked, next_asked, next_slots = (rng.integers(0, 2, n_experts) for _ in range(3))
    was_asked, was_next_asked = asked.copy(), next_asked.copy()
    wanted, n_wanted, sums = np.full(n_experts, -1), np.array([99]), np.arange(6) * 100
    tokens, tokens_ahead, scratch = np.array([n_tokens]), np.array([n_tokens * foresees]), np.full(n_experts, -1)

    library.run(
        "foresee",
        0,
        at(scratch),
        n_experts=n_experts,
        top_k=top_k,
        n_tokens=at(tokens),
        n_foreseen=at(tokens_ahead),
        chosen=at(chosen),
        foreseen=at(foreseen) if has_earlier else 0,
        asked=at(asked),
        sums=at(sums),
        next_foreseen=at(ahead) if has_next else 0,
        next_slots=at(next_slots),
        next_asked=at(next_asked),
        wanted=at(wanted),
        n_wanted=at(n_wanted),
        n_ranks=n_ranks,
        expert_bytes=1000,
    )

    by_rank = ahead.T[:n_ranks].reshape(-1).tolist() if foresees and has_next else []
    missing = [e for e in dict.fromkeys(by_rank) if not next_slots[e] and not was_next_asked[e]]
    needed, right = set(chosen.reshape(-1).tolist()), set(foreseen.reshape(-1).tolist())
    assert wanted[: n_wanted[0]].tolist() == missing
    assert set(np.flatnonzero(next_asked)) == set(np.flatnonzero(was_next_asked)) | set(missing)
    assert not asked.any()
    is_judged, asked_before = foresees and has_earlier, set(np.flatnonzero(was_asked).tolist())
    grown = (sums - np.arange(6) * 100).tolist()
    assert grown[:2] == ([len(needed), len(needed & right)] if is_judged else [0, 0])
    assert grown[2:4] == [len(missing), 1000 * len(missing)]
    assert grown[4:] == [len(asked_before & needed), len(asked_before - needed)]


def test_what_is_asked_for_comes_from_the_disk_without_being_touched(library: KernelLibrary, tmp_path: Path) -> None:
    size, wanted, sources = 1 << 20, np.array([5, 1]), np.zeros((6, 3), np.int64)
    with cold_file(tmp_path / "weights", 40 << 20) as start:
        address = start + (24 << 20)
        sources[1] = [address + 8 + part * size for part in range(3)]

        sizes = {"gate_bytes": size - 8, "up_bytes": size, "down_bytes": size}
        library.run("ask", 1, wanted=at(wanted), sources=at(sources), **sizes)

        wait_for_pages(address, 3 * size)
        assert n_pages_in_memory(start, 8 << 20) == 0


def test_to_ask_for_what_is_no_mapped_file_does_no_harm(library: KernelLibrary) -> None:
    wanted, sources = np.array([0]), np.array([[4096, 0, 1 << 46]])
    library.run("ask", 0, wanted=at(wanted), sources=at(sources), gate_bytes=4096, up_bytes=0, down_bytes=1 << 20)
