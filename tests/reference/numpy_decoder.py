"""Every architecture in plain NumPy, float64, one pass over a text: the yardstick for models of any size.

    logits, routes = NumpyDecoder(path).forward(ids)

Written from the publishers' code and the meaning of GGUF's keys and tensors, not from the engine. That it computes what
the published models compute is held against the fixtures (`test_numpy_decoder.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.reference.evaluation import Routes, make_routes
from tests.reference.numpy_parts import (
    clamped_swiglu,
    frequencies,
    layer_norm,
    margin,
    rms_norm,
    rotated,
    rotation_scale,
    sigmoid,
    silu,
    softmax,
    softplus,
    sparse_mixer,
)
from tests.support.gguf_copy import SourceFile

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Traits:
    """What an architecture does that its files do not say."""

    pairs: str = "halves"  # which elements rotate together: element i and i + half, or "neighbours"
    normalises: bool = False  # the chosen experts' weights
    scoring: str = "softmax"
    epsilon: float = 0.0  # of the weights' sum
    rotates_every: int = 0  # all layers but every n-th rotate; 0: all
    norms_rotated: bool = False  # queries and keys after their rotation
    windows: str = ""  # "all" layers, the "even" ones, or those that a file "said", all if it says nothing
    ffn_norm: str = "ffn_norm"


TRAITS = {
    "llama": Traits("neighbours", normalises=True, windows="said"),
    "qwen2": Traits(windows="said"),
    "qwen2moe": Traits(windows="said"),
    "qwen3": Traits(windows="said"),
    "qwen3moe": Traits(normalises=True, windows="said"),
    "olmoe": Traits(),
    "smollm3": Traits("neighbours", rotates_every=4, windows="said"),
    "phi3": Traits(windows="all"),
    "phimoe": Traits(scoring="sparse", windows="all"),
    "deepseek": Traits("neighbours"),
    "deepseek2": Traits("neighbours", epsilon=1e-20),
    "ernie4_5-moe": Traits("neighbours", normalises=True, epsilon=1e-12),
    "glm4moe": Traits(normalises=True, scoring="sigmoid", epsilon=1e-20, ffn_norm="post_attention_norm"),
    "gpt-oss": Traits(normalises=True, windows="even", ffn_norm="post_attention_norm"),
    "granitemoe": Traits("neighbours", normalises=True),
    "hunyuan-moe": Traits(normalises=True, norms_rotated=True),
    "lfm2moe": Traits(normalises=True, scoring="sigmoid", epsilon=1e-6),
    "qwen3next": Traits(normalises=True, ffn_norm="post_attention_norm"),
    "qwen35moe": Traits(normalises=True, ffn_norm="post_attention_norm"),
}


class NumpyDecoder:
    """A model with its weights expanded to float64."""

    def __init__(self, path: Path) -> None:
        self.source = SourceFile.open(path)
        self.architecture = self.source.architecture
        self.traits = TRAITS[self.architecture]
        self.w = {name: self.source.weight(name).astype(np.float64) for name in self.source.tensors()}
        self.epsilon = float(self.key("attention.layer_norm_rms_epsilon"))
        self.n_layers = int(self.key("block_count")) - int(self.key("nextn_predict_layers", 0))
        self.n_heads = int(self.key("attention.head_count"))
        self.residual_scale = float(self.key("residual_scale", 1.0))

    def key(self, name: str, default: Any = None) -> Any:
        return self.source.key(name, default)

    def forward(self, ids: list[int]) -> tuple[Array, Routes | None]:
        """Logits (n_tokens, n_vocab) float64 at every position, and the routes if there are experts."""
        self.n_tokens, self.routes, self.margins = len(ids), [], []
        x = self.w["token_embd.weight"][ids] * float(self.key("embedding_scale", 1.0))
        for layer in range(self.n_layers):
            at = f"blk.{layer}."
            h = self.norm(x, f"{at}attn_norm")
            x = x + self.residual_scale * self.mixing(layer, at, h)
            h = self.norm(x, f"{at}{self.traits.ffn_norm}")
            x = x + self.residual_scale * self.feed_forward(at, h)
        x = self.norm(x, "token_embd_norm" if "token_embd_norm.weight" in self.w else "output_norm")
        logits = x @ self.w["output.weight" if "output.weight" in self.w else "token_embd.weight"].T
        logits = (logits + self.w.get("output.bias", 0.0)) / float(self.key("logit_scale", 1.0))
        if not self.routes:
            return logits, None
        raw, weights, chosen = (np.stack(part) for part in zip(*self.routes, strict=True))
        return logits, make_routes(raw, weights, chosen)

    @property
    def least_margin(self) -> Array:
        """(n_tokens,): by how much, at least, a router of the newest text told the chosen from the next best."""
        return np.min([np.full(self.n_tokens, np.inf), *self.margins], axis=0)

    def norm(self, x: Array, name: str) -> Array:
        if f"{name}.bias" in self.w:
            return layer_norm(x, self.epsilon) * self.w[f"{name}.weight"] + self.w[f"{name}.bias"]
        return rms_norm(x, self.epsilon) * self.w[f"{name}.weight"]

    def linear(self, x: Array, name: str) -> Array:
        return x @ self.w[f"{name}.weight"].T + self.w.get(f"{name}.bias", 0.0)

    # What mixes positions ---------------------------------------------------------------------------------------------

    def mixing(self, layer: int, at: str, h: Array) -> Array:
        if f"{at}shortconv.conv.weight" in self.w:
            return self.short_convolution(at, h)
        if f"{at}ssm_conv1d.weight" in self.w:
            return self.delta_net(at, h)
        return self.latent_attention(at, h) if f"{at}attn_kv_a_mqa.weight" in self.w else self.attention(layer, at, h)

    def attention(self, layer: int, at: str, h: Array) -> Array:
        n_hidden = int(self.key("embedding_length"))
        head_dim = int(self.key("attention.key_length", n_hidden // self.n_heads))
        n_kv = self.key("attention.head_count_kv", self.n_heads)
        n_kv = int(n_kv[layer] if isinstance(n_kv, list) else n_kv)
        if f"{at}attn_qkv.weight" in self.w:
            sizes = np.cumsum([self.n_heads * head_dim, n_kv * head_dim])
            q, k, v = np.split(self.linear(h, f"{at}attn_qkv"), sizes, axis=-1)
        else:
            q, k, v = (self.linear(h, f"{at}attn_{part}") for part in "qkv")
        gate = None
        if q.shape[-1] == 2 * self.n_heads * head_dim:
            q, gate = np.split(q.reshape(self.n_tokens, self.n_heads, -1), 2, axis=-1)
        limit = float(self.key("attention.clamp_kqv", 0.0))
        if not self.traits.norms_rotated:
            q, k = self.head_norm(q, f"{at}attn_q_norm", head_dim), self.head_norm(k, f"{at}attn_k_norm", head_dim)
        q, k, v = (
            (np.clip(part, -limit, limit) if limit else part).reshape(self.n_tokens, -1, head_dim) for part in (q, k, v)
        )
        if not self.traits.rotates_every or (layer + 1) % self.traits.rotates_every:
            q, k = self.rotate(q), self.rotate(k)
        if self.traits.norms_rotated:
            q, k = self.head_norm(q, f"{at}attn_q_norm", head_dim), self.head_norm(k, f"{at}attn_k_norm", head_dim)
        k, v = (np.repeat(part, self.n_heads // n_kv, axis=1) for part in (k, v))
        scale = float(self.key("attention.scale", 0.0)) or head_dim**-0.5
        sinks = self.w.get(f"{at}attn_sinks.weight")
        mixed = self.attend(q, k, v, scale, self.window(layer), sinks)
        if gate is not None:
            mixed = mixed * sigmoid(gate.reshape(mixed.shape))
        return self.linear(mixed.reshape(self.n_tokens, -1), f"{at}attn_output")

    def head_norm(self, x: Array, name: str, head_dim: int) -> Array:
        """Over each head, or over all of them, as long as the weight is; nothing where there is none."""
        weight = self.w.get(f"{name}.weight")
        if weight is None:
            return x
        whole = x.reshape(self.n_tokens, -1, len(weight))
        return (rms_norm(whole, self.epsilon) * weight).reshape(x.shape)

    def window(self, layer: int) -> int:
        said = self.key("attention.sliding_window_pattern", [True] * self.n_layers)
        applies = {"": False, "all": True, "even": layer % 2 == 0, "said": said[layer]}[self.traits.windows]
        return int(self.key("attention.sliding_window", 0)) if applies else 0

    def attend(self, q: Array, k: Array, v: Array, scale: float, window: int = 0, sinks: Array | None = None) -> Array:
        """(n_tokens, n_heads, value_dim). sinks (n_heads,): a further score that no value belongs to."""
        scores = np.einsum("qhd,khd->hqk", q, k) * scale
        distance = np.arange(self.n_tokens)[:, None] - np.arange(self.n_tokens)
        is_seen = (distance >= 0) & (distance < (window or self.n_tokens))
        scores = np.where(is_seen, scores, -np.inf)
        if sinks is not None:
            extra = np.broadcast_to(sinks[:, None, None], (*scores.shape[:2], 1))
            shares = softmax(np.concatenate([scores, extra], axis=-1))[..., :-1]
        else:
            shares = softmax(scores)
        return np.einsum("hqk,khd->qhd", shares, v)

    def rotate(self, x: Array) -> Array:
        """x: (n_tokens, n_heads, head_dim); rotates the first `rope.dimension_count` values of each head."""
        n = int(self.key("rope.dimension_count", x.shape[-1]))
        angles = np.arange(self.n_tokens)[:, None] * frequencies(self.key, self.w, n, self.n_tokens, self.architecture)
        return rotated(x, angles, n, rotation_scale(self.key), self.traits.pairs == "neighbours")

    def latent_attention(self, at: str, h: Array) -> Array:
        """DeepSeek's: keys and values are expanded from a latent, and all heads share one rotated key."""
        n_rope, n_latent = int(self.key("rope.dimension_count")), int(self.key("attention.kv_lora_rank"))
        if f"{at}attn_q_a.weight" in self.w:
            q = rms_norm(self.linear(h, f"{at}attn_q_a"), 1e-6) * self.w[f"{at}attn_q_a_norm.weight"]
            q = self.linear(q, f"{at}attn_q_b")
        else:
            q = self.linear(h, f"{at}attn_q")
        q = q.reshape(self.n_tokens, self.n_heads, -1)
        both = self.linear(h, f"{at}attn_kv_a_mqa")
        latent = rms_norm(both[:, :n_latent], 1e-6) * self.w[f"{at}attn_kv_a_norm.weight"]
        k_b, v_b = (
            self.w[f"{at}attn_k_b.weight"],
            self.w[f"{at}attn_v_b.weight"],
        )  # (heads, latent, n), (heads, n, latent)
        k, v = np.einsum("tl,hln->thn", latent, k_b), np.einsum("tl,hnl->thn", latent, v_b)
        shared = np.repeat(self.rotate(both[:, None, n_latent:]), self.n_heads, axis=1)
        q = np.concatenate([q[..., :-n_rope], self.rotate(q[..., -n_rope:])], axis=-1)
        scale = q.shape[-1] ** -0.5
        multiplier = float(self.key("rope.scaling.yarn_log_multiplier", 0.0))
        if multiplier:
            scale *= (multiplier * np.log(float(self.key("rope.scaling.factor"))) + 1) ** 2
        mixed = self.attend(q, np.concatenate([k, shared], axis=-1), v, scale)
        return self.linear(mixed.reshape(self.n_tokens, -1), f"{at}attn_output")

    def short_convolution(self, at: str, h: Array) -> Array:
        inner, outer, signal = np.split(self.linear(h, f"{at}shortconv.in_proj"), 3, axis=-1)
        mixed = self.convolved(inner * signal, self.w[f"{at}shortconv.conv.weight"])
        return self.linear(outer * mixed, f"{at}shortconv.out_proj")

    def convolved(self, x: Array, taps: Array) -> Array:
        """Each channel with its own taps (n_channels, n_taps), the last of which meets the newest position."""
        n_taps = taps.shape[-1]
        padded = np.concatenate([np.zeros((n_taps - 1, x.shape[-1])), x])
        return sum(padded[i : i + len(x)] * taps[:, i] for i in range(n_taps))

    def delta_net(self, at: str, h: Array) -> Array:
        """Gated delta rule (Yang et al. 2025), one position after the other."""
        n_keys, n_values = int(self.key("ssm.group_count")), int(self.key("ssm.time_step_rank"))
        key_dim, per_key = int(self.key("ssm.state_size")), n_values // n_keys
        mixed = silu(self.convolved(self.linear(h, f"{at}attn_qkv"), self.w[f"{at}ssm_conv1d.weight"]))
        q, k, v = np.split(mixed, [n_keys * key_dim, 2 * n_keys * key_dim], axis=-1)
        q, k = (part.reshape(self.n_tokens, n_keys, key_dim) for part in (q, k))
        q, k = (part / np.sqrt((part * part).sum(-1, keepdims=True) + 1e-6) for part in (q, k))
        owner = np.arange(n_values) % n_keys if self.architecture == "qwen35moe" else np.arange(n_values) // per_key
        q, k, v = q[:, owner] * key_dim**-0.5, k[:, owner], v.reshape(self.n_tokens, n_values, -1)
        if f"{at}ssm_ba.weight" in self.w:
            both = self.linear(h, f"{at}ssm_ba").reshape(self.n_tokens, n_keys, 2, per_key)
            beta, alpha = (both[:, :, i].reshape(self.n_tokens, n_values) for i in range(2))
        else:
            alpha, beta = self.linear(h, f"{at}ssm_alpha"), self.linear(h, f"{at}ssm_beta")
        decay = np.exp(self.w[f"{at}ssm_a"] * softplus(alpha + self.w[f"{at}ssm_dt.bias"]))
        state, outputs = np.zeros((n_values, key_dim, v.shape[-1])), []
        for t in range(self.n_tokens):
            state = state * decay[t][:, None, None]
            change = (v[t] - np.einsum("hkv,hk->hv", state, k[t])) * sigmoid(beta[t])[:, None]
            state = state + k[t][:, :, None] * change[:, None, :]
            outputs.append(np.einsum("hkv,hk->hv", state, q[t]))
        gate = self.linear(h, f"{at}attn_gate").reshape(self.n_tokens, n_values, -1)
        out = rms_norm(np.stack(outputs), self.epsilon) * self.w[f"{at}ssm_norm.weight"] * silu(gate)
        return self.linear(out.reshape(self.n_tokens, -1), f"{at}ssm_out")

    # What does not ----------------------------------------------------------------------------------------------------

    def feed_forward(self, at: str, h: Array) -> Array:
        if f"{at}ffn_gate_inp.weight" not in self.w:
            return self.gated(at, "", h)
        result = self.experts(at, h)
        if f"{at}ffn_down_shexp.weight" in self.w:
            shared = self.gated(at, "_shexp", h)
            opening = self.w.get(f"{at}ffn_gate_inp_shexp.weight")
            result = result + (shared if opening is None else shared * sigmoid(h @ opening.reshape(-1, 1)))
        return result

    def gated(self, at: str, suffix: str, h: Array) -> Array:
        up = self.linear(h, f"{at}ffn_up{suffix}")
        fused = f"{at}ffn_gate{suffix}.weight" not in self.w
        gate, up = np.split(up, 2, axis=-1) if fused else (self.linear(h, f"{at}ffn_gate{suffix}"), up)
        return self.linear(silu(gate) * up, f"{at}ffn_down{suffix}")

    def experts(self, at: str, h: Array) -> Array:
        raw = self.linear(h, f"{at}ffn_gate_inp")  # (n_tokens, n_experts)
        weights, chosen = self.choice(at, raw)
        self.routes.append((raw, weights, chosen))
        biases = {part: self.w.get(f"{at}ffn_{part}_exps.bias") for part in ("gate", "up", "down")}
        result = np.zeros_like(h)
        for token in range(self.n_tokens):
            for expert, weight in zip(chosen[token], weights[token], strict=True):
                gate, up = (
                    self.w[f"{at}ffn_{part}_exps.weight"][expert] @ h[token]
                    + (0 if biases[part] is None else biases[part][expert])
                    for part in ("gate", "up")
                )
                inner = silu(gate) * up if biases["gate"] is None else clamped_swiglu(gate, up)
                down = self.w[f"{at}ffn_down_exps.weight"][expert] @ inner
                result[token] += weight * (down + (0 if biases["down"] is None else biases["down"][expert]))
        return result

    def choice(self, at: str, raw: Array) -> tuple[Array, Array]:
        """Weights and experts (n_tokens, k) of each token."""
        top_k, n_experts = int(self.key("expert_used_count")), raw.shape[-1]
        is_sigmoid = self.traits.scoring == "sigmoid" or int(self.key("expert_gating_func", 0)) == 2
        if self.traits.scoring == "sparse":
            self.margins += [margin(raw, 1), margin(raw, 2)]
            return sparse_mixer(raw)
        scores = sigmoid(raw) if is_sigmoid else softmax(raw)
        ranked = scores + self.w.get(f"{at}exp_probs_b.bias", 0.0)
        n_groups, n_used = int(self.key("expert_group_count", 1)), int(self.key("expert_group_used_count", 1))
        if n_groups > 1:
            grouped = np.sort(ranked.reshape(len(raw), n_groups, -1), axis=-1)
            best = grouped[..., -2:].sum(-1) if is_sigmoid else grouped[..., -1]
            used = np.argsort(-best, axis=-1, kind="stable")[:, :n_used]
            self.margins.append(margin(best, n_used))
            group_of = np.arange(n_experts) // (n_experts // n_groups)
            ranked = np.where((group_of == used[..., None]).any(1), ranked, -np.inf)
        self.margins.append(margin(ranked, top_k))
        chosen = np.argsort(-ranked, axis=-1, kind="stable")[:, :top_k]
        weights = np.take_along_axis(scores, chosen, axis=-1)
        if bool(self.key("expert_weights_norm", self.traits.normalises)):
            weights = weights / (weights.sum(-1, keepdims=True) + self.traits.epsilon)
        return weights * (float(self.key("expert_weights_scale", 1.0)) or 1.0), chosen
