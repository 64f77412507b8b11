"""Describes a GGUF model for a reader: its facts, keys, tensor types and tensors by layer."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite, prod
from typing import Any

import numpy as np

from engine.convert.proof.record import proof_of
from engine.gguf.header import TensorInfo
from engine.gguf.reader import GGUFReader
from engine.gguf.strings import StringArray
from engine.gguf.tensor_types import TensorType

_LAYER_NAME = re.compile(r"blk\.(\d{1,6})\.")
_ROUTER_NAME = "ffn_gate_inp.weight"
_N_SHOWN_ITEMS = 8
_N_SHOWN_CHARACTERS = 400


@dataclass(frozen=True, slots=True)
class KeyDescription:
    """A metadata key. `value` can be written as JSON; of a long list or text it is the beginning.

    `n_items` is the length of a list (None for a scalar), `n_characters` that of a text (None for others).
    """

    name: str
    value: Any
    n_items: int | None
    n_characters: int | None
    is_abbreviated: bool


@dataclass(frozen=True, slots=True)
class TypeTotal:
    """How much of a model is of one tensor type."""

    type: TensorType
    n_tensors: int
    n_elements: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class LayerDescription:
    """The tensors of one layer; `index` None: those outside the layers. `router` chooses the layer's experts."""

    index: int | None
    tensors: tuple[TensorInfo, ...]
    n_bytes: int
    router: TensorInfo | None


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """What a GGUF file says of itself; None where it says nothing."""

    paths: tuple[str, ...]
    version: int
    file_bytes: int
    tensor_bytes: int
    n_parameters: int
    architecture: str | None
    name: str | None
    licence: str | None
    context_length: int | None
    n_layers: int | None
    n_experts: int | None
    top_k: int | None
    has_chat_template: bool
    comparison: str | None  # with the model that it was converted from, if its file holds one
    keys: tuple[KeyDescription, ...]
    types: tuple[TypeTotal, ...]  # the largest first
    layers: tuple[LayerDescription, ...]  # those outside the layers first


def describe(reader: GGUFReader) -> ModelDescription:
    """Describe an open model. Reads its header only; never fails, whatever the keys hold."""
    metadata, tensors = reader.metadata, list(reader.tensors.values())
    architecture = _text(metadata, "general.architecture")
    prefix = architecture or ""
    return ModelDescription(
        paths=tuple(str(path) for path in reader.paths),
        version=reader.version,
        file_bytes=reader.file_bytes,
        tensor_bytes=sum(tensor.n_bytes for tensor in tensors),
        n_parameters=sum(prod(tensor.shape) for tensor in tensors),
        architecture=architecture,
        name=_text(metadata, "general.name"),
        licence=_text(metadata, "general.license.name") or _text(metadata, "general.license"),
        context_length=_integer(metadata, f"{prefix}.context_length"),
        n_layers=_integer(metadata, f"{prefix}.block_count"),
        n_experts=_integer(metadata, f"{prefix}.expert_count"),
        top_k=_integer(metadata, f"{prefix}.expert_used_count"),
        comparison=_comparison(metadata),
        has_chat_template=bool(_text(metadata, "tokenizer.chat_template")),
        keys=tuple(_describe_key(name, value) for name, value in metadata.items()),
        types=_total_types(tensors),
        layers=_group_by_layer(tensors),
    )


def _text(metadata: Mapping[str, Any], key: str) -> str | None:
    value = metadata.get(key)
    return value if isinstance(value, str) and value else None


def _comparison(metadata: Mapping[str, Any]) -> str | None:
    proof = proof_of(metadata)
    return proof.sentence if proof else None


def _integer(metadata: Mapping[str, Any], key: str) -> int | None:
    value = metadata.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _describe_key(name: str, value: Any) -> KeyDescription:
    if isinstance(value, str):
        shown = value[:_N_SHOWN_CHARACTERS]
        return KeyDescription(name, shown, None, len(value), len(shown) < len(value))
    if isinstance(value, (np.ndarray, StringArray, list)):
        shown_items = _plain(value)
        return KeyDescription(name, shown_items, len(value), None, len(shown_items) < len(value))
    return KeyDescription(name, _plain(value), None, None, False)


def _plain(value: Any) -> Any:
    """`value` as JSON can hold it; of lists and texts in lists the beginning."""
    if isinstance(value, np.ndarray):
        value = value[:_N_SHOWN_ITEMS].tolist()
    if isinstance(value, (list, StringArray)):
        return [_plain(item) for item in value[:_N_SHOWN_ITEMS]]
    if isinstance(value, str):
        return value[:_N_SHOWN_CHARACTERS]
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return value


def _total_types(tensors: Iterable[TensorInfo]) -> tuple[TypeTotal, ...]:
    by_type: dict[TensorType, list[TensorInfo]] = defaultdict(list)
    for tensor in tensors:
        by_type[tensor.type].append(tensor)
    totals = [
        TypeTotal(
            type_,
            len(members),
            sum(prod(tensor.shape) for tensor in members),
            sum(tensor.n_bytes for tensor in members),
        )
        for type_, members in by_type.items()
    ]
    return tuple(sorted(totals, key=lambda total: -total.n_bytes))


def _group_by_layer(tensors: Iterable[TensorInfo]) -> tuple[LayerDescription, ...]:
    by_layer: dict[int, list[TensorInfo]] = defaultdict(list)
    for tensor in tensors:
        match = _LAYER_NAME.match(tensor.name)
        by_layer[int(match[1]) if match else -1].append(tensor)
    return tuple(_describe_layer(index, by_layer[index]) for index in sorted(by_layer))


def _describe_layer(index: int, tensors: list[TensorInfo]) -> LayerDescription:
    router = next((tensor for tensor in tensors if index >= 0 and tensor.name.endswith(f".{_ROUTER_NAME}")), None)
    return LayerDescription(
        index=index if index >= 0 else None,
        tensors=tuple(tensors),
        n_bytes=sum(tensor.n_bytes for tensor in tensors),
        router=router,
    )
