"""Vocabularies as tiktoken has them: a line for each token, its bytes in base 64 and its rank, without merges.

Such a tokenizer joins the two neighbours that together are the token of the lowest rank, whatever they are. As merges
that is every way of cutting a token into two tokens, in the order of the ranks.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path

from engine.convert.json_files import read_text
from engine.convert.vocabulary.tokens import Tokens
from engine.errors import ModelFormatError, UnsupportedModelError
from engine.tokenizer.vocabulary import BYTE_OF_CHARACTER, TokenKind

# How the models that publish such a vocabulary cut words: that stands in their code only.
_PRE_TOKENIZERS = {"deepseek2": "kimi-k2", "hunyuan-moe": "hunyuan"}
_CHARACTER_OF_BYTE = {value: character for character, value in BYTE_OF_CHARACTER.items()}
_MAX_TOKEN_BYTES = 1024


def find_vocabulary(folder: Path) -> Path | None:
    """The file `tiktoken.model` or `*.tiktoken` of a checkpoint, None if it has none."""
    found = [folder / "tiktoken.model", *sorted(folder.glob("*.tiktoken"))]
    return next((path for path in found if path.is_file()), None)


def tokens_from_ranks(path: Path, architecture: str, n_tokens: int) -> Tokens:
    """The vocabulary with its merges; `architecture` is GGUF's, and says how words are cut.

    Raises ModelFormatError for a damaged file, UnsupportedModelError where it is not known how words are cut.
    """
    pre = _PRE_TOKENIZERS.get(architecture)
    if pre is None:
        raise UnsupportedModelError(
            f"{path}: expected a tokenizer.json beside it, found none: how {architecture} models cut text into words "
            "does not stand in this file. Look for a version of the model with a tokenizer.json."
        )
    ranks = read_ranks(path)
    tokens = Tokens.empty("gpt2", pre, n_tokens)
    for token, rank in ranks.items():
        tokens.put(rank, _spelled(token), TokenKind.NORMAL, 0.0, path)
    for token in sorted(ranks, key=ranks.__getitem__):
        tokens.merges += [f"{_spelled(left)} {_spelled(right)}" for left, right in merges_of(token, ranks)]
    return tokens


def read_ranks(path: Path) -> dict[bytes, int]:
    """Each token's bytes with its rank, which is its id; raises ModelFormatError that names a wrong line."""
    ranks: dict[bytes, int] = {}
    for number, line in enumerate((read_text(path) or "").splitlines(), 1):
        if not line.strip():
            continue
        try:
            encoded, rank_text = line.split()
            token, rank = base64.b64decode(encoded, validate=True), int(rank_text)
        except (ValueError, binascii.Error) as error:
            raise ModelFormatError(
                f"{path}: expected a token in base 64 and its rank in line {number:,}, found {line[:60]!r} ({error}). "
                "Download the file again."
            ) from error
        if not 0 < len(token) <= _MAX_TOKEN_BYTES or token in ranks:
            raise ModelFormatError(
                f"{path}: expected each token once, of 1 to {_MAX_TOKEN_BYTES} bytes, found line {number:,}."
            )
        ranks[token] = rank
    if not ranks:
        raise ModelFormatError(f"{path}: expected tokens with their ranks, found none. Download the file again.")
    return ranks


def merges_of(token: bytes, ranks: Mapping[bytes, int]) -> list[tuple[bytes, bytes]]:
    """Every pair of tokens that together are `token`, the pair of lower ranks first; none for a single byte."""
    pairs = [(token[:cut], token[cut:]) for cut in range(1, len(token))]
    known = [(left, right) for left, right in pairs if left in ranks and right in ranks]
    return sorted(known, key=lambda pair: (ranks[pair[0]], ranks[pair[1]]))


def _spelled(token: bytes) -> str:
    return "".join(_CHARACTER_OF_BYTE[value] for value in token)
