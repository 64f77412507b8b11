"""OLMoE (Muennighoff et al. 2024): queries and keys are normalised over all heads at once."""

from __future__ import annotations

from engine.models.builder import Builder
from engine.models.hyperparameters import Keys


def build(b: Builder, keys: Keys) -> None:
    hyper = b.hyper
    normalise = keys.flag("expert_weights_norm", False)
    n_q, n_k = hyper.n_heads * hyper.head_dim, hyper.n_kv_heads * hyper.head_dim
    b.embed()
    for layer in range(hyper.n_layers):
        prefix = f"blk.{layer}."
        norms = (f"{prefix}attn_q_norm.weight", f"{prefix}attn_k_norm.weight", n_q, n_k)
        b.self_attention(prefix, neox=True, norms=norms)
        b.mixture(layer, prefix, normalise=normalise)
    b.output()
