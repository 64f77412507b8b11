"""What whoever calls the encoders must provide: scratch memory, and for some types the sizes of the rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

LANES = 16  # rows that an encoder takes at once
VECTOR_BYTES = 4 * LANES
BLOCK_ELEMENTS = 256  # the largest block

# a tile of one block of sixteen rows; a tile of its weights; bytes of the sixteen blocks; vectors of the encoder's own
TILE = 0
WEIGHTS = TILE + BLOCK_ELEMENTS * VECTOR_BYTES
BYTES = WEIGHTS + (BLOCK_ELEMENTS + 1) * VECTOR_BYTES
VECTORS = BYTES + 256 * LANES
SCRATCH_BYTES = VECTORS + 64 * VECTOR_BYTES

# Types in which an error matters more where the value is large: few codes and one scale for a block otherwise spend
# their errors on what is large and rare.
BY_SIZE = frozenset({"Q4_0"})


def inverse_sizes(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """rows (n, n_inputs) float32 -> 1 / the root of each row's mean square, float32; 0 where that is no number."""
    squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64) / max(1, rows.shape[1])
    with np.errstate(divide="ignore", over="ignore"):
        inverse = (1 / np.sqrt(squares)).astype(np.float32)
    return np.where(np.isfinite(inverse), inverse, np.float32(0))
