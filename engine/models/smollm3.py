"""SmolLM3 (Hugging Face 2025): Llama, but every fourth layer sees no positions."""

from __future__ import annotations

from engine.models.attention import Heads
from engine.models.builder import Builder
from engine.models.keys import Keys

_INTERVAL = 4  # no_rope_layer_interval of every published model; GGUF has no key for it


def build(b: Builder, keys: Keys) -> None:
    b.embed()
    for layer, window in enumerate(keys.windows(b.hyper.n_layers)):
        prefix = f"blk.{layer}."
        b.self_attention(prefix, Heads(neox=False, rotates=(layer + 1) % _INTERVAL != 0, window=window))
        b.feed_forward(prefix, b.hyper.n_feed_forward)
    b.output()
