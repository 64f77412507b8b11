"""DeepSeek-V2, -V2-Lite and -V3, Kimi-K2 (DeepSeek-AI 2024): latent attention, groups of experts, shared experts."""

from __future__ import annotations

from dataclasses import replace

from engine.errors import ModelFormatError, UnsupportedModelError
from engine.models.builder import Builder
from engine.models.keys import Keys
from engine.models.latent_attention import LatentHeads
from engine.models.mixture import Router, Shared
from engine.models.rope_scaling import yarn_magnitude

_EPSILON = 1e-20  # of the weights' sum
_SOFTMAX, _SIGMOID = 1, 2  # values of expert_gating_func
_SIGMOID_EXPERTS = 256  # files from before that key have sigmoids if they have so many experts


def build(b: Builder, keys: Keys) -> None:
    hyper = b.hyper
    heads, router = _heads(b, keys), _router(b, keys)
    n_dense = keys.integer("leading_dense_block_count", 0, least=0)
    n_shared = keys.integer("expert_shared_count", 0, least=0) * hyper.n_expert_feed_forward
    b.embed()
    for layer in range(hyper.n_layers):
        prefix = f"blk.{layer}."
        b.latent_attention(prefix, heads)
        if layer < n_dense or not hyper.n_experts:
            b.feed_forward(prefix, hyper.n_feed_forward)
        else:
            b.mixture(layer, prefix, router, shared=Shared(n_shared) if n_shared else None)
    b.output()


def _heads(b: Builder, keys: Keys) -> LatentHeads:
    """Sizes of the heads, and the size of the scores, which YaRN corrects here instead of in cosines and sines."""
    hyper = b.hyper
    # newer files give the sizes of the compressed row as key_length and value_length
    n_key = keys.integer("attention.key_length_mla", hyper.head_dim)
    n_value = keys.integer("attention.value_length_mla", hyper.value_dim)
    n_plain, n_latent = n_key - hyper.rope_dim, keys.integer("attention.kv_lora_rank")
    for what, value, multiple in (
        ("latent", n_latent, 16),
        ("rotated part", hyper.rope_dim, 16),
        ("value", n_value, 16),
    ):
        if value % multiple:
            raise UnsupportedModelError(f"The {what} of a head has {value} values; a multiple of {multiple} is needed.")
    if n_plain < 1:
        raise ModelFormatError(
            f"deepseek2.attention.key_length ({n_key}) must be more than rope.dimension_count ({hyper.rope_dim})."
        )
    scale, multiplier = n_key**-0.5, keys.number("rope.scaling.yarn_log_multiplier", 0.0)
    if multiplier and hyper.rope_scaling.kind == "yarn":
        scale *= yarn_magnitude(hyper.rope_scaling.factor, multiplier) ** 2
        if b.rope_scaling.attention_factor is None:
            b.rope_scaling = replace(b.rope_scaling, attention_factor=1.0)
    return LatentHeads(n_plain, n_value, n_latent, keys.integer("attention.q_lora_rank", 0, least=0), scale)


def _router(b: Builder, keys: Keys) -> Router:
    n_experts = b.hyper.n_experts
    function = keys.integer("expert_gating_func", 0, least=0)
    if function == 0:
        function = _SIGMOID if n_experts == _SIGMOID_EXPERTS else _SOFTMAX
    if function not in (_SOFTMAX, _SIGMOID):
        raise UnsupportedModelError(f"This model's experts are gated by function {function}; known are 1 and 2.")
    is_sigmoid = function == _SIGMOID
    return Router(
        scoring="sigmoid" if is_sigmoid else "softmax",
        normalise=keys.flag("expert_weights_norm", False),
        scale=keys.number("expert_weights_scale", 1.0) or 1.0,  # some files write 0 for none
        groups=keys.expert_groups(n_experts, n_best=2 if is_sigmoid else 1) if n_experts else (1, 1, 1),
        epsilon=_EPSILON,
    )
