"""Published-style checkpoints with made-up weights, and what an independent converter made of them.

    for case in checkpoint_cases(): folder = case.write(tmp_path)

tests/data/checkpoints.json.gz holds their configurations, tokenizers, tensor names and shapes; the weights come from
the tensors' names. `tests/reference/make_conversions.py` made it.
"""

from __future__ import annotations

import base64
import functools
import gzip
import json
import math
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors

DATA = Path(__file__).parents[1] / "data" / "checkpoints.json.gz"
_BINARY = ".model"

TensorSpec = tuple[str, str, list[int]]  # name, dtype as safetensors has it, shape


@dataclass(frozen=True, slots=True)
class CheckpointCase:
    """`files` by name (texts; sentencepiece models in base 64), `type` of the conversion, `manifest` of its result."""

    name: str
    files: Mapping[str, str]
    tensors: tuple[TensorSpec, ...]
    type: str
    manifest: Mapping[str, Any]

    @property
    def config(self) -> dict[str, Any]:
        return dict(json.loads(self.files["config.json"]))

    def write(self, parent: Path, *, weights: bool = True) -> Path:
        """The checkpoint as a folder of the case's name in `parent`; without `weights` all of them are zero."""
        folder = parent / self.name
        folder.mkdir(parents=True)
        write_files(folder, self.files)
        (write_weights if weights else write_zeros)(folder / "model.safetensors", self.tensors)
        return folder


@functools.cache
def checkpoint_cases() -> tuple[CheckpointCase, ...]:
    """Every recorded case."""
    data = json.loads(gzip.decompress(DATA.read_bytes()))
    return tuple(
        CheckpointCase(
            name,
            {file: data["files"][digest] for file, digest in case["files"].items()},
            tuple((tensor, dtype, shape) for tensor, dtype, shape in case["tensors"]),
            case["type"],
            case["manifest"],
        )
        for name, case in data["cases"].items()
    )


def checkpoint_case(name: str) -> CheckpointCase:
    """The case of that name."""
    return next(case for case in checkpoint_cases() if case.name == name)


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Configuration and tokenizer files."""
    for name, content in files.items():
        if name.endswith(_BINARY):
            (folder / name).write_bytes(base64.b64decode(content))
        else:
            (folder / name).write_text(content, encoding="utf-8")


def write_weights(path: Path, tensors: tuple[TensorSpec, ...]) -> None:
    """A safetensors file whose values follow from the tensors' names; written by the safetensors package."""
    values = {name: np.frombuffer(weight_bytes(name, dtype, tuple(shape)), np.uint8) for name, dtype, shape in tensors}
    entries = {
        name: safetensors.TensorSpec(
            dtype=_PACKAGE_NAMES[dtype],
            shape=shape,
            data_ptr=values[name].ctypes.data,
            data_len=values[name].nbytes,
        )
        for name, dtype, shape in tensors
    }
    safetensors.serialize_file(entries, str(path))


def write_zeros(path: Path, tensors: tuple[TensorSpec, ...]) -> None:
    """A safetensors file of zeros that takes no room on the disk."""
    header, end = {}, 0
    for name, dtype, shape in tensors:
        begin, end = end, end + math.prod(shape) * _ITEM_BYTES[dtype]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    raw = json.dumps(header).encode()
    path.write_bytes(len(raw).to_bytes(8, "little") + raw)
    os.truncate(path, 8 + len(raw) + end)


def weight_bytes(name: str, dtype: str, shape: tuple[int, ...]) -> bytes:
    """The values of one tensor: both signs, some three decades of magnitude, never zero, infinite or no number.

    Drawn as raw bits, which no version of NumPy changes.
    """
    n = math.prod(shape)
    generator = np.random.PCG64(zlib.crc32(name.encode()))
    raw = np.atleast_1d(generator.random_raw(max(1, n))).astype("<u8")[:n]
    sign, fraction, exponent = raw >> np.uint64(63), raw >> np.uint64(20), raw % np.uint64(7)
    if dtype == "U8":
        # As the scales of MXFP4 these are powers of two below one; as its blocks anything will do.
        return (raw % np.uint64(8) + np.uint64(120) if name.endswith("_scales") else raw).astype("u1").tobytes()
    if dtype == "F8_E4M3":
        return (
            (sign << np.uint64(7) | (exponent + np.uint64(3)) << np.uint64(3) | fraction & np.uint64(7))
            .astype("u1")
            .tobytes()
        )
    n_fraction, bias, bits = _LAYOUTS[dtype]
    low = np.uint64(bias - 8)
    word = sign << np.uint64(bits - 1) | (exponent + low) << np.uint64(n_fraction)
    return (word | fraction & np.uint64((1 << n_fraction) - 1)).astype(f"<u{bits // 8}").tobytes()


_LAYOUTS = {"BF16": (7, 127, 16), "F16": (10, 15, 16), "F32": (23, 127, 32)}
_ITEM_BYTES = {"BF16": 2, "F16": 2, "F32": 4, "U8": 1, "F8_E4M3": 1}
_PACKAGE_NAMES = {"BF16": "bfloat16", "F16": "float16", "F32": "float32", "U8": "uint8", "F8_E4M3": "float8_e4m3fn"}
