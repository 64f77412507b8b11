"""The rules by which each kind of operation's extents are worked out anew, from its own numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from engine.extents import attention, experts, observe, products, recurrent, rows
from engine.extents.base import Facts, Limits, Reach
from engine.plan import Operation

Rule = Callable[[Operation, dict[str, int], Facts], Iterator[Reach]]

FAMILIES: dict[str, Rule] = {
    "embed": rows.embed,
    "rms_norm": rows.rms_norm,
    "layer_norm": rows.layer_norm,
    "scale_rows": rows.scale_rows,
    "clamp_rows": rows.scale_rows,
    "quantise": rows.quantise,
    "add": rows.add,
    "gather_rows": rows.gather_rows,
    "matmul": products.matmul,
    "close_heads": attention.close_heads,
    "rope": attention.rope,
    "rope_store": attention.rope_store,
    "attention": attention.attention,
    "latent_store": attention.latent_store,
    "latent_attention": attention.latent_attention,
    "swiglu": experts.swiglu,
    "open_gate": rows.open_gate,
    "route": experts.route,
    "group": experts.group,
    "foresee": experts.foresee,
    "ask": experts.ask,
    "combine": experts.combine,
    "square_sums": observe.square_sums,
    "keep_rows": observe.keep_rows,
    "multiply": recurrent.multiply,
    "causal_conv": recurrent.causal_conv,
    "delta_gates": recurrent.delta_gates,
    "delta_rule": recurrent.delta_rule,
}

__all__ = ["FAMILIES", "Facts", "Limits", "Reach", "Rule"]
