"""Byte-level BPE (`tokenizer.ggml.model` = gpt2): every byte is a character, merges are listed in the file."""

from __future__ import annotations

from collections.abc import Sequence

import tokenizers
from tokenizers import Regex, models, pre_tokenizers

from engine.errors import ModelFormatError
from engine.tokenizer.pre_tokenizers import PreTokenizer
from engine.tokenizer.vocabulary import Vocabulary

MERGES_KEY = "tokenizer.ggml.merges"
LONG_CHARACTERS = 4096


class ByteLevelEncoder:
    """Encodes plain text (special tokens are already taken out) with a byte-level vocabulary."""

    def __init__(self, vocabulary: Vocabulary, merges: Sequence[str], pre: PreTokenizer) -> None:
        ids = vocabulary.texts()
        pairs = [_pair(merge, number) for number, merge in enumerate(merges)]
        self._tokenizer = tokenizers.Tokenizer(_model(ids, pairs, ignore_merges=pre.ignore_merges))
        steps = [pre_tokenizers.Split(Regex(expression), "isolated") for expression in pre.expressions]
        bytes_to_characters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        self._tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*steps, bytes_to_characters])

    def encode(self, text: str, *, after_special: bool) -> list[int]:
        """The ids of a stretch of text; what stood before it makes no difference here."""
        del after_special
        return token_ids(self._tokenizer, text)


def token_ids(tokenizer: tokenizers.Tokenizer, text: str) -> list[int]:
    """The ids of a text; a long one goes the way that keeps no offsets, by a thread of the library's own."""
    if len(text) < LONG_CHARACTERS:
        return tokenizer.encode(text, add_special_tokens=False).ids
    return tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids


def _pair(merge: str, number: int) -> tuple[str, str]:
    left, space, right = merge.partition(" ")
    if not (left and space and right):
        raise ModelFormatError(
            f"expected two tokens with a space between them in {MERGES_KEY}[{number}], found {merge!r}; "
            "the file is damaged"
        )
    return left, right


def _model(ids: dict[str, int], pairs: list[tuple[str, str]], *, ignore_merges: bool) -> models.BPE:
    """The merges over the vocabulary; a merge that needs or gives a text that is no token is left out."""
    try:
        return models.BPE(ids, pairs, ignore_merges=ignore_merges)
    except Exception:
        usable = [(left, right) for left, right in pairs if left in ids and right in ids and left + right in ids]
        return models.BPE(ids, usable, ignore_merges=ignore_merges)
