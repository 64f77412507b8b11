"""Byte-level vocabularies: vocabulary, merges and added tokens of a tokenizer.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine.convert.json_files import list_of
from engine.convert.vocabulary.tokens import Tokens
from engine.errors import ModelFormatError
from engine.tokenizer.vocabulary import TokenKind

_ENCODED_SPACE = "Ġ"


def tokens_from_json(tokenizer: dict[str, Any], pre: str, n_tokens: int, path: Path) -> Tokens:
    """The tokens of a tokenizer.json; the ids up to `n_tokens` that no token has are unused.

    Raises ModelFormatError for a vocabulary or merges that are not as they should be.
    """
    model = tokenizer.get("model")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if not isinstance(model, dict) or model.get("type", "BPE") != "BPE" or not isinstance(vocabulary, dict):
        raise ModelFormatError(
            f"{path}: expected a model of type BPE with a vocabulary, found none. Download it again."
        )
    tokens = Tokens.empty("gpt2", pre, n_tokens)
    for text, token_id in vocabulary.items():
        if type(token_id) is not int:
            raise ModelFormatError(f"{path}: expected a number as the id of {text[:60]!r}, found {token_id!r:.40}.")
        tokens.put(token_id, text, TokenKind.NORMAL, 0.0, path)
    tokens.merges = [
        " ".join(part.replace(" ", _ENCODED_SPACE) for part in two_parts(merge, path))
        for merge in list_of(model, "merges", path)
    ]
    return tokens


def two_parts(merge: Any, path: Path) -> tuple[str, str]:
    """The parts of a merge, published as one text with a space between, or as a pair whose parts may hold spaces."""
    if isinstance(merge, str):
        merge = merge.split(" ", 1)
    if isinstance(merge, list) and len(merge) == 2 and all(isinstance(part, str) for part in merge):
        return merge[0], merge[1]
    raise ModelFormatError(f"{path}: expected merges of two parts, found {merge!r:.80}. Download it again.")
