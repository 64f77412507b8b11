"""A vocabulary on its way to GGUF: tokens in the order of their ids, their kinds, scores or merges."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from engine.errors import ModelFormatError
from engine.tokenizer.vocabulary import SPACE_MARK, TokenKind

_PADDING_SCORE = -10000.0
_ADDED_SCORE = -1000.0
_LOOKS_SPECIAL = ("<pad>", "<mask>", "<2mass>", "[@BOS@]")


@dataclass(slots=True)
class Tokens:
    """`model` is GGUF's name of the kind: `gpt2` for byte-level merges, `llama` for sentencepiece with scores."""

    model: str
    pre: str
    texts: list[str]
    kinds: list[TokenKind]
    scores: list[float] = field(default_factory=list)  # llama only
    merges: list[str] = field(default_factory=list)  # gpt2 only

    @classmethod
    def empty(cls, model: str, pre: str, n_tokens: int) -> Tokens:
        """Every id unused: rows of the embedding that no token has."""
        texts = [f"[PAD{token_id}]" for token_id in range(n_tokens)]
        scores = [_PADDING_SCORE] * n_tokens if model == "llama" else []
        return cls(model, pre, texts, [TokenKind.UNUSED] * n_tokens, scores)

    def put(self, token_id: int, text: str, kind: TokenKind, score: float, path: Path) -> None:
        """Set a token; raises ModelFormatError for an id that the embedding has no row for."""
        if not 0 <= token_id < len(self.texts):
            raise ModelFormatError(
                f"{path}: expected token ids below vocab_size = {len(self.texts):,} of config.json, found "
                f"{token_id:,} ({text[:60]!r}). Tokenizer and config.json belong to different models."
            )
        self.texts[token_id], self.kinds[token_id] = text, kind
        if self.scores:
            self.scores[token_id] = score

    def add(self, token_id: int, text: str, *, special: bool, path: Path) -> None:
        """Set a token that was added to the vocabulary: a sign if it is special or looks so, else text never cut."""
        if special or looks_special(text):
            self.put(token_id, text, TokenKind.CONTROL, _ADDED_SCORE, path)
        else:
            self.put(token_id, text.replace(SPACE_MARK, " "), TokenKind.USER_DEFINED, _ADDED_SCORE, path)


def looks_special(text: str) -> bool:
    """Whether a token is plainly a sign although its publisher did not mark it: `<|user|>`, `<pad>`."""
    bars = (("<|", "|>"), ("<｜", "｜>"))
    return text in _LOOKS_SPECIAL or any(text.startswith(left) and text.endswith(right) for left, right in bars)
