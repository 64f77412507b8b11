"""Answers keep to a JSON schema, a regular expression or a grammar, whatever the model would rather say."""

from __future__ import annotations

import gc
import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from engine import Delta, Engine, EngineConfig, OutputFormat, SamplingParams, constraint
from engine.chat import ChatFormat
from engine.chat.spans import Span
from engine.constraint import Constraints
from engine.errors import ConstraintError, InvalidRequestError
from engine.matcher import NativeVocabulary, Tokenize

pytestmark = pytest.mark.starter

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "likes": {"type": "array", "items": {"enum": ["tea", "rain"]}, "maxItems": 2},
    },
    "required": ["name", "age", "likes"],
    "additionalProperties": False,
}
QUESTION = [{"role": "user", "content": "Tell me about a person."}]


@pytest.fixture(scope="module")
def engine(starter_model: Path) -> Iterator[Engine]:
    with Engine.open(starter_model, EngineConfig(context_length=1024)) as engine:
        yield engine


def answer(engine: Engine, form: OutputFormat, **params: Any) -> list[Delta]:
    params = {"temperature": 1.5, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "max_tokens": 200, **params}
    return list(engine.chat(QUESTION, SamplingParams(output_format=form, **params)))


def text(deltas: list[Delta]) -> str:
    return "".join(delta.text for delta in deltas if delta.kind == "answer")


@pytest.mark.parametrize("seed", range(8))
def test_a_json_schema_is_kept_to_at_any_temperature(engine: Engine, seed: int) -> None:
    deltas = answer(engine, OutputFormat(json_schema=PERSON), seed=seed)
    person = json.loads(text(deltas))
    assert deltas[-1].finish_reason == "stop"
    assert person.keys() == {"name", "age", "likes"}
    assert isinstance(person["name"], str) and len(person["name"]) <= 20
    assert 0 <= person["age"] <= 120
    assert set(person["likes"]) <= {"tea", "rain"} and len(person["likes"]) <= 2


@pytest.mark.parametrize("seed", range(4))
def test_a_regular_expression_is_matched_by_the_whole_answer(engine: Engine, seed: int) -> None:
    pattern = r"(yes|no), [0-9]{2,4} [äöü]é你"
    deltas = answer(engine, OutputFormat(regex=pattern), seed=seed)
    assert re.fullmatch(pattern, text(deltas))
    assert deltas[-1].finish_reason == "stop"


@pytest.mark.parametrize("seed", range(4))
def test_a_grammar_is_kept_to(engine: Engine, seed: int) -> None:
    grammar = 'start: sum\nsum: NUMBER (" + " NUMBER)~1..3\nNUMBER: /[1-9][0-9]?/'
    assert re.fullmatch(
        r"[1-9][0-9]?( \+ [1-9][0-9]?){1,3}", text(answer(engine, OutputFormat(grammar=grammar), seed=seed))
    )


def test_the_most_likely_of_the_allowed_tokens_are_taken(engine: Engine) -> None:
    prompt = engine.chat_prompts.prompt(QUESTION).ids
    logits = engine.logits(prompt)[-1]
    words = (b"Rome", b"Paris", b"London")
    starts = [
        token
        for token in range(engine.info.n_vocab)
        if (spelled := engine.tokenizer.token_bytes(token)) and any(word.startswith(spelled) for word in words)
    ]
    best = max(starts, key=lambda token: logits[token])
    params = SamplingParams(temperature=0.0, output_format=OutputFormat(regex="(Rome|Paris|London)"))
    deltas = list(engine.generate(prompt, params))
    assert next(delta.token_id for delta in deltas if delta.token_id is not None) == best
    assert text(deltas).encode() in words


def test_an_answer_ends_as_soon_as_nothing_can_follow(engine: Engine) -> None:
    deltas = answer(engine, OutputFormat(regex="ab"), ignore_eos=True)
    assert (text(deltas), deltas[-1].finish_reason) == ("ab", "stop")
    assert deltas[-1].token_id not in engine.tokenizer.end_ids


