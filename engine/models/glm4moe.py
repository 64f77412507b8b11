"""GLM-4.5 (Zeng et al. 2025): half of each head rotates, sigmoid scores with a correction bias."""

from __future__ import annotations

from engine.models.attention import HeadNorms, Heads
from engine.models.builder import Builder
from engine.models.keys import Keys
from engine.models.mixture import Router, Shared

_EPSILON = 1e-20  # of the weights' sum


def build(b: Builder, keys: Keys) -> None:
    hyper = b.hyper
    n_dense = keys.integer("leading_dense_block_count", 0, least=0)
    n_shared = keys.integer("expert_shared_count", 0, least=0) * hyper.n_expert_feed_forward
    router = Router(
        scoring="sigmoid",
        normalise=keys.flag("expert_weights_norm", True),
        scale=keys.number("expert_weights_scale", 1.0),
        groups=keys.expert_groups(hyper.n_experts, n_best=2),
        epsilon=_EPSILON,
    )
    has_norms = b.weights.has("blk.0.attn_q_norm.weight")
    heads = Heads(neox=True, norms=HeadNorms(hyper.head_dim, hyper.head_dim) if has_norms else None)
    b.embed()
    for layer in range(hyper.n_layers):
        prefix = f"blk.{layer}."
        b.self_attention(prefix, heads)
        if layer < n_dense:
            b.feed_forward(prefix, hyper.n_feed_forward, norm="post_attention_norm")
        else:
            shared = Shared(n_shared) if n_shared else None
            b.mixture(layer, prefix, router, shared=shared, norm="post_attention_norm")
    b.output()
