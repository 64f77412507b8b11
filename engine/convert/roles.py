"""What a tensor is for a conversion, by its name in GGUF: a router, a matrix that may be quantised, or neither."""

from __future__ import annotations

# Matrices that are small and that much depends on stay float32.
_FLOAT32 = ("_norm.weight", "ffn_gate_inp_shexp.weight", "ssm_conv1d.weight", "shortconv.conv.weight")
_ROUTER = ".ffn_gate_inp.weight"


def is_router(name: str) -> bool:
    """Whether it is the matrix that chooses experts."""
    return name.endswith(_ROUTER)


def is_matrix(name: str, shape: tuple[int, ...]) -> bool:
    """Whether it has the type that is chosen for a model's matrices."""
    return len(shape) > 1 and name.endswith(".weight") and not name.endswith((*_FLOAT32, _ROUTER))
