"""Qwen3, dense: norms on each head's queries and keys."""

from __future__ import annotations

from engine.convert.common_keys import basic_keys, heads_of, window_keys
from engine.convert.common_tensors import attention, feed_forward, norms, query_key_norms
from engine.convert.model_map import ModelMap

ARCHITECTURE = "qwen3"
CLASSES = ("Qwen3ForCausalLM",)


def describe(m: ModelMap) -> None:
    heads = heads_of(m)
    n = m.config.size("intermediate_size")

    basic_keys(m)
    first = m.config.size("max_window_layers", 28, least=0)
    window_keys(m, [layer >= first for layer in range(m.n_layers)], in_use=False)

    bias = m.config.flag("attention_bias", False)
    m.embeddings()
    for layer in m.layers():
        norms(layer)
        attention(layer, heads, bias=bias, output_bias=bias)
        query_key_norms(layer, heads.head_dim, heads.head_dim)
        feed_forward(layer, n)
