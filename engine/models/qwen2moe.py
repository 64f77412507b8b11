"""Qwen1.5-MoE and Qwen2-MoE: weights straight from the softmax over all experts, a shared expert behind a gate."""

from __future__ import annotations

from engine.models.builder import Builder
from engine.models.hyperparameters import Keys


def build(b: Builder, keys: Keys) -> None:
    normalise = keys.flag("expert_weights_norm", False)
    b.embed()
    for layer in range(b.hyper.n_layers):
        prefix = f"blk.{layer}."
        b.self_attention(prefix, neox=True)
        n_shared = b.weights.n_rows(f"{prefix}ffn_gate_shexp.weight")
        b.mixture(layer, prefix, normalise=normalise, n_shared=n_shared, shared_gate=True)
    b.output()
