"""Special tokens, beginnings and ends follow the file; what a file leaves open follows its kind of vocabulary."""

from __future__ import annotations

import threading
import unicodedata
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ModelFormatError, TokenizerError, UnsupportedModelError
from engine.tokenizer import Tokenizer
from engine.tokenizer.pre_tokenizers import PRE_TOKENIZERS
from engine.tokenizer.vocabulary import BYTE_OF_CHARACTER
from tests.engine.tokenizer.reference_data import compact_models


@cache
def model(name: str) -> dict[str, Any]:
    metadata: dict[str, Any] = compact_models()[name]["metadata"]
    return metadata


@cache
def tokenizer_of(name: str) -> Tokenizer:
    return Tokenizer.from_metadata(model(name))


def byte_level(*merged: str, special: dict[str, int] | None = None, **keys: Any) -> dict[str, Any]:
    """A byte-level vocabulary of the 256 bytes, these merges, and special tokens with their kinds."""
    characters = sorted(BYTE_OF_CHARACTER, key=BYTE_OF_CHARACTER.__getitem__)
    special = special or {}
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": [*characters, *(merge.replace(" ", "") for merge in merged), *special],
        "tokenizer.ggml.token_type": np.array([1] * (256 + len(merged)) + list(special.values()), np.int32),
        "tokenizer.ggml.merges": list(merged),
        **{f"tokenizer.ggml.{key}": value for key, value in keys.items()},
    }


def test_control_tokens_are_text_unless_asked_for() -> None:
    tokenizer = tokenizer_of("qwen2")
    end = next(token_id for token_id in tokenizer.end_ids if tokenizer.token_text(token_id) == "<|im_end|>")
    assert end not in tokenizer.encode("a<|im_end|>b")
    assert tokenizer.encode("<|im_end|>", parse_special=True) == [end]
    assert tokenizer.decode(tokenizer.encode("a<|im_end|>b")) == "a<|im_end|>b"


def test_user_defined_tokens_are_always_found() -> None:
    tokenizer = Tokenizer.from_metadata(byte_level(special={"<think>": 4, "<|end|>": 3}))
    assert tokenizer.encode("a<think>b") == [97, 256, 98]
    assert tokenizer.decode([97, 256, 98]) == "a<think>b"
    assert tokenizer.decode([97, 257, 98]) == "ab"
    assert tokenizer.decode([97, 257, 98], skip_special=False) == "a<|end|>b"


def test_of_special_tokens_at_one_place_the_longest_counts() -> None:
    tokenizer = Tokenizer.from_metadata(byte_level(special={"<a": 4, "<ab>": 4, "<": 4, "b>": 4}))
    assert tokenizer.encode("<ab><ab<<") == [257, 256, 98, 258, 258]


def test_text_around_special_tokens_has_the_ids_of_its_parts() -> None:
    for name in ("qwen2", "llama", "gpt_oss"):
        tokenizer = tokenizer_of(name)
        sign = tokenizer.token_text(tokenizer.eos_id or 0)
        parts = ["a b", " c", "\u4f60\n", "  ", "d", "e  "]
        found = tokenizer.encode(sign.join(parts), add_special=False, parse_special=True)
        expected: list[int] = []
        for part in parts:
            expected += [*tokenizer.encode(part, add_special=False), tokenizer.eos_id or 0]
        assert found == expected[:-1]


def test_an_unused_token_is_not_special() -> None:
    tokenizer = Tokenizer.from_metadata(byte_level(special={"[PAD0]": 5}))
    assert 256 not in tokenizer.encode("[PAD0]", parse_special=True)
    assert not tokenizer.is_special(256)


def test_beginning_and_end_are_added_as_the_file_says() -> None:
    special = {"<s>": 3, "</s>": 3}
    ids = {"bos_token_id": 256, "eos_token_id": 257}
    both = Tokenizer.from_metadata(byte_level(special=special, add_bos_token=True, add_eos_token=True, **ids))
    neither = Tokenizer.from_metadata(byte_level(special=special, **ids))
    assert both.encode("a") == [256, 97, 257]
    assert both.encode("a", add_special=False) == [97]
    assert neither.encode("a") == [97]
    assert both.encode("") == [256, 257]


def test_llama_3_vocabularies_begin_with_bos_where_the_file_says_nothing() -> None:
    keys = {"bos_token_id": 256, "pre": "llama-bpe"}
    tokenizer = Tokenizer.from_metadata(byte_level(special={"<|begin_of_text|>": 3}, **keys))
    assert tokenizer.encode("a") == [256, 97]


