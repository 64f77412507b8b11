"""Checkpoints whose weights are quantised: FP8 with scales beside them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.convert.matrices import Matrix
from engine.convert.safetensors import StoredTensor
from engine.convert.stored import BlockScaled, Stored
from engine.errors import UnsupportedModelError

if TYPE_CHECKING:
    from engine.convert.model_map import ModelMap

_DEFAULT_BLOCK = (128, 128)  # DeepSeek-V3's
KNOWN_METHODS = (None, "fp8", "mxfp4")


def check_method(model: ModelMap) -> None:
    """Raise UnsupportedModelError for a checkpoint that is quantised in a way which is not known here."""
    method = _settings(model).get("quant_method")
    if method not in KNOWN_METHODS:
        raise UnsupportedModelError(
            f"{model.config.path}: expected weights that are plain, FP8 with block scales or MXFP4, found the "
            f"quantisation {method!r:.40}. Choose the model's version in BF16."
        )


def take_fp8(model: ModelMap, tensor: StoredTensor, source: str) -> Matrix:
    """An FP8 weight with what is beside it: `*_scale_inv` for each block, or `*_scale` for all or each row.

    Raises UnsupportedModelError if there is neither.
    """
    n_matrices = math.prod(tensor.shape[:-2])
    n_rows, n_columns = tensor.shape[-2:] if len(tensor.shape) > 1 else (tensor.shape[0], 1)
    values = Stored(model.checkpoint, tensor)
    for suffix in ("_scale_inv", "_scale"):
        scale = model.checkpoint.tensors.get(source + suffix)
        if scale is None:
            continue
        block = _block(model)
        in_blocks = (math.ceil(n_rows / block[0]), math.ceil(n_columns / block[1]))
        n_scales = math.prod(scale.shape)
        if n_scales == 1:
            block = (n_rows, n_columns)
        elif n_scales == n_matrices * n_rows:
            block = (1, n_columns)
        elif n_scales != n_matrices * math.prod(in_blocks):
            break
        model.mark_taken(source + suffix)
        grid = (n_matrices, math.ceil(n_rows / block[0]), math.ceil(n_columns / block[1]))
        factors = Stored(model.checkpoint, scale).read_all().reshape(-1)
        scales = np.broadcast_to(factors, math.prod(grid)) if n_scales == 1 else factors
        return BlockScaled(values, scales.reshape(grid), n_rows, block)
    raise UnsupportedModelError(
        f"{tensor.path}: expected the scales of the FP8 tensor {source} {tensor.shape} in {source}_scale_inv, one "
        f"for each block of {_block(model)}, found none that fit. Choose the model's version in BF16."
    )


def _block(model: ModelMap) -> tuple[int, int]:
    size = _settings(model).get("weight_block_size")
    if isinstance(size, list) and len(size) == 2 and all(type(item) is int and item > 0 for item in size):
        return size[0], size[1]
    return _DEFAULT_BLOCK


def _settings(model: ModelMap) -> dict[str, Any]:
    settings = model.config.get("quantization_config")
    return settings if isinstance(settings, dict) else {}
