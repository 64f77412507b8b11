"""SmolLM3: as Llama, but every fourth layer knows no positions."""

from __future__ import annotations

from engine.convert.common_keys import basic_keys, heads_of, window_keys
from engine.convert.common_tensors import attention, feed_forward, norms
from engine.convert.model_map import ModelMap
from engine.errors import UnsupportedModelError

ARCHITECTURE = "smollm3"
CLASSES = ("SmolLM3ForCausalLM",)

_INTERVAL = 4


def describe(m: ModelMap) -> None:
    heads = heads_of(m)
    bias = m.config.flag("attention_bias", False)
    usual = [0 if (layer + 1) % _INTERVAL == 0 else 1 for layer in range(m.n_layers)]
    found = m.config.get("no_rope_layers")
    if found is not None and found != usual:
        raise UnsupportedModelError(
            f"{m.config.path}: expected no_rope_layers with a 0 in every fourth place, which is what the GGUF "
            f"architecture smollm3 means, found {found!r:.80}."
        )

    basic_keys(m)
    window_keys(m, [rotates == 0 for rotates in usual], in_use=False)
    m.key("vocab_size", m.n_vocabulary)
    m.key("rope.dimension_count", heads.head_dim)

    m.embeddings()
    for layer in m.layers():
        norms(layer)
        attention(layer, heads, bias=bias, output_bias=bias, pairs=True)
        feed_forward(layer, m.config.size("intermediate_size"))