def test_a_bos_that_is_no_token_is_not_added() -> None:
    tokenizer = Tokenizer.from_metadata(byte_level(add_bos_token=True, bos_token_id=9999, eos_token_id=-1))
    assert (tokenizer.bos_id, tokenizer.eos_id) == (None, None)
    assert tokenizer.encode("a") == [97]
    assert tokenizer.end_ids == frozenset()


def test_every_token_that_ends_an_answer_is_known() -> None:
    special = {"<|endoftext|>": 3, "<|im_end|>": 3, "<|user|>": 3, "<other>": 3, "</s>": 4}
    tokenizer = Tokenizer.from_metadata(byte_level(special=special, eos_token_id=256, eot_token_id=258))
    assert tokenizer.end_ids == {256, 257, 258}


def test_a_word_that_is_a_token_is_taken_whole_where_the_pre_tokenizer_says_so() -> None:
    merges = ("a b", "c d", "b c", "ab cd")
    by_merges = byte_level(*merges)
    by_merges["tokenizer.ggml.merges"] = ["b c"]
    whole = {**by_merges, "tokenizer.ggml.pre": "llama-bpe"}
    assert Tokenizer.from_metadata(by_merges).encode("abcd") == [97, 258, 100]
    assert Tokenizer.from_metadata(whole).encode("abcd") == [259]


def test_characters_are_composed_where_the_published_tokenizer_does_so() -> None:
    composed, apart = "\u00e9", "e\u0301"
    for name in ("qwen2", "olmo"):
        tokenizer = Tokenizer.from_metadata(byte_level(pre=name))
        assert tokenizer.encode(apart) == tokenizer.encode(composed) == [*composed.encode()]
    assert Tokenizer.from_metadata(byte_level(pre="gpt-2")).encode(apart) == [*apart.encode()]


def test_merges_of_unknown_tokens_are_left_out() -> None:
    metadata = byte_level("a b")
    metadata["tokenizer.ggml.merges"] = ["a b", "x y", "zz z"]
    assert Tokenizer.from_metadata(metadata).encode("abxy") == [256, 120, 121]


@pytest.mark.parametrize("name", sorted(PRE_TOKENIZERS))
@given(text=st.text(max_size=40) | st.text(st.sampled_from("aB1٣ \n\r\t'.é你ก🚀\u3000S"), max_size=40))
def test_every_pre_tokenizer_keeps_every_byte(name: str, text: str) -> None:
    tokenizer = byte_level_tokenizer(name)
    kept = unicodedata.normalize("NFC", text) if PRE_TOKENIZERS[name].composes else text
    assert b"".join(map(tokenizer.token_bytes, tokenizer.encode(text))) == kept.encode()


@cache
def byte_level_tokenizer(pre: str) -> Tokenizer:
    return Tokenizer.from_metadata(byte_level("Ġ a", "a B", pre=pre))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("gpt-2", "It's 2024, isn't", ["It", "'s", " 2024", ",", " isn", "'t"]),
        ("smollm", "It's 2024", ["It", "'s", " ", "2", "0", "2", "4"]),
        ("llama-bpe", "IT'S 2024\n\nok", ["IT", "'S", " ", "202", "4", "\n\n", "ok"]),
        ("qwen2", "x=12  y", ["x", "=", "1", "2", " ", " y"]),
        ("gpt-4o", "HelloWorld's 2024", ["Hello", "World's", " ", "202", "4"]),
        ("tekken", "HelloWorld 12", ["Hello", "World", " ", "1", "2"]),
        ("deepseek-llm", "ab 12你好 .", ["ab", " ", "12", "你好", " ."]),
        ("deepseek-coder", "ab12\n", ["ab", "1", "2", "\n"]),
        ("deepseek-v3", "ab1234你好!x", ["ab", "123", "4", "你好", "!x"]),
        ("bailingmoe", "a\n\nb", ["a", "\n\n", "b"]),
        ("default", "a1234.b", ["a", "123", "4", ".", "b"]),
    ],
)
def test_words_end_where_the_named_pre_tokenizer_ends_them(name: str, text: str, words: list[str]) -> None:
    """Every pair of neighbouring characters is a merge, so that whole words become one token each."""
    merges, tokens = [], set()
    for word in words:
        spelled = "".join(sorted(BYTE_OF_CHARACTER, key=BYTE_OF_CHARACTER.__getitem__)[b] for b in word.encode())
        for end in range(2, len(spelled) + 1):
            if spelled[:end] not in tokens:
                tokens.add(spelled[:end])
                merges.append(f"{spelled[: end - 1]} {spelled[end - 1]}")
    whole = "".join(sorted(BYTE_OF_CHARACTER, key=BYTE_OF_CHARACTER.__getitem__)[b] for b in text.encode())
    for end in range(2, len(whole) + 1):  # and merges that would join across a word's end if it were not one
        if whole[:end] not in tokens:
            tokens.add(whole[:end])
            merges.append(f"{whole[: end - 1]} {whole[end - 1]}")
    tokenizer = Tokenizer.from_metadata(byte_level(*merges, pre=name))
    assert [tokenizer.token_bytes(token_id).decode() for token_id in tokenizer.encode(text, add_special=False)] == words


