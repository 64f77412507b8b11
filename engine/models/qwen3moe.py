"""Qwen3-MoE: each head's queries and keys are normalised, and so are the weights of the chosen experts."""

from __future__ import annotations

from engine.models.builder import Builder
from engine.models.hyperparameters import Keys


def build(b: Builder, keys: Keys) -> None:
    normalise = keys.flag("expert_weights_norm", True)
    b.embed()
    for layer in range(b.hyper.n_layers):
        prefix = f"blk.{layer}."
        size = b.hyper.head_dim
        norms = (f"{prefix}attn_q_norm.weight", f"{prefix}attn_k_norm.weight", size, size)
        b.self_attention(prefix, neox=True, norms=norms)
        b.mixture(layer, prefix, normalise=normalise)
    b.output()
