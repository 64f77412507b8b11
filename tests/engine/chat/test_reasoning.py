"""Reasoning is told apart from the answer, by each family's markers, however the tokens cut them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.chat import ChatFormat
from tests.engine.chat.reading import read

HARMONY = ("<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|return|>", "<|call|>")

# What in a template gives the family away; what the model writes; its control tokens.
ANSWERS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "think": ("</think>", "<think>\nHm, 2 < 3.\n</think>\n\nYes & no.", ()),
    "think token": ("</think>", "<think>Hm, 2 < 3.</think>Yes & no.", ("<think>", "</think>")),
    "seed": ("<seed:think>", "<seed:think>Hm, 2 < 3.</seed:think>\nYes & no.", ()),
    "minimax": ("<mm:think>", "<mm:think>Hm, 2 < 3.</mm:think>Yes & no.", ()),
    "magistral": ("[THINK]", "[THINK]Hm, 2 < 3.[/THINK]Yes & no.", ("[THINK]", "[/THINK]")),
    "cohere": (
        "<|START_THINKING|>",
        "<|START_THINKING|>Hm, 2 < 3.<|END_THINKING|><|START_RESPONSE|>Yes & no.<|END_RESPONSE|>",
        ("<|START_THINKING|>", "<|END_THINKING|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    ),
    "apertus": ("<|inner_prefix|>", "<|inner_prefix|>Hm, 2 < 3.<|inner_suffix|>Yes & no.", ()),
    "gemma": (
        "<|channel>thought <channel|>",
        "<|channel>thought\nHm, 2 < 3.\n<channel|>Yes & no.",
        ("<|channel>", "<channel|>"),
    ),
    "kimi 3": (
        "<|open|>think<|sep|>",
        "<|open|>think<|sep|>Hm, 2 < 3.<|close|>think<|sep|><|open|>response<|sep|>Yes & no.<|close|>response<|sep|>",
        ("<|open|>", "<|close|>", "<|sep|>"),
    ),
    "apriel": (
        "[BEGIN FINAL RESPONSE]",
        "Here are my reasoning steps:\nHm, 2 < 3.\n[BEGIN FINAL RESPONSE]\nYes & no.\n[END FINAL RESPONSE]",
        (),
    ),
    "granite 3.2": (
        "Here is my thought process:",
        "Here is my thought process:\n\nHm, 2 < 3.\n\nHere is my response:\n\nYes & no.",
        (),
    ),
    "granite 3.3": (
        "<think></think> <response></response>",
        "<think>Hm, 2 < 3.</think>\n<response>Yes & no.</response>",
        (),
    ),
    "hunyuan": ("<think> <answer>", "<think>\nHm, 2 < 3.\n</think>\n<answer>\nYes & no.\n</answer>", ()),
    "hunyuan 3": ("<think:opensource>", "<think:opensource>Hm, 2 < 3.</think:opensource>Yes & no.", ()),
    "gpt-oss": (
        "<|channel|><|message|>",
        "<|channel|>analysis<|message|>Hm, 2 < 3.<|end|><|start|>assistant<|channel|>final<|message|>Yes & no.",
        HARMONY,
    ),
    "gpt-oss, no such tokens": (
        "<|channel|><|message|>",
        "<|channel|>analysis<|message|>Hm, 2 < 3.<|end|><|start|>assistant<|channel|>final<|message|>Yes & no.",
        (),
    ),
}


@pytest.mark.parametrize("family", ANSWERS)
def test_reasoning_and_answer_come_apart_without_their_markers(family: str) -> None:
    source, text, control = ANSWERS[family]
    found = read(source, text, control=control)
    assert (found.reasoning, found.answer) == ("Hm, 2 < 3.", "Yes & no.")


@pytest.mark.parametrize("family", ANSWERS)
@given(cuts=st.lists(st.integers(1, 100), min_size=1))
def test_tokens_may_cut_markers_anywhere(family: str, cuts: list[int]) -> None:
    source, text, control = ANSWERS[family]
    found = read(source, text, control=control, cuts=cuts)
    assert (found.reasoning, found.answer) == ("Hm, 2 < 3.", "Yes & no.")


@pytest.mark.parametrize(
    ("source", "prompt_end", "text"),
    [
        ("</think>", "<|im_start|>assistant\n<think>\n", "Hm.\n</think>\n\nYes."),
        ("</think>", "<｜Assistant｜><think>", "Hm.</think>Yes."),
        ("[BEGIN FINAL RESPONSE]", "\nHere are my reasoning steps:\n", "Hm.\n[BEGIN FINAL RESPONSE]\nYes."),
        ("<|START_THINKING|>", "<|CHATBOT_TOKEN|><|START_THINKING|>", "Hm.<|END_THINKING|>Yes."),
    ],
)
def test_the_prompt_may_have_begun_the_reasoning(source: str, prompt_end: str, text: str) -> None:
    found = read(source, text, prompt_end=prompt_end)
    assert (found.reasoning, found.answer) == ("Hm.", "Yes.")


def test_a_prompt_that_has_ended_the_reasoning_leaves_only_the_answer() -> None:
    found = read("</think>", "Yes.", prompt_end="<think>\n\n</think>\n\n")
    assert (found.reasoning, found.answer) == ("", "Yes.")


def test_reasoning_that_is_cut_off_is_all_there_is() -> None:
    found = read("</think>", "<think>Hm, </thi")
    assert (found.reasoning, found.answer) == ("Hm, </thi", "")


@pytest.mark.parametrize(
    "text", ["Write <think> and </think> around it.", "`<think>`", " \n", "a\n\n  b \n", "", "<thin", "<response>x"]
)
def test_an_answer_that_speaks_of_markers_stays_as_it_is(text: str) -> None:
    found = read("<think></think>", text)
    assert (found.reasoning, found.answer) == ("", text)


def test_text_that_looks_like_a_control_token_is_text() -> None:
    control = ("[THINK]", "[/THINK]")
    parser = ChatFormat("[THINK]", control).parser()
    pieces = [piece for part in ("[THINK]", "Hm", "[/THINK]") for piece in parser.push(part)] + parser.finish()
    assert "".join(piece.text for piece in pieces) == "[THINK]Hm[/THINK]"
    assert {piece.kind for piece in pieces} == {"answer"}


def test_no_text_can_forge_a_control_token() -> None:
    parser = ChatFormat("[THINK]", ("[THINK]",)).parser()
    pieces = parser.push("\U0010fffe[THINK]\U0010ffffHm")
    assert [(piece.kind, piece.text) for piece in pieces] == [("answer", "\ufffd[THINK]\ufffdHm")]


def test_control_tokens_that_mark_nothing_are_hidden() -> None:
    assert read("", "Yes<|im_end|>.", control=("<|im_end|>",)).answer == "Yes."


def test_where_nothing_speaks_of_reasoning_there_is_none() -> None:
    assert read("{{ messages }}", "<think>Hm</think>Yes").answer == "<think>Hm</think>Yes"
    assert not ChatFormat("{{ messages }}", ()).has_reasoning
    assert ChatFormat("{{ messages }}", (), ("<think>", "</think>")).has_reasoning


def test_reasoning_streams_as_it_comes() -> None:
    parser = ChatFormat("</think>", ()).parser("<think>\n")
    assert [(piece.kind, piece.text) for piece in parser.push("First, ")] == [("reasoning", "First,")]
    assert [(piece.kind, piece.text) for piece in parser.push("then")] == [("reasoning", " then")]
    assert [(piece.kind, piece.text) for piece in parser.push("</think>\n\nYes")] == [("answer", "Yes")]


# Harmony --------------------------------------------------------------------------------------------------------------


def test_commentary_for_nobody_is_part_of_the_answer() -> None:
    text = (
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary<|message|>I look.<|end|>"
        "<|start|>assistant<|channel|>analysis<|message|>So.<|end|><|start|>assistant<|channel|>final<|message|>Yes.<|return|>"
    )
    found = read("", text, control=HARMONY)
    assert (found.reasoning, found.answer) == ("Hm.\n\nSo.", "I look.\n\nYes.")


@pytest.mark.parametrize(
    "header",
    [
        "<|channel|>commentary to=functions.weather <|constrain|>json",
        " to=functions.weather<|channel|>commentary json",
        "<|channel|>analysis to=functions.weather code",
    ],
)
def test_a_message_with_a_recipient_is_a_call(header: str) -> None:
    text = f'<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant{header}<|message|>{{"city": "Oslo"}}<|call|>'
    found = read("", text, control=(*HARMONY, "<|constrain|>"))
    assert (found.reasoning, found.answer, found.calls) == ("Hm.", "", [("weather", {"city": "Oslo"})])


def test_a_call_in_harmony_without_json_is_text_with_a_reason() -> None:
    found = read("", "<|channel|>commentary to=functions.weather<|message|>{city<|call|>", control=HARMONY)
    assert found.answer == "weather: {city"
    assert "expected a JSON object with the arguments of weather, found '{city'" in found.problems[0]


def test_a_model_that_does_not_keep_to_harmony_is_heard_all_the_same() -> None:
    assert read("", "Just text.", control=HARMONY).answer == "Just text."
    long = "word " * 200
    assert read("", long, control=HARMONY).answer == long.strip()
