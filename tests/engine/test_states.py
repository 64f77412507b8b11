"""The pool of recurrent states: what is found again, who goes first, and that nobody is overwritten."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels.layout import PAGE
from engine.kv import PagePool
from engine.scheduler import Scheduler, Sequence, Share
from engine.states import START_ROW, StatePool

CONTEXT = 5 * PAGE


def test_a_kept_state_is_found_until_its_row_is_needed() -> None:
    pool = StatePool(4)
    row = pool.take()
    pool.keep(row, b"a")
    pool.release(row)
    assert pool.find(b"a") == row
    pool.release(row)
    others = [pool.take() for _ in range(2)]
    assert row not in others  # those that cannot be found go first
    assert pool.take() == row
    assert pool.find(b"a") is None


def test_a_demoted_state_goes_before_older_ones() -> None:
    pool = StatePool(3)
    rows = [pool.take() for _ in range(2)]
    for row, digest in zip(rows, (b"a", b"b"), strict=True):
        pool.keep(row, digest)
        pool.release(row)
    pool.demote(b"b")
    assert pool.take() == rows[1]
    assert pool.find(b"a") == rows[0]


def test_the_start_is_never_taken_kept_or_counted() -> None:
    pool = StatePool(3)
    pool.release(START_ROW)
    pool.keep(START_ROW, b"a")
    assert pool.find(b"a") is None
    assert {pool.take(), pool.take()} == {1, 2}


def test_rows_have_addresses_one_after_the_other() -> None:
    assert [StatePool(3, 1000, 64).address(row) for row in range(3)] == [1000, 1064, 1128]


class Simulation:
    """Plays the engine: a state is the tuple of all tokens before it; each step reads the old row, writes the new."""

    def __init__(self, n_pages: int, max_tokens: int, max_sequences: int, n_kept: int) -> None:
        self.states = StatePool(1 + 2 * max_sequences + n_kept)
        self.pool = PagePool(n_pages)
        self.scheduler = Scheduler(self.pool, max_tokens, max_sequences, states=self.states)
        self.content: dict[int, tuple[int, ...]] = {START_ROW: ()}
        self.wanted: dict[int, int] = {}

    def add(self, request_id: int, prompt: list[int], n_answer: int) -> None:
        self.wanted[request_id] = len(prompt) + n_answer
        self.scheduler.add(Sequence(request_id, list(prompt), len(prompt)))

    def step(self, interrupted: bool) -> None:
        shares = self.scheduler.compose()
        assert len({share.sequence.next_state for share in shares}) == len(shares)
        for share in shares:
            self._compute(share)
        if interrupted:
            return
        for share in shares:
            sequence = share.sequence
            self.scheduler.computed(share)
            if share.wants_logits:
                sequence.tokens.append(1000 * sequence.request_id + len(sequence.tokens))
                if len(sequence.tokens) >= self.wanted[sequence.request_id]:
                    self.scheduler.remove(sequence)

    def _compute(self, share: Share) -> None:
        sequence, first = share.sequence, share.sequence.n_computed
        assert self.content[sequence.state] == tuple(sequence.tokens[:first])
        assert sequence.next_state not in (START_ROW, sequence.state)
        self.content[sequence.next_state] = tuple(sequence.tokens[: first + share.n_tokens])


@settings(max_examples=80)
@given(data=st.data(), max_tokens=st.integers(1, 80), max_sequences=st.integers(1, 4), n_kept=st.integers(0, 3))
def test_every_step_begins_with_the_state_of_exactly_its_prefix(
    data: st.DataObject, max_tokens: int, max_sequences: int, n_kept: int
) -> None:
    simulation = Simulation(data.draw(st.integers(5, 16)), max_tokens, max_sequences, n_kept)
    n_requests = data.draw(st.integers(1, 6))
    for request_id in range(n_requests):
        n_common = data.draw(st.integers(0, 3 * PAGE))
        n_own = data.draw(st.integers(1, PAGE))
        prompt = [*range(n_common), *(10_000 * (request_id + 1) + i for i in range(n_own))]
        simulation.add(request_id, prompt, data.draw(st.integers(1, PAGE)))
        for _ in range(data.draw(st.integers(0, 5))):
            simulation.step(data.draw(st.booleans()))
    for _ in range(2000):
        if not (simulation.scheduler.running or simulation.scheduler.waiting):
            break
        simulation.step(interrupted=False)
    assert not simulation.scheduler.running
    assert simulation.states.n_idle == simulation.states.n_rows - 1
    assert simulation.pool.n_idle == simulation.pool.n_pages


def test_the_end_of_a_prompt_outlasts_the_states_within_the_answer() -> None:
    simulation = Simulation(n_pages=16, max_tokens=64, max_sequences=1, n_kept=2)
    prompt = list(range(2 * PAGE + 5))
    simulation.add(0, prompt, 2 * PAGE)
    while simulation.scheduler.running or simulation.scheduler.waiting:
        simulation.step(interrupted=False)
    simulation.add(1, prompt, 1)  # the same again: regenerate
    simulation.scheduler.compose()
    assert simulation.scheduler.running[0].n_computed == 2 * PAGE