def test_an_unknown_pre_tokenizer_is_named_beside_those_that_are_known() -> None:
    with pytest.raises(UnsupportedModelError, match=r"'dragon'.*deepseek-llm.*gpt-2.*smollm"):
        Tokenizer.from_metadata(byte_level(pre="dragon"))


def test_an_unknown_kind_of_vocabulary_is_named_beside_those_that_are_known() -> None:
    with pytest.raises(UnsupportedModelError, match=r"'bert'.*gpt2.*llama"):
        Tokenizer.from_metadata({**byte_level(), "tokenizer.ggml.model": "bert"})


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("tokens", None, "expected a list of tokens in tokenizer.ggml.tokens, found nothing"),
        ("tokens", [], "found 0 values"),
        ("tokens", 5, "found int"),
        ("token_type", np.ones(3, np.int32), "expected 256 numbers in tokenizer.ggml.token_type.*found 3 values"),
        ("merges", ["ab"], r"tokenizer.ggml.merges\[0\], found 'ab'"),
        ("merges", 7, "expected a list of strings in tokenizer.ggml.merges, found int"),
    ],
)
def test_metadata_that_contradict_themselves_are_refused(key: str, value: Any, message: str) -> None:
    metadata = {**byte_level(), f"tokenizer.ggml.{key}": value}
    with pytest.raises(ModelFormatError, match=message):
        Tokenizer.from_metadata(metadata).prepare()


def test_a_scored_vocabulary_without_scores_is_refused() -> None:
    metadata = {key: value for key, value in model("llama").items() if key != "tokenizer.ggml.scores"}
    with pytest.raises(ModelFormatError, match="expected a score for each token"):
        Tokenizer.from_metadata(metadata)


@pytest.mark.parametrize("name", ["llama", "qwen2"])
def test_half_a_surrogate_pair_is_refused_with_its_place(name: str) -> None:
    with pytest.raises(TokenizerError, match="at character 3"):
        tokenizer_of(name).encode("abc\ud800d")


@pytest.mark.parametrize("token_id", [-1, 600, 10**12])
def test_ids_outside_the_vocabulary_are_refused(token_id: int) -> None:
    tokenizer = tokenizer_of("llama")
    for use in (tokenizer.token_bytes, tokenizer.is_special, tokenizer.token_text, lambda n: tokenizer.decode([n])):
        with pytest.raises(TokenizerError, match=rf"from 0 to 599, found {token_id}"):
            use(token_id)


@pytest.mark.parametrize("name", ["llama", "qwen2", "gpt_oss", "deepseek_v2"])
@given(text=st.text(max_size=80))
def test_any_text_comes_back_from_its_ids(name: str, text: str) -> None:
    if "\u2581" not in text:  # SentencePiece's own sign for a space
        expected = unicodedata.normalize("NFC", text) if name == "qwen2" else text
        assert tokenizer_of(name).decode(tokenizer_of(name).encode(text)) == expected


def test_one_tokenizer_serves_many_threads() -> None:
    tokenizer = Tokenizer.from_metadata(model("qwen2"))
    expected = tokenizer_of("qwen2").encode("some text " * 50)
    results: list[list[int]] = []
    threads = [threading.Thread(target=lambda: results.append(tokenizer.encode("some text " * 50))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 8


def test_long_texts_have_the_ids_of_their_parts() -> None:
    tokenizer = tokenizer_of("qwen2")
    assert tokenizer.encode("word and\n" * 2000) == tokenizer.encode("word and\n") * 2000
