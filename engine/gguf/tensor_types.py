"""The tensor types of GGML: their numbers in a file, elements in a block and bytes of a block."""

from __future__ import annotations

from enum import IntEnum


class TensorType(IntEnum):
    """A tensor's element type; its value is the number that stands in a GGUF file."""

    F32 = 0
    F16 = 1
    Q4_0 = 2
    Q4_1 = 3
    Q5_0 = 6
    Q5_1 = 7
    Q8_0 = 8
    Q8_1 = 9
    Q2_K = 10
    Q3_K = 11
    Q4_K = 12
    Q5_K = 13
    Q6_K = 14
    Q8_K = 15
    IQ2_XXS = 16
    IQ2_XS = 17
    IQ3_XXS = 18
    IQ1_S = 19
    IQ4_NL = 20
    IQ3_S = 21
    IQ2_S = 22
    IQ4_XS = 23
    I8 = 24
    I16 = 25
    I32 = 26
    I64 = 27
    F64 = 28
    IQ1_M = 29
    BF16 = 30
    TQ1_0 = 34
    TQ2_0 = 35
    MXFP4 = 39
    NVFP4 = 40
    Q1_0 = 41

    @property
    def block_size(self) -> int:
        """Elements in a block; rows are whole numbers of blocks."""
        return _BLOCKS[self][0]

    @property
    def block_bytes(self) -> int:
        """Bytes of a block."""
        return _BLOCKS[self][1]

    @property
    def is_quantised(self) -> bool:
        """Whether elements share a scale, so that only whole blocks have a meaning."""
        return _BLOCKS[self][0] > 1

    def n_bytes(self, shape: tuple[int, ...]) -> int:
        """Bytes of a tensor of `shape` (NumPy order); the last dimension must be whole blocks, else ValueError."""
        block_size, block_bytes = _BLOCKS[self]
        n_elements = 1
        for dimension in shape:
            n_elements *= dimension
        n_inputs = shape[-1] if shape else 1
        if n_inputs % block_size:
            raise ValueError(f"{self.name} has blocks of {block_size} elements, which do not divide rows of {n_inputs}")
        return n_elements // block_size * block_bytes


# Elements and bytes of a block. The sum shows the fields in their order in the block.
_BLOCKS: dict[TensorType, tuple[int, int]] = {
    TensorType.F32: (1, 4),
    TensorType.F16: (1, 2),
    TensorType.Q4_0: (32, 2 + 16),
    TensorType.Q4_1: (32, 2 + 2 + 16),
    TensorType.Q5_0: (32, 2 + 4 + 16),
    TensorType.Q5_1: (32, 2 + 2 + 4 + 16),
    TensorType.Q8_0: (32, 2 + 32),
    TensorType.Q8_1: (32, 2 + 2 + 32),
    TensorType.Q2_K: (256, 16 + 64 + 2 + 2),
    TensorType.Q3_K: (256, 32 + 64 + 12 + 2),
    TensorType.Q4_K: (256, 2 + 2 + 12 + 128),
    TensorType.Q5_K: (256, 2 + 2 + 12 + 32 + 128),
    TensorType.Q6_K: (256, 128 + 64 + 16 + 2),
    TensorType.Q8_K: (256, 4 + 256 + 32),
    TensorType.IQ2_XXS: (256, 2 + 64),
    TensorType.IQ2_XS: (256, 2 + 64 + 8),
    TensorType.IQ3_XXS: (256, 2 + 64 + 32),
    TensorType.IQ1_S: (256, 2 + 32 + 16),
    TensorType.IQ4_NL: (32, 2 + 16),
    TensorType.IQ3_S: (256, 2 + 64 + 8 + 32 + 4),
    TensorType.IQ2_S: (256, 2 + 64 + 8 + 8),
    TensorType.IQ4_XS: (256, 2 + 2 + 4 + 128),
    TensorType.I8: (1, 1),
    TensorType.I16: (1, 2),
    TensorType.I32: (1, 4),
    TensorType.I64: (1, 8),
    TensorType.F64: (1, 8),
    TensorType.IQ1_M: (256, 32 + 16 + 8),
    TensorType.BF16: (1, 2),
    TensorType.TQ1_0: (256, 48 + 4 + 2),
    TensorType.TQ2_0: (256, 64 + 2),
    TensorType.MXFP4: (32, 1 + 16),
    TensorType.NVFP4: (64, 4 + 32),
    TensorType.Q1_0: (128, 2 + 16),
}

# Numbers that GGML used once and gave up: what they were, so that an old file can be named for what it is.
REMOVED_TYPES: dict[int, str] = {
    4: "Q4_2",
    5: "Q4_3",
    31: "Q4_0_4_4",
    32: "Q4_0_4_8",
    33: "Q4_0_8_8",
    36: "IQ4_NL_4_4",
    37: "IQ4_NL_4_8",
    38: "IQ4_NL_8_8",
}
