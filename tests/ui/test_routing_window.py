"""The experts of an answer or a word of it, and two topics side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from app.routing import RouteBook
from tests.app.test_routing import made
from ui.performance.routing_window import RoutingWindow

BIRDS, CODE = ["The ", "hum", "ming", "bird", " hovers."], ["def ", "main", "(", ")", ":"]


@pytest.fixture
def book() -> RouteBook:
    book = RouteBook()
    book.keep(made(BIRDS, 1))
    book.keep(made(CODE, 2))
    return book


@pytest.fixture
def window(qtbot: Any, book: RouteBook) -> Iterator[RoutingWindow]:
    window = RoutingWindow(book)
    qtbot.addWidget(window)
    yield window
    window.close()


def test_an_answer_is_shown_with_its_calls_and_their_balance(window: RoutingWindow) -> None:
    window.show_answer(1)
    assert window.left.choice.currentText() == "The hummingbird hovers. · 5 tokens"
    assert window.left.counts is not None and window.left.counts[0].tolist() == [1, 2, 2, 2, 2, 1]
    text = window.left.figures.text()
    assert text.startswith("5 of 5 tokens · 8 of 12 experts called · ") and "Most: layer 4 expert" in text
    assert window.verdict.text() == ""


def test_a_word_of_an_answer_shows_its_own_experts(window: RoutingWindow) -> None:
    window.show_answer(1, "hummingbird")
    assert window.left.words.text() == "hummingbird"
    assert window.left.counts is not None and window.left.counts[0].tolist() == [0, 1, 2, 2, 1, 0]
    assert window.left.figures.text().startswith("3 of 5 tokens")
    window.left.words.setText("owl")
    assert window.left.counts is None
    assert window.left.explanation.title.text() == "These words are not in the answer"
    window.left.words.clear()
    assert window.left.counts is not None


def test_two_answers_stand_side_by_side_with_what_they_have_in_common(window: RoutingWindow) -> None:
    window.show_answer(1)
    window.show_answer(2)
    assert window.left.answer is not None and window.left.answer.message_id == 2
    assert window.right.answer is not None and window.right.answer.message_id == 1
    assert window.verdict.text() == "100 % of their calls go to the same experts."
    window.left.words.setText("def")
    window.right.words.setText("hovers")
    assert window.verdict.text() == "50 % of their calls go to the same experts."  # one layer of two


def test_answers_of_different_models_are_not_compared(window: RoutingWindow, book: RouteBook) -> None:
    book.keep(made(["a", "b", "c"], 3))
    window.show_answer(1)
    window.show_answer(3)
    assert "different experts" in window.verdict.text()


def test_a_new_answer_appears_in_both_lists_and_the_choice_stays(window: RoutingWindow, book: RouteBook) -> None:
    window.show_answer(1)
    book.keep(made(["new"], 7))
    assert window.left.choice.itemText(1) == "new · 1 tokens" == window.right.choice.itemText(1)
    assert window.left.answer is not None and window.left.answer.message_id == 1


def test_an_answer_that_is_not_remembered_says_so(window: RoutingWindow) -> None:
    window.show_answer(1234)
    assert window.left.explanation.title.text() == "Choose an answer"
    assert "newest 48" in window.left.explanation.text.text()


def test_tokens_that_are_not_known_are_told(window: RoutingWindow, book: RouteBook) -> None:
    answer = made(["x", "y"], 5)
    answer.routes[:] = -1
    book.keep(answer)
    window.show_answer(5)
    assert "not known" in window.left.explanation.title.text()


def test_the_map_shows_calls_as_they_are(window: RoutingWindow) -> None:
    window.show_answer(2)
    heat = window.left.map.heat
    assert heat is not None and np.array_equal(heat, window.left.counts)
    window.left.map.resize(300, 300)
    assert not window.left.map.grab().toImage().isNull()
