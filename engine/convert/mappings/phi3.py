"""Phi-3 and Phi-4, dense: Q, K and V in one matrix, gate and up in another."""

from __future__ import annotations

from engine.convert.common_keys import heads_of
from engine.convert.common_tensors import norms
from engine.convert.longrope import longrope_factors, phi_keys
from engine.convert.model_map import ModelMap

ARCHITECTURE = "phi3"
CLASSES = ("Phi3ForCausalLM",)


def describe(m: ModelMap) -> None:
    heads = heads_of(m)
    n = m.config.size("intermediate_size")

    phi_keys(m, heads.head_dim)

    longrope_factors(m)
    m.embeddings()
    for layer in m.layers():
        norms(layer)
        layer.table(
            ("attn_qkv.weight", "self_attn.qkv_proj.weight", (heads.n_query + 2 * heads.n_key, m.hidden)),
            ("attn_output.weight", "self_attn.o_proj.weight", (m.hidden, heads.n_query)),
            ("ffn_up.weight", "mlp.gate_up_proj.weight", (2 * n, m.hidden)),
            ("ffn_down.weight", "mlp.down_proj.weight", (m.hidden, n)),
        )
