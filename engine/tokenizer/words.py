"""Cuts text into words as a vocabulary's pre-tokenizer does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from engine.kernels.library import KernelLibrary
from engine.kernels.text_layout import MAX_ITEMS
from engine.tokenizer.expressions import compile_expressions


class WordCutter:
    """Applies expressions one after another, each to the pieces that the last one left."""

    def __init__(self, library: KernelLibrary, expressions: tuple[str, ...]) -> None:
        self._tables = compile_expressions(expressions)
        self._library = library

    def ends(self, stretches: Sequence[str]) -> npt.NDArray[np.int32]:
        """The ends of the words of texts that are not empty, (n_words,) int32, in bytes of UTF-8.

        Each text is cut as if it stood alone.
        """
        codes = np.frombuffer("".join(stretches).encode("utf-32-le"), np.uint32)
        stretch_ends = np.cumsum([len(text) for text in stretches], dtype=np.int32)
        n = len(codes)
        ends, spare, masks = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.uint32)
        stack, n_ends, tables = np.empty(2 * MAX_ITEMS, np.int64), np.zeros(1, np.int64), self._tables
        self._library.run(
            "cut_words",
            codes=codes.ctypes.data,
            n_codes=n,
            stretches=stretch_ends.ctypes.data,
            n_stretches=len(stretch_ends),
            classes=tables.classes.ctypes.data,
            alternatives=tables.alternatives.ctypes.data,
            items=tables.items.ctypes.data,
            expressions=tables.expressions.ctypes.data,
            n_expressions=len(tables.expressions),
            masks=masks.ctypes.data,
            ends=ends.ctypes.data,
            spare=spare.ctypes.data,
            stack=stack.ctypes.data,
            n_ends=n_ends.ctypes.data,
        )
        return ends[: int(n_ends[0])]
