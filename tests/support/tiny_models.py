"""Tiny random GGUF models of the architectures: made in a moment, always the same.

    path = tiny_model("glm4moe")
    path = tiny_model("glm4moe", Sizes(heads=6, n_shared=2), TensorType.Q4_K)

They say nothing about what published models compute (the fixtures do), but much about what must hold whatever the
weights are: bits that do not depend on pieces and threads, plans that can be proved safe, sizes that nobody published.
"""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from engine.gguf import GGUFReader, GGUFWriter, TensorType
from tests.support.gguf_files import random_tensor
from tests.support.tiny_architectures import TINY_MODELS
from tests.support.tiny_parts import Sizes

__all__ = ["TINY", "TINY_MODELS", "Sizes", "tiny_model", "write_tiny_model"]

TINY = Sizes()
_FILE_ARCHITECTURES = {"mixtral": "llama"}  # of those whose files name another
_TOKENIZER_OF = Path(__file__).parents[1] / "data" / "fixtures" / "llama-Q4_K_M.gguf"


@functools.cache
def tiny_model(name: str) -> Path:
    """The path of the model `name` of TINY_MODELS in Q8_0, in a folder that goes when Python ends."""
    return write_tiny_model(_folder() / f"{name}.gguf", name)


def write_tiny_model(
    path: Path, name: str, sizes: Sizes = TINY, type: TensorType = TensorType.Q8_0, seed: int = 0
) -> Path:
    """Write the model `name` of TINY_MODELS; matrices whose rows are no whole blocks of `type` are Q8_0 or F32."""
    keys, shapes = TINY_MODELS[name](sizes)
    architecture = _FILE_ARCHITECTURES.get(name, name)
    writer = GGUFWriter(path)
    writer.add("general.architecture", architecture)
    for key, value in keys.items():
        writer.add(f"{architecture}.{key}", value)
    for key, value in _tokenizer().items():
        writer.add(key, value)
    for tensor, shape in shapes.items():
        rng = np.random.default_rng(zlib.crc32(tensor.encode()) + seed)
        writer.add_tensor(tensor, *_tensor(rng, tensor, shape, type))
    writer.write()
    return path


@functools.cache
def _tokenizer() -> dict[str, Any]:
    with GGUFReader.open(_TOKENIZER_OF) as reader:
        return {
            key: list(value) if isinstance(value, list | tuple) else value
            for key, value in reader.metadata.items()
            if key.startswith("tokenizer.")
        }


@functools.cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="colibri-tiny-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _tensor(
    rng: np.random.Generator, name: str, shape: tuple[int, ...], type: TensorType
) -> tuple[TensorType, tuple[int, ...], Any]:
    kind = name.split(".")[-2]
    if len(shape) > 1 and kind not in ("ffn_gate_inp", "ssm_conv1d", "conv") and not name.endswith(".bias"):
        fitting = (kind for kind in (type, TensorType.Q8_0, TensorType.F32) if shape[-1] % kind.block_size == 0)
        chosen = next(fitting)
        return chosen, shape, random_tensor(rng, chosen, shape, 0.1)
    if name.endswith("ssm_a"):
        return TensorType.F32, shape, -rng.uniform(0.01, 2, shape).astype(np.float32).view(np.uint8)
    values = rng.standard_normal(shape, np.float32) * np.float32(0.5 if len(shape) > 1 else 0.1)
    if ("norm" in kind and not name.endswith(".bias")) or name.startswith("rope_"):
        values = values + 1
    return TensorType.F32, shape, values.astype(np.float32).view(np.uint8).reshape(-1)
