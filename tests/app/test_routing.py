"""Which experts served an answer: token by token, by words, and how evenly."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answer import Answer
from app.chats import ChatStore, Role
from app.engine_service import EngineService
from app.routing import AnswerRoutes, RouteBook, balance_of, likeness
from engine import EngineConfig, SamplingParams

FIXTURES = Path(__file__).resolve().parents[1] / "data" / "fixtures"
MIXTURE, DENSE = FIXTURES / "qwen3_moe-Q4_K_M.gguf", FIXTURES / "llama-Q4_K_M.gguf"
CONFIG = EngineConfig(context_length=512, threads=1)
PARAMS = SamplingParams(temperature=0.0, max_tokens=150, ignore_eos=True)


@pytest.fixture
async def service() -> AsyncIterator[EngineService]:
    service = EngineService()
    yield service
    service.close()


async def answer(service: EngineService, store: ChatStore, text: str, params: SamplingParams = PARAMS) -> int:
    """Have a question answered; the answer's message."""
    chat = store.create_chat()
    question = store.add_message(chat.id, None, Role.USER, text)
    message = store.add_message(chat.id, question.id, Role.ASSISTANT)

    def nothing(*_arguments: Any) -> None:
        pass

    writer = Answer(store, message.id, nothing, nothing, nothing)
    await writer.write(service, [{"role": "user", "content": text}], params)
    return message.id


async def test_every_token_of_an_answer_has_the_route_of_the_step_that_chose_it(
    service: EngineService, tmp_path: Path
) -> None:
    store = ChatStore(tmp_path / "chats.db")
    await service.load(MIXTURE, CONFIG)
    telemetry: Any = service.telemetry
    first_step = telemetry.n_steps
    message_id = await answer(service, store, "hummingbirds")
    routes = service.routes.of(message_id)
    assert routes is not None and routes.n_tokens == routes.n_known == 150
    steps = telemetry.steps(first_step)
    choosing = steps.chosen(steps.n_answered > 0)
    assert np.array_equal(routes.routes, choosing.routes)
    assert routes.text == store.message(message_id).content and routes.ends[-1] == len(routes.text)
    assert (routes.counts().sum(1) == 150 * telemetry.last_experts.shape[1]).all()
    store.close()


async def test_tokens_of_steps_that_served_other_answers_too_are_not_known(
    service: EngineService, tmp_path: Path
) -> None:
    store = ChatStore(tmp_path / "chats.db")
    await service.load(MIXTURE, CONFIG)
    longer = SamplingParams(temperature=0.0, max_tokens=200, ignore_eos=True)
    first, second = await asyncio.gather(answer(service, store, "one"), answer(service, store, "two", longer))
    one, two = service.routes.of(first), service.routes.of(second)
    assert one is not None and two is not None
    assert one.n_known < 20 and 40 < two.n_known < 80
    store.close()


async def test_a_dense_model_has_no_routes(service: EngineService, tmp_path: Path) -> None:
    store = ChatStore(tmp_path / "chats.db")
    await service.load(DENSE, CONFIG)
    assert service.routes.of(await answer(service, store, "one")) is None
    store.close()


def made(pieces: list[str], message_id: int = 1) -> AnswerRoutes:
    """Token i calls the experts i and i + 1 of the first layer, and 0 and 1 of the second."""
    n = len(pieces)
    routes = np.zeros((n, 2, 2), np.int16)
    routes[:, 0, 0], routes[:, 0, 1] = np.arange(n), np.arange(n) + 1
    routes[:, 1, 1] = 1
    ends = np.cumsum([len(piece) for piece in pieces]).astype(np.int64)
    return AnswerRoutes(message_id, "".join(pieces), ends, routes, (1, 4), n + 1)


def test_words_are_found_wherever_they_stand_and_across_tokens() -> None:
    routes = made(["A hum", "ming", "bird", "", " is no Bird", "."])
    assert routes.tokens_of("").all()
    assert routes.tokens_of("bird").tolist() == [False, False, True, False, True, False]
    assert routes.tokens_of("HUMMING").tolist() == [True, True, False, False, False, False]
    assert not routes.tokens_of("owl").any()
    assert routes.counts("bird")[0].tolist() == [0, 0, 1, 1, 1, 1, 0]
    assert routes.counts("bird")[1].tolist() == [2, 2, 0, 0, 0, 0, 0]


def test_tokens_that_are_not_known_are_not_counted() -> None:
    routes = made(["a", "b"])
    routes.routes[0] = -1
    assert routes.n_known == 1
    assert routes.counts().tolist() == [[0, 1, 1], [1, 1, 0]]


def test_balance_names_layers_by_their_own_numbers_and_tells_even_from_uneven() -> None:
    even = balance_of(np.full((2, 8), 3), (1, 4))
    assert even is not None and even.evenness == pytest.approx(1.0) and even.n_used == even.n_experts == 16
    one = np.zeros((2, 8), np.int64)
    one[0, 5] = one[1, 2] = 9
    single = balance_of(one, (1, 4))
    assert single is not None and single.evenness == 0.0 and single.n_used == 2
    assert set(single.most) == set(single.least) == {(1, 5, 1.0), (4, 2, 1.0)}
    uneven = balance_of(np.array([[6, 3, 1, 0]]), (7,))
    assert uneven is not None
    assert [place[:2] for place in uneven.most] == [(7, 0), (7, 1), (7, 2)]
    assert [place[:2] for place in uneven.least] == [(7, 2), (7, 1), (7, 0)]
    assert balance_of(np.zeros((2, 8), np.int64), (1, 4)) is None


@given(st.lists(st.lists(st.integers(0, 50), min_size=6, max_size=6), min_size=2, max_size=2), st.integers(1, 9))
def test_likeness_is_1_for_the_same_shares_and_symmetric(rows: list[list[int]], factor: int) -> None:
    first, second = (np.array([row]) + 1 for row in rows)
    assert likeness(first, first * factor) == pytest.approx(1.0)
    assert likeness(first, second) == pytest.approx(likeness(second, first))
    assert 0 <= likeness(first, second) <= 1 + 1e-12


def test_answers_without_an_expert_in_common_are_not_alike() -> None:
    assert likeness(np.array([[4, 0]]), np.array([[0, 2]])) == 0.0


def test_a_book_keeps_the_newest_answers_and_tells_of_each() -> None:
    book, told = RouteBook(), list[int]()
    end = book.on_change(lambda: told.append(1))
    for number in range(60):
        book.keep(made(["a"], number))
    assert [answer.message_id for answer in book.answers()] == list(range(59, 11, -1))
    assert book.of(3) is None and len(told) == 60
    end()
    book.keep(made(["a"], 99))
    assert len(told) == 60
