"""Texts cut into passages of equal length, as a model reads them for calibration and for comparison."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest

from engine.errors import InvalidRequestError
from engine.tokenizer import Tokenizer

PASSAGE_TOKENS = 512
_LEAST_TOKENS = 32


def passages(
    tokenizer: Tokenizer, texts: Mapping[str, str], *, n_tokens: int = PASSAGE_TOKENS, n_most: int | None = None
) -> list[list[int]]:
    """Passages of at most `n_tokens` tokens each, from all `texts` in turn; each begins as the model's texts do.

    `n_most`: no more passages than this. Raises InvalidRequestError where there is too little text.
    """
    rows = [_cut(tokenizer, text, n_tokens) for text in texts.values()]
    mixed = [passage for turn in zip_longest(*rows) for passage in turn if passage is not None]
    if not mixed:
        raise InvalidRequestError(
            f"The calibration text has fewer than {_LEAST_TOKENS} tokens ({', '.join(texts)}). Give a longer text; "
            "some 100 kB in the languages that the model is used for are enough."
        )
    return mixed[:n_most]


def _cut(tokenizer: Tokenizer, text: str, n_tokens: int) -> list[list[int]]:
    start = [tokenizer.bos_id] if tokenizer.adds_bos and tokenizer.bos_id is not None else []
    ids = tokenizer.encode(text, add_special=False)
    step = n_tokens - len(start)
    cut = [start + ids[first : first + step] for first in range(0, len(ids), step)]
    return [passage for passage in cut if len(passage) >= min(_LEAST_TOKENS, n_tokens)]
