"""SentencePiece's BPE (`tokenizer.ggml.model` = llama): the pair whose joined token scores highest is merged first."""

from __future__ import annotations

import re
from collections.abc import Sequence

import tokenizers
from tokenizers import Regex, models, pre_tokenizers

from engine.tokenizer.byte_level import token_ids
from engine.tokenizer.vocabulary import SPACE_MARK, TokenKind, Vocabulary

_MARK_INSIDE = re.compile(f"[^{SPACE_MARK}\n]{SPACE_MARK}")
_WORD = f"{SPACE_MARK}*[^{SPACE_MARK}]+"


class SentencePieceEncoder:
    """Encodes plain text (special tokens are already taken out) with a scored vocabulary and byte fallback.

    The merges are derived from the vocabulary: each way to cut a token into two tokens is one, ranked by the
    whole token's score. Where two ways to make the same token overlap in a text, SentencePiece takes the left
    one and this the one whose parts have the lower ids; no such text is known for a trained vocabulary.
    """

    def __init__(
        self, vocabulary: Vocabulary, scores: Sequence[float], unknown_id: int | None, *, adds_space: bool
    ) -> None:
        ids = vocabulary.texts()
        mergeable = dict(ids)
        for text in vocabulary.of_kind(TokenKind.BYTE):
            mergeable.pop(text, None)
        unknown = None if unknown_id is None else vocabulary.tokens[unknown_id]
        if unknown is not None:
            ids[unknown] = unknown_id  # type: ignore[assignment]
        model = models.BPE(ids, _merges(mergeable, scores), unk_token=unknown, byte_fallback=True)
        self._tokenizer = tokenizers.Tokenizer(model)
        self._adds_space = adds_space
        if not _MARK_INSIDE.search("\n".join(mergeable)):
            # No token goes on past the end of a word, so words are independent (and the library caches them).
            self._tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(_WORD), "isolated")

    def encode(self, text: str, *, after_special: bool) -> list[int]:
        """The ids of a stretch of text; at the start and after a special token a space may be put before it."""
        if after_special and self._adds_space:
            text = " " + text
        return token_ids(self._tokenizer, text.replace(" ", SPACE_MARK))


def _merges(ids: dict[str, int], scores: Sequence[float]) -> list[tuple[str, str]]:
    ranked = []
    for text, token_id in ids.items():
        for cut in range(1, len(text)):
            left_id = ids.get(text[:cut])
            if left_id is not None and (right_id := ids.get(text[cut:])) is not None:
                ranked.append((-scores[token_id], left_id, right_id, text[:cut], text[cut:]))
    ranked.sort()
    return [(left, right) for _, _, _, left, right in ranked]
