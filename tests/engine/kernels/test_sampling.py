"""The choice of the next token, against a plain NumPy reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels.library import KernelLibrary
from engine.kernels.sampling import NOT_FINITE, uniform_reference
from tests.engine.kernels.operands import Array, at

EXAMPLES = settings(max_examples=80)
NEUTRAL: dict[str, Any] = {
    "repetition": 1.0,
    "presence": 0.0,
    "frequency": 0.0,
    "temperature": 1.0,
    "top_k": 0,
    "top_p": 1.0,
    "min_p": 0.0,
    "seed": 0,
    "step": 0,
}


def sample(
    library: KernelLibrary,
    logits: Array,
    history: tuple[int, ...] = (),
    bias: dict[int, float] | None = None,
    allowed: Array | None = None,
    **settings: float,
) -> int:
    n_vocab, bias = len(logits), bias or {}
    row = np.full(-(-n_vocab // 16) * 16, 1e9, np.float32)  # the padding must not be chosen
    row[:n_vocab] = logits
    tokens = np.array(history, np.int32)
    ids, values = np.array(list(bias), np.int32), np.array(list(bias.values()), np.float32)
    scratch, out = np.zeros(n_vocab, np.int32), np.full(1, -7, np.int32)
    library.run(
        "sample",
        0,
        at(scratch),
        logits=at(row),
        n_vocab=n_vocab,
        history=at(tokens),
        n_history=len(tokens),
        bias_ids=at(ids),
        bias_values=at(values),
        n_bias=len(ids),
        allowed=0 if allowed is None else at(allowed),
        out=at(out),
        **(NEUTRAL | settings),
    )
    return int(out[0])


def kept_reference(logits: Array, top_k: int, top_p: float, min_p: float) -> Array:
    """Ids that the cuts leave, best first, the lower id first among equals."""
    order = np.argsort(-logits, kind="stable")
    if top_k > 0:
        order = order[:top_k]
    everything = order if 0 < top_k <= 1024 else np.arange(len(logits))
    share = np.exp(logits[order].astype(np.float64) - logits[order[0]])
    total = np.exp(logits[everything].astype(np.float64) - logits[order[0]]).sum()
    before = np.cumsum(share) - share
    keep = (before < top_p * total) & (share >= min_p)
    keep[0] = True
    return order[: len(order) if keep.all() else int(np.argmin(keep))]


def draw_reference(logits: Array, kept: Array, temperature: float, point: float) -> int:
    weights = np.exp((logits[kept].astype(np.float64) - logits[kept[0]]) / temperature)
    return int(kept[min(np.searchsorted(np.cumsum(weights), point * weights.sum(), side="right"), len(kept) - 1)])


@EXAMPLES
@given(
    data_seed=st.integers(0, 2**32 - 1),
    n_vocab=st.integers(1, 200),
    top_k=st.sampled_from([0, 2, 5, 40, 500, 2000]),
    top_p=st.sampled_from([0.01, 0.3, 0.9, 1.0]),
    min_p=st.sampled_from([0.0, 0.05, 0.5]),
    temperature=st.sampled_from([0.3, 1.0, 3.0]),
    seed=st.integers(0, 2**62),
    step=st.integers(0, 10**6),
)
def test_cuts_and_draw_equal_the_reference(
    library: KernelLibrary,
    data_seed: int,
    n_vocab: int,
    top_k: int,
    top_p: float,
    min_p: float,
    temperature: float,
    seed: int,
    step: int,
) -> None:
    logits = np.random.default_rng(data_seed).normal(0, 3, n_vocab).astype(np.float32)
    logits[: n_vocab // 3] = np.round(logits[: n_vocab // 3])  # ties

    token = sample(
        library, logits, top_k=top_k, top_p=top_p, min_p=min_p, temperature=temperature, seed=seed, step=step
    )

    kept = kept_reference(logits, top_k, top_p, min_p)
    assert token == draw_reference(logits, kept, temperature, uniform_reference(seed, step))


@pytest.mark.parametrize("top_k", [0, 3, 64])
def test_every_kept_token_is_drawn_as_often_as_it_is_likely(library: KernelLibrary, top_k: int) -> None:
    logits = np.log(np.array([0.1, 0.4, 0.2, 0.3], np.float32))
    kept = 3 if top_k == 3 else 4
    drawn = np.bincount([sample(library, logits, top_k=top_k, seed=9, step=i) for i in range(4000)], minlength=4)
    likely = np.sort(np.array([0.1, 0.4, 0.2, 0.3]))[::-1][:kept]
    np.testing.assert_allclose(np.sort(drawn)[::-1][:kept] / 4000, likely / likely.sum(), atol=0.03)
    assert (np.sort(drawn)[::-1][kept:] == 0).all()


@pytest.mark.parametrize("settings", [{"temperature": 0.0}, {"top_k": 1}])
def test_greedy_takes_the_lowest_id_among_equals(library: KernelLibrary, settings: dict[str, float]) -> None:
    logits = np.array([1, 5, 2, 5, 5], np.float32)
    assert sample(library, logits, **settings) == 1


def test_negative_logits_lose_to_no_padding(library: KernelLibrary) -> None:
    logits = np.full(21, -50, np.float32)
    logits[20] = -49
    assert sample(library, logits, temperature=0.0) == 20
    assert sample(library, logits, top_k=2, top_p=0.5) == 20


def penalised_reference(
    logits: Array, history: tuple[int, ...], repetition: float, presence: float, frequency: float
) -> Array:
    out = logits.copy()
    for token, count in zip(*np.unique(history, return_counts=True), strict=True):
        value = out[token]
        value = value / np.float32(repetition) if value > 0 else value * np.float32(repetition)
        out[token] = value - np.float32(presence) - np.float32(frequency) * np.float32(count)
    return out


@EXAMPLES
@given(
    seed=st.integers(0, 2**32 - 1),
    history=st.lists(st.integers(0, 29), max_size=40).map(tuple),
    repetition=st.sampled_from([1.0, 1.3, 0.8]),
    presence=st.sampled_from([0.0, 0.7]),
    frequency=st.sampled_from([0.0, 0.2]),
)
def test_each_token_of_the_history_is_penalised_once(
    library: KernelLibrary, seed: int, history: tuple[int, ...], repetition: float, presence: float, frequency: float
) -> None:
    logits = np.random.default_rng(seed).normal(0, 2, 30).astype(np.float32)
    expected = penalised_reference(logits, history, repetition, presence, frequency)
    penalties = {"repetition": repetition, "presence": presence, "frequency": frequency}

    assert sample(library, logits, history, temperature=0.0, **penalties) == int(np.argmax(expected))
    drawn = sample(library, logits, history, top_k=20, seed=seed, **penalties)
    kept = kept_reference(expected, 20, 1.0, 0.0)
    assert drawn == draw_reference(expected, kept, 1.0, uniform_reference(seed, 0))


def test_bias_lifts_and_bans_tokens(library: KernelLibrary) -> None:
    logits = np.array([1, 2, 3, 4], np.float32)
    assert sample(library, logits, bias={0: 10.0}, temperature=0.0) == 0
    assert sample(library, logits, bias={3: -100.0}, temperature=0.0) == 2
    drawn = {sample(library, logits, bias={3: -np.inf}, seed=5, step=i) for i in range(300)}
    assert drawn == {0, 1, 2}


@EXAMPLES
@given(
    seed=st.integers(0, 2**32 - 1),
    n_vocab=st.integers(1, 200),
    share=st.sampled_from([0.0, 0.02, 0.5, 0.98, 1.0]),
    settings=st.sampled_from([{"temperature": 0.0}, {"top_k": 40}, {"top_k": 0}, {"top_k": 0, "top_p": 0.8}]),
)
def test_only_allowed_tokens_are_chosen_as_if_there_were_no_others(
    library: KernelLibrary, seed: int, n_vocab: int, share: float, settings: dict[str, float]
) -> None:
    generator = np.random.default_rng(seed)
    logits = generator.normal(0, 3, n_vocab).astype(np.float32)
    may_come = generator.random(n_vocab) < share
    may_come[generator.integers(n_vocab)] = True
    bits = np.zeros(-(-n_vocab // 32) * 32, np.uint8)
    bits[:n_vocab] = may_come
    mask = np.packbits(bits, bitorder="little").view(np.int32)

    token = sample(library, logits, allowed=mask, seed=seed, **settings)

    ids = np.flatnonzero(may_come)
    assert token == ids[sample(library, logits[ids], seed=seed, **settings)]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 15, 16, 36])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_logits_that_are_not_finite_are_reported(
    library: KernelLibrary, bad: float, place: int, temperature: float
) -> None:
    logits = np.zeros(37, np.float32)
    logits[place] = bad
    assert sample(library, logits, temperature=temperature) == NOT_FINITE


def test_tiers_draw_the_same_tokens(libraries: list[KernelLibrary]) -> None:
    logits = np.random.default_rng(3).normal(0, 3, 5000).astype(np.float32)
    for cuts in ({"top_k": 40}, {"top_k": 0, "top_p": 0.9}):
        first, *others = ([sample(lib, logits, seed=1, step=i, **cuts) for i in range(40)] for lib in libraries)
        assert len(set(first)) > 3
        assert all(other == first for other in others)
