"""gpt-oss (OpenAI 2025): sinks, every other layer with a sliding window, biases everywhere, clamped experts."""

from __future__ import annotations

from dataclasses import replace

from engine.models.attention import Heads
from engine.models.builder import Builder
from engine.models.keys import Keys
from engine.models.mixture import Clamped, Router

_CLAMPED = Clamped(limit=7.0, slope=1.702)  # of every published model; GGUF has no keys for them


def build(b: Builder, keys: Keys) -> None:
    window = keys.integer("attention.sliding_window", 0, least=0)
    b.rope_scaling = replace(b.rope_scaling, rounds_range=keys.flag("rope.scaling.yarn_truncate", False))
    b.embed()
    for layer in range(b.hyper.n_layers):
        prefix = f"blk.{layer}."
        b.self_attention(prefix, Heads(neox=True, has_sinks=True, window=0 if layer % 2 else window))
        b.mixture(layer, prefix, Router(normalise=True), clamped=_CLAMPED, norm="post_attention_norm")
    b.output()
