"""Repacks weights from the mapped file into the kernels' layout, with the whole team; gives the file's pages back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain

from engine.kernels.layout import GROUP
from engine.kernels.library import KernelLibrary
from engine.memory import give_back
from engine.models.weights import Packing
from engine.plan import Extent, Plan
from engine.team import Team

_CHUNK_BYTES = 256 << 10
_RUN_BYTES = 16 << 20  # weights between two reports of progress, whose pages of the file stay in memory meanwhile


class Loader:
    """Carries out packings on a team."""

    def __init__(self, library: KernelLibrary, team: Team, one: int) -> None:
        """`one`: address of an int64 that is 1."""
        self._library, self._team, self._one = library, team, one

    def load(self, packings: list[Packing], progress: Callable[[float], None] | None = None) -> None:
        """Pack all of `packings`; `progress` gets the fraction done, now and then, and 1 at the end."""
        total = sum(packing.source_bytes for packing in packings)
        waiting, done, n_bytes = list[Packing](), 0, 0
        for packing in chain.from_iterable(map(_pieces, packings)):
            waiting.append(packing)
            n_bytes += packing.source_bytes
            if n_bytes >= _RUN_BYTES:
                self._run(waiting)
                done, n_bytes = done + n_bytes, 0
                waiting.clear()
                if progress:
                    progress(done / total)
        if waiting:
            self._run(waiting)
            if progress:
                progress(1.0)

    def _run(self, packings: list[Packing]) -> None:
        plan = Plan(self._library)
        with plan.side_by_side("loading"):
            for packing in packings:
                matrix = packing.matrix
                groups = max(1, _CHUNK_BYTES // matrix.group_bytes)
                plan.add(
                    f"repack_{matrix.type_name}",
                    Extent(self._one, 1, 1, -(-matrix.n_groups // groups)),
                    source=packing.source,
                    row_bytes=packing.row_bytes,
                    n_rows=matrix.n_rows,
                    n_inputs=matrix.n_inputs,
                    target=packing.target,
                    groups_per_chunk=groups,
                )
        plan.finish()
        self._team.run(plan)
        for packing in packings:
            give_back(packing.source, packing.source_bytes)


def _pieces(packing: Packing) -> Iterator[Packing]:
    """A large matrix in parts of whole groups."""
    matrix = packing.matrix
    n_groups = max(_RUN_BYTES // (GROUP * packing.row_bytes), 1)
    for first in range(0, matrix.n_groups, n_groups):
        n_rows = min(GROUP * n_groups, matrix.n_rows - GROUP * first)
        yield Packing(
            replace(matrix, n_rows=n_rows),
            packing.source + packing.row_bytes * GROUP * first,
            packing.row_bytes * n_rows,
            packing.row_bytes,
            packing.target + matrix.group_bytes * first,
        )
