"""Reads one text from its start through a model, piece by piece, for whoever wants to see every position."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from engine.kernels.layout import PAGE
from engine.model import Model
from engine.states import START_ROW


def read_passage(
    model: Model,
    ids: list[int],
    step: int,
    begin: Callable[[], None],
    fill: Callable[[int, int], None] | None = None,
) -> Iterator[tuple[int, int]]:
    """Run `ids` in pieces of at most `step` tokens; yields (first, last) when the piece's results can be read.

    begin() starts the model's batch; fill(first, last) is called before each run, where a model of some layers is given
    what its first layer reads. `step` must not be more than the model's steps, nor, where it has logits, its outputs.
    """
    state = next_state = START_ROW
    pages = [page for page in (model.pool.take() for _ in range(-(-len(ids) // PAGE))) if page is not None]
    try:
        model.batch.page_table[0, : len(pages)] = [model.pool.address(page) for page in pages]
        rope_row = model.first_rope_row(0 < model.long_from < len(ids))
        for first in range(0, len(ids), step):
            piece = ids[first : first + step]
            wanted = [] if model.logits is None else list(range(len(piece)))
            begin()
            next_state = model.states.take() if model.states else START_ROW
            model.set_states(0, state, next_state)
            model.batch.add(0, piece, first, wanted, first_rope_row=rope_row)
            if fill is not None:
                fill(first, first + len(piece))
            while not model.run():
                pass
            yield first, first + len(piece)
            model.release_state(state)
            state, next_state = next_state, START_ROW
    finally:
        model.release_state(state)
        model.release_state(next_state)
        model.pool.release(pages)
