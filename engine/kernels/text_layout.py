"""Layouts shared by the kernels that turn text into tokens and the Python that prepares their tables."""

from __future__ import annotations

# tables of the expressions that cut text into words (see words.py)
WORD_ALTERNATIVE = 4  # cells of an alternative: first item, number of items, classes of its first character, spare
WORD_ITEM = 4  # cells of an item: kind, then classes, at least, at most; or first alternative, number of them, spare
WORD_CLASS, WORD_GROUP, WORD_NOT_BEFORE_OTHER, WORD_NOT_AFTER = 0, 1, 2, 3
MANY_CHARACTERS = 1 << 40
MAX_ITEMS = 16  # of an alternative

# tables of a vocabulary (see tokens.py)
BY_MERGES, BY_SCORES = 0, 1
RANK_SHIFT = 31  # a pair's value is (rank << RANK_SHIFT) | id of the joined token
NO_PAIR = (1 << 63) - 1
PADDING_BYTES = 8  # readable bytes behind a text
CACHE_ENTRIES, CACHE_ENTRY_BYTES, CACHE_WORD_BYTES, CACHE_IDS = 8192, 64, 24, 8
SYMBOL_BYTES = 40  # of working memory for each byte of the longest word: pair, heap (2), and four numbers


def hash_slots(n: int) -> int:
    """How many slots a hash table for n entries has: a power of two, at most half of them taken."""
    return 1 << max(4, (2 * n - 1).bit_length())
