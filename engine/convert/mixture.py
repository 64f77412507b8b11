"""The quantised kinds of file, and which tensor gets which type in each: the mixtures that llama.cpp made usual."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from engine.convert.tensor_plan import TensorPlan
from engine.gguf.tensor_types import TensorType

_LAYER = re.compile(r"^blk\.(\d+)\.(.+)\.weight$")
_VALUES = ("attn_v", "attn_kv_b", "attn_v_b")
_DOWN = ("ffn_down", "ffn_down_exps", "ffn_down_shexp")
_SENSITIVE_EXPERTS = 8  # with so few experts, attention is small and all of them depend on it
_GROUPED_HEADS = 4  # so many heads that share their values make these worth more bits
# What takes the place of a type whose blocks do not divide a row.
_FALLBACKS = {
    TensorType.Q4_K: TensorType.Q5_0,
    TensorType.Q5_K: TensorType.Q5_1,
    TensorType.Q6_K: TensorType.Q8_0,
    TensorType.IQ4_XS: TensorType.IQ4_NL,
}


class Mixture(Enum):
    """A kind of file: (number in `general.file_type`, type of most matrices)."""

    Q4_0 = (2, TensorType.Q4_0)
    Q8_0 = (7, TensorType.Q8_0)
    Q4_K_S = (14, TensorType.Q4_K)
    Q4_K_M = (15, TensorType.Q4_K)
    Q5_K_M = (17, TensorType.Q5_K)
    Q6_K = (18, TensorType.Q6_K)
    IQ4_XS = (30, TensorType.IQ4_XS)
    MXFP4 = (38, TensorType.MXFP4)  # the experts; what is outside of them is Q8_0

    @property
    def number(self) -> int:
        return self.value[0]

    @property
    def type(self) -> TensorType:
        return self.value[1]


_MERGED = {Mixture.Q4_K_M: TensorType.Q5_K, Mixture.Q5_K_M: TensorType.Q6_K}
_FOUR_BITS = (Mixture.Q4_K_S, Mixture.Q4_K_M, Mixture.IQ4_XS)


@dataclass(frozen=True, slots=True)
class Model:
    """What a mixture depends on. heads_per_kv_head: how many heads share their keys and values.

    is_calibrated: whether errors are weighted by what matters.
    """

    n_layers: int
    n_experts: int
    heads_per_kv_head: int
    is_tied: bool
    is_calibrated: bool = False


def mixed(mixture: Mixture, tensors: Sequence[TensorPlan], matrices: Iterable[str], model: Model) -> list[TensorPlan]:
    """`tensors` with the types of `mixture` for those named in `matrices`."""
    named = frozenset(matrices)
    return [
        replace(tensor, type=type_of(mixture, tensor.name, tensor.n_columns, model)) if tensor.name in named else tensor
        for tensor in tensors
    ]


def type_of(mixture: Mixture, name: str, n_columns: int, model: Model) -> TensorType:
    """The type of one matrix; one with blocks that divide its rows, at worst F16."""
    type = _wanted(mixture, name, model)
    if n_columns % type.block_size:
        type = _FALLBACKS.get(type, type)
    return type if n_columns % type.block_size == 0 else TensorType.F16


def _wanted(mixture: Mixture, name: str, model: Model) -> TensorType:
    if mixture is Mixture.MXFP4:
        return mixture.type if name.endswith("_exps.weight") else TensorType.Q8_0
    if mixture is Mixture.Q8_0:
        return mixture.type
    if name == "output.weight" or (model.is_tied and name == "token_embd.weight"):
        return TensorType.Q6_K
    match = _LAYER.match(name)
    return _type_in_layer(mixture, int(match[1]), match[2], model) if match else mixture.type


def _type_in_layer(mixture: Mixture, layer: int, part: str, model: Model) -> TensorType:
    if part in _VALUES:
        return _values_type(mixture, layer, model)
    if part in _DOWN:
        return _down_type(mixture, layer, model)
    if part == "attn_qkv":
        return _MERGED.get(mixture, mixture.type)
    if model.n_experts == _SENSITIVE_EXPERTS and part == "attn_k":
        return TensorType.Q8_0
    if model.n_experts == _SENSITIVE_EXPERTS and part == "attn_output" and mixture in _FOUR_BITS:
        return TensorType.Q5_K
    return mixture.type


def _values_type(mixture: Mixture, layer: int, model: Model) -> TensorType:
    if model.n_experts == _SENSITIVE_EXPERTS:
        return TensorType.Q8_0
    if mixture in (Mixture.Q4_K_M, Mixture.Q5_K_M) and _is_delicate(layer, model.n_layers):
        return TensorType.Q6_K
    if (mixture is Mixture.Q4_K_S and layer < 4) or (
        mixture is Mixture.IQ4_XS and model.heads_per_kv_head >= _GROUPED_HEADS
    ):
        return TensorType.Q5_K
    return mixture.type


def _down_type(mixture: Mixture, layer: int, model: Model) -> TensorType:
    if mixture in (Mixture.Q4_K_M, Mixture.Q5_K_M) and _is_delicate(layer, model.n_layers):
        return TensorType.Q6_K
    if layer >= model.n_layers // 8:
        return mixture.type
    if mixture is Mixture.Q4_0 and model.is_calibrated:
        return TensorType.Q4_1
    if mixture is Mixture.Q4_K_S or (mixture is Mixture.IQ4_XS and not model.is_calibrated):
        return TensorType.Q5_K
    return mixture.type


def _is_delicate(layer: int, n_layers: int) -> bool:
    """Whether it is one of the first or last eighth of the layers, or every third between."""
    eighth = n_layers // 8
    return layer < eighth or layer >= 7 * n_layers // 8 or (layer - eighth) % 3 == 2
