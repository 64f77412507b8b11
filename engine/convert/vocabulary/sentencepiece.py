"""Sentencepiece vocabularies: from tokenizer.model, or from a tokenizer.json that was made from one.

The model is a message with pieces (field 1: text 1, score 2, kind 3), a trainer's (2) and a normaliser's message (3).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine.convert.json_files import list_of
from engine.convert.vocabulary.byte_level import two_parts
from engine.convert.vocabulary.protobuf import BYTES, fields, float_of
from engine.convert.vocabulary.tokens import Tokens
from engine.errors import ModelFormatError, UnsupportedModelError
from engine.tokenizer.vocabulary import TokenKind

_MAX_BYTES = 64 * 1024 * 1024
_MODEL_TYPES = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}
# Of the format's kinds only the numbers of NORMAL to BYTE are as in GGUF.
_KINDS = {
    1: TokenKind.NORMAL,
    2: TokenKind.UNKNOWN,
    3: TokenKind.CONTROL,
    4: TokenKind.USER_DEFINED,
    5: TokenKind.UNUSED,
    6: TokenKind.BYTE,
}

Piece = tuple[str, float, TokenKind]


def read_pieces(path: Path) -> list[Piece]:
    """The pieces of tokenizer.model in the order of their ids: text, score, kind.

    Raises ModelFormatError for a file that is no sentencepiece model, UnsupportedModelError for one of words or chars.
    """
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ModelFormatError(f"{path}: expected at most {_MAX_BYTES:,} bytes, found {path.stat().st_size:,}.")
        pieces, model_type = _parse(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ModelFormatError(
            f"{path}: expected a sentencepiece model, found a file that is none ({error}). Download it again."
        ) from error
    if model_type not in (1, 2):
        kind = _MODEL_TYPES.get(model_type, str(model_type))
        raise UnsupportedModelError(f"{path}: expected a sentencepiece model of type unigram or bpe, found {kind}.")
    if not pieces:
        raise ModelFormatError(f"{path}: expected a sentencepiece model with pieces, found none. Download it again.")
    return pieces


def tokens_from_pieces(pieces: list[Piece], n_tokens: int, path: Path) -> Tokens:
    """The pieces as GGUF's tokens; the ids up to `n_tokens` that no piece has are unused."""
    tokens = Tokens.empty("llama", "default", n_tokens)
    for token_id, (text, score, kind) in enumerate(pieces):
        tokens.put(token_id, text, kind, score, path)
    return tokens


def tokens_from_json(model: dict[str, Any], n_tokens: int, path: Path) -> Tokens:
    """The vocabulary of a tokenizer.json with byte fallback.

    Such a file has merges in their order instead of scores. Of two merges the earlier one is made first, so a piece's
    score is how late the merge comes that makes it; pieces that no merge makes are never made.
    """
    vocabulary, merges = model.get("vocab"), list_of(model, "merges", path)
    if not isinstance(vocabulary, dict):
        raise ModelFormatError(f"{path}: expected a vocabulary in it, found none. Download it again.")
    first_merge: dict[str, int] = {}
    for rank, merge in enumerate(merges):
        first_merge.setdefault("".join(two_parts(merge, path)), rank)
    tokens = Tokens.empty("llama", "default", n_tokens)
    unknown = model.get("unk_token")
    for text, token_id in vocabulary.items():
        if type(token_id) is not int:
            raise ModelFormatError(
                f"{path}: expected a number as the id of token {text[:60]!r}, found {token_id!r:.40}."
            )
        is_byte = len(text) == 6 and text.startswith("<0x") and text.endswith(">")
        kind = TokenKind.BYTE if is_byte else TokenKind.UNKNOWN if text == unknown else TokenKind.NORMAL
        tokens.put(token_id, text, kind, -float(first_merge.get(text, len(merges))), path)
    return tokens


def _parse(data: bytes) -> tuple[list[Piece], int]:
    pieces: list[Piece] = []
    model_type = 1
    for number, wire, value in fields(data):
        if number == 1 and wire == BYTES and isinstance(value, bytes):
            pieces.append(_piece(value))
        elif number == 2 and isinstance(value, bytes):
            types = [inner for n, _, inner in fields(value) if n == 3 and isinstance(inner, int)]
            model_type = types[-1] if types else model_type
    return pieces, model_type


def _piece(message: bytes) -> Piece:
    text, score, kind = "", 0.0, TokenKind.NORMAL
    for number, _, value in fields(message):
        if number == 1 and isinstance(value, bytes):
            text = value.decode()
        elif number == 2:
            score = float_of(value)
        elif number == 3 and isinstance(value, int):
            if value not in _KINDS:
                raise ValueError(f"a piece has the unknown kind {value}")
            kind = _KINDS[value]
    return text, score, kind
