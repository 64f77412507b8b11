"""SentencePiece BPE merges as SentencePiece does: the best-scored pair first, of equals the leftmost."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.tokenizer import Tokenizer
from tests.engine.tokenizer.reference_data import compact_models

MODELS = {name: m for name, m in compact_models().items() if m["metadata"]["tokenizer.ggml.model"] == "llama"}
# Pieces of the vocabularies themselves make long merges likely; the rest makes byte fallback likely.
TEXTS = st.lists(
    st.sampled_from(sorted({t for m in MODELS.values() for t in m["metadata"]["tokenizer.ggml.tokens"][259:]}))
    | st.sampled_from([" ", "  ", "   ", "\n", "\t", "é", "你", "🚀", "\u2581"])
    | st.text(max_size=3),
    max_size=30,
).map("".join)


def merged_step_by_step(metadata: dict[str, Any], text: str) -> list[int]:
    """The definition, slowly: merge the best neighbouring pair until none is a token."""
    tokens, kinds = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.token_type"]
    scores = metadata["tokenizer.ggml.scores"]
    ids = {token: n for n, token in enumerate(tokens) if kinds[n] in (1, 4, 5)}
    symbols = list((" " + text).replace(" ", "\u2581"))
    while True:
        pairs = [left + right for left, right in pairwise(symbols)]
        found = [(-scores[ids[pair]], n) for n, pair in enumerate(pairs) if pair in ids]
        if not found:
            break
        _, n = min(found)
        symbols[n : n + 2] = [pairs[n]]
    byte_ids = {token: n for n, token in enumerate(tokens) if kinds[n] == 6}
    result = []
    for symbol in symbols:
        result += [ids[symbol]] if symbol in ids else [byte_ids[f"<0x{byte:02X}>"] for byte in symbol.encode()]
    return result


@pytest.mark.parametrize("name", sorted(MODELS))
@given(text=TEXTS)
def test_merging_equals_the_definition(name: str, text: str) -> None:
    tokenizer = tokenizer_of(name)
    if not text or tokenizer.n_vocab == 0 or any(token in text for token in user_defined(name)):
        return
    expected = merged_step_by_step(MODELS[name]["metadata"], text)
    assert tokenizer.encode(text, add_special=False) == expected


_TOKENIZERS: dict[str, Tokenizer] = {}


def tokenizer_of(name: str) -> Tokenizer:
    if name not in _TOKENIZERS:
        _TOKENIZERS[name] = Tokenizer.from_metadata(MODELS[name]["metadata"])
    return _TOKENIZERS[name]


def user_defined(name: str) -> list[str]:
    metadata = MODELS[name]["metadata"]
    kinds = metadata["tokenizer.ggml.token_type"]
    return [token for token, kind in zip(metadata["tokenizer.ggml.tokens"], kinds, strict=True) if kind == 4]


def small_vocabulary(*pieces: tuple[str, float], **keys: Any) -> dict[str, Any]:
    """A scored vocabulary of <unk>, <s>, </s>, the 256 bytes and these pieces."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *(text for text, _ in pieces)]
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": np.array([0.0] * 259 + [score for _, score in pieces], np.float32),
        "tokenizer.ggml.token_type": np.array([2, 3, 3] + [6] * 256 + [1] * len(pieces), np.int32),
        **{f"tokenizer.ggml.{key}": value for key, value in keys.items()},
    }


LETTERS = (("\u2581", -9.0), ("a", -10.0), ("b", -11.0), ("c", -12.0))


def test_the_higher_score_merges_first_whatever_the_ids() -> None:
    tokenizer = Tokenizer.from_metadata(small_vocabulary(*LETTERS, ("ab", -2.0), ("bc", -1.0)))
    ids = tokenizer.encode("abc", add_special=False)
    assert [tokenizer.token_text(token_id) for token_id in ids] == ["\u2581", "a", "bc"]


def test_a_space_is_put_before_text_unless_the_file_says_no() -> None:
    with_space = Tokenizer.from_metadata(small_vocabulary(*LETTERS))
    without = Tokenizer.from_metadata(small_vocabulary(*LETTERS, add_space_prefix=False))
    assert with_space.encode("a") == [1, 259, 260]
    assert without.encode("a") == [1, 260]
    assert with_space.decode([259, 260]) == "a"
    assert without.decode([259, 260]) == " a"


def test_a_continuation_keeps_its_first_space() -> None:
    tokenizer = Tokenizer.from_metadata(small_vocabulary(*LETTERS))
    assert tokenizer.decode([259, 260], continues=True) == " a"
    stream = tokenizer.stream(continues=True)
    assert stream.push(259) + stream.push(260) + stream.flush() == " a"


def test_tokens_that_go_on_past_a_space_are_found() -> None:
    tokenizer = Tokenizer.from_metadata(
        small_vocabulary(*LETTERS, ("a\u2581", -3.0), ("a\u2581b", -2.0), add_space_prefix=False)
    )
    ids = tokenizer.encode("a b", add_special=False)
    assert [tokenizer.token_text(token_id) for token_id in ids] == ["a\u2581b"]


def test_characters_outside_the_vocabulary_become_bytes_and_come_back() -> None:
    tokenizer = Tokenizer.from_metadata(small_vocabulary(*LETTERS))
    ids = tokenizer.encode("é", add_special=False)
    assert [tokenizer.token_text(token_id) for token_id in ids] == ["\u2581", "<0xC3>", "<0xA9>"]
    assert tokenizer.decode(ids) == "é"


def test_text_never_spells_a_control_or_byte_token() -> None:
    pieces = tuple((text, -1.0 - n) for n, text in enumerate(["<s", "<", "s", ">", "<0x4", "1>", "0", "x", "4", "1"]))
    tokenizer = Tokenizer.from_metadata(small_vocabulary(*LETTERS, *pieces))
    ids = tokenizer.encode("<s><0x41>", add_special=False)
    assert tokenizer.decode(ids) == "<s><0x41>"
    assert all(token_id >= 259 for token_id in ids)


def test_without_byte_tokens_a_foreign_character_is_the_unknown_token() -> None:
    metadata = small_vocabulary(*LETTERS, unknown_token_id=0)
    keep = [0, 1, 2, *range(259, 263)]
    for key in ("tokens", "scores", "token_type"):
        values = metadata[f"tokenizer.ggml.{key}"]
        metadata[f"tokenizer.ggml.{key}"] = [values[n] for n in keep]
    tokenizer = Tokenizer.from_metadata(metadata)
    assert tokenizer.encode("aéa", add_special=False) == [3, 4, 0, 4]
