"""Conversations: what is said is saved, answered, branched, stopped, and told to listeners in order."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio

from app.chats import ChatStore, MessageState, Role
from app.conversation import (
    Conversation,
    Event,
    MessageAdded,
    MessageFinished,
    PromptProgress,
    ReasoningAdded,
    TextAdded,
    ThreadChanged,
    prompt_messages,
    sampling_params,
    title_of,
)
from app.engine_service import EngineService
from app.settings import SamplingSettings, Settings
from engine import EngineConfig, SamplingParams
from engine.chat import ChatFormat
from engine.chat.spans import Span
from engine.errors import InvalidRequestError
from engine.recommended_sampling import RecommendedSampling, Source
from tests.support.waiting import PATIENCE_S, until

pytestmark = [pytest.mark.starter, pytest.mark.asyncio(loop_scope="module")]

ROOT = Path(__file__).resolve().parents[2]
SHORT = Settings(sampling=SamplingSettings(temperature=0.0, max_tokens=10))
LONG = replace(SHORT, sampling=SamplingSettings(temperature=0.0, max_tokens=1500))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(starter_model: Path) -> AsyncIterator[EngineService]:
    service = EngineService()
    await service.load(starter_model, EngineConfig(context_length=2048))
    yield service
    service.close()


@pytest_asyncio.fixture(loop_scope="module")
async def store(tmp_path: Path) -> AsyncIterator[ChatStore]:
    store = ChatStore(tmp_path / "chats.db")
    yield store
    store.close()


def start(store: ChatStore, service: EngineService, settings: Settings = SHORT) -> tuple[Conversation, list[Event]]:
    conversation = Conversation(store, service, store.create_chat().id, lambda: settings)
    events: list[Event] = []
    conversation.on_event(events.append)
    return conversation, events


async def text_arrives(events: list[Event], n_pieces: int = 5) -> None:
    await until(lambda: sum(isinstance(event, TextAdded) for event in events) >= n_pieces)


async def test_a_question_is_answered_and_both_are_kept(store: ChatStore, service: EngineService) -> None:
    conversation, events = start(store, service)
    answer = await conversation.send("What is the capital of France?")
    question, kept = store.thread(conversation.chat_id)
    assert (question.role, question.content) == (Role.USER, "What is the capital of France?")
    assert kept == answer
    assert (answer.role, answer.state) == (Role.ASSISTANT, MessageState.COMPLETE)
    assert answer.content == "".join(event.text for event in events if isinstance(event, TextAdded))
    assert answer.content == "The capital of France is Paris."
    assert answer.metrics["completion_tokens"] == 8
    assert answer.metrics["finish_reason"] == "stop"
    assert answer.metrics["ttft_ms"] > 0 and answer.metrics["tokens_per_second"] > 0
    assert answer.metrics["model"] == "SmolLM2 135M Instruct"
    assert conversation.chat.title == "What is the capital of France?"


async def test_listeners_hear_question_answer_pieces_and_end_in_this_order(
    store: ChatStore, service: EngineService
) -> None:
    conversation, events = start(store, service)
    answer = await conversation.send("Hello")
    kinds = [type(event) for event in events if not isinstance(event, PromptProgress)]
    assert kinds[0] is MessageAdded and kinds[2] is MessageAdded  # a ChatChanged (the title) stands between them
    assert kinds.index(TextAdded) > 2
    assert kinds[-2:] == [MessageFinished, type(events[-1])]
    (finished,) = [event for event in events if isinstance(event, MessageFinished)]
    assert finished.message == answer


async def test_the_question_is_on_the_disk_before_the_engine_sees_it(store: ChatStore, service: EngineService) -> None:
    conversation, _ = start(store, service)
    seen: list[tuple[str, ...]] = []
    generate = service.generate

    def spy(*arguments: object, **options: object) -> object:
        with sqlite3.connect(store.path) as other:  # what another program finds in the file at this moment
            seen.append(tuple(row[0] for row in other.execute("SELECT content FROM messages WHERE role = 'user'")))
        return generate(*arguments, **options)  # type: ignore[arg-type]

    service.generate = spy  # type: ignore[method-assign, assignment]
    try:
        await conversation.send("Remember me")
    finally:
        del service.generate  # type: ignore[method-assign]
    assert seen == [("Remember me",)]


async def test_stopping_keeps_what_there_is(store: ChatStore, service: EngineService) -> None:
    conversation, events = start(store, service, LONG)
    task = conversation.send("Write a long story about a hummingbird.")
    await text_arrives(events)
    assert conversation.is_busy
    assert conversation.messages[-1].content != ""
    conversation.stop()
    answer = await asyncio.wait_for(task, PATIENCE_S)
    assert not conversation.is_busy
    assert (answer.state, answer.metrics["finish_reason"]) == (MessageState.STOPPED, "cancelled")
    assert store.thread(conversation.chat_id)[-1].content == answer.content != ""


async def test_stopping_at_once_gives_an_empty_stopped_answer(store: ChatStore, service: EngineService) -> None:
    conversation, _ = start(store, service, LONG)
    task = conversation.send("Never mind")
    conversation.stop()
    answer = await task
    assert answer.state is MessageState.STOPPED
    assert not conversation.is_busy


async def test_a_second_message_during_an_answer_is_refused(store: ChatStore, service: EngineService) -> None:
    conversation, events = start(store, service, LONG)
    task = conversation.send("Tell me about rivers, at length.")
    await text_arrives(events, 1)
    with pytest.raises(InvalidRequestError, match="under way"):
        conversation.send("And lakes?")
    conversation.stop()
    await task
    assert len(store.thread(conversation.chat_id)) == 2


async def test_a_blank_message_is_refused(store: ChatStore, service: EngineService) -> None:
    conversation, events = start(store, service)
    with pytest.raises(InvalidRequestError, match="needs some text"):
        conversation.send(" \n")
    assert events == []


async def test_regenerating_puts_another_answer_beside_the_first(store: ChatStore, service: EngineService) -> None:
    conversation, events = start(store, service)
    first = await conversation.send("Name a bird.")
    second = await conversation.regenerate(first)
    assert second.id != first.id
    assert store.siblings(second) == [first, second]
    assert store.thread(conversation.chat_id)[-1] == second
    assert any(isinstance(event, ThreadChanged) for event in events)
    conversation.select(first)
    assert conversation.messages[-1] == first


async def test_an_edited_question_is_a_branch_with_an_answer_of_its_own(
    store: ChatStore, service: EngineService
) -> None:
    conversation, _ = start(store, service)
    await conversation.send("Name a bird.")
    old_question = conversation.messages[0]
    task = conversation.edit(old_question, "Name a fish.")
    assert task is not None
    answer = await task
    assert [message.content for message in conversation.messages] == ["Name a fish.", answer.content]
    assert [message.content for message in store.siblings(old_question)] == ["Name a bird.", "Name a fish."]


async def test_an_edited_answer_stands_as_it_was_given(store: ChatStore, service: EngineService) -> None:
    conversation, _ = start(store, service)
    answer = await conversation.send("Name a bird.")
    assert conversation.edit(answer, "Hummingbird, of course.") is None
    assert conversation.messages[-1].content == "Hummingbird, of course."


async def test_a_conversation_that_is_too_long_ends_in_an_error_with_both_numbers(
    store: ChatStore, service: EngineService
) -> None:
    conversation, events = start(store, service)
    answer = await conversation.send("word " * 5000)
    assert answer.state is MessageState.ERROR
    assert "2048" in answer.metrics["error"]
    assert isinstance(events[-2], MessageFinished)
    shorter = conversation.edit(conversation.messages[0], "word")
    assert shorter is not None
    assert (await shorter).state is MessageState.COMPLETE


async def test_without_a_model_the_answer_says_so_and_the_question_is_kept(store: ChatStore) -> None:
    empty = EngineService()
    conversation, _ = start(store, empty)
    answer = await conversation.send("Anybody there?")
    empty.close()
    assert answer.state is MessageState.ERROR
    assert "No model is open" in answer.metrics["error"]
    assert store.thread(conversation.chat_id)[0].content == "Anybody there?"


async def test_a_model_is_asked_as_is_recommended_for_it_unless_the_user_or_the_chat_says_otherwise() -> None:
    recommended = RecommendedSampling({"temperature": 0.2, "top_p": 0.9, "min_p": 0.1}, Source.FAMILY, "SmolLM2")
    model: Any = SimpleNamespace(sampling=recommended)
    params = sampling_params(SamplingSettings(top_p=0.7), {"min_p": 0.3}, model)
    assert (params.temperature, params.top_p, params.min_p, params.top_k) == (0.2, 0.7, 0.3, 40)
    unknown: Any = SimpleNamespace(sampling=None)
    assert sampling_params(SamplingSettings(), {}, unknown) == SamplingParams()


async def test_the_chats_own_sampling_and_system_prompt_are_used(store: ChatStore, service: EngineService) -> None:
    conversation, _ = start(store, service)
    store.update(conversation.chat_id, sampling={"max_tokens": 3}, system_prompt="You are a bird.")
    answer = await conversation.send("Hello")
    assert answer.metrics["completion_tokens"] == 3
    longer = answer.metrics["prompt_tokens"]
    store.update(conversation.chat_id, system_prompt="You are a bird. " * 20)
    assert (await conversation.regenerate(answer)).metrics["prompt_tokens"] > longer


async def test_two_chats_are_answered_at_the_same_time(store: ChatStore, service: EngineService) -> None:
    (one, one_events), (two, two_events) = start(store, service, LONG), start(store, service, LONG)
    tasks = [one.send("Tell me about rivers, at length."), two.send("Tell me about lakes, at length.")]
    await asyncio.gather(text_arrives(one_events), text_arrives(two_events))
    await asyncio.gather(one.close(), two.close())
    assert [task.result().state for task in tasks] == [MessageState.STOPPED] * 2


async def test_turns_alternate_whatever_failed_before(store: ChatStore) -> None:
    chat = store.create_chat(system_prompt="S")
    first = store.add_message(chat.id, None, "user", "Q1")
    failed = store.add_message(chat.id, first.id, "assistant", "", state="error")
    second = store.add_message(chat.id, failed.id, "user", "Q2")
    assert prompt_messages(store.chat(chat.id), store.path_to(second.id)) == [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "Q1\n\nQ2"},
    ]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Short", "Short"),
        ("  two\nlines ", "two lines"),
        ("one two three four five six seven eight nine ten eleven", "one two three four five six seven eight nine…"),
        ("x" * 100, "x" * 48 + "…"),
        ("蜂鸟" * 40, "蜂鸟" * 24 + "…"),
    ],
)
async def test_a_title_is_the_beginning_of_the_first_message(text: str, title: str) -> None:
    assert title_of(text) == title


async def test_reasoning_is_kept_apart_from_the_answer(store: ChatStore, service: EngineService) -> None:
    conversation, events = start(store, service)
    with thoughtful(service):
        answer = await conversation.send("What is the capital of France?")
    assert (answer.reasoning, answer.content) == ("The capital", "is Paris.")
    assert store.thread(conversation.chat_id)[1] == answer
    assert "".join(event.text for event in events if isinstance(event, ReasoningAdded)) == "The capital"
    assert "".join(event.text for event in events if isinstance(event, TextAdded)) == "is Paris."
    assert answer.metrics["completion_tokens"] == 8
    assert 0 <= answer.metrics["thinking_ms"] <= 60_000
    assert prompt_messages(conversation.chat, conversation.messages)[1] == {
        "role": "assistant",
        "content": "is Paris.",
        "reasoning_content": "The capital",
    }


async def test_reasoning_that_was_stopped_is_kept_and_not_said_again(store: ChatStore, service: EngineService) -> None:
    conversation, _ = start(store, service, replace(SHORT, sampling=SamplingSettings(temperature=0.0, max_tokens=2)))
    with thoughtful(service):
        answer = await conversation.send("What is the capital of France?")
    assert (answer.reasoning, answer.content) == ("The capital", "")
    assert [turn["role"] for turn in prompt_messages(conversation.chat, conversation.messages)] == ["user"]


@contextmanager
def thoughtful(service: EngineService) -> Iterator[None]:
    """The starter model, whose answers begin with reasoning that ends with the words "of France"."""
    assert service._engine is not None
    prompts = service._engine.chat_prompts
    form, prompts.format = prompts.format, ChatFormat("", ())
    prompts.format.reasoning.append(Span("assistant", "of France"))
    yield
    prompts.format = form


TALKER = """
import asyncio, json, sys, time
from pathlib import Path
from app.chats import ChatStore
from app.conversation import Conversation, TextAdded
from app.engine_service import EngineService