def test_an_answer_may_be_cut_by_its_length(engine: Engine) -> None:
    deltas = answer(engine, OutputFormat(json_schema=PERSON), max_tokens=3)
    assert deltas[-1].finish_reason == "length"
    assert text(deltas).startswith("{")


def test_answers_side_by_side_keep_to_forms_of_their_own(engine: Engine) -> None:
    prompt = engine.chat_prompts.prompt(QUESTION).ids
    forms = [OutputFormat(regex="a{3}"), None, OutputFormat(regex="b{4}")]
    ids = [engine.add(prompt, SamplingParams(max_tokens=12, seed=1, output_format=form)) for form in forms]
    texts = dict.fromkeys(ids, "")
    while engine.has_work:
        for delta in engine.step():
            texts[delta.request_id] += delta.text
    assert (texts[ids[0]], texts[ids[2]]) == ("aaa", "bbbb")
    assert len(texts[ids[1]]) > 4


def test_reasoning_is_free_and_the_answer_after_it_is_not(engine: Engine) -> None:
    form = ChatFormat("", ())
    form.reasoning.append(Span("assistant", "of France"))
    question = [{"role": "user", "content": "What is the capital of France?"}]
    prompt = engine.chat_prompts.prompt(question)
    params = SamplingParams(temperature=0.0, output_format=OutputFormat(regex="[0-9]{3}"))
    deltas = list(engine.generate(prompt.ids, params, form.parser("assistant\n")))
    assert "".join(delta.text for delta in deltas if delta.kind == "reasoning") == "The capital"
    assert re.fullmatch("[0-9]{3}", text(deltas))


def test_sorting_a_vocabulary_holds_no_other_thread_up(engine: Engine) -> None:
    turns = [
        turns_of_another(lambda: Constraints(engine.tokenizer).begin(OutputFormat(regex="ab")).result())
        for _ in range(3)
    ]
    assert max(turns) > 10, turns  # some hundreds; were the interpreter's lock held, one or two


def turns_of_another(work: Callable[[], object]) -> int:
    """How often another thread has its turn while `work` runs."""
    is_over, n_turns = threading.Event(), 0

    def watch() -> None:
        nonlocal n_turns
        while not is_over.is_set():
            time.sleep(0.0005)
            n_turns += 1

    watcher = threading.Thread(target=watch)
    watcher.start()
    work()
    is_over.set()
    watcher.join()
    return n_turns


# While the vocabulary is sorted ---------------------------------------------------------------------------------------


