"""Writes a carved model as a file of a usual architecture with experts, which other programs open too."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.carve.dense import check_dense, layout_of, values
from engine.carve.layout import Layout
from engine.carve.options import Carving
from engine.carve.split import Split, split_network
from engine.gguf import GGUFReader, GGUFWriter, TensorType
from engine.gguf.encode import encode
from engine.gguf.value_types import ValueType

Progress = Callable[[int, int], None]
_PLAIN = (TensorType.F32, TensorType.F16, TensorType.BF16)
_OWN_KEYS = ("general.architecture", "general.alignment", "general.name")
_SIGMOID = 2  # of expert_gating_func


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
        sizes, layout = check_dense(reader), layout_of(reader)
        carving.check(sizes.n_feed_forward, sizes.n_layers)
        writer = GGUFWriter(target)
        _add_keys(writer, reader, layout, carving, sizes.n_feed_forward)
        for name, tensor in reader.tensors.items():
            parts = name.split(".")
            layer = int(parts[1]) if parts[0] == "blk" else -1
            if layer < carving.n_dense_layers or not parts[2].startswith("ffn_") or parts[2] == "ffn_norm":
                writer.add_tensor(layout.renamed(name), tensor.type, tensor.shape, partial(reader.data, name))
        if layout.has_biases:
            _add_biases(writer, reader, sizes.n_layers)
        if "output.weight" not in reader.tensors:  # this layout has no tied embeddings
            tensor = reader.tensors["token_embd.weight"]
            writer.add_tensor("output.weight", tensor.type, tensor.shape, partial(reader.data, tensor.name))
        for layer in range(carving.n_dense_layers, sizes.n_layers):
            _add_layer(writer, reader, f"blk.{layer}.", inputs[layer].astype(np.float32), carving)
            if layout.has_sigmoid_router:
                _add_zeros(writer, f"blk.{layer}.exp_probs_b.bias", carving.n_routed)
            if progress:
                progress(layer + 1, sizes.n_layers)
        return writer.write()


def _add_keys(writer: GGUFWriter, reader: GGUFReader, layout: Layout, carving: Carving, n_feed_forward: int) -> None:
    source, target = layout.source, layout.target
    writer.add("general.architecture", target)
    writer.add("general.name", f"{reader.metadata.get('general.name') or reader.paths[0].stem} (carved)")
    for key, encoded in reader.encoded_keys().items():
        if key not in (*_OWN_KEYS, f"{source}.expert_count") and not key.startswith(("split.", "colibri.")):
            is_architectures = key.startswith(f"{source}.")
            writer.add_encoded(f"{target}{key.removeprefix(source)}" if is_architectures else key, encoded)
    numbers = {
        "leading_dense_block_count": carving.n_dense_layers,
        "expert_count": carving.n_routed,
        "expert_used_count": carving.top_k or carving.n_routed,
        "expert_shared_count": carving.n_shared,
        "expert_feed_forward_length": n_feed_forward // carving.n_experts,
    }
    if layout.has_sigmoid_router:
        numbers["expert_gating_func"] = _SIGMOID
        writer.add(f"{target}.expert_weights_norm", False)
    for name, number in numbers.items():
        writer.add_encoded(f"{target}.{name}", struct.pack("<II", ValueType.UINT32, number))
    writer.add(f"{target}.expert_weights_scale", layout.weights_scale(carving.n_routed), ValueType.FLOAT32)


def _add_biases(writer: GGUFWriter, reader: GGUFReader, n_layers: int) -> None:
    """Zeros where the source has no biases of queries, keys and values: other programs ask for them."""
    for layer in range(n_layers):
        for part in ("attn_q", "attn_k", "attn_v"):
            name = f"blk.{layer}.{part}"
            if f"{name}.bias" not in reader.tensors:
                _add_zeros(writer, f"{name}.bias", reader.tensors[f"{name}.weight"].shape[0])


def _add_zeros(writer: GGUFWriter, name: str, n: int) -> None:
    writer.add_tensor(name, TensorType.F32, (n,), np.zeros(n, np.float32))


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
