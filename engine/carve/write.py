"""Writes a carved model as a DeepSeek-MoE file (version 1), which other programs open too."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.carve.dense import SOURCE, check_dense, values
from engine.carve.options import Carving
from engine.carve.split import Split, split_network
from engine.gguf import GGUFReader, GGUFWriter, TensorType
from engine.gguf.encode import encode
from engine.gguf.value_types import ValueType

Progress = Callable[[int, int], None]
_TARGET = "deepseek"
_PLAIN = (TensorType.F32, TensorType.F16, TensorType.BF16)
_OWN_KEYS = ("general.architecture", "general.alignment", "general.name", f"{SOURCE}.expert_count")


def write_carved(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    inputs: Sequence[npt.NDArray[np.float16]],
    carving: Carving,
    progress: Progress | None = None,
) -> Path:
    """Carve the dense model `source` by the inputs of its networks (`observe`), and write it to `target`.

    Rows of gate and up matrices keep their bytes; down matrices, whose columns move, are written as F16 (F32 and BF16
    stay). progress(done layers, all) may raise to end the work. Raises UnsupportedModelError, InvalidRequestError.
    """
    with GGUFReader.open(source) as reader:
        sizes = check_dense(reader)
        carving.check(sizes.n_feed_forward, sizes.n_layers)
        writer = GGUFWriter(target)
        _add_keys(writer, reader, carving, sizes.n_feed_forward)
        for name, tensor in reader.tensors.items():
            parts = name.split(".")
            layer = int(parts[1]) if parts[0] == "blk" else -1
            if layer < carving.n_dense_layers or not parts[2].startswith("ffn_") or parts[2] == "ffn_norm":
                writer.add_tensor(name, tensor.type, tensor.shape, partial(reader.data, name))
        if "output.weight" not in reader.tensors:  # this layout has no tied embeddings
            tensor = reader.tensors["token_embd.weight"]
            writer.add_tensor("output.weight", tensor.type, tensor.shape, partial(reader.data, tensor.name))
        for layer in range(carving.n_dense_layers, sizes.n_layers):
            _add_layer(writer, reader, f"blk.{layer}.", inputs[layer].astype(np.float32), carving)
            if progress:
                progress(layer + 1, sizes.n_layers)
        return writer.write()


def _add_keys(writer: GGUFWriter, reader: GGUFReader, carving: Carving, n_feed_forward: int) -> None:
    writer.add("general.architecture", _TARGET)
    writer.add("general.name", f"{reader.metadata.get('general.name') or reader.paths[0].stem} (carved)")
    for key, encoded in reader.encoded_keys().items():
        if key not in _OWN_KEYS and not key.startswith(("split.", "colibri.")):
            is_architectures = key.startswith(f"{SOURCE}.")
            writer.add_encoded(f"{_TARGET}{key.removeprefix(SOURCE)}" if is_architectures else key, encoded)
    numbers = {
        "leading_dense_block_count": carving.n_dense_layers,
        "expert_count": carving.n_routed,
        "expert_used_count": carving.top_k or carving.n_routed,
        "expert_shared_count": carving.n_shared,
        "expert_feed_forward_length": n_feed_forward // carving.n_experts,
    }
    for name, number in numbers.items():
        writer.add_encoded(f"{_TARGET}.{name}", struct.pack("<II", ValueType.UINT32, number))
    writer.add(f"{_TARGET}.expert_weights_scale", float(carving.n_routed), ValueType.FLOAT32)


def _add_layer(
    writer: GGUFWriter, reader: GGUFReader, prefix: str, inputs: npt.NDArray[np.float32], carving: Carving
) -> None:
    gate, up, down = (f"{prefix}ffn_{part}.weight" for part in ("gate", "up", "down"))
    down_values = values(reader, down)
    split = split_network(inputs, values(reader, gate), values(reader, up), down_values, carving)
    writer.add_tensor(f"{prefix}ffn_gate_inp.weight", TensorType.F32, split.router.shape, split.router)
    for name in (gate, up):
        _add_rows(writer, reader, name, split)
    stored = reader.tensors[down].type if reader.tensors[down].type in _PLAIN else TensorType.F16
    columns = np.stack([down_values[:, expert] for expert in split.experts])
    stem = down.removesuffix(".weight")
    writer.add_tensor(f"{stem}_exps.weight", stored, columns.shape, _encoded(columns, stored))
    shared = np.ascontiguousarray(down_values[:, split.shared])
    writer.add_tensor(f"{stem}_shexp.weight", stored, shared.shape, _encoded(shared, stored))


def _add_rows(writer: GGUFWriter, reader: GGUFReader, name: str, split: Split) -> None:
    """Each expert's rows, with the bytes that they have."""
    tensor, stem = reader.tensors[name], name.removesuffix(".weight")
    rows = reader.data(name).reshape(tensor.shape[0], -1)
    order = np.concatenate(split.experts)
    shape = (len(split.experts), len(split.experts[0]), tensor.shape[1])
    writer.add_tensor(f"{stem}_exps.weight", tensor.type, shape, rows[order])
    writer.add_tensor(f"{stem}_shexp.weight", tensor.type, (len(split.shared), tensor.shape[1]), rows[split.shared])


def _encoded(matrix: npt.NDArray[np.float32], type: TensorType) -> npt.NDArray[Any]:
    return encode(matrix.reshape(-1, matrix.shape[-1]), type)
