"""The hand-over of an answer from the engine's thread to the loop: nothing is lost, and nobody is woken for nothing."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from app.generation import Generation
from engine.errors import ColibriError
from engine.request import Delta


def delta(number: int, *, finish_reason: str | None = None, token: bool = True) -> Delta:
    return Delta(1, number if token else None, f"{number} ", finish_reason, 3, 3, 0)


class CountingLoop:
    """The running loop, which counts how often another thread wakes it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.n_wakes = 0

    def call_soon_threadsafe(self, callback: Any, *arguments: Any) -> Any:
        self.n_wakes += 1
        return self._loop.call_soon_threadsafe(callback, *arguments)


def made(loop: Any = None) -> Generation:
    return Generation(loop or asyncio.get_running_loop(), lambda _generation: None)


def test_deltas_of_another_thread_arrive_all_and_in_order() -> None:
    async def run() -> list[str]:
        generation = made()

        def engine() -> None:
            for number in range(500):
                generation.put(delta(number))
            generation.end()

        thread = threading.Thread(target=engine)
        thread.start()
        texts = [item.text async for item in generation]
        thread.join()
        return texts

    assert asyncio.run(run()) == [f"{number} " for number in range(500)]


def test_batches_bring_everything_that_came_in_the_meantime() -> None:
    async def run() -> list[list[str]]:
        generation = made()
        found = []
        generation.put(delta(0))
        async for batch in generation.batches(0.001):
            found.append([item.text for _, item in batch])
            if len(found) == 1:
                for number in (1, 2, 3):
                    generation.put(delta(number))
                generation.end()
        return found

    assert asyncio.run(run()) == [["0 "], ["1 ", "2 ", "3 "]]


def test_the_loop_is_woken_only_while_somebody_waits_there() -> None:
    async def run() -> int:
        loop = CountingLoop()
        generation = made(loop)
        for number in range(50):
            generation.put(delta(number))
        reading = asyncio.ensure_future(collect(generation))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for number in range(50):
            generation.put(delta(number))
        generation.end()
        assert len(await reading) == 100
        return loop.n_wakes

    async def collect(generation: Generation) -> list[Delta]:
        return [item async for batch in generation.batches(0.0) for _, item in batch]

    assert asyncio.run(run()) <= 2


def test_moments_are_those_of_the_engine_not_of_the_reader() -> None:
    async def run() -> list[float]:
        generation = made()
        generation.put(delta(0))
        generation.put(delta(1, finish_reason="stop"))
        generation.end()
        await asyncio.sleep(0.01)
        return [at_s async for batch in generation.batches(0.0) for at_s, _ in batch] + [time.perf_counter()]

    first, second, read = asyncio.run(run())
    assert first <= second < read


def test_an_error_comes_after_what_was_written_before_it() -> None:
    async def run() -> None:
        generation = made()
        generation.put(delta(0))
        generation.end(ColibriError("out of order"))
        assert (await generation.__anext__()).text == "0 "
        with pytest.raises(ColibriError, match="out of order"):
            await generation.__anext__()
        with pytest.raises(StopAsyncIteration):
            await generation.__anext__()

    asyncio.run(run())


def test_a_closed_generation_is_over_whatever_the_engine_still_says() -> None:
    async def run() -> list[Delta]:
        generation = made()
        generation.put(delta(0))
        await generation.aclose()
        generation.put(delta(1))
        generation.end(ColibriError("too late"))
        return [item async for item in generation]

    assert asyncio.run(run()) == []
