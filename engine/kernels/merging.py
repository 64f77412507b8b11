"""Words to token ids by byte-pair encoding.

Of all neighbours that are a pair the one of the lowest rank is joined, of equals the leftmost, until there is none.
BY_MERGES: symbols start as bytes, and pairs are those of the file. BY_SCORES (SentencePiece): symbols start as
characters, and what two neighbours spell together is looked up, its rank given by its score.

A word of few symbols is searched for its best pair again and again; a longer one keeps its pairs in a heap. Short words
are remembered (a table of CACHE_ENTRIES, each the word's bytes, then length, number of ids, and ids).
The reference is in tests/engine/tokenizer/test_merging.py.
"""

from __future__ import annotations

from engine.kernels.memory import load_i32, load_i64, load_u8, store_i32, store_i64
from engine.kernels.registry import device, helper, kernel
from engine.kernels.text_layout import (
    BY_SCORES,
    CACHE_ENTRIES,
    CACHE_ENTRY_BYTES,
    CACHE_IDS,
    CACHE_WORD_BYTES,
    NO_PAIR,
    RANK_SHIFT,
)
from engine.kernels.tokens import hash_of, pair_slot, token_of, word_at

_FEW_SYMBOLS = 32
_GONE = -2  # in place of the next symbol: this one was joined to its left neighbour


@helper
def joined_text(text, n, longest, texts, bounds, slots, n_slots, ranks):
    """The value of neighbours that spell n bytes together, BY_SCORES."""
    if n > longest:
        return NO_PAIR
    token = token_of(text, n, texts, bounds, slots, n_slots)
    return NO_PAIR if token < 0 else load_i64(ranks + 8 * token) << RANK_SHIFT | token


@device
def pair_value(kind, text, n, left, right, longest, texts, bounds, slots, n_slots, pairs, n_pair_slots, ranks):
    """(rank << RANK_SHIFT) | joined id of neighbours that spell n bytes at `text`; NO_PAIR if they are no pair."""
    if kind == BY_SCORES:
        return joined_text(text, n, longest, texts, bounds, slots, n_slots, ranks)
    slot = pair_slot(left, right, pairs, n_pair_slots)
    return load_i64(pairs + 16 * slot + 8) if load_i64(pairs + 16 * slot) else NO_PAIR


@device
def character_bytes(lead):
    """How many bytes the UTF-8 character has that begins with this one."""
    return 1 + (lead >= 0xC0) + (lead >= 0xE0) + (lead >= 0xF0)


@helper
def first_symbols(kind, text, n, byte_ids, texts, bounds, slots, n_slots, ids, starts):
    """Write the ids and starts of a word's first symbols, and its end as one more start; gives how many there are."""
    place = n_symbols = 0
    while place < n:
        if kind == BY_SCORES:
            n_bytes = min(character_bytes(load_u8(text + place)), n - place)
            token = token_of(text + place, n_bytes, texts, bounds, slots, n_slots)
        else:
            n_bytes, token = 1, load_i32(byte_ids + 4 * load_u8(text + place))
        if token >= 0 or kind == BY_SCORES:  # a byte that is no token cannot be encoded
            store_i32(ids + 4 * n_symbols, token)
            store_i32(starts + 4 * n_symbols, place)
            n_symbols += 1
        place += n_bytes
    store_i32(starts + 4 * n_symbols, n)
    return n_symbols


@helper
def merge_few(kind, text, n, longest, texts, bounds, slots, n_slots, pairs, n_pair_slots, ranks, ids, starts, values):
    """Merge n symbols, which stay neighbours in memory; gives how many are left."""
    for i in range(n - 1):
        start = load_i32(starts + 4 * i)
        span, left, right = load_i32(starts + 4 * i + 8) - start, load_i32(ids + 4 * i), load_i32(ids + 4 * i + 4)
        value = pair_value(
            kind, text + start, span, left, right, longest, texts, bounds, slots, n_slots, pairs, n_pair_slots, ranks
        )
        store_i64(values + 8 * i, value)
    while True:
        best, place = NO_PAIR >> RANK_SHIFT, -1
        for i in range(n - 1):
            value = load_i64(values + 8 * i)
            if value != NO_PAIR and (place < 0 or value >> RANK_SHIFT < best):
                best, place = value >> RANK_SHIFT, i
        if place < 0:
            return n
        joined = load_i64(values + 8 * place) & ((1 << RANK_SHIFT) - 1)
        store_i32(ids + 4 * place, joined)
        n -= 1
        for i in range(place + 1, n):
            store_i32(ids + 4 * i, load_i32(ids + 4 * i + 4))
            store_i32(starts + 4 * i, load_i32(starts + 4 * i + 4))
            store_i64(values + 8 * i - 8, load_i64(values + 8 * i))
        store_i32(starts + 4 * n, load_i32(starts + 4 * n + 4))
        for i in range(max(place - 1, 0), min(place + 1, n - 1)):
            start = load_i32(starts + 4 * i)
            span, left, right = load_i32(starts + 4 * i + 8) - start, load_i32(ids + 4 * i), load_i32(ids + 4 * i + 4)
            value = pair_value(
                kind,
                text + start,
                span,
                left,
                right,
                longest,
                texts,
                bounds,
                slots,
                n_slots,
                pairs,
                n_pair_slots,
                ranks,
            )
            store_i64(values + 8 * i, value)


