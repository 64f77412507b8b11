"""Which conversations advance in the next step, and by which tokens: continuous batching.

Conversations that are answering come first, one token each. What is left of the step goes to prompts, in the order in
which they came. When pages run out, the conversation that came last gives its pages back and waits.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from engine.kernels.layout import PAGE
from engine.kv import LONG_DIGEST, START_DIGEST, PagePool, prefix_digest
from engine.states import NO_STATE, START_ROW, StatePool


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
    state: int = START_ROW  # row of the recurrent state after n_computed tokens
    next_state: int = NO_STATE  # row that the step under way leaves the next one in
    passing_state: bytes | None = None  # digest of a kept state that the next one kept will make less useful

    @property
    def n_waiting_tokens(self) -> int:
        return len(self.tokens) - self.n_computed

    @property
    def is_answering(self) -> bool:
        return self.n_waiting_tokens == 1 and len(self.tokens) > self.n_prompt

    @property
    def last_border(self) -> int:
        """The end of the last full page that a later request with these tokens could use."""
        return (len(self.tokens) - 1) // PAGE * PAGE


@dataclass(frozen=True, slots=True)
class Share:
    """A sequence's part of a step: `n_tokens` from its first not yet computed; `wants_logits` if they reach its end."""

    sequence: Sequence
    n_tokens: int
    wants_logits: bool


class Scheduler:
    """Admits sequences, hands out pages, and composes steps."""

    def __init__(
        self, pool: PagePool, max_tokens: int, max_sequences: int, long_from: int = 0, states: StatePool | None = None
    ) -> None:
        """`long_from`: a sequence of more tokens is computed with another rotation, from its start; 0: never.

        `states`: of a model that has recurrent states.
        """
        self.pool, self.states = pool, states
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
                self._give_back(sequence)
                self._begin(sequence)
        shares: list[Share] = []
        left = self._max_tokens
        for sequence in [s for s in self.running if s.is_answering]:
            if left > 0 and sequence in self.running and self._provide(sequence, 1):
                shares.append(Share(sequence, 1, True))
                left -= 1
        left = min(left, self.prompt_budget)
        for sequence in [s for s in self.running if not s.is_answering]:
            n = self._up_to_border(sequence, min(left, sequence.n_waiting_tokens))
            if n > 0 and sequence in self.running and self._provide(sequence, n):
                shares.append(Share(sequence, n, n == sequence.n_waiting_tokens))
                left -= n
        shares = [share for share in shares if share.sequence.slot >= 0]
        for sequence in (share.sequence for share in shares):
            if self.states and sequence.next_state == NO_STATE:
                sequence.next_state = self.states.take()
        return shares

    def _up_to_border(self, sequence: Sequence, n_tokens: int) -> int:
        """A step of a model with states ends where the state is worth keeping, if it passes that place."""
        n_left = sequence.last_border - sequence.n_computed
        return n_left if self.states and 0 < n_left < n_tokens else n_tokens

    def computed(self, share: Share) -> None:
        """Note that a share has been run, and make the pages that it filled findable."""
        sequence = share.sequence
        sequence.n_computed += share.n_tokens
        self._keep_full_pages(sequence)
        if self.states:
            self.states.release(sequence.state)
            sequence.state, sequence.next_state = sequence.next_state, NO_STATE
            self._keep_state(sequence, self.states)

    def _keep_state(self, sequence: Sequence, states: StatePool) -> None:
        """Make the state findable if it ends a page. Those within an answer or a long prompt give way to later ones."""
        if sequence.n_computed % PAGE:
            return
        states.keep(sequence.state, sequence.digest)
        if sequence.passing_state:
            states.demote(sequence.passing_state)
        ends_prompt = sequence.n_computed == (sequence.n_prompt - 1) // PAGE * PAGE
        sequence.passing_state = None if ends_prompt else sequence.digest

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
        if self.states:
            self._find_state(sequence, self.states)
        sequence.n_computed = len(sequence.pages) * PAGE
        sequence.n_kept = sequence.n_tabled = 0
        self._keep_full_pages(sequence)

    def _find_state(self, sequence: Sequence, states: StatePool) -> None:
        """Take the state after as many of the found pages as possible, and give the others back."""
        n_pages, digest = 0, sequence.digest
        known = digest
        for i in range(len(sequence.pages)):
            digest = prefix_digest(digest, sequence.tokens[i * PAGE : (i + 1) * PAGE])
            if states.knows(digest):
                n_pages, known = i + 1, digest
        found = states.find(known) if n_pages else None
        sequence.state = START_ROW if found is None else found
        self.pool.release(sequence.pages[n_pages:])
        del sequence.pages[n_pages:]

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
        self._give_back(sequence)
        self._free_slots.append(sequence.slot)
        sequence.slot = -1
        sequence.n_computed = sequence.n_kept = sequence.n_tabled = 0

    def _give_back(self, sequence: Sequence) -> None:
        self.pool.release(sequence.pages)
        sequence.pages = []
        if self.states:
            self.states.release(sequence.state)
            self.states.release(sequence.next_state)
            sequence.state, sequence.next_state, sequence.passing_state = START_ROW, NO_STATE, None
