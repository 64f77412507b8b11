"""Writes engine/tokenizer/unicode_categories.npz: `python -m tests.engine.tokenizer.make_unicode_categories`.

The categories are those of Unicode 16, as the regular expressions of `tokenizers` 0.23.3 (Oniguruma 6.9.10) know them:
Python's own table is of another version of Unicode with each version of Python.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

from engine.tokenizer.unicode import CATEGORIES, DATA, N_CHARACTERS

SURROGATES = range(0xD800, 0xE000)


def categories_of_all() -> npt.NDArray[np.uint8]:
    """(N_CHARACTERS,) uint8: each character's category, as an index into CATEGORIES."""
    characters = [chr(code) for code in range(N_CHARACTERS) if code not in SURROGATES]
    found = np.full(N_CHARACTERS, CATEGORIES.index("Cs"), np.uint8)
    for index, category in enumerate(CATEGORIES):
        of_category = Split(Regex(rf"\p{{{category}}}+"), "removed", invert=True)
        for run, _ in of_category.pre_tokenize_str("".join(characters)):
            found[[ord(character) for character in run]] = index
    return found


if __name__ == "__main__":
    categories = categories_of_all()
    starts = np.flatnonzero(np.diff(categories, prepend=255))
    np.savez_compressed(DATA, starts=starts.astype(np.uint32), categories=categories[starts])
