"""GGUF files for tests and benchmarks: random tensors with sane scales, and files built byte by byte."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from engine.gguf import TensorType
from tests.support.random_blocks import RANDOM_BLOCKS

_POOL_BYTES = 1 << 20
_LOW, _HIGH = 32, 64  # the range of the 6-bit sub-block scales that K types get


def random_tensor(
    rng: np.random.Generator, type: TensorType, shape: Sequence[int], std: float = 0.02
) -> npt.NDArray[np.uint8]:
    """Random bytes (n_bytes,) uint8 of a tensor whose values have about the deviation `std` and a mean near zero.

    A large tensor repeats a pool of random blocks, each time from another place on: several GB a second.
    """
    n_bytes = type.n_bytes(tuple(shape))
    n_blocks = n_bytes // type.block_bytes
    n_pool = min(n_blocks, max(_POOL_BYTES // type.block_bytes, 1))
    pool = _BLOCKS[type](rng, n_pool, std).view(np.uint8).reshape(n_pool, type.block_bytes)
    if n_pool == n_blocks:
        return pool.reshape(-1)
    result = np.empty((n_blocks, type.block_bytes), np.uint8)
    done = 0
    while done < n_blocks:
        first = int(rng.integers(0, n_pool // 2))
        piece = pool[first : first + min(n_pool - first, n_blocks - done)]
        result[done : done + len(piece)] = piece
        done += len(piece)
    return result.reshape(-1)


def _random_bytes(rng: np.random.Generator, *shape: int) -> npt.NDArray[np.uint8]:
    return rng.integers(0, 256, shape, np.uint8)


def _scales(rng: np.random.Generator, n: int, deviation: float) -> npt.NDArray[np.float32]:
    """Positive scales (n,) with the root mean square `deviation`."""
    spread = rng.uniform(0.5, 1.5, n).astype(np.float32)
    return spread * np.float32(deviation / np.sqrt(13 / 12))


def _signs(rng: np.random.Generator, n: int) -> npt.NDArray[np.float32]:
    return rng.integers(0, 2, n).astype(np.float32) * 2 - 1


def _deviation(n_levels: int) -> float:
    """The root mean square of `n_levels` integers that are equally likely, from their middle."""
    return float(np.sqrt((n_levels**2 - 1) / 12))


def _f32(rng: np.random.Generator, n: int, std: float) -> npt.NDArray[np.generic]:
    return rng.standard_normal(n, np.float32) * np.float32(std)


def _f16(rng: np.random.Generator, n: int, std: float) -> npt.NDArray[np.generic]:
    return (rng.standard_normal(n, np.float32) * np.float32(std)).astype(np.float16)


def _bf16(rng: np.random.Generator, n: int, std: float) -> npt.NDArray[np.generic]:
    bits = (rng.standard_normal(n, np.float32) * np.float32(std)).view(np.uint32)
    return (bits >> np.uint32(16)).astype(np.uint16)


def _q8_0(rng: np.random.Generator, n: int, std: float) -> npt.NDArray[np.generic]:
    blocks = np.empty(n, [("d", "<f2"), ("q", "u1", 32)])
    blocks["d"] = _scales(rng, n, std / _deviation(256)) * _signs(rng, n)
    blocks["q"] = _random_bytes(rng, n, 32)
    return blocks


def _q4_0(rng: np.random.Generator, n: int, std: float) -> npt.NDArray[np.generic]:
    blocks = np.empty(n, [("d", "<f2"), ("q", "u1", 16)])
    blocks["d"] = _scales(rng, n, std / _deviation(16)) * _signs(rng, n)
    blocks["q"] = _random_bytes(rng, n, 16)
    return blocks


def _q4_1(rng: np.random.Generator, n: int, std: float) -> npt.NDArray[np.generic]:
    blocks = np.empty(n, [("d", "<f2"), ("m", "<f2"), ("q", "u1", 16)])
    d = _scales(rng, n, std / _deviation(16))
    blocks["d"], blocks["m"] = d, d * np.float32(-7.5)
    blocks["q"] = _random_bytes(rng, n, 16)
    return blocks


def _q5_0(rng: np.random.Generator, n: int, std: float) -> npt.NDArray[np.generic]:
    blocks = np.empty(n, [("d", "<f2"), ("q", "u1", 20)])
    blocks["d"] = _scales(rng, n, std / _deviation(32)) * _signs(rng, n)
    blocks["q"] = _random_bytes(rng, n, 20)
    return blocks


def _q5_1(rng: np.random.Generator, n: int, std: float) -> npt.NDArray[np.generic]:
    blocks = np.empty(n, [("d", "<f2"), ("m", "<f2"), ("q", "u1", 20)])
    d = _scales(rng, n, std / _deviation(32))
    blocks["d"], blocks["m"] = d, d * np.float32(-15.5)
    blocks["q"] = _random_bytes(rng, n, 20)
    return blocks


def _q4_k(rng: np.random.Generator, n: int, std: float) -> npt.NDArray[np.generic]:
    return _k_with_min(rng, n, std, n_levels=16, q_bytes=128)


def _q5_k(rng: np.random.Generator, n: int, std: float) -> npt.NDArray[np.generic]:
    return _k_with_min(rng, n, std, n_levels=32, q_bytes=160)


def _k_with_min(rng: np.random.Generator, n: int, std: float, n_levels: int, q_bytes: int) -> npt.NDArray[np.generic]:
    """Q4_K and Q5_K blocks: each sub-block's min equals its scale, and dmin puts the middle of the levels at zero."""
    blocks = np.empty(n, [("d", "<f2"), ("dmin", "<f2"), ("scales", "u1", 12), ("q", "u1", q_bytes)])
    scale = rng.integers(_LOW, _HIGH, (n, 8), np.uint8)
    first, second = scale[:, :4], scale[:, 4:]
    blocks["scales"][:, 0:4] = blocks["scales"][:, 4:8] = first | second >> 4 << 6
    blocks["scales"][:, 8:12] = second & 15 | second << 4
    d = _scales(rng, n, std / (_deviation(n_levels) * _root_mean_square(_LOW, _HIGH)))
    blocks["d"], blocks["dmin"] = d, d * np.float32((n_levels - 1) / 2)
    blocks["q"] = _random_bytes(rng, n, q_bytes)
    return blocks


