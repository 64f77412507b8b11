"""OLMoE (Muennighoff et al. 2024): queries and keys are normalised over all heads at once."""

from __future__ import annotations

from engine.models.attention import HeadNorms, Heads
from engine.models.builder import Builder
from engine.models.keys import Keys
from engine.models.mixture import Router


def build(b: Builder, keys: Keys) -> None:
    hyper = b.hyper
    router = Router(normalise=keys.flag("expert_weights_norm", False))
    norms = HeadNorms(hyper.n_heads * hyper.head_dim, hyper.n_kv_heads * hyper.head_dim)
    heads = Heads(neox=True, norms=norms, limit=keys.number("attention.clamp_kqv", 0.0))
    b.embed()
    for layer in range(hyper.n_layers):
        prefix = f"blk.{layer}."
        b.self_attention(prefix, heads)
        b.mixture(layer, prefix, router)
    b.output()
