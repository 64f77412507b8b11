"""Groups of lines that the tables of many architectures share: attention, feed-forward, experts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.convert.matrices import Matrix, Picked, Values
from engine.convert.permutations import rotary_pairs, row_range
from engine.convert.sizes import describe_shape
from engine.errors import ModelFormatError

if TYPE_CHECKING:
    from engine.convert.common_keys import Heads
    from engine.convert.model_map import Layer
    from engine.convert.sizes import Size


def norms(layer: Layer, *, after_attention: str = "ffn_norm.weight") -> None:
    """The norms before attention and before the feed-forward part; GGUF has two names for the second."""
    hidden = layer.model.hidden
    layer.table(
        ("attn_norm.weight", "input_layernorm.weight", (hidden,)),
        (after_attention, "post_attention_layernorm.weight", (hidden,)),
    )


def attention(
    layer: Layer,
    heads: Heads,
    *,
    bias: bool = False,
    output_bias: bool = False,
    pairs: bool = False,
    out: str = "o_proj",
) -> None:
    """Q, K, V and output. pairs: the rotated values lie side by side in GGUF, so the rows of Q and K are moved."""
    hidden = layer.model.hidden
    q_rows = rotary_pairs(heads.n_heads, heads.head_dim) if pairs else None
    k_rows = rotary_pairs(heads.n_kv_heads, heads.head_dim) if pairs else None
    for target, source, n, rows in (
        ("attn_q", "self_attn.q_proj", heads.n_query, q_rows),
        ("attn_k", "self_attn.k_proj", heads.n_key, k_rows),
        ("attn_v", "self_attn.v_proj", heads.n_key, None),
    ):
        layer.tensor(f"{target}.weight", f"{source}.weight", (n, hidden), rows=rows)
        if bias:
            layer.tensor(f"{target}.bias", f"{source}.bias", (n,), rows=rows)
    layer.tensor("attn_output.weight", f"self_attn.{out}.weight", (hidden, heads.n_query))
    if output_bias:
        layer.tensor("attn_output.bias", f"self_attn.{out}.bias", (hidden,))


def query_key_norms(
    layer: Layer,
    n_query: Size,
    n_key: Size,
    *,
    source: str = "self_attn.{}_norm.weight",
    change: Callable[[Values], Values] | None = None,
) -> None:
    """Norms on queries and keys, of one head or of all at once."""
    q, k = (
        ("query", "key") if source.startswith("self_attn.{}_layernorm") and layer.has(source.format("query")) else "qk"
    )
    layer.tensor("attn_q_norm.weight", source.format(q), (n_query,), change=change)
    layer.tensor("attn_k_norm.weight", source.format(k), (n_key,), change=change)


def feed_forward(
    layer: Layer, n: Size, *, source: str = "mlp", suffix: str = "", names: tuple[str, str, str] | None = None
) -> None:
    """Gate, up and down of a gated feed-forward part. suffix: `_shexp` for a shared expert."""
    hidden = layer.model.hidden
    gate, up, down = names or ("gate_proj", "up_proj", "down_proj")
    layer.table(
        (f"ffn_gate{suffix}.weight", f"{source}.{gate}.weight", (n, hidden)),
        (f"ffn_up{suffix}.weight", f"{source}.{up}.weight", (n, hidden)),
        (f"ffn_down{suffix}.weight", f"{source}.{down}.weight", (hidden, n)),
    )


def experts(
    layer: Layer,
    n_experts: Size,
    n: Size,
    *,
    source: str = "mlp.experts",
    names: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj"),
) -> None:
    """Gate, up and down of all experts: published one by one, or fused (`gate_up_proj` with the gate's rows first)."""
    hidden = layer.model.hidden
    for fused, down in (("gate_up_proj", "down_proj"), ("gate_up_proj.weight", "down_proj.weight")):
        if layer.has(f"{source}.{fused}") or layer.has(f"{source}.{down}"):
            fused_experts(layer, n_experts, n, f"{source}.{fused}", f"{source}.{down}")
            return
    for target, name, shape in (
        ("ffn_gate_exps.weight", names[0], (n, hidden)),
        ("ffn_up_exps.weight", names[1], (n, hidden)),
        ("ffn_down_exps.weight", names[2], (hidden, n)),
    ):
        layer.stacked(target, [f"{source}.{expert}.{name}.weight" for expert in range(n_experts)], shape)


def fused_experts(layer: Layer, n_experts: Size, n: Size, gate_up: str, down: str) -> None:
    """Experts in two tensors: (n_experts, 2 n, hidden) with the gate's rows first, and (n_experts, hidden, n)."""
    hidden = layer.model.hidden
    both = layer.model.take(layer.source + gate_up, (n_experts, 2 * n, hidden))
    for target, first in (("ffn_gate_exps.weight", 0), ("ffn_up_exps.weight", int(n))):
        part: Matrix = Picked(both, row_range(n_experts, 2 * n, first, first + n))
        layer.model.add(layer.target + target, (n_experts, n, hidden), part, (layer.source + gate_up,))
    layer.tensor("ffn_down_exps.weight", down, (n_experts, hidden, n))


def router(layer: Layer, n_experts: Size, source: str = "mlp.gate.weight") -> None:
    """The matrix that scores the experts; raises ModelFormatError that names what it might be if it is missing."""
    m = layer.model
    shape = (n_experts, m.hidden)
    name, pattern = layer.source + source, m.options.router_pattern
    if pattern is not None:
        name = pattern.replace("{layer}", str(layer.index))
    if not m.has(name):
        similar = [other for other, tensor in m.checkpoint.tensors.items() if tensor.shape == tuple(shape)]
        here = [other for other in similar if other.startswith(layer.source)]
        raise ModelFormatError(
            f"{m.checkpoint.folder}: expected the router of layer {layer.index}, the tensor {name} of shape "
            f"{describe_shape(shape)}, found none of that name. Without it nothing says which experts a token goes to. "
            f"Tensors of this shape in the layer: {', '.join(here[:4]) or 'none'}. If one is the router, give its name "
            "with {layer} for the layer (--router-pattern)."
        )
    m.tensor(f"{layer.target}ffn_gate_inp.weight", name, shape)
