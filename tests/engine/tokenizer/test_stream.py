"""Streamed text is whole characters, and joined it is the text of all ids."""

from __future__ import annotations

import unicodedata
from functools import cache

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.tokenizer import Tokenizer
from tests.engine.tokenizer.reference_data import compact_models

NAMES = ["llama", "phi3", "qwen2", "gpt_oss", "deepseek_v2"]


@cache
def tokenizer_of(name: str) -> Tokenizer:
    return Tokenizer.from_metadata(compact_models()[name]["metadata"])


def streamed(tokenizer: Tokenizer, ids: list[int], *, skip_special: bool = True) -> list[str]:
    stream = tokenizer.stream(skip_special=skip_special)
    return [*map(stream.push, ids), stream.flush()]


@pytest.mark.parametrize("name", NAMES)
@given(numbers=st.lists(st.integers(0, 599), max_size=60), skip_special=st.booleans())
def test_the_parts_joined_are_the_text_of_any_ids(name: str, numbers: list[int], skip_special: bool) -> None:
    tokenizer = tokenizer_of(name)
    whole = tokenizer.decode(numbers, skip_special=skip_special)
    assert "".join(streamed(tokenizer, numbers, skip_special=skip_special)) == whole


@pytest.mark.parametrize("name", NAMES)
@example(text="\U0002f800")
@given(text=st.text(max_size=60) | st.text(st.sampled_from("aé你🚀👩‍💻 \n\u2581"), max_size=60))
def test_no_part_of_sound_text_shows_half_a_character(name: str, text: str) -> None:
    tokenizer = tokenizer_of(name)
    parts = streamed(tokenizer, tokenizer.encode(text))
    if "\ufffd" not in text:
        assert not any("\ufffd" in part for part in parts)
    assert parts[-1] == ""
    if "\u2581" not in text or name not in ("llama", "phi3"):  # there the mark itself means a space
        # Qwen2's tokenizer composes characters first
        assert "".join(parts) == (unicodedata.normalize("NFC", text) if name == "qwen2" else text)


def test_a_character_comes_with_its_last_byte() -> None:
    tokenizer = tokenizer_of("llama")
    rocket = [tokenizer.encode("🚀", add_special=False)[1:], [0xF0, 0x9F, 0x9A, 0x80]]
    assert [tokenizer.token_bytes(token_id) for token_id in rocket[0]] == [bytes([byte]) for byte in rocket[1]]
    assert streamed(tokenizer, rocket[0]) == ["", "", "", "🚀", ""]


def test_a_character_that_stays_incomplete_is_replaced_at_the_end() -> None:
    tokenizer = tokenizer_of("llama")
    rocket = tokenizer.encode("🚀", add_special=False)[1:]
    assert streamed(tokenizer, rocket[:3]) == ["", "", "", "\ufffd"]


def test_special_tokens_are_shown_on_request() -> None:
    tokenizer = tokenizer_of("qwen2")
    ids = tokenizer.encode("<|im_start|>Hi<|im_end|>", parse_special=True)
    assert "".join(streamed(tokenizer, ids)) == "Hi"
    assert "".join(streamed(tokenizer, ids, skip_special=False)) == "<|im_start|>Hi<|im_end|>"


def test_only_the_first_space_of_a_text_is_dropped() -> None:
    tokenizer = tokenizer_of("llama")
    ids = tokenizer.encode("  two words", add_special=True)
    assert "".join(streamed(tokenizer, ids)) == "  two words"