class Gate:
    """Stands in front of the sorting of a vocabulary until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._is_open, sort = threading.Event(), constraint.NativeVocabulary

        def sort_later(tokens: Sequence[bytes], end_ids: Sequence[int], tokenize: Tokenize) -> NativeVocabulary:
            if len(tokens) > 257:  # the check of a form comes before
                self._is_open.wait()
            return sort(tokens, end_ids, tokenize)

        monkeypatch.setattr(constraint, "NativeVocabulary", sort_later)

    def open(self) -> None:
        self._is_open.set()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate(monkeypatch)
    yield gate
    gate.open()


def started(starter_model: Path) -> tuple[Engine, int]:
    """An engine with a request for which its vocabulary must be sorted."""
    engine = Engine.open(starter_model, EngineConfig(context_length=512))
    params = SamplingParams(max_tokens=20, seed=1, output_format=OutputFormat(regex="a{3}"))
    return engine, engine.add(engine.chat_prompts.prompt(QUESTION).ids, params)


def test_other_answers_go_on_while_the_vocabulary_is_sorted(starter_model: Path, gate: Gate) -> None:
    engine, held = started(starter_model)
    with engine:
        other = list(engine.generate(engine.tokenizer.encode("Once upon a time"), SamplingParams(max_tokens=30)))
        assert other[-1].finish_reason is not None
        assert all(delta.request_id != held for delta in engine.step())

        gate.open()
        deltas: list[Delta] = []
        while engine.has_work:
            deltas += engine.step()
    assert {delta.request_id for delta in deltas} == {held}
    assert (text(deltas), deltas[-1].finish_reason) == ("aaa", "stop")


def test_a_request_that_waits_for_its_vocabulary_may_be_cancelled(starter_model: Path, gate: Gate) -> None:
    engine, held = started(starter_model)
    with engine:
        engine.cancel(held)
        (last,) = engine.step()
        assert (last.request_id, last.finish_reason) == (held, "cancelled")
        assert not engine.has_work
        gate.open()
        assert text(answer(engine, OutputFormat(regex="ab"))) == "ab"


def test_a_vocabulary_that_cannot_be_sorted_ends_the_request_alone(
    starter_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object) -> NativeVocabulary:
        raise ValueError("too many tokens")

    constraint._bytes()  # which is there already
    monkeypatch.setattr(constraint, "NativeVocabulary", fail)
    engine, held = started(starter_model)
    with engine:
        deltas: list[Delta] = []
        while engine.has_work:
            deltas += engine.step()
        assert (deltas[-1].request_id, deltas[-1].finish_reason) == (held, "error")
        assert "cannot be held to an output format: too many tokens" in deltas[-1].text
        assert text(list(engine.chat(QUESTION, SamplingParams(max_tokens=5))))


def test_an_answer_may_be_dropped_while_its_mask_is_worked_out(engine: Engine) -> None:
    constraints = Constraints(engine.tokenizer)
    form = OutputFormat(json_schema={})
    for _ in range(30):
        constraints.begin(form).result().accept(engine.tokenizer.encode("{")[0])
        gc.collect()
    allowed = constraints.begin(form).result()
    assert allowed.allowed() and not allowed.is_complete
    constraints.close()


# What is refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "exactly one of json_schema, regex and grammar, found none"),
        ({"regex": "a", "grammar": "start: A"}, "found regex and grammar"),
        ({"json_schema": {"x": {1, 2}}}, "JSON values only"),
        ({"json_schema": {"x": float("nan")}}, "JSON values only"),
        ({"regex": "a\ud800"}, "The regex holds half of a surrogate pair"),
        ({"grammar": 'start: "\ud800"'}, "The grammar holds half of a surrogate pair"),
        ({"regex": "a" * 1_000_001}, "1,000,001 characters; the limit is 1,000,000"),
    ],
)
def test_a_format_is_one_thing_and_of_a_sane_size(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        OutputFormat(**given)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (OutputFormat(regex="[a-"), "The regular expression of the output format cannot be used.*unclosed"),
        (OutputFormat(grammar="start: nothing"), "The grammar of the output format cannot be used.*nothing"),
        (OutputFormat(json_schema={"type": "colour"}), "The JSON schema of the output format.*colour"),
        (OutputFormat(json_schema={"not": {}}), "not"),
    ],
)
def test_a_form_that_cannot_be_read_is_refused_before_the_answer_begins(
    engine: Engine, form: OutputFormat, message: str
) -> None:
    with pytest.raises(InvalidRequestError, match=f"(?s){message}"):
        engine.add([1, 2, 3], SamplingParams(output_format=form))
    assert not engine.has_work


@pytest.mark.parametrize("form", [OutputFormat(grammar="start: start"), OutputFormat(json_schema={"$ref": "#"})])
def test_a_form_that_no_text_has_ends_the_request_with_words_about_it(engine: Engine, form: OutputFormat) -> None:
    last = answer(engine, form)[-1]
    assert last.finish_reason == "error"
    assert last.text.startswith("No answer can have this output format") and "\n" not in last.text


def test_where_llguidance_is_missing_the_request_is_refused(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llguidance", None)
    with pytest.raises(InvalidRequestError, match=r"needs the package llguidance.*make setup"):
        engine.add([1, 2, 3], SamplingParams(output_format=OutputFormat(regex="a")))


def test_a_token_that_was_not_allowed_is_an_error(engine: Engine) -> None:
    held = Constraints(engine.tokenizer).begin(OutputFormat(regex="ab")).result()
    with pytest.raises(ConstraintError, match="cannot be held to its output format"):
        held.accept(engine.tokenizer.encode("zebra")[0])