@helper
def push(heap, n, key):
    """Put a key into a heap of n, the smallest on top."""
    while n > 0 and load_i64(heap + 8 * ((n - 1) // 2)) > key:
        store_i64(heap + 8 * n, load_i64(heap + 8 * ((n - 1) // 2)))
        n = (n - 1) // 2
    store_i64(heap + 8 * n, key)


@helper
def pop(heap, n):
    """Take the smallest key out of a heap of n."""
    key, last = load_i64(heap), load_i64(heap + 8 * (n - 1))
    n -= 1
    place = 0
    while 2 * place + 1 < n:
        child = 2 * place + 1
        if child + 1 < n and load_i64(heap + 8 * child + 8) < load_i64(heap + 8 * child):
            child += 1
        if load_i64(heap + 8 * child) >= last:
            break
        store_i64(heap + 8 * place, load_i64(heap + 8 * child))
        place = child
    store_i64(heap + 8 * place, last)
    return key


@helper
def merge_many(kind, text, n, longest, texts, bounds, slots, n_slots, pairs, n_pair_slots, ranks, ids, starts, values):
    """Merge n symbols as a chain with a heap of pairs, then move those that are left together; gives how many.

    Behind `values` (n) come the heap (2 n), the next and the previous symbol of each.
    """
    heap, following, previous = values + 8 * n, values + 24 * n, values + 28 * n
    length = load_i32(starts + 4 * n)
    n_heap = 0
    for i in range(n):
        store_i32(following + 4 * i, i + 1)
        store_i32(previous + 4 * i, i - 1)
        store_i64(values + 8 * i, NO_PAIR)
    changed, changed_too = 0, -1
    n_fresh = 0  # symbols whose pairs were looked up once
    while True:
        # look the pairs up that are new: at first all of them, then those on both sides of a joined symbol
        while changed >= 0:
            right = load_i32(following + 4 * changed)
            value = NO_PAIR
            if right < n:
                after = load_i32(following + 4 * right)
                end = length if after >= n else load_i32(starts + 4 * after)
                start = load_i32(starts + 4 * changed)
                value = pair_value(
                    kind,
                    text + start,
                    end - start,
                    load_i32(ids + 4 * changed),
                    load_i32(ids + 4 * right),
                    longest,
                    texts,
                    bounds,
                    slots,
                    n_slots,
                    pairs,
                    n_pair_slots,
                    ranks,
                )
            store_i64(values + 8 * changed, value)
            if value != NO_PAIR:
                push(heap, n_heap, (value >> RANK_SHIFT) << RANK_SHIFT | changed)
                n_heap += 1
            if n_fresh < n - 1:
                n_fresh += 1
                changed = n_fresh
            else:
                changed, changed_too = changed_too, -1
        if n_heap == 0:
            break
        key = pop(heap, n_heap)
        n_heap -= 1
        place = key & ((1 << RANK_SHIFT) - 1)
        value = load_i64(values + 8 * place)
        if load_i32(following + 4 * place) == _GONE or value == NO_PAIR or value >> RANK_SHIFT != key >> RANK_SHIFT:
            continue
        right = load_i32(following + 4 * place)
        after = load_i32(following + 4 * right)
        store_i32(ids + 4 * place, value & ((1 << RANK_SHIFT) - 1))
        store_i32(following + 4 * right, _GONE)
        store_i32(following + 4 * place, after)
        if after < n:
            store_i32(previous + 4 * after, place)
        changed, changed_too = place, load_i32(previous + 4 * place)
    n_left = place = 0
    while place < n:
        store_i32(ids + 4 * n_left, load_i32(ids + 4 * place))
        store_i32(starts + 4 * n_left, load_i32(starts + 4 * place))
        place = load_i32(following + 4 * place)
        n_left += 1
    store_i32(starts + 4 * n_left, length)
    return n_left


@helper
def write_ids(kind, text, n, byte_ids, unknown, ids, starts, target):
    """Write the ids of n symbols: a character that is no token becomes its bytes' tokens, or `unknown` if one is none
    (if that is -1, nothing). Gives how many ids there are."""
    n_ids = 0
    for i in range(n):
        token = load_i32(ids + 4 * i)
        if token >= 0:
            store_i32(target + 4 * n_ids, token)
            n_ids += 1
            continue
        first, last = load_i32(starts + 4 * i), load_i32(starts + 4 * i + 4)
        spelled = True
        for place in range(first, last):
            spelled = spelled and load_i32(byte_ids + 4 * load_u8(text + place)) >= 0
        if spelled:
            for place in range(first, last):
                store_i32(target + 4 * n_ids, load_i32(byte_ids + 4 * load_u8(text + place)))
                n_ids += 1
        elif unknown >= 0:
            store_i32(target + 4 * n_ids, unknown)
            n_ids += 1
    return n_ids


@device
def entry_of(cache, text, n):
    """Where a word of at most CACHE_WORD_BYTES is remembered, if it is."""
    return cache + CACHE_ENTRY_BYTES * (hash_of(text, n) & (CACHE_ENTRIES - 1))


@device
def holds_word(entry, text, n):
    return (
        load_i32(entry + CACHE_WORD_BYTES) == n
        and load_i64(entry) == word_at(text, min(n, 8))
        and (n <= 8 or load_i64(entry + 8) == word_at(text + 8, min(n - 8, 8)))
        and (n <= 16 or load_i64(entry + 16) == word_at(text + 16, n - 16))
    )


@helper
def remember(entry, text, n, ids, n_ids):
    store_i64(entry, word_at(text, min(n, 8)))
    if n > 8:
        store_i64(entry + 8, word_at(text + 8, min(n - 8, 8)))
    if n > 16:
        store_i64(entry + 16, word_at(text + 16, n - 16))
    store_i32(entry + CACHE_WORD_BYTES, n)
    store_i32(entry + CACHE_WORD_BYTES + 4, n_ids)
    for i in range(n_ids):
        store_i32(entry + CACHE_WORD_BYTES + 8 + 4 * i, load_i32(ids + 4 * i))


@kernel
def merge_words(
    chunk,
    scratch,
    kind: int,
    text: int,
    ends: int,
    n_words: int,
    texts: int,
    bounds: int,
    slots: int,
    n_slots: int,
    longest: int,
    pairs: int,
    n_pair_slots: int,
    ranks: int,
    byte_ids: int,
    unknown: int,
    takes_whole: int,
    cache: int,
    symbols: int,
    longest_word: int,
    ids: int,
    counts: int,
):
    """Write the ids (int32) of words, whose `ends` (n_words,) int32 are places in `text`, and to `counts`
    (n_words,) int32 how many there are up to the end of each word.

    `takes_whole`: a word that is a token is taken whole. `byte_ids` (256,) int32: the tokens of single bytes, -1 for
    none. `ranks` (n_tokens,) int64, for BY_SCORES. `symbols`: SYMBOL_BYTES for each byte of the longest word and one.
    """
    begin, done = 0, 0
    values = symbols + 8 * (longest_word + 1)
    for number in range(n_words):
        end = load_i32(ends + 4 * number)
        word, n, target = text + begin, end - begin, ids + 4 * done
        begin = end
        if n <= CACHE_WORD_BYTES:
            entry = entry_of(cache, word, n)
            if holds_word(entry, word, n):
                n_known = load_i32(entry + CACHE_WORD_BYTES + 4)
                for i in range(n_known):
                    store_i32(target + 4 * i, load_i32(entry + CACHE_WORD_BYTES + 8 + 4 * i))
                done += n_known
                store_i32(counts + 4 * number, done)
                continue
        token = token_of(word, n, texts, bounds, slots, n_slots) if takes_whole and n <= longest else -1
        if token >= 0:
            store_i32(target, token)
            n_found = 1
        else:
            starts = symbols + 4 * (longest_word + 1)
            left = first_symbols(kind, word, n, byte_ids, texts, bounds, slots, n_slots, symbols, starts)
            if left <= _FEW_SYMBOLS:
                left = merge_few(
                    kind,
                    word,
                    left,
                    longest,
                    texts,
                    bounds,
                    slots,
                    n_slots,
                    pairs,
                    n_pair_slots,
                    ranks,
                    symbols,
                    starts,
                    values,
                )
            else:
                left = merge_many(
                    kind,
                    word,
                    left,
                    longest,
                    texts,
                    bounds,
                    slots,
                    n_slots,
                    pairs,
                    n_pair_slots,
                    ranks,
                    symbols,
                    starts,
                    values,
                )
            n_found = write_ids(kind, word, left, byte_ids, unknown, symbols, starts, target)
        done += n_found
        store_i32(counts + 4 * number, done)
        if n <= CACHE_WORD_BYTES and n_found <= CACHE_IDS:
            remember(entry_of(cache, word, n), word, n, target, n_found)
