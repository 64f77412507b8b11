"""The hash tables of a vocabulary: from a text to the token that spells it, from two tokens to the one they merge to.

texts, bounds   bytes and (n + 1,) int32: what token i spells is texts[bounds[i] : bounds[i + 1]]
slots           (n_slots,) int32, n_slots a power of two: token id + 1, at the hash of its text or after it
pairs           (n_pair_slots, 2) int64: (left id << 32 | right id) + 1, and (rank << RANK_SHIFT) | joined id
"""

from __future__ import annotations

from engine.kernels.memory import load_i32, load_i64, load_u8, load_u16, store_i32, store_i64, store_u8
from engine.kernels.registry import device, helper, kernel
from engine.kernels.text_layout import RANK_SHIFT

_SPREAD = 0x2545F4914F6CDD1D  # an odd number with well mixed bits
_SPACE = 0x20


@device
def mixed(value):
    value = value * _SPREAD
    return value ^ ((value >> 29) & 0x7FFFFFFFF)


@device
def word_at(text, n):
    """The first n (0 to 8) bytes of a text as a number; eight must be readable."""
    value = load_i64(text)
    return value if n >= 8 else value & ((1 << (8 * n)) - 1)


@device
def hash_of(text, n):
    value, done = n + 1, 0
    while done < n:
        value = mixed(value ^ word_at(text + done, min(n - done, 8)))
        done += 8
    return (value >> 7) & 0x7FFFFFFF


@device
def are_equal(left, right, n):
    done = 0
    while done < n:
        left_bytes = min(n - done, 8)
        if word_at(left + done, left_bytes) != word_at(right + done, left_bytes):
            return False
        done += 8
    return True


@device
def slot_of(text, n, texts, bounds, slots, n_slots):
    """The slot that holds the token which spells a text, or the empty one where it belongs."""
    slot = hash_of(text, n) & (n_slots - 1)
    while True:
        token = load_i32(slots + 4 * slot) - 1
        if token < 0:
            return slot
        start = load_i32(bounds + 4 * token)
        if load_i32(bounds + 4 * token + 4) - start == n and are_equal(texts + start, text, n):
            return slot
        slot = (slot + 1) & (n_slots - 1)


@helper
def token_of(text, n, texts, bounds, slots, n_slots):
    """The id of the token that spells n bytes, or -1."""
    return load_i32(slots + 4 * slot_of(text, n, texts, bounds, slots, n_slots)) - 1


@helper
def spell(text, n, byte_of, target):
    """Write the bytes that a text of GPT-2's byte characters stands for; gives how many, or -1 if it is no such text.

    `byte_of` (0x200,) uint16: the byte of each character below U+0200, 0xFFFF for none.
    """
    done = n_written = 0
    while done < n:
        code = load_u8(text + done)
        done += 1
        if code >= 0x80:
            if code & 0xE0 != 0xC0 or done == n:
                return -1
            code = (code & 0x1F) << 6 | (load_u8(text + done) & 0x3F)
            done += 1
        if code >= 0x200 or load_u16(byte_of + 2 * code) > 0xFF:
            return -1
        store_u8(target + n_written, load_u16(byte_of + 2 * code))
        n_written += 1
    return n_written


@kernel
def index_tokens(
    chunk,
    scratch,
    strings: int,
    starts: int,
    n_tokens: int,
    is_left_out: int,
    byte_of: int,
    texts: int,
    bounds: int,
    slots: int,
    n_slots: int,
    longest: int,
):
    """Write `texts`, `bounds` and `slots` (zero before) of tokens that `strings` and `starts` hold as GGUF does.

    `is_left_out` (n_tokens,) uint8: tokens that no text is encoded to. `byte_of`: see `spell`; 0 if tokens are spelled
    as they are. Of equal texts the last token counts. The longest text's bytes go to `longest`.
    """
    n_bytes, most = 0, 0
    for token in range(n_tokens):
        store_i32(bounds + 4 * token, n_bytes)
        text = strings + load_i32(starts + 4 * token) + 8
        n = load_i32(starts + 4 * token + 4) - load_i32(starts + 4 * token) - 8
        target = texts + n_bytes
        if load_u8(is_left_out + token):
            n = 0
        elif byte_of:
            n = max(0, spell(text, n, byte_of, target))
        else:
            for i in range(n):
                store_u8(target + i, load_u8(text + i))
        n_bytes += n
        store_i32(bounds + 4 * token + 4, n_bytes)
        if n:
            most = max(most, n)
            slot = slot_of(target, n, texts, bounds, slots, n_slots)
            store_i32(slots + 4 * slot, token + 1)
    store_i64(longest, most)


@device
def pair_slot(left, right, pairs, n_pair_slots):
    key = (left << 32 | right) + 1
    slot = (mixed(key) >> 20) & (n_pair_slots - 1)
    while True:
        found = load_i64(pairs + 16 * slot)
        if not found or found == key:
            return slot
        slot = (slot + 1) & (n_pair_slots - 1)


@kernel
def index_merges(
    chunk,
    scratch,
    strings: int,
    starts: int,
    n_merges: int,
    byte_of: int,
    texts: int,
    bounds: int,
    slots: int,
    n_slots: int,
    pairs: int,
    n_pair_slots: int,
    joined: int,
    n_sound: int,
):
    """Write `pairs` (zero before) of merges like "left right", the first of the lowest rank.

    A merge that needs or gives a text that is no token is left out. Of a pair that is there twice the last one counts.
    `joined`: working memory for the longest merge. `n_sound`: how many merges are a text, a space and a text, up to
    the first that is none.
    """
    store_i64(n_sound, n_merges)
    for rank in range(n_merges):
        text = strings + load_i32(starts + 4 * rank) + 8
        n = load_i32(starts + 4 * rank + 4) - load_i32(starts + 4 * rank) - 8
        cut = 0
        while cut < n and load_u8(text + cut) != _SPACE:
            cut += 1
        if cut == 0 or cut + 1 >= n:
            store_i64(n_sound, rank)
            return
        n_left = spell(text, cut, byte_of, joined)
        if n_left < 0:
            continue
        n_right = spell(text + cut + 1, n - cut - 1, byte_of, joined + n_left)
        if n_right < 0:
            continue
        left = token_of(joined, n_left, texts, bounds, slots, n_slots)
        right = token_of(joined + n_left, n_right, texts, bounds, slots, n_slots)
        whole = token_of(joined, n_left + n_right, texts, bounds, slots, n_slots)
        if left < 0 or right < 0 or whole < 0:
            continue
        slot = pair_slot(left, right, pairs, n_pair_slots)
        store_i64(pairs + 16 * slot, (left << 32 | right) + 1)
        store_i64(pairs + 16 * slot + 8, rank << RANK_SHIFT | whole)
