"""The recurrent states of conversations, beside their KV pages, and where a state can be found again.

A step reads a sequence's state from one row and leaves the new one in another, so that a step which was interrupted can
be begun anew. A state that belongs to the end of a full page is known by the digest of every token up to there. Like
pages, rows that nobody uses stay until others are needed; those not used longest go first.
"""

from __future__ import annotations

from collections import OrderedDict

NO_STATE = -1
START_ROW = 0  # the state before the first token: zeros, which nobody writes


class StatePool:
    """Rows by number, START_ROW + 1 ... n_rows - 1; row n lies at address + n * row_bytes."""

    def __init__(self, n_rows: int, address: int = 0, row_bytes: int = 0) -> None:
        self.n_rows = n_rows
        self._address, self._row_bytes = address, row_bytes
        self._users = [0] * n_rows
        self._digests: list[bytes | None] = [None] * n_rows
        self._known: dict[bytes, int] = {}
        self._idle: OrderedDict[int, None] = OrderedDict.fromkeys(range(START_ROW + 1, n_rows))

    @property
    def n_idle(self) -> int:
        """Rows that may be taken: empty ones, and those kept only because they might be found again."""
        return len(self._idle)

    def address(self, row: int) -> int:
        return self._address + row * self._row_bytes

    def take(self) -> int:
        """A row for a new state. There are two for each sequence that can run, so one is always free."""
        row, _ = self._idle.popitem(last=False)
        self._forget(row)
        self._users[row] = 1
        return row

    def find(self, digest: bytes) -> int | None:
        """The row that holds the state after the prefix with this digest, taken for the caller."""
        row = self._known.get(digest)
        if row is not None:
            self._users[row] += 1
            self._idle.pop(row, None)
        return row

    def knows(self, digest: bytes) -> bool:
        return digest in self._known

    def keep(self, row: int, digest: bytes) -> None:
        """Note that `row` holds the state after the prefix with this digest."""
        if digest not in self._known and row != START_ROW:
            self._forget(row)
            self._known[digest] = row
            self._digests[row] = digest

    def release(self, row: int) -> None:
        """Give a row back; it is the next to go if it cannot be found again."""
        if row in (NO_STATE, START_ROW):
            return
        self._users[row] -= 1
        if self._users[row] == 0:
            self._idle[row] = None
            if self._digests[row] is None:
                self._idle.move_to_end(row, last=False)

    def demote(self, digest: bytes) -> None:
        """Let the state after this prefix be the next to go: a later one of the same sequence is known."""
        row = self._known.get(digest)
        if row is not None and row in self._idle:
            self._idle.move_to_end(row, last=False)

    def forget_all(self) -> None:
        """Make no state findable any more."""
        for row in range(self.n_rows):
            self._forget(row)

    def _forget(self, row: int) -> None:
        digest = self._digests[row]
        if digest is not None:
            del self._known[digest]
            self._digests[row] = None