async def talk():
    store, service = ChatStore(Path(sys.argv[1])), EngineService()
    await service.load(sys.argv[2])
    service._engine.tokenizer.end_ids = frozenset()  # the answer must not end before it is killed
    conversation = Conversation(store, service, store.create_chat().id)
    loop = asyncio.get_running_loop()
    def show(event):
        if isinstance(event, TextAdded):  # told two turns of the loop later: what was due to be saved by now, is then
            loop.call_soon(loop.call_soon, tell, time.monotonic(), event.text)
    def tell(at_s, text):
        print(json.dumps([at_s, text]), flush=True)
    conversation.on_event(show)
    await conversation.send("Write a long story about a hummingbird.")

asyncio.run(talk())
"""


async def test_kill_9_loses_at_most_the_last_second_of_an_answer(tmp_path: Path, starter_model: Path) -> None:
    path = tmp_path / "chats.db"
    process = subprocess.Popen(
        [sys.executable, "-c", TALKER, str(path), str(starter_model)], cwd=ROOT, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    shown: list[tuple[float, str]] = []  # when, by the talker's own clock, and what
    while not shown or shown[-1][0] - shown[0][0] < 2.0:
        shown.append(tuple(json.loads(process.stdout.readline())))
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()

    store = ChatStore(path)
    question, answer = store.thread(store.list_chats()[0].id)
    store.close()
    assert question.content == "Write a long story about a hummingbird."
    assert answer.state is MessageState.STOPPED
    older = "".join(piece for at_s, piece in shown if at_s < shown[-1][0] - 1.0)
    assert answer.content.startswith(older)
    assert older
