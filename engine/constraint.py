"""Holds an answer to its form: which tokens may come next, worked out by llguidance."""

from __future__ import annotations

import logging
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.errors import ConstraintError, InvalidRequestError
from engine.output_format import OutputFormat
from engine.tokenizer import Tokenizer

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer

logger = logging.getLogger(__name__)

_NOT_TEXT = b"\xff"  # before a control token's name: no UTF-8 text has this byte, so no form can ask for the token
# Between JSON's signs: nothing, a space, or one line break with its indentation. Without a limit small models go on
# writing white space for ever.
_JSON_SPACE = r"[ ]?|\n[ \t]{0,20}"


class Constraints:
    """Makes the constraints of one model."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def make(self, form: OutputFormat) -> Constraint:
        """A constraint for one answer.

        The first one of a model takes longer (0.3 s for 49,000 tokens, 1 s for 150,000): llguidance sorts the
        vocabulary. Raises InvalidRequestError for a form that it cannot read, and where it is not installed.
        """
        grammar = _grammar(form)
        from llguidance import LLMatcher  # noqa: PLC0415

        problem = LLMatcher.validate_grammar(grammar, self._vocabulary)
        if problem:
            raise InvalidRequestError(f"The {form.kind} of the output format cannot be used: {problem.strip()[:1000]}")
        return Constraint(LLMatcher(self._vocabulary, grammar, log_level=0), self._tokenizer)

    @cached_property
    def _vocabulary(self) -> LLTokenizer:
        from llguidance import LLTokenizer, TokenizerWrapper  # noqa: PLC0415

        end_ids = sorted(self._tokenizer.end_ids)
        if not end_ids:
            raise InvalidRequestError("This model's vocabulary has no end token, which an output format needs.")
        wrapper = TokenizerWrapper(_Spelling(self._tokenizer, end_ids[0]))
        return LLTokenizer(wrapper, n_vocab=self._tokenizer.n_vocab, eos_token=end_ids)


class Constraint:
    """What one answer may go on with."""

    def __init__(self, matcher: LLMatcher, tokenizer: Tokenizer) -> None:
        """Use `Constraints.make`."""
        self._matcher, self._end_ids = matcher, tokenizer.end_ids
        self._mask = np.zeros(-(-tokenizer.n_vocab // 32), np.int32)  # bit i % 32 of word i // 32: token i may come

    def allowed(self) -> int:
        """The address of the mask of tokens that may come next. Raises ConstraintError."""
        self._matcher.unsafe_compute_mask_ptr(self._mask.ctypes.data, self._mask.nbytes)
        self._check()
        return int(self._mask.ctypes.data)

    def accept(self, token: int) -> None:
        """Go on by a token that was allowed. Raises ConstraintError."""
        if token not in self._end_ids:
            self._matcher.consume_token(token)
            self._check()

    @property
    def is_complete(self) -> bool:
        """Whether nothing can follow."""
        return self._matcher.is_stopped()

    def _check(self) -> None:
        if self._matcher.is_error():
            raise ConstraintError(
                "The answer cannot be held to its output format any further: "
                f"{self._matcher.get_error().strip()[:500]}. Use a simpler one."
            )


class _Spelling:
    """The tokenizer as llguidance asks for it."""

    def __init__(self, tokenizer: Tokenizer, end_id: int) -> None:
        self._tokenizer = tokenizer
        self.eos_token_id, self.bos_token_id = end_id, tokenizer.bos_id
        self.special_token_ids = [token for token in range(tokenizer.n_vocab) if tokenizer.is_special(token)]
        self.tokens = [tokenizer.token_bytes(token) for token in range(tokenizer.n_vocab)]
        for token in self.special_token_ids:
            self.tokens[token] = _NOT_TEXT + self.tokens[token]

    def __call__(self, text: str | bytes) -> list[int]:
        text = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
        return self._tokenizer.encode(text, add_special=False)


def _grammar(form: OutputFormat) -> str:
    try:
        from llguidance import LLMatcher  # noqa: PLC0415
    except ImportError as error:
        raise InvalidRequestError(
            "An output format needs the package llguidance, which cannot be imported here "
            f"({error}). Run `make setup`, or ask without an output format."
        ) from None
    if form.json_schema is not None:
        options: Any = {"whitespace_pattern": _JSON_SPACE}
        try:
            return LLMatcher.grammar_from_json_schema(form.text, overrides=options)
        except ValueError as error:
            raise InvalidRequestError(f"The JSON schema of the output format cannot be used: {error}") from None
    if form.regex is not None:
        return LLMatcher.grammar_from_regex(form.regex)
    return LLMatcher.grammar_from_lark(form.text)
