"""Continuous batching without a model: who runs, with which pages, and that everybody ends."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels.layout import PAGE
from engine.kv import PagePool
from engine.scheduler import Scheduler, Sequence, Share

CONTEXT = 4 * PAGE


class Simulation:
    """Plays the engine: keeps what each page was filled with, and checks what each token would see."""

    def __init__(self, n_pages: int, max_tokens: int, max_sequences: int) -> None:
        self.pool = PagePool(n_pages)
        self.scheduler = Scheduler(self.pool, max_tokens, max_sequences)
        self.max_tokens, self.max_sequences = max_tokens, max_sequences
        self.filled: dict[tuple[int, int], tuple[int, ...]] = {}  # (page, slot) -> tokens up to there
        self.wanted: dict[int, int] = {}  # request -> length at which it ends
        self.ended: dict[int, Sequence] = {}

    def add(self, request_id: int, prompt: list[int], n_answer: int) -> Sequence:
        sequence = Sequence(request_id, list(prompt), len(prompt))
        self.wanted[request_id] = len(prompt) + n_answer
        self.scheduler.add(sequence)
        return sequence

    def step(self) -> list[Share]:
        shares = self.scheduler.compose()
        self._check(shares)
        for share in shares:
            self._compute(share)
        for share in shares:
            sequence = share.sequence
            self.scheduler.computed(share)
            if share.wants_logits:
                sequence.tokens.append(1000 * sequence.request_id + len(sequence.tokens))
                if len(sequence.tokens) >= self.wanted[sequence.request_id]:
                    self.scheduler.remove(sequence)
                    self.ended[sequence.request_id] = sequence
        return shares

    def _check(self, shares: list[Share]) -> None:
        running, waiting = self.scheduler.running, self.scheduler.waiting
        assert sum(share.n_tokens for share in shares) <= self.max_tokens
        assert len(running) <= self.max_sequences
        assert len({share.sequence.slot for share in shares}) == len(shares)
        order = [sequence.request_id for sequence in [*running, *waiting]]
        assert order == sorted(order)  # nobody is overtaken
        assert len({page for s in running for page in s.pages}) + self.pool.n_idle == self.pool.n_pages
        assert not any(sequence.pages for sequence in waiting)
        prompts = [share for share in shares if not share.sequence.is_answering]
        assert all(share.wants_logits for share in prompts[:-1])  # the first prompts are read to their end first

    def _compute(self, share: Share) -> None:
        sequence, first = share.sequence, share.sequence.n_computed
        last = first + share.n_tokens
        assert 1 <= share.n_tokens <= sequence.n_waiting_tokens
        assert share.wants_logits == (last == len(sequence.tokens))
        assert len(sequence.pages) * PAGE >= last
        for position in range(first, last):
            prefix = tuple(sequence.tokens[: position + 1])
            self.filled[sequence.pages[position // PAGE], position % PAGE] = prefix
        for position in range(last):
            found = self.filled[sequence.pages[position // PAGE], position % PAGE]
            assert found == tuple(sequence.tokens[: position + 1])


PROMPT = st.tuples(st.sampled_from([0, 0, 1]), st.integers(1, CONTEXT - 2), st.integers(1, CONTEXT))


@settings(max_examples=120)
@given(
    requests=st.lists(PROMPT, min_size=1, max_size=6),
    gaps=st.lists(st.integers(0, 4), min_size=6, max_size=6),
    n_pages=st.integers(CONTEXT // PAGE, 14),
    max_tokens=st.integers(1, 80),
    max_sequences=st.integers(1, 4),
    budget=st.integers(1, 80),
)
def test_every_request_ends_for_any_pool_that_holds_one_context(
    requests: list[tuple[int, int, int]],
    gaps: list[int],
    n_pages: int,
    max_tokens: int,
    max_sequences: int,
    budget: int,
) -> None:
    simulation = Simulation(n_pages, max_tokens, max_sequences)
    simulation.scheduler.prompt_budget = budget
    for number, ((kind, n_prompt, n_answer), gap) in enumerate(zip(requests, gaps, strict=False)):
        simulation.add(number, [kind] * n_prompt, min(n_answer, CONTEXT - n_prompt))
        for _ in range(gap):
            simulation.step()
    for _ in range(4 * CONTEXT * len(requests)):
        if len(simulation.ended) == len(requests):
            break
        simulation.step()
    assert len(simulation.ended) == len(requests)
    assert simulation.pool.n_idle == n_pages
    assert not simulation.step()


def test_the_last_to_come_gives_its_pages_back_and_is_computed_anew() -> None:
    simulation = Simulation(n_pages=5, max_tokens=64, max_sequences=2)
    first = simulation.add(0, [7] * (2 * PAGE), 2 * PAGE)
    second = simulation.add(1, [8] * (2 * PAGE), 2 * PAGE)
    was_put_back = False
    while 1 not in simulation.ended:
        simulation.step()
        was_put_back |= bool(simulation.scheduler.waiting) and len(second.tokens) > second.n_prompt
    assert was_put_back
    assert len(first.tokens) == len(second.tokens) == CONTEXT


def test_reused_tokens_are_those_of_the_prompt_even_after_being_put_back() -> None:
    simulation = Simulation(n_pages=5, max_tokens=64, max_sequences=2)
    simulation.add(0, [7] * (2 * PAGE), 2 * PAGE)
    second = simulation.add(1, [8] * (2 * PAGE), 2 * PAGE)
    while 1 not in simulation.ended:
        simulation.step()
    assert second.n_reused == 0
    again = simulation.add(2, [8] * (2 * PAGE), 1)
    simulation.step()
    assert again.n_reused == PAGE


def test_answers_go_on_while_a_long_prompt_is_read() -> None:
    simulation = Simulation(n_pages=12, max_tokens=8, max_sequences=2)
    answering = simulation.add(0, [1], 40)
    simulation.step()
    simulation.add(1, [2] * 60, 1)
    n_before = len(answering.tokens)
    for n_steps in range(1, 9):
        shares = simulation.step()
        assert [share.n_tokens for share in shares] == [1, 7]
        assert len(answering.tokens) == n_before + n_steps


def test_removing_a_request_that_waits_leaves_the_others_in_order() -> None:
    simulation = Simulation(n_pages=4, max_tokens=64, max_sequences=1)
    sequences = [simulation.add(number, [number] * 10, 2) for number in range(3)]
    simulation.scheduler.remove(sequences[1])
    while len(simulation.ended) < 2:
        simulation.step()
    assert list(simulation.ended) == [0, 2]


def test_nothing_is_composed_without_requests() -> None:
    assert Simulation(n_pages=4, max_tokens=8, max_sequences=1).step() == []
