"""Qwen2 and Qwen2.5: biases on Q, K and V."""

from __future__ import annotations

from engine.convert.common_keys import basic_keys, heads_of, window_keys
from engine.convert.common_tensors import attention, feed_forward, norms
from engine.convert.model_map import ModelMap

ARCHITECTURE = "qwen2"
CLASSES = ("Qwen2ForCausalLM",)


def describe(m: ModelMap) -> None:
    heads = heads_of(m)
    n = m.config.size("intermediate_size")

    basic_keys(m)
    first = m.config.size("max_window_layers", 28, least=0)
    window_keys(m, [layer >= first for layer in range(m.n_layers)], in_use=False)

    m.embeddings()
    for layer in m.layers():
        norms(layer)
        attention(layer, heads, bias=True)
        feed_forward(layer, n)
