"""Granite 3 MoE (IBM 2024): four multipliers, for embeddings, scores, residual additions and logits."""

from __future__ import annotations

from engine.errors import ModelFormatError
from engine.models.attention import Heads
from engine.models.builder import Builder
from engine.models.keys import Keys
from engine.models.mixture import Router, Shared


def build(b: Builder, keys: Keys) -> None:
    divisor = keys.number("logit_scale", 1.0)
    if divisor == 0:
        raise ModelFormatError("granitemoe.logit_scale divides the logits; it must not be 0.")
    scale = keys.number("attention.scale", 0.0)
    b.residual_scale = keys.number("residual_scale", 1.0)
    b.embed(scale=keys.number("embedding_scale", 1.0))
    for layer in range(b.hyper.n_layers):
        prefix = f"blk.{layer}."
        b.self_attention(prefix, Heads(neox=False, scale=scale or None))
        shared = None  # Granite 4's files have shared experts under the same name
        if b.weights.has(f"{prefix}ffn_gate_shexp.weight"):
            shared = Shared(b.weights.n_rows(f"{prefix}ffn_gate_shexp.weight"))
        b.mixture(layer, prefix, Router(normalise=True), shared=shared)
    b.output(scale=1 / divisor)
