"""Which conversations advance in the next step, and by which tokens: continuous batching.

Conversations that are answering come first, one token each. What is left of the step goes to prompts, in the order in
which they came. When pages run out, the conversation that came last gives its pages back and waits.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from engine.kernels.layout import PAGE
from engine.kv import LONG_DIGEST, START_DIGEST, PagePool


@dataclass(slots=True, eq=False)
class Sequence:
    """One request's tokens and the pages that hold their keys and values."""

    request_id: int
    tokens: list[int]
    n_prompt: int
    pages: list[int] = field(default_factory=list)
    n_computed: int = 0  # tokens whose keys and values are stored
    n_reused: int = 0  # of the prompt; what it finds again after it has made room does not count
    n_kept: int = 0  # full pages that have been made findable
    digest: bytes = START_DIGEST
    slot: int = -1  # row of the page table, -1 while waiting
    n_tabled: int = 0  # pages whose addresses stand in the page table
    is_new: bool = True
    is_long: bool = False  # longer than what the model's rotation of short sequences is for

    @property
    def n_waiting_tokens(self) -> int:
        return len(self.tokens) - self.n_computed

    @property
    def is_answering(self) -> bool:
        return self.n_waiting_tokens == 1 and len(self.tokens) > self.n_prompt


@dataclass(frozen=True, slots=True)
class Share:
    """A sequence's part of a step: `n_tokens` from its first not yet computed; `wants_logits` if they reach its end."""

    sequence: Sequence
    n_tokens: int
    wants_logits: bool


class Scheduler:
    """Admits sequences, hands out pages, and composes steps."""

    def __init__(self, pool: PagePool, max_tokens: int, max_sequences: int, long_from: int = 0) -> None:
        """`long_from`: a sequence of more tokens is computed with another rotation, from its start; 0: never."""
        self.pool = pool
        self._long_from = long_from
        self.prompt_budget = max_tokens  # prompt tokens in a step; the engine lowers it where steps take long
        self._max_tokens = max_tokens
        self._free_slots = list(range(max_sequences))[::-1]
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []

    def add(self, sequence: Sequence) -> None:
        self.waiting.append(sequence)

    def remove(self, sequence: Sequence) -> None:
        """Forget a sequence that is done; its full pages stay findable."""
        if sequence in self.running:
            self._leave(sequence)
        else:
            self.waiting.remove(sequence)

    def compose(self) -> list[Share]:
        """The next step's shares; each sequence has the pages that its share needs."""
        self._admit()
        for sequence in self.running:
            if not sequence.is_long and self._should_be_long(sequence):
                self.pool.release(sequence.pages)
                self._begin(sequence)
        shares: list[Share] = []
        left = self._max_tokens
        for sequence in [s for s in self.running if s.is_answering]:
            if left > 0 and sequence in self.running and self._provide(sequence, 1):
                shares.append(Share(sequence, 1, True))
                left -= 1
        left = min(left, self.prompt_budget)
        for sequence in [s for s in self.running if not s.is_answering]:
            n = min(left, sequence.n_waiting_tokens)
            if n > 0 and sequence in self.running and self._provide(sequence, n):
                shares.append(Share(sequence, n, n == sequence.n_waiting_tokens))
                left -= n
        return [share for share in shares if share.sequence.slot >= 0]

    def computed(self, share: Share) -> None:
        """Note that a share has been run, and make the pages that it filled findable."""
        share.sequence.n_computed += share.n_tokens
        self._keep_full_pages(share.sequence)

    def _admit(self) -> None:
        while self.waiting and self._free_slots and (self.pool.n_idle > 0 or not self.running):
            sequence = self.waiting.popleft()
            sequence.slot = self._free_slots.pop()
            self._begin(sequence)
            if sequence.is_new:
                sequence.n_reused, sequence.is_new = sequence.n_computed, False
            self.running.append(sequence)

    def _should_be_long(self, sequence: Sequence) -> bool:
        return 0 < self._long_from < len(sequence.tokens)

    def _begin(self, sequence: Sequence) -> None:
        """Let the sequence start with the pages that already hold its beginning."""
        sequence.is_long = self._should_be_long(sequence)
        sequence.digest = LONG_DIGEST if sequence.is_long else START_DIGEST
        sequence.pages = self.pool.find(sequence.tokens, sequence.digest)
        sequence.n_computed = len(sequence.pages) * PAGE
        sequence.n_kept = sequence.n_tabled = 0
        self._keep_full_pages(sequence)

    def _keep_full_pages(self, sequence: Sequence) -> None:
        while (sequence.n_kept + 1) * PAGE <= sequence.n_computed:
            first = sequence.n_kept * PAGE
            page = sequence.pages[sequence.n_kept]
            sequence.digest = self.pool.keep(page, sequence.digest, sequence.tokens[first : first + PAGE])
            sequence.n_kept += 1

    def _provide(self, sequence: Sequence, n_tokens: int) -> bool:
        """Pages for the next `n_tokens`; others that came later make room if they must. False: it waits itself now."""
        while len(sequence.pages) * PAGE < sequence.n_computed + n_tokens:
            page = self.pool.take()
            if page is not None:
                sequence.pages.append(page)
                continue
            last = self.running[-1]
            self._leave(last)
            self.waiting.appendleft(last)
            if last is sequence:
                return False
        return True

    def _leave(self, sequence: Sequence) -> None:
        self.running.remove(sequence)
        self.pool.release(sequence.pages)
        self._free_slots.append(sequence.slot)
        sequence.pages, sequence.slot = [], -1
        sequence.n_computed = sequence.n_kept = sequence.n_tabled = 0