def _q6_k(rng: np.random.Generator, n: int, std: float) -> npt.NDArray[np.generic]:
    blocks = np.empty(n, [("q", "u1", 192), ("scales", "i1", 16), ("d", "<f2")])
    blocks["q"] = _random_bytes(rng, n, 192)
    magnitude = rng.integers(_LOW, _HIGH, (n, 16), np.int8)
    blocks["scales"] = magnitude * (rng.integers(0, 2, (n, 16), np.int8) * np.int8(2) - np.int8(1))
    blocks["d"] = _scales(rng, n, std / (_deviation(64) * _root_mean_square(_LOW, _HIGH)))
    return blocks


def _root_mean_square(low: int, high: int) -> float:
    return float(np.sqrt(np.mean(np.arange(low, high) ** 2)))


_BLOCKS: dict[TensorType, Callable[[np.random.Generator, int, float], npt.NDArray[np.generic]]] = {
    TensorType.F32: _f32,
    TensorType.F16: _f16,
    TensorType.BF16: _bf16,
    TensorType.Q8_0: _q8_0,
    TensorType.Q4_0: _q4_0,
    TensorType.Q4_1: _q4_1,
    TensorType.Q5_0: _q5_0,
    TensorType.Q5_1: _q5_1,
    TensorType.Q4_K: _q4_k,
    TensorType.Q5_K: _q5_k,
    TensorType.Q6_K: _q6_k,
    **RANDOM_BLOCKS,
}
RANDOM_TYPES: tuple[TensorType, ...] = tuple(_BLOCKS)


def gguf_string(text: str | bytes) -> bytes:
    """A string as GGUF stores it."""
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(raw)) + raw


def gguf_key(key: str | bytes, type_number: int, payload: bytes) -> bytes:
    """A metadata key with its value; `payload` is the value's bytes."""
    return gguf_string(key) + struct.pack("<I", type_number) + payload


def gguf_array(type_number: int, count: int, payload: bytes) -> bytes:
    """The payload of an array value (type 9); `count` may lie."""
    return struct.pack("<IQ", type_number, count) + payload


def gguf_tensor(
    name: str | bytes, dimensions: Sequence[int], type_number: int, offset: int, n_dimensions: int | None = None
) -> bytes:
    """An entry of the table of tensors; `dimensions` fastest first, as in the file."""
    n = len(dimensions) if n_dimensions is None else n_dimensions
    head = gguf_string(name) + struct.pack("<I", n)
    return head + struct.pack(f"<{len(dimensions)}Q", *dimensions) + struct.pack("<IQ", type_number, offset)


def gguf_file(
    keys: Sequence[bytes] = (),
    tensors: Sequence[bytes] = (),
    data: bytes = b"",
    *,
    version: int = 3,
    n_keys: int | None = None,
    n_tensors: int | None = None,
    alignment: int = 32,
) -> bytes:
    """A whole file; `n_keys` and `n_tensors` may lie. `data` begins at the next multiple of `alignment`."""
    counts = (len(tensors) if n_tensors is None else n_tensors, len(keys) if n_keys is None else n_keys)
    head = b"GGUF" + struct.pack("<IQQ", version, *counts) + b"".join(keys) + b"".join(tensors)
    return head + bytes(-len(head) % alignment) + data
