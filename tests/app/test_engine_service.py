"""The engine's thread: loading, batching, cancelling, errors, and an event loop that is never held up."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from app.engine_service import EngineService, NoModelError, ServiceState
from app.generation import Generation
from app.jobs import Job, JobCancelledError
from engine import Delta, EngineConfig, SamplingParams
from engine.errors import ColibriError, ContextLengthError, EngineClosedError, ModelFormatError
from tests.engine.compact import MIXTRAL, model_path
from tests.support.waiting import PATIENCE_S, until

pytestmark = pytest.mark.starter

T = TypeVar("T")
QUESTION = [{"role": "user", "content": "Count from one to one hundred."}]
SHORT = SamplingParams(temperature=0.0, max_tokens=12)
LONG = SamplingParams(temperature=0.0, max_tokens=2000, ignore_eos=True)
CONFIG = EngineConfig(context_length=4096)


@asynccontextmanager
async def running(model: Path | None, config: EngineConfig = CONFIG) -> AsyncIterator[EngineService]:
    service = EngineService()
    try:
        if model is not None:
            await service.load(model, config)
        yield service
    finally:
        service.close()
        assert not any(thread.name == "engine" for thread in threading.enumerate())


async def collect(generation: Generation) -> list[Delta]:
    return [delta async for delta in generation]


async def first_token(generation: Generation) -> Delta:
    async for delta in generation:
        if delta.token_id is not None:
            return delta
    raise AssertionError("no token came")


async def with_turns(work: Callable[[], Awaitable[T]]) -> tuple[T, int]:
    """What `work` gives, and how often the loop ran something else while it went on."""
    n_turns = 0

    async def watch() -> None:
        nonlocal n_turns
        while True:
            await asyncio.sleep(0.001)
            n_turns += 1

    watcher = asyncio.create_task(watch())
    try:
        return await work(), n_turns
    finally:
        watcher.cancel()


async def test_a_model_is_loaded_and_answers(starter_model: Path) -> None:
    async with running(starter_model) as service:
        assert service.state is ServiceState.READY
        assert service.info is not None and service.info.architecture == "llama"
        assert service.telemetry is not None and service.memory is not None
        deltas = await collect(service.generate(QUESTION, SHORT))
        assert sum(delta.token_id is not None for delta in deltas) == 12
        assert deltas[-1].finish_reason == "length"
        assert "".join(delta.text for delta in deltas).strip()
        stats = await service.stats()
        assert stats is not None and stats.completion_tokens >= 12


async def test_loading_tells_its_progress_and_states_on_the_loops_thread(starter_model: Path) -> None:
    async with running(None) as service:
        told: list[tuple[ServiceState, int]] = []
        phases: list[str] = []
        service.on_change(lambda: told.append((service.state, threading.get_ident())))
        job = Job("loading")
        job.on_change(lambda job: phases.append(job.phase))
        await service.load(starter_model, CONFIG, job)
        await asyncio.sleep(0)
        assert [state for state, _ in told] == [ServiceState.LOADING, ServiceState.READY]
        assert {thread for _, thread in told} == {threading.get_ident()}
        assert "weights" in phases
        await service.unload()
        assert service.state is ServiceState.EMPTY
        assert (service.info, service.telemetry) == (None, None)


async def test_several_generations_at_once_give_what_each_gives_alone(starter_model: Path) -> None:
    questions = [[{"role": "user", "content": text}] for text in ("Name a colour.", "What is rain?", "Say hello.")]
    async with running(starter_model) as service:
        alone = [await collect(service.generate(question, SHORT)) for question in questions]
        together = await asyncio.gather(*(collect(service.generate(question, SHORT)) for question in questions))
    assert [[delta.token_id for delta in deltas if delta.token_id is not None] for deltas in together] == [
        [delta.token_id for delta in deltas if delta.token_id is not None] for deltas in alone
    ]


async def test_cancelling_ends_the_answer_at_once_and_the_next_one_works(starter_model: Path) -> None:
    async with running(starter_model) as service:
        generation = service.generate(QUESTION, LONG)
        await first_token(generation)
        generation.cancel()
        rest = await collect(generation)
        assert rest[-1].finish_reason == "cancelled"
        assert len(rest) < LONG.max_tokens // 2
        assert len(await collect(service.generate(QUESTION, SHORT))) >= 12


async def test_closing_ends_it_without_another_delta(starter_model: Path) -> None:
    async with running(starter_model) as service:
        generation = service.generate(QUESTION, LONG)
        await first_token(generation)
        await generation.aclose()
        assert await collect(generation) == []


async def test_cancelling_the_task_that_reads_stops_the_engine(starter_model: Path) -> None:
    async with running(starter_model) as service:
        generation = service.generate(QUESTION, LONG)
        task = asyncio.create_task(collect(generation))
        await until(lambda: service.telemetry is not None and service.telemetry.n_steps > 3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert generation.cancelled
        deltas = await asyncio.wait_for(collect(service.generate(QUESTION, SHORT)), PATIENCE_S)
        assert deltas[-1].finish_reason == "length"


async def test_a_generation_that_was_cancelled_before_it_began_yields_no_token(starter_model: Path) -> None:
    async with running(starter_model) as service:
        generation = service.generate(QUESTION, LONG)
        generation.cancel()
        assert all(delta.token_id is None for delta in await collect(generation))


async def test_without_a_model_a_generation_says_so() -> None:
    async with running(None) as service:
        with pytest.raises(NoModelError, match="choose one"):
            await collect(service.generate(QUESTION, SHORT))
        assert await service.stats() is None


async def test_an_idle_engine_loads_the_experts_that_nobody_needed_yet() -> None:
    async with running(model_path(MIXTRAL), EngineConfig(context_length=128)) as service:
        info, telemetry = service.info, service.telemetry
        assert info is not None
        assert telemetry is not None
        everything = [(layer, expert) for layer in range(info.n_moe_layers) for expert in range(info.n_experts)]
        await until(lambda: all(telemetry.is_resident(*place) for place in everything))
        assert telemetry.n_steps == 0

        await service.unload()
        await service.load(model_path(MIXTRAL), EngineConfig(context_length=128))  # and nothing is left of the first


async def test_what_is_asked_while_a_model_loads_is_answered_when_it_is_there(starter_model: Path) -> None:
    async with running(None) as service:
        loading = asyncio.create_task(service.load(starter_model, CONFIG))
        await asyncio.sleep(0)
        assert service.state is ServiceState.LOADING
        deltas = await collect(service.generate(QUESTION, SHORT))
        await loading
        assert deltas[-1].finish_reason == "length"


async def test_a_prompt_that_is_too_long_is_refused_with_both_numbers(starter_model: Path) -> None:
    async with running(starter_model, EngineConfig(context_length=128)) as service:
        with pytest.raises(ContextLengthError, match="128"):
            await collect(service.generate([{"role": "user", "content": "long " * 500}], SHORT))
        assert (await collect(service.generate(QUESTION, SHORT)))[-1].finish_reason == "length"


@pytest.mark.parametrize(
    ("name", "kind"), [("broken.gguf", ModelFormatError), ("missing.gguf", ColibriError), ("", ColibriError)]
)
async def test_a_model_that_cannot_be_opened_is_an_error_and_another_one_can(
    starter_model: Path, tmp_path: Path, name: str, kind: type[ColibriError]
) -> None:
    (tmp_path / "broken.gguf").write_bytes(b'{"not": "a model"}')
    async with running(None) as service:
        with pytest.raises(kind):
            await service.load(tmp_path / name)
        assert service.state is ServiceState.ERROR
        assert isinstance(service.error, ColibriError)
        await service.load(starter_model, CONFIG)
        assert (service.state, service.error) == (ServiceState.READY, None)


async def test_the_newest_of_two_loads_wins(starter_model: Path) -> None:
    async with running(None) as service:
        first = asyncio.create_task(service.load(starter_model, EngineConfig(context_length=256)))
        await asyncio.sleep(0)
        second = asyncio.create_task(service.load(starter_model, EngineConfig(context_length=512)))
        outcomes = await asyncio.gather(first, second, return_exceptions=True)
        assert isinstance(outcomes[0], JobCancelledError)
        assert service.state is ServiceState.READY
        assert service.info == outcomes[1]


async def test_a_load_can_be_cancelled(starter_model: Path) -> None:
    async with running(None) as service:
        loading = asyncio.create_task(service.load(starter_model, CONFIG))
        await asyncio.sleep(0)
        assert service.loading is not None
        service.loading.cancel()
        with pytest.raises(JobCancelledError):
            await loading
        assert (service.state, service.loading) == (ServiceState.EMPTY, None)


async def test_unloading_ends_answers_under_way_with_a_reason(starter_model: Path) -> None:
    async with running(starter_model) as service:
        generation = service.generate(QUESTION, LONG)
        await first_token(generation)
        await service.unload()
        with pytest.raises(EngineClosedError, match="before the answer was complete"):
            await collect(generation)


async def test_closing_the_service_ends_everything(starter_model: Path) -> None:
    service = EngineService()
    await service.load(starter_model, CONFIG)
    generation = service.generate(QUESTION, LONG)
    await first_token(generation)
    service.close()
    service.close()
    with pytest.raises(EngineClosedError):
        await collect(generation)
    with pytest.raises(EngineClosedError):
        service.generate(QUESTION, SHORT)


async def test_the_loop_goes_on_while_a_model_is_loaded_reads_and_generates(starter_model: Path) -> None:
    prompt = [{"role": "user", "content": "All work and no play makes Jack a dull boy. " * 60}]
    params = SamplingParams(temperature=0.0, max_tokens=40, ignore_eos=True)
    loading, answering = list[int](), list[int]()
    async with running(None) as service:
        for _ in range(3):
            _, n_turns = await with_turns(lambda: service.load(starter_model, CONFIG))
            loading.append(n_turns)
            deltas, n_turns = await with_turns(lambda: collect(service.generate(prompt, params)))
            answering.append(n_turns)
            assert max(delta.n_prefilled for delta in deltas) > 600
    print(loading, answering)
    assert max(loading) > 3, loading  # some dozens and hundreds; one or two, were it held up
    assert max(answering) > 40, answering
