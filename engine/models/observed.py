"""The inputs of matrices as calibration wants them: sums of their squares, or their rows of the newest step.

Nothing of this is in the plan of a model that is opened to answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from engine.config import EngineConfig
from engine.kernels.layout import OBSERVED_BYTES
from engine.memory import Buffer, Memory, view
from engine.models.weights import Matrix, whole_registers
from engine.models.workspace import Rows
from engine.plan import Extent, Plan

_EXPANDING = "attn_kv_b.weight"  # applied to queries and outputs instead of latents: these are not its rows' inputs


@dataclass(frozen=True, slots=True)
class InputSums:
    """Of one tensor: `sums` (n_matrices, n_inputs) float32 of the squares of `counts` (n_matrices,) int64 inputs.

    There is one matrix, or one for each expert or head.
    """

    sums: npt.NDArray[np.float32]
    counts: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Place:
    n_matrices: int
    n_inputs: int
    stride: int
    sums: Buffer
    counts: Buffer


@dataclass(slots=True)
class ObservedInputs:
    """Adds what observes to a plan, and reads it out."""

    memory: Memory
    config: EngineConfig
    _places: dict[str, list[_Place]] = field(default_factory=dict)  # by tensor; several for heads
    _by_input: dict[tuple[int, int, int], _Place] = field(default_factory=dict)  # stage, address, items
    _kept: dict[str, tuple[Buffer, Rows]] = field(default_factory=dict)

    def add_to(
        self, plan: Plan, matrix: Matrix, x: Rows, extent: Extent, one: int, *, items: int, n_matrices: int
    ) -> None:
        """Observe the inputs `x` of `matrix` in the stage that is open, as the configuration says."""
        if self.config.measures_inputs and not matrix.name.endswith(_EXPANDING):
            self._measure(plan, matrix, x, extent, one, items, n_matrices)
        ending = self.config.keeps_inputs
        if ending and matrix.name.endswith(ending) and not items and matrix.name not in self._kept:
            kept = self.memory.allocate(f"kept {matrix.name}", x.stride * extent.most, "buffers")
            self._kept[matrix.name] = kept, x
            plan.add("keep_rows", Extent(extent.cell, extent.most), x=x.address, out=kept.address, stride=x.stride)

    def _measure(
        self, plan: Plan, matrix: Matrix, x: Rows, extent: Extent, one: int, items: int, n_matrices: int
    ) -> None:
        places = self._places.setdefault(matrix.name, [])
        key = (len(plan.stages), x.address, items)
        if key in self._by_input:
            if self._by_input[key] not in places:  # parts of one tensor may share their inputs
                places.append(self._by_input[key])
            return
        stride = 4 * whole_registers(x.n)
        sums = self.memory.allocate(f"squares of {matrix.name}", stride * n_matrices, "buffers")
        counts = self.memory.allocate(f"inputs of {matrix.name}", 8 * n_matrices, "buffers")
        place = self._by_input[key] = _Place(n_matrices, x.n, stride, sums, counts)
        places.append(place)
        plan.add(
            "square_sums",
            Extent(one, 1, 1, stride // OBSERVED_BYTES),
            x=x.address,
            x_stride=x.stride,
            sums=sums.address,
            sums_stride=stride,
            counts=counts.address,
            extent=extent.cell,
            items=items,
        )

    def sums(self) -> dict[str, InputSums]:
        """Copies of what has been summed since the model was opened, by tensor."""
        return {name: _joined(places) for name, places in self._places.items()}

    def kept(self, n_rows: int) -> dict[str, npt.NDArray[np.float32]]:
        """Copies of the newest step's inputs, (n_rows, n_inputs), by tensor."""
        return {
            name: np.array(view(buffer, np.float32, (n_rows, rows.stride // 4))[:, : rows.n])
            for name, (buffer, rows) in self._kept.items()
        }


def _joined(places: list[_Place]) -> InputSums:
    sums = [view(p.sums, np.float32, (p.n_matrices, p.stride // 4))[:, : p.n_inputs] for p in places]
    return InputSums(np.concatenate(sums), np.concatenate([view(p.counts, np.int64, (p.n_matrices,)) for p in places]))
