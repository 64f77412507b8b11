"""The scratch memory of the encoders, which whoever calls them must provide."""

from __future__ import annotations

LANES = 16  # rows that an encoder takes at once
VECTOR_BYTES = 4 * LANES
BLOCK_ELEMENTS = 256  # the largest block

# a tile of one block of sixteen rows; bytes of the sixteen blocks; vectors of the encoder's own
TILE = 0
BYTES = TILE + BLOCK_ELEMENTS * VECTOR_BYTES
VECTORS = BYTES + 256 * LANES
SCRATCH_BYTES = VECTORS + 64 * VECTOR_BYTES
