"""Holds an answer to its form: which tokens may come next, worked out by llguidance."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, cached_property
from typing import Any

import numpy as np

from engine.errors import ConstraintError, InvalidRequestError
from engine.matcher import NativeMatcher, NativeVocabulary
from engine.output_format import OutputFormat
from engine.tokenizer import Tokenizer

_NOT_TEXT = b"\xff"  # before a control token's name: no UTF-8 text has this byte, so no form can ask for the token
# Between JSON's signs: nothing, a space, or one line break with its indentation. Without a limit small models go on
# writing white space for ever.
_JSON_SPACE = r"[ ]?|\n[ \t]{0,20}"


class Constraints:
    """Makes the constraints of one model, in a thread of its own."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def begin(self, form: OutputFormat) -> Future[Constraint]:
        """A constraint for one answer, under way.

        The first one of a model takes longer (0.3 s for 49,000 tokens, 1 s for 150,000): llguidance sorts the
        vocabulary. Raises InvalidRequestError at once for a form that it cannot read, and where it is not installed;
        the result may raise ConstraintError.
        """
        if not self._tokenizer.end_ids:
            raise InvalidRequestError("This model's vocabulary has no end token, which an output format needs.")
        grammar = _grammar(form)
        problem = _problem(grammar)
        if problem:
            raise InvalidRequestError(f"The {form.kind} of the output format cannot be used: {problem[:1000]}")
        return self._makers.submit(self._make, grammar)

    def _make(self, grammar: str) -> Constraint:
        try:
            return Constraint(NativeMatcher(self._vocabulary, grammar), self._tokenizer, self._masks)
        except ValueError as error:
            raise ConstraintError(f"The answer cannot be held to an output format: {error}") from None

    @cached_property
    def _vocabulary(self) -> NativeVocabulary:
        tokenizer = self._tokenizer
        end_ids = sorted(tokenizer.end_ids)
        tokens = [
            _NOT_TEXT + tokenizer.token_bytes(token) if tokenizer.is_special(token) else tokenizer.token_bytes(token)
            for token in range(tokenizer.n_vocab)
        ]
        return NativeVocabulary(
            tokens, end_ids, lambda text: tokenizer.encode(text.decode("utf-8", "replace"), add_special=False)
        )

    @cached_property
    def _makers(self) -> ThreadPoolExecutor:
        """The thread that sorts the vocabulary and makes constraints."""
        return ThreadPoolExecutor(1, "constraints")

    @cached_property
    def _masks(self) -> ThreadPoolExecutor:
        """The thread that works out masks while the model computes."""
        return ThreadPoolExecutor(1, "masks")

    def close(self) -> None:
        """End the threads, if there are any. Constraints made before must not be used any more."""
        if "_makers" in self.__dict__:
            self._makers.shutdown(cancel_futures=True)
        if "_masks" in self.__dict__:
            self._masks.shutdown()


class Constraint:
    """What one answer may go on with.

    The mask for a token depends on the tokens before it only: it is worked out by a thread of its own from the moment
    on that these are known, while the model computes that token's logits.
    """

    def __init__(self, matcher: NativeMatcher, tokenizer: Tokenizer, masks: ThreadPoolExecutor) -> None:
        """Use `Constraints.make`."""
        self._matcher, self._end_ids, self._masks = matcher, tokenizer.end_ids, masks
        n_words = max(-(-tokenizer.n_vocab // 32), matcher.mask_bytes // 4)
        self._mask = np.zeros(n_words, np.uint32)  # bit i % 32 of word i // 32: token i may come
        self._is_complete = matcher.is_stopped
        self._has_begun = False
        self._computing: Future[bool] = self._begin_mask()

    def allowed(self) -> int:
        """The address of the mask of tokens that may come next. Raises ConstraintError."""
        if not self._computing.result():
            raise self._error()
        return int(self._mask.ctypes.data)

    def accept(self, token: int) -> None:
        """Go on by a token that was allowed. Raises ConstraintError."""
        self._has_begun |= self._computing.result()
        if token in self._end_ids:
            return
        if not self._matcher.consume(token):
            raise self._error()
        self._is_complete = self._matcher.is_stopped
        if not self._is_complete:
            self._computing = self._begin_mask()

    @property
    def is_complete(self) -> bool:
        """Whether nothing can follow."""
        return self._is_complete

    def _begin_mask(self) -> Future[bool]:
        return self._masks.submit(self._compute_mask)

    def _compute_mask(self) -> bool:
        return self._matcher.compute_mask(int(self._mask.ctypes.data))

    def _error(self) -> ConstraintError:
        if not self._has_begun:
            return ConstraintError(
                "No answer can have this output format: every text that it describes is endless or forbidden "
                f"({self._matcher.error.split(chr(10))[0][:200]}). Correct it."
            )
        return ConstraintError(
            "The answer cannot be held to its output format any further: "
            f"{self._matcher.error[:500]}. Use a simpler one."
        )


def _problem(grammar: str) -> str:
    """What is wrong with a grammar; "" if nothing is. It does not depend on the model's vocabulary."""
    try:
        return _bytes().problem(grammar)
    except ImportError as error:
        raise InvalidRequestError(f"An output format needs another llguidance: {error}. Run `make setup`.") from None


@cache
def _bytes() -> NativeVocabulary:
    """A vocabulary of all bytes and an end, which takes no time to sort."""
    return NativeVocabulary([bytes([value]) for value in range(256)] + [_NOT_TEXT + b"end"], [256], list)


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
