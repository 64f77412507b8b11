"""Opening returns before the weights are packed: requests may come at once, and nothing depends on when they do."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from engine import Engine, SamplingParams
from engine.loader import Loader
from tests.engine.compact import LLAMA, NAMES, model_path, open_small, small_config

PROMPT = [5, 17, 200, 3, 88]
FOUR_TOKENS = SamplingParams(temperature=0.0, max_tokens=4, ignore_eos=True)


class HeldLoader:
    """Holds back the packing of resident weights until it is told to go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.began, self.goes_on = threading.Event(), threading.Event()
        load = Loader.load

        def held(loader: Loader, packings: list[Any], progress: Any = None) -> None:
            self.began.set()
            assert self.goes_on.wait(180)
            load(loader, packings, progress)

        monkeypatch.setattr(Loader, "load", held)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> HeldLoader:
    return HeldLoader(monkeypatch)


def test_an_opened_model_takes_requests_while_its_weights_are_packed(held: HeldLoader) -> None:
    with Engine.open(model_path(LLAMA), small_config()) as engine:
        assert held.began.wait(180)
        engine.add(PROMPT, FOUR_TOKENS)
        assert engine.has_work
        assert engine.step() == []
        held.goes_on.set()
        deltas = []
        while engine.has_work:
            deltas += engine.step()
    assert sum(delta.token_id is not None for delta in deltas) == 4


def test_a_request_is_cancelled_before_the_weights_are_there(held: HeldLoader) -> None:
    with Engine.open(model_path(LLAMA), small_config()) as engine:
        number = engine.add(PROMPT, FOUR_TOKENS)
        assert engine.step() == []
        engine.cancel(number)
        assert [delta.finish_reason for delta in engine.step()] == ["cancelled"]
        assert not engine.has_work
        held.goes_on.set()


@pytest.mark.parametrize("name", NAMES)
def test_logits_are_the_same_however_early_they_are_asked_for(name: str) -> None:
    with open_small(name) as engine:
        early = engine.logits(PROMPT)
    with open_small(name) as engine:
        engine.load()
        assert (engine.logits(PROMPT) == early).all()


@pytest.mark.parametrize("name", NAMES)
def test_weights_packed_in_small_parts_are_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_small(name) as engine:
        whole = engine.logits(PROMPT)
    monkeypatch.setattr("engine.loader._RUN_BYTES", 3000)
    seen: list[float] = []
    with open_small(name) as engine:
        engine.load(lambda _phase, fraction: seen.append(fraction))
        assert (engine.logits(PROMPT) == whole).all()
    assert seen[-1] == 1.0


def test_what_goes_wrong_while_packing_is_told_to_whoever_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(Loader, "load", fail)
    with Engine.open(model_path(LLAMA), small_config()) as engine:
        for ask in (engine.load, lambda: engine.logits(PROMPT), lambda: list(engine.generate(PROMPT, FOUR_TOKENS))):
            with pytest.raises(MemoryError, match="no room"):
                ask()


def test_closing_does_not_wait_for_the_rest_of_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []
    load = Loader.load

    def slowly(loader: Loader, packings: list[Any], progress: Any) -> None:
        for i in range(1000):
            load(loader, packings[:1])
            seen.append(i)
            progress(i / 1000)
        load(loader, packings)

    monkeypatch.setattr(Loader, "load", slowly)
    before = set(threading.enumerate())
    Engine.open(model_path(LLAMA), small_config()).close()
    assert set(threading.enumerate()) == before
    assert len(seen) < 1000


def test_an_open_model_that_is_closed_while_it_loads_gives_its_file_back(held: HeldLoader, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(model_path(LLAMA).read_bytes())
    engine = Engine.open(path, small_config())
    held.goes_on.set()
    engine.close()
    assert str(path) not in Path("/proc/self/maps").read_text(encoding="utf-8")
