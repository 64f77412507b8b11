"""Cutting text into words: expressions applied one after another, each to the pieces that the last one left.

    classes        (0x110000,) uint32: a bit for each class that a character is in
    expressions    (n, 2) int64: first alternative, number of alternatives; of a piece's matches the leftmost counts,
                   and there the first alternative that matches
    alternatives   (n, 4) int64: first item, number of items, classes that the first character can be in, unused
    items          (n, 4) int64: WORD_CLASS, classes, at least, at most: so many characters, as many as possible
                                 WORD_GROUP, first alternative, number of them, unused: one of these, or nothing
                                 WORD_NOT_BEFORE_OTHER, classes: the piece ends here or a character of these follows
                                 WORD_NOT_AFTER, classes: no character of these stands before

The reference is Oniguruma: tests/engine/tokenizer/test_words.py.
"""

from __future__ import annotations

from engine.kernels.memory import load_i32, load_i64, load_u32, store_i32, store_i64
from engine.kernels.registry import device, helper, kernel
from engine.kernels.text_layout import WORD_CLASS, WORD_GROUP, WORD_NOT_BEFORE_OTHER


@device
def is_of(masks, place, classes):
    return (load_u32(masks + 4 * place) & classes) != 0


@device
def group_length(masks, alternatives, items, group, place, end):
    """How many characters the first matching alternative of a group takes; they are sequences of single characters."""
    first = load_i64(group + 8)
    for number in range(first, first + load_i64(group + 16)):
        item = items + 32 * load_i64(alternatives + 32 * number)
        n = load_i64(alternatives + 32 * number + 8)
        if place + n > end:
            continue
        matched = 0
        while matched < n and is_of(masks, place + matched, load_i64(item + 32 * matched + 8)):
            matched += 1
        if matched == n:
            return n
    return 0


@helper
def match_end(masks, alternatives, items, number, place, begin, end, stack):
    """Where a match of alternative `number` at `place` ends, or -1; `stack` has 16 bytes for each of its items."""
    first = items + 32 * load_i64(alternatives + 32 * number)
    n_items = load_i64(alternatives + 32 * number + 8)
    i, here = 0, place
    while i < n_items:
        item = first + 32 * i
        kind, classes = load_i64(item), load_i64(item + 8)
        if kind == WORD_CLASS:
            limit, n = min(end - here, load_i64(item + 24)), 0
            while n < limit and is_of(masks, here + n, classes):
                n += 1
            fits = n >= load_i64(item + 16)
            store_i64(stack + 16 * i, here)
            store_i64(stack + 16 * i + 8, n)
            here += n
        elif kind == WORD_GROUP:
            here += group_length(masks, alternatives, items, item, here, end)
            fits = True
        elif kind == WORD_NOT_BEFORE_OTHER:
            fits = here == end or is_of(masks, here, classes)
        else:
            fits = here == begin or not is_of(masks, here - 1, classes)
        if fits:
            i += 1
            continue
        i -= 1  # give back one character of the last item that can spare one
        while i >= 0 and (
            load_i64(first + 32 * i) != WORD_CLASS or load_i64(stack + 16 * i + 8) <= load_i64(first + 32 * i + 16)
        ):
            i -= 1
        if i < 0:
            return -1
        n = load_i64(stack + 16 * i + 8) - 1
        store_i64(stack + 16 * i + 8, n)
        here = load_i64(stack + 16 * i) + n
        i += 1
    return here


@helper
def cut_piece(masks, alternatives, items, expression, begin, end, ends, n_ends, stack):
    """Append the ends of the pieces that an expression cuts `begin` to `end` into; gives how many there are then."""
    first = load_i64(expression)
    last = first + load_i64(expression + 8)
    place = rest = begin
    while place < end:
        mask, match = load_u32(masks + 4 * place), -1
        for number in range(first, last):
            if mask & load_i64(alternatives + 32 * number + 16):
                match = match_end(masks, alternatives, items, number, place, begin, end, stack)
                if match > place:
                    break
        if match <= place:
            place += 1
            continue
        if rest < place:
            store_i32(ends + 4 * n_ends, place)
            n_ends += 1
        store_i32(ends + 4 * n_ends, match)
        n_ends += 1
        place = rest = match
    if rest < end:
        store_i32(ends + 4 * n_ends, end)
        n_ends += 1
    return n_ends


@kernel
def cut_words(
    chunk,
    scratch,
    codes: int,
    n_codes: int,
    stretches: int,
    n_stretches: int,
    classes: int,
    alternatives: int,
    items: int,
    expressions: int,
    n_expressions: int,
    masks: int,
    ends: int,
    spare: int,
    stack: int,
    n_ends: int,
):
    """Cut `codes` (n_codes,) int32 into words: their ends (int32, in bytes of UTF-8) to `ends`, how many to `n_ends`.

    `stretches` (n_stretches,) int32: the ends, in characters, of texts that stand one after another in `codes`; no word
    goes on past one, and none is seen by another. `masks` (n_codes,) uint32, `spare` (n_codes,) int32 and `stack`
    (MAX_ITEMS, 2) int64 are working memory.
    """
    for i in range(n_codes):
        store_i32(masks + 4 * i, load_u32(classes + 4 * load_u32(codes + 4 * i)))
    pieces, others = ends, spare
    if n_expressions % 2:
        pieces, others = spare, ends
    for i in range(n_stretches):
        store_i32(pieces + 4 * i, load_i32(stretches + 4 * i))
    n_pieces = n_stretches
    for number in range(n_expressions):
        begin, n_cut = 0, 0
        for i in range(n_pieces):
            end = load_i32(pieces + 4 * i)
            n_cut = cut_piece(masks, alternatives, items, expressions + 16 * number, begin, end, others, n_cut, stack)
            begin = end
        pieces, others = others, pieces
        n_pieces = n_cut
    place, n_bytes = 0, 0
    for i in range(n_pieces):
        end = load_i32(ends + 4 * i)
        while place < end:
            code = load_u32(codes + 4 * place)
            n_bytes += 1 + (code >= 0x80) + (code >= 0x800) + (code >= 0x10000)
            place += 1
        store_i32(ends + 4 * i, n_bytes)
    store_i64(n_ends, n_pieces)
