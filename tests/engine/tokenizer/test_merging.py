"""Pairs are merged in the order of their ranks, of equals the leftmost first, in short words and in long ones."""

from __future__ import annotations

import threading
from functools import cache
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest

from engine.tokenizer import Tokenizer
from engine.tokenizer.vocabulary import BYTE_OF_CHARACTER
from tests.engine.tokenizer.reference_data import compact_models
from tests.engine.tokenizer.test_sentencepiece import MODELS, merged_step_by_step
from tests.engine.tokenizer.test_sentencepiece import tokenizer_of as scored_tokenizer_of

CHARACTERS = sorted(BYTE_OF_CHARACTER, key=BYTE_OF_CHARACTER.__getitem__)


@cache
def merges_of(name: str) -> dict[tuple[str, str], int]:
    merges = compact_models()[name]["metadata"]["tokenizer.ggml.merges"]
    return {tuple(merge.split(" ")): rank for rank, merge in enumerate(merges)}


@cache
def whole(name: str) -> Tokenizer:
    """A model's vocabulary with expressions that never cut, so that a text is one word."""
    metadata = {**compact_models()[name]["metadata"], "tokenizer.ggml.pre": "gpt-2"}
    return Tokenizer.from_metadata(metadata)


def merged_by_definition(name: str, word: str) -> list[str]:
    symbols, ranks = [CHARACTERS[value] for value in word.encode()], merges_of(name)
    while True:
        found = [(ranks[pair], n) for n, pair in enumerate(pairwise(symbols)) if pair in ranks]
        if not found:
            return symbols
        _, n = min(found)
        symbols[n : n + 2] = [symbols[n] + symbols[n + 1]]


@pytest.mark.parametrize("name", ["qwen2", "olmoe", "deepseek_v3"])
def test_words_are_merged_by_rank(name: str) -> None:
    tokenizer, random = whole(name), Random(name)
    for n_letters in (*range(1, 60), 99, 200):
        word = "".join(random.choices("abcdeinorst", k=n_letters))
        spelled = [tokenizer.token_text(token_id) for token_id in tokenizer.encode(word, add_special=False)]
        assert spelled == merged_by_definition(name, word)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_long_text_is_merged_by_score(name: str) -> None:
    text = "".join(f"the {n} reanimation\tof interest__{n % 7 * '='}" for n in range(40))
    expected = merged_step_by_step(MODELS[name]["metadata"], text)
    assert scored_tokenizer_of(name).encode(text, add_special=False) == expected


def vocabulary(tokens: list[str], merges: list[str]) -> dict[str, Any]:
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": np.ones(len(tokens), np.int32),
        "tokenizer.ggml.merges": merges,
    }


def test_of_equal_texts_the_last_token_counts() -> None:
    tokenizer = Tokenizer.from_metadata(vocabulary([*CHARACTERS, "ab", "a", "ab"], ["a b"]))
    assert tokenizer.encode("ab b a") == [258, 32, 98, 32, 257]


def test_of_equal_merges_the_last_one_counts() -> None:
    tokenizer = Tokenizer.from_metadata(vocabulary([*CHARACTERS, "ab", "bc"], ["a b", "b c", "a b"]))
    assert tokenizer.encode("abc") == [97, 257]


def test_a_byte_that_is_no_token_is_left_out() -> None:
    tokenizer = Tokenizer.from_metadata(vocabulary(["a", "b", "ab"], ["a b"]))
    assert tokenizer.encode("acb") == [2]
    assert tokenizer.encode("你") == []


def test_tokens_that_spell_no_bytes_are_never_found_in_text() -> None:
    tokenizer = Tokenizer.from_metadata(vocabulary([*CHARACTERS, "你 好", "\u0123"], []))
    assert tokenizer.decode(tokenizer.encode("你 好")) == "你 好"
    assert max(tokenizer.encode("你 好")) < 256


def test_words_are_remembered_by_all_of_their_bytes() -> None:
    tokenizer = whole("qwen2")
    words = [f"{'x' * n}{end}" for n in range(30) for end in "abcd"]
    first, again = ([tokenizer.encode(word) for word in words] for _ in range(2))
    assert [tokenizer.decode(ids) for ids in first] == words
    assert again == first


def test_a_long_run_takes_no_quadratic_time() -> None:
    tokenizer = whole("qwen2")
    n = 300_000
    assert len(tokenizer.encode("ab" * n)) <= 2 * n  # half a second; if it were quadratic, hours


def test_threads_that_encode_at_once_do_not_disturb_each_other() -> None:
    tokenizer = whole("olmoe")
    texts = [" ".join(f"word{n}{k}" for n in range(300)) for k in range(8)]
    expected = [whole("olmoe").encode(text) for text in texts]
    found: dict[int, list[list[int]]] = {}

    def work(k: int) -> None:
        found[k] = [tokenizer.encode(texts[k]) for _ in range(20)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {k: [expected[k]] * 20 for k in range(8)}
