"""The starter model against an independent float32 evaluation of the same file: greedy tokens, distributions."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from engine import Engine, EngineConfig, SamplingParams
from tests.support.divergence import DivergenceReference

CASES = json.loads((Path(__file__).parents[1] / "data" / "starter_reference.json").read_text(encoding="utf-8"))["cases"]
NEAR_TIE = 0.5  # logits
GREEDY = SamplingParams(temperature=0.0, max_tokens=48, ignore_eos=True)
# mean KL in nats of llama.cpp's default evaluation on the same positions (tests/data/README.md)
PEER_DIVERGENCE = 0.00249


@pytest.fixture(scope="module")
def engine(starter_model: Path) -> Iterator[Engine]:
    with Engine.open(starter_model, EngineConfig(context_length=2048)) as engine:
        yield engine


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_greedy_tokens_equal_the_reference_up_to_the_first_near_tie(engine: Engine, case: dict[str, Any]) -> None:
    assert engine.chat_template.encode(case["messages"]) == case["prompt_ids"]
    ids = [d.token_id for d in engine.generate(case["prompt_ids"], GREEDY) if d.token_id is not None]
    n_clear = next((i for i, gap in enumerate(case["greedy_gap"]) if gap < NEAR_TIE), len(ids))
    assert ids[:n_clear] == case["greedy_ids"][:n_clear]
    differs = [i for i, (ours, theirs) in enumerate(zip(ids, case["greedy_ids"], strict=True)) if ours != theirs]
    assert not differs or case["greedy_gap"][differs[0]] < 0.05  # twelve bits are closer than the contract asks


def test_the_embedding_stays_in_the_file(engine: Engine) -> None:
    """A prompt of tokens from everywhere leaves hardly any of the mapped file in memory."""
    scattered = [int(token) for token in np.random.default_rng(1).integers(0, engine.info.n_vocab, 600)]
    engine.evaluate(scattered[:10])
    file = str(engine.info.path.resolve())
    before = mapped_bytes(file)
    list(engine.generate(scattered, SamplingParams(max_tokens=1)))
    assert mapped_bytes(file) < before + (1 << 20)


def mapped_bytes(path: str) -> int:
    """What is in memory of a file that this process has mapped."""
    return sum(file.rss for file in psutil.Process().memory_maps() if file.path == path)


def test_capital_of_france_falls_on_the_float_side(engine: Engine) -> None:
    messages = [{"role": "user", "content": "What is the capital of France?"}]
    params = SamplingParams(temperature=0.0, max_tokens=16)
    text = "".join(d.text for d in engine.generate(engine.chat_template.encode(messages), params))
    assert text == "The capital of France is Paris."


def test_divergence_from_float32_is_below_the_peers(engine: Engine) -> None:
    reference = DivergenceReference.load()
    windows = range(len(reference.window_ids))
    divergence = np.mean([reference.divergence(i, engine.logits(reference.window(i))).mean() for i in windows])
    print(f"mean KL {divergence:.3g} nats")
    assert 0 <= divergence < PEER_DIVERGENCE / 20


def test_the_time_bands_of_each_token_add_up_to_its_wall_time(engine: Engine) -> None:
    engine.reset_cache()
    after = engine.telemetry.n_steps
    engine.add(CASES[0]["prompt_ids"], GREEDY)
    walls_us = []
    while engine.has_work:
        began_s = time.perf_counter()
        engine.step()
        walls_us.append((time.perf_counter() - began_s) * 1e6)
    steps = engine.telemetry.steps(after)
    assert len(steps) == 48
    bands_us = steps.bands_us.sum(1)
    assert bands_us == pytest.approx(steps.wall_us, rel=0.02)
    assert (bands_us <= np.array(walls_us)).all()
    assert min(walls_us / bands_us) < 1.02  # a busy system may put us aside between our clocks, but not each time
