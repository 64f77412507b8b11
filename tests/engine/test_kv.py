"""The page pool: nobody reads pages of another conversation, and equal beginnings are found again."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from engine.kernels.layout import PAGE
from engine.kv import START_DIGEST, PagePool

N_PAGES = 6


@dataclass
class Owner:
    """A conversation that holds pages; the first `n_full` of them are full and findable."""

    tokens: list[int]
    pages: list[int] = field(default_factory=list)
    digest: bytes = START_DIGEST
    n_full: int = 0

    def keep_full_pages(self, pool: PagePool) -> None:
        while (self.n_full + 1) * PAGE <= min(len(self.tokens), len(self.pages) * PAGE):
            piece = self.tokens[self.n_full * PAGE : (self.n_full + 1) * PAGE]
            self.digest = pool.keep(self.pages[self.n_full], self.digest, piece)
            self.n_full += 1


def pages_of(*kinds: int) -> list[int]:
    """Tokens of whole pages: page i is filled with kinds[i]."""
    return [kind for kind in kinds for _ in range(PAGE)]


class PoolMachine(RuleBasedStateMachine):
    """Conversations come, find, take, fill and give back pages in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = PagePool(N_PAGES, address=1 << 20, page_bytes=4096)
        self.owners: list[Owner] = []
        self.held: dict[int, tuple[int, ...]] = {}  # page -> the whole prefix whose end it was filled with

    @property
    def in_use(self) -> set[int]:
        return {page for owner in self.owners for page in owner.pages}

    @rule(kinds=st.lists(st.integers(0, 1), max_size=3), n_more=st.integers(1, PAGE))
    def begin(self, kinds: list[int], n_more: int) -> None:
        tokens = pages_of(*kinds) + [2] * n_more
        pages = self.pool.find(tokens)
        assert len(pages) * PAGE < len(tokens)
        for i, page in enumerate(pages):
            assert self.held[page] == tuple(tokens[: (i + 1) * PAGE])
        owner = Owner(tokens, pages)
        owner.keep_full_pages(self.pool)
        self.owners.append(owner)

    @precondition(lambda self: self.owners)
    @rule(data=st.data())
    def grow(self, data: st.DataObject) -> None:
        owner = data.draw(st.sampled_from(self.owners))
        if len(owner.pages) * PAGE >= len(owner.tokens):
            return
        used = self.in_use
        page = self.pool.take()
        assert (page is None) == (len(used) == N_PAGES)
        if page is None:
            return
        assert page not in used
        owner.pages.append(page)
        self.held[page] = tuple(owner.tokens[: len(owner.pages) * PAGE])
        owner.keep_full_pages(self.pool)

    @precondition(lambda self: self.owners)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        owner = data.draw(st.sampled_from(self.owners))
        self.owners.remove(owner)
        self.pool.release(owner.pages)

    @rule()
    def forget(self) -> None:
        self.pool.forget_all()
        assert not self.pool.find(pages_of(0, 0, 2))
        assert not self.pool.find(pages_of(1, 2))

    @invariant()
    def pages_are_idle_or_in_use(self) -> None:
        assert self.pool.n_idle == N_PAGES - len(self.in_use)

    @invariant()
    def only_equal_beginnings_share_pages(self) -> None:
        for owner in self.owners:
            for i, page in enumerate(owner.pages):
                assert self.held[page] == tuple(owner.tokens[: (i + 1) * PAGE])


TestPool = PoolMachine.TestCase
TestPool.settings = settings(max_examples=60, stateful_step_count=40)


def converse(pool: PagePool, tokens: list[int]) -> list[int]:
    """Hold pages for `tokens` as the scheduler does; returns them."""
    owner = Owner(tokens, pool.find(tokens))
    owner.keep_full_pages(pool)
    while len(owner.pages) * PAGE < len(tokens):
        page = pool.take()
        assert page is not None
        owner.pages.append(page)
    owner.keep_full_pages(pool)
    return owner.pages


def test_pages_that_hold_nothing_reusable_go_first_then_those_not_used_longest_from_their_end() -> None:
    pool = PagePool(5)
    older = converse(pool, pages_of(1, 1))
    newer = converse(pool, [*pages_of(0, 0), 5])
    pool.release(older)
    pool.release(newer)
    assert [pool.take() for _ in range(6)] == [newer[2], older[1], older[0], newer[1], newer[0], None]


def test_being_found_makes_a_conversation_young_again() -> None:
    pool = PagePool(4)
    first, second = converse(pool, pages_of(0, 0)), converse(pool, pages_of(1, 1))
    pool.release(first)
    pool.release(second)
    pool.release(pool.find([*pages_of(0, 0), 9]))
    assert [pool.take() for _ in range(4)] == [second[1], second[0], first[1], first[0]]


def test_the_page_of_the_last_token_is_never_found() -> None:
    """Its logits are wanted, so at least one token must be computed."""
    pool = PagePool(2)
    pages = converse(pool, pages_of(0, 1))
    pool.release(pages)
    found = pool.find(pages_of(0, 1))
    assert found == pages[:1]
    assert pool.find([*pages_of(0, 1), 7]) == pages


def test_a_page_is_found_only_behind_its_own_beginning() -> None:
    pool = PagePool(4)
    pool.release(converse(pool, pages_of(0, 1)))
    assert not pool.find([*pages_of(1), 9])
    assert not pool.find([*pages_of(1, 1), 9])
    assert not pool.find([*pages_of(0)[1:], 3, 9])


def test_two_that_compute_the_same_beginning_at_once_keep_their_own_pages() -> None:
    pool = PagePool(2)
    a, b = pool.take(), pool.take()
    assert a is not None
    assert b is not None
    assert pool.keep(a, START_DIGEST, pages_of(0)) == pool.keep(b, START_DIGEST, pages_of(0))
    pool.release([a])
    pool.release([b])
    assert pool.find([*pages_of(0), 1]) == [a]
    assert pool.take() == b


def test_addresses_lie_a_page_apart() -> None:
    pool = PagePool(3, address=4096, page_bytes=640)
    assert [pool.address(page) for page in range(3)] == [4096, 4736, 5376]
