"""Rows of float32 as the bytes of a GGUF tensor type, by the compiled encoders."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from engine.gguf.tensor_types import TensorType
from engine.kernels.encoder_layout import BY_SIZE, LANES, SCRATCH_BYTES, VECTOR_BYTES, inverse_sizes
from engine.kernels.library import KernelLibrary, Progress, load_library
from engine.kernels.tiers import choose_tier

Floats = npt.NDArray[np.float32]

QUANTISABLE = tuple(
    TensorType[name]
    for name in ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4")
)
_LARGEST_HALF = 65_504.0  # what a half-precision scale surely holds
# Of types with other scales; a larger number would be rounded to infinity.
_LARGEST = {TensorType.F32: 3.4028234e38, TensorType.BF16: 3.3895313e38, TensorType.MXFP4: 2.5521177e38}
_LEAST_WEIGHT = 1e-4  # of the mean: what was never active must not become arbitrary
_MOST_WEIGHT = 1e4

_threads = threading.local()


def prepare(types: Iterable[TensorType], progress: Progress | None = None) -> None:
    """Compile (on the first start) and link what `quantise` needs for these types, which it would do itself.

    progress(kernel, fraction) is called while kernels are compiled. Raises KernelBuildError.
    """
    wanted = sorted({type for type in types if type in (TensorType.F16, TensorType.BF16, *QUANTISABLE)})
    if wanted:
        library, kernels = load_library(choose_tier()), [f"encode_{type.name}" for type in wanted]
        library.require(kernels, progress)
        for kernel in kernels:
            library.address(kernel)


def largest_value(type: TensorType) -> float:
    """The largest magnitude that is quantised to `type`."""
    return _LARGEST.get(type, _LARGEST_HALF)


def quantise(
    rows: Floats, type: TensorType, importance: Floats | None = None, library: KernelLibrary | None = None
) -> npt.NDArray[np.uint8]:
    """`rows` (n_rows, n_inputs) float32 in the layout of `type`: (n_bytes,) uint8. Holds no GIL while it computes.

    type: F32, F16, BF16 or one of QUANTISABLE, whose blocks must divide the rows. importance: (n_inputs,) float32 not
    below 0, how much a squared error in each column matters; None: all the same. library: the kernels, by default
    those of this machine's best tier. The numbers are defined by the references beside the encoders in engine/kernels.
    Raises ValueError for rows that do not fit, and for values that the type cannot hold: not finite, or above
    `largest_value`, which is 65,504 where scales are of half precision.
    """
    if rows.ndim != 2 or rows.dtype != np.float32:
        raise ValueError(f"expected rows (n_rows, n_inputs) of float32, found {rows.dtype} of shape {rows.shape}")
    n_rows, n_inputs = rows.shape
    out = np.empty(type.n_bytes((n_rows, n_inputs)), np.uint8)
    _check_values(rows, type)
    rows = np.ascontiguousarray(rows)
    if type is TensorType.F32:
        return rows.reshape(-1).view(np.uint8)
    library = load_library(choose_tier()) if library is None else library
    if type in (TensorType.F16, TensorType.BF16):
        _encode_floats(rows.reshape(-1), type, out, library)
    elif type not in QUANTISABLE:
        raise ValueError(f"expected a type that can be written, found {type.name}")
    elif rows.size:
        _encode_blocks(rows, type, _weights(importance, n_inputs), out, library)
    return out


def _check_values(rows: Floats, type: TensorType) -> None:
    if not rows.size:
        return
    largest = max(float(rows.max()), -float(rows.min()))
    if not largest < np.inf:
        raise ValueError(f"expected finite numbers for {type.name}, found others")
    if largest > largest_value(type):
        raise ValueError(f"expected values up to {largest_value(type):,.8g} for {type.name}, found {largest:,.8g}")


def _weights(importance: Floats | None, n_inputs: int) -> Floats:
    """Weights of mean 1, none of which is so small or large that the search would lose its numbers."""
    if importance is None:
        return np.ones(n_inputs, np.float32)
    if importance.shape != (n_inputs,) or not np.isfinite(importance).all() or (importance < 0).any():
        raise ValueError(
            f"expected the importance of {n_inputs:,} columns, finite and not below 0, found {importance.shape}"
        )
    mean = float(importance.astype(np.float64).mean())
    if mean == 0:
        return np.ones(n_inputs, np.float32)
    return np.clip(importance.astype(np.float64) / mean, _LEAST_WEIGHT, _MOST_WEIGHT).astype(np.float32)


def _encode_blocks(
    rows: Floats, type: TensorType, weights: Floats, out: npt.NDArray[np.uint8], library: KernelLibrary
) -> None:
    kernel = f"encode_{type.name}"
    sizes = inverse_sizes(rows) if type.name in BY_SIZE else np.empty(0, np.float32)
    record = library.pack(
        kernel,
        {
            "x": rows.ctypes.data,
            "stride": rows.strides[0],
            "n_rows": len(rows),
            "n_inputs": rows.shape[1],
            "weights": weights.ctypes.data,
            "inverse_sizes": sizes.ctypes.data,
            "out": out.ctypes.data,
            "out_stride": out.nbytes // len(rows),
        },
    )
    call, scratch = library.function(kernel), _scratch()
    for chunk in range(-(-len(rows) // LANES)):
        call(record.ctypes.data, chunk, scratch)


def _encode_floats(values: Floats, type: TensorType, out: npt.NDArray[np.uint8], library: KernelLibrary) -> None:
    n_whole = len(values) // LANES * LANES
    padded = np.zeros(LANES, np.float32)
    padded[: len(values) - n_whole] = values[n_whole:]
    last = np.empty(2 * LANES, np.uint8)
    kernel = f"encode_{type.name}"
    library.run(kernel, x=values.ctypes.data, out=out.ctypes.data, n=n_whole)
    library.run(kernel, x=padded.ctypes.data, out=last.ctypes.data, n=LANES)
    out[2 * n_whole :] = last[: len(out) - 2 * n_whole]


def _scratch() -> int:
    """The address of this thread's scratch memory."""
    if not hasattr(_threads, "scratch"):
        _threads.scratch = np.empty(SCRATCH_BYTES + VECTOR_BYTES, np.uint8)
    address = int(_threads.scratch.ctypes.data)
    return address + -address % VECTOR_BYTES
