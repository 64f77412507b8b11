"""What the bytes of a tensor mean: plain NumPy references that expand each tensor type to float32.

Each function takes blocks as a structured array (n_blocks,) whose fields stand in the order of the file, and gives
(n_blocks, block_size) float32. The arithmetic is done in float32 in the order of GGML's own expansion, so that results
are equal bit for bit. The functions are in expansions/, one file a family.

Not expanded: Q8_1 and Q8_K, which exist only while GGML computes; whole and double numbers; Q1_0; and NVFP4, whose
values miss a factor that stands in another tensor.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.errors import UnsupportedModelError
from engine.gguf.expansions import EXPANSIONS, Floats
from engine.gguf.tensor_types import TensorType

_CHUNK_ELEMENTS = 1 << 20  # bounds the temporary arrays


def require_expansion(type: TensorType) -> None:
    """Raise UnsupportedModelError for a type that has no expansion here."""
    if type not in EXPANSIONS:
        known = ", ".join(known_type.name for known_type in EXPANSIONS)
        raise UnsupportedModelError(
            f"expected a tensor of a type that can be expanded ({known}), found {type.name}. "
            "Choose a file of this model in one of these types."
        )


def dequantise(data: npt.NDArray[np.uint8], type: TensorType, shape: tuple[int, ...]) -> Floats:
    """Expand a tensor to float32.

    data: (n_bytes,) uint8, exactly the tensor's bytes. shape: NumPy order, as in TensorInfo. Returns `shape` float32.
    Raises ValueError if data and shape disagree, UnsupportedModelError for a type that has no expansion here.
    """
    require_expansion(type)
    expected_bytes = type.n_bytes(shape)
    if data.dtype != np.uint8 or data.shape != (expected_bytes,):
        raise ValueError(
            f"expected {expected_bytes:,} bytes for {type.name} of shape {shape}, "
            f"found {data.dtype} of shape {data.shape}"
        )
    expand, layout = EXPANSIONS[type]
    blocks = np.ascontiguousarray(data).view(layout)
    result = np.empty((len(blocks), type.block_size), np.float32)
    step = _CHUNK_ELEMENTS // type.block_size
    with np.errstate(invalid="ignore", over="ignore"):  # infinities in a damaged file are the caller's to notice
        for start in range(0, len(blocks), step):
            result[start : start + step] = expand(blocks[start : start + step])
    return result.reshape(shape)
