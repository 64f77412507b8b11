"""llguidance through its C interface, which its package exports: unlike the one for Python it holds no lock.

Source: llguidance.h, version 1.9. Sorting a vocabulary takes up to a second, a mask up to milliseconds; through the
package's own classes nothing else in the process could run Python meanwhile, a window's thread least of all.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

Tokenize = Callable[[bytes], Sequence[int]]

_TokenizeFunction = ctypes.CFUNCTYPE(
    ctypes.c_size_t,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_uint8),
    ctypes.c_size_t,
    ctypes.POINTER(ctypes.c_uint32),
    ctypes.c_size_t,
)
_GRAMMAR_KIND = b"llguidance"  # what LLMatcher.grammar_from_... return
_MESSAGE_BYTES = 4096
_MOST_INIT_BYTES = 1024  # of LlgConstraintInit, which begins with the tokenizer and two levels of logging
_LOG_LEVELS_OFFSET = 8


class _TokenizerInit(ctypes.Structure):
    """LlgTokenizerInitV2."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("vocab_size", ctypes.c_uint32),
        ("tok_eos", ctypes.c_uint32),
        ("token_lens", ctypes.c_void_p),
        ("token_bytes", ctypes.c_void_p),
        ("tokenizer_json", ctypes.c_char_p),
        ("tokenize_assumes_string", ctypes.c_bool),
        ("tokenize_fn", _TokenizeFunction),
        ("use_approximate_greedy_tokenize_fn", ctypes.c_bool),
        ("tokenize_user_data", ctypes.c_void_p),
        ("slices", ctypes.c_void_p),
        ("tok_eos_extra", ctypes.c_void_p),
        ("tok_eos_extra_count", ctypes.c_uint32),
    )


class NativeVocabulary:
    """A vocabulary as llguidance has sorted it. Freed when nothing refers to it any more."""

    def __init__(self, tokens: Sequence[bytes], end_ids: Sequence[int], tokenize: Tokenize) -> None:
        """`tokens`: the bytes of each; `end_ids`: one or more; `tokenize`: called by whatever thread uses a matcher.

        Raises ImportError where the package or one of its functions is missing, ValueError for what it cannot take.
        """
        library = _library()

        def call(_user: int, text: Any, n_bytes: int, out: Any, room: int) -> int:
            ids = tokenize(ctypes.string_at(text, n_bytes) if n_bytes else b"")
            for place, token in enumerate(ids[:room]):
                out[place] = token
            return len(ids)

        self.n_tokens = len(tokens)
        self._callback = _TokenizeFunction(call)
        lengths = np.array([len(token) for token in tokens], np.uint32)
        joined = np.frombuffer(b"".join(tokens) + b"\0", np.uint8)
        others = np.array(end_ids[1:], np.uint32)
        init = _TokenizerInit(
            struct_size=ctypes.sizeof(_TokenizerInit),
            vocab_size=len(tokens),
            tok_eos=end_ids[0],
            token_lens=lengths.ctypes.data,
            token_bytes=joined.ctypes.data,
            tokenize_assumes_string=True,
            tokenize_fn=self._callback,
            tok_eos_extra=others.ctypes.data if len(others) else None,
            tok_eos_extra_count=len(others),
        )
        message = ctypes.create_string_buffer(_MESSAGE_BYTES)
        address = library.llg_new_tokenizer_v2(ctypes.byref(init), message, _MESSAGE_BYTES)
        if not address:
            raise ValueError(_text(message.value))
        self._finalise = weakref.finalize(self, library.llg_free_tokenizer, ctypes.c_void_p(address))
        self._init = ctypes.create_string_buffer(_MOST_INIT_BYTES)
        library.llg_constraint_init_set_defaults(self._init, ctypes.c_void_p(address))
        ctypes.memset(ctypes.addressof(self._init) + _LOG_LEVELS_OFFSET, 0, 8)

    def problem(self, grammar: str) -> str:
        """What is wrong with a grammar; "" if nothing is."""
        message = ctypes.create_string_buffer(_MESSAGE_BYTES)
        found = _library().llg_validate_grammar(
            self._init, _GRAMMAR_KIND, grammar.encode("utf-8", "replace"), message, _MESSAGE_BYTES
        )
        return _text(message.value) if found < 0 else ""

    def new_matcher(self, grammar: str) -> int:
        """The address of a matcher, for NativeMatcher."""
        matcher = _library().llg_new_matcher(self._init, _GRAMMAR_KIND, grammar.encode("utf-8", "replace"))
        return int(matcher)


class NativeMatcher:
    """Follows one text through a grammar. One thread at a time calls it."""

    def __init__(self, vocabulary: NativeVocabulary, grammar: str) -> None:
        library = _library()
        self._vocabulary = vocabulary  # must outlive the matcher
        self._matcher = ctypes.c_void_p(vocabulary.new_matcher(grammar))
        self.mask_bytes = int(library.llg_matcher_get_mask_byte_size(self._matcher))
        self._finalise = weakref.finalize(self, _free_matcher, self._matcher, vocabulary)

    def compute_mask(self, address: int) -> bool:
        """Set the bit of every token that may come next in the mask at `address` (mask_bytes); False on an error."""
        return not _library().llg_matcher_compute_mask_into(self._matcher, ctypes.c_void_p(address), self.mask_bytes)

    def consume(self, token: int) -> bool:
        """Go on by a token; False on an error."""
        return not _library().llg_matcher_consume_token(self._matcher, token)

    @property
    def is_stopped(self) -> bool:
        """Whether nothing can follow; also after an error."""
        return bool(_library().llg_matcher_is_stopped(self._matcher))

    @property
    def error(self) -> str:
        """What went wrong; "" if nothing did."""
        return _text(_library().llg_matcher_get_error(self._matcher) or b"")


def _free_matcher(matcher: ctypes.c_void_p, _vocabulary: NativeVocabulary) -> None:
    _library().llg_free_matcher(matcher)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace").strip()


@cache
def _library() -> ctypes.CDLL:
    from llguidance import _lib  # noqa: PLC0415 - only who asks for an output format waits for it

    library = ctypes.CDLL(str(_lib.__file__))
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int32
    try:
        for name, result, arguments in (
            ("llg_new_tokenizer_v2", pointer, (pointer, pointer, size)),
            ("llg_free_tokenizer", None, (pointer,)),
            ("llg_constraint_init_set_defaults", None, (pointer, pointer)),
            ("llg_validate_grammar", number, (pointer, ctypes.c_char_p, ctypes.c_char_p, pointer, size)),
            ("llg_new_matcher", pointer, (pointer, ctypes.c_char_p, ctypes.c_char_p)),
            ("llg_free_matcher", None, (pointer,)),
            ("llg_matcher_get_mask_byte_size", size, (pointer,)),
            ("llg_matcher_compute_mask_into", number, (pointer, pointer, size)),
            ("llg_matcher_consume_token", number, (pointer, ctypes.c_uint32)),
            ("llg_matcher_is_stopped", ctypes.c_bool, (pointer,)),
            ("llg_matcher_get_error", ctypes.c_char_p, (pointer,)),
        ):
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except AttributeError as error:
        raise ImportError(f"the installed llguidance lacks a function of its C interface: {error}") from None
    return library
