"""One pool of KV pages for all conversations, used as a ring, where a finished conversation's pages are found again.

A full page is known by a digest of every token up to its end, so it can only be reused where the whole prefix is equal;
then its keys and values are those that would be computed, bit for bit. Pages that nobody uses stay until others are
needed; those not used longest go first.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from engine.kernels.layout import PAGE

START_DIGEST = b"colibri"  # the digest of the empty prefix
LONG_DIGEST = b"colibri, long"  # and of a sequence whose positions rotate as those of long ones do


def prefix_digest(before: bytes, tokens: Sequence[int]) -> bytes:
    """The digest of a prefix that continues the one with digest `before` by a page of tokens."""
    return hashlib.blake2b(before + np.asarray(tokens, np.int32).tobytes(), digest_size=16).digest()


class PagePool:
    """Pages by number, 0 ... n_pages - 1; page n lies at address + n * page_bytes."""

    def __init__(self, n_pages: int, address: int = 0, page_bytes: int = 0) -> None:
        self.n_pages = n_pages
        self._address, self._page_bytes = address, page_bytes
        self._users = [0] * n_pages
        self._digests: list[bytes | None] = [None] * n_pages
        self._known: dict[bytes, int] = {}
        self._idle: OrderedDict[int, None] = OrderedDict.fromkeys(range(n_pages))  # unused pages, next to go first

    @property
    def n_idle(self) -> int:
        """Pages that may be taken: empty ones, and those kept only because they might be reused."""
        return len(self._idle)

    def address(self, page: int) -> int:
        return self._address + page * self._page_bytes

    def take(self) -> int | None:
        """A page for new positions, or None when every page is in use."""
        if not self._idle:
            return None
        page, _ = self._idle.popitem(last=False)
        self._forget(page)
        self._users[page] = 1
        return page

    def find(self, tokens: Sequence[int], start: bytes = START_DIGEST) -> list[int]:
        """The pages that already hold a prefix of `tokens`, taken for the caller; always short of the last token."""
        pages: list[int] = []
        digest = start
        for first in range(0, (len(tokens) - 1) // PAGE * PAGE, PAGE):
            digest = prefix_digest(digest, tokens[first : first + PAGE])
            page = self._known.get(digest)
            if page is None:
                break
            pages.append(page)
        for page in pages:
            self._users[page] += 1
            self._idle.pop(page, None)
        return pages

    def keep(self, page: int, before: bytes, tokens: Sequence[int]) -> bytes:
        """Note that `page` is full with `tokens` after the prefix `before`. Returns the digest of the longer prefix."""
        digest = prefix_digest(before, tokens)
        if digest not in self._known:
            self._forget(page)
            self._known[digest] = page
            self._digests[page] = digest
        return digest

    def release(self, pages: Sequence[int]) -> None:
        """Give pages back, the end of the conversation first to go."""
        for page in reversed(pages):
            self._users[page] -= 1
            if self._users[page] == 0:
                self._idle[page] = None
                if self._digests[page] is None:
                    self._idle.move_to_end(page, last=False)

    def forget_all(self) -> None:
        """Make no page findable any more (reset_cache)."""
        for page in range(self.n_pages):
            self._forget(page)

    def _forget(self, page: int) -> None:
        digest = self._digests[page]
        if digest is not None:
            del self._known[digest]
            self._digests[page] = None
