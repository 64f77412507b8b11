"""DeepSeek-MoE (v1) in plain NumPy, float64: the yardstick for an architecture that transformers does not have.

Source: "DeepSeekMoE" (arXiv 2401.06066) and the published model's configuration. A llama-like decoder whose first
layers have one dense feed-forward block and whose later layers have routed experts (softmax over all experts, the k
largest, weights not normalised again) plus shared experts that every token uses. GGUF stores those as one block.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.reference.evaluation import Routes, make_routes
from tests.support.gguf_copy import SourceFile


@dataclass(frozen=True, slots=True)
class Shape:
    n_layers: int
    n_dense_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    top_k: int
    expert_scale: float
    norm_epsilon: float
    rope_base: float


class NumpyDeepseek:
    """A model of the GGUF architecture "deepseek" with its weights expanded to float64."""

    def __init__(self, path: Path) -> None:
        source = SourceFile.open(path)
        assert source.architecture == "deepseek"
        n_heads = int(source.key("attention.head_count"))
        self.shape = Shape(
            n_layers=int(source.key("block_count")),
            n_dense_layers=int(source.key("leading_dense_block_count")),
            n_heads=n_heads,
            n_kv_heads=int(source.key("attention.head_count_kv")),
            head_dim=int(source.key("embedding_length")) // n_heads,
            top_k=int(source.key("expert_used_count")),
            expert_scale=float(source.key("expert_weights_scale", 1.0)),
            norm_epsilon=float(source.key("attention.layer_norm_rms_epsilon")),
            rope_base=float(source.key("rope.freq_base")),
        )
        self.weights = {name: source.weight(name).astype(np.float64) for name in source.tensors()}

    def forward(self, ids: list[int]) -> tuple[np.ndarray, Routes]:
        """Logits (n_tokens, n_vocab) float32 at every position, and the routes of the MoE layers."""
        shape, routers = self.shape, []
        x = self.weights["token_embd.weight"][ids]  # (n_tokens, n_hidden)
        for layer in range(shape.n_layers):
            x = x + self.attention(layer, self.norm(x, f"blk.{layer}.attn_norm"))
            h = self.norm(x, f"blk.{layer}.ffn_norm")
            if layer < shape.n_dense_layers:
                x = x + self.feed_forward(h, f"blk.{layer}.ffn_{{}}")
                continue
            routed, router = self.experts(layer, h)
            x = x + routed + self.feed_forward(h, f"blk.{layer}.ffn_{{}}_shexp")
            routers.append(router)
        x = self.norm(x, "output_norm")
        logits = x @ self.weights["output.weight"].T
        raw, weights, chosen = (np.stack(part) for part in zip(*routers, strict=True))
        return logits.astype(np.float32), make_routes(raw, weights, chosen)

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        mean_square = (x * x).mean(axis=-1, keepdims=True)
        return x / np.sqrt(mean_square + self.shape.norm_epsilon) * self.weights[f"{name}.weight"]

    def attention(self, layer: int, h: np.ndarray) -> np.ndarray:
        """Causal attention with grouped key-value heads."""
        shape, n_tokens = self.shape, len(h)
        q, k, v = (h @ self.weights[f"blk.{layer}.attn_{part}.weight"].T for part in "qkv")
        q = self.rotate(q.reshape(n_tokens, shape.n_heads, shape.head_dim))
        k = self.rotate(k.reshape(n_tokens, shape.n_kv_heads, shape.head_dim))
        v = v.reshape(n_tokens, shape.n_kv_heads, shape.head_dim)
        k, v = (np.repeat(part, shape.n_heads // shape.n_kv_heads, axis=1) for part in (k, v))
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(shape.head_dim)
        scores[:, ~np.tril(np.ones((n_tokens, n_tokens), bool))] = -np.inf
        mixed = np.einsum("hqk,khd->qhd", softmax(scores), v)
        return mixed.reshape(n_tokens, -1) @ self.weights[f"blk.{layer}.attn_output.weight"].T

    def rotate(self, x: np.ndarray) -> np.ndarray:
        """Rotary positions. x: (n_tokens, n_heads, head_dim); GGUF keeps a rotation's two values side by side."""
        frequencies = self.shape.rope_base ** (-np.arange(0, self.shape.head_dim, 2) / self.shape.head_dim)
        angles = (np.arange(len(x))[:, None] * frequencies)[:, None, :]  # (n_tokens, 1, head_dim / 2)
        even, odd = x[..., 0::2], x[..., 1::2]
        turned = np.empty_like(x)
        turned[..., 0::2] = even * np.cos(angles) - odd * np.sin(angles)
        turned[..., 1::2] = even * np.sin(angles) + odd * np.cos(angles)
        return turned

    def feed_forward(self, h: np.ndarray, pattern: str) -> np.ndarray:
        gate, up, down = (self.weights[f"{pattern.format(part)}.weight"] for part in ("gate", "up", "down"))
        return (silu(h @ gate.T) * (h @ up.T)) @ down.T

    def experts(self, layer: int, h: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Weighted sum of each token's experts, and the router's raw outputs, weights and choice."""
        prefix = f"blk.{layer}.ffn_"
        gate, up, down = (self.weights[f"{prefix}{part}_exps.weight"] for part in ("gate", "up", "down"))
        raw = h @ self.weights[f"{prefix}gate_inp.weight"].T  # (n_tokens, n_experts)
        probability = softmax(raw)
        chosen = np.argsort(-probability, axis=-1, kind="stable")[:, : self.shape.top_k]
        weights = np.take_along_axis(probability, chosen, axis=-1) * self.shape.expert_scale
        result = np.zeros_like(h)
        for token, (experts, shares) in enumerate(zip(chosen, weights, strict=True)):
            for expert, share in zip(experts, shares, strict=True):
                inner = silu(gate[expert] @ h[token]) * (up[expert] @ h[token])
                result[token] += share * (down[expert] @ inner)
        return result, (raw, weights, chosen)


def silu(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x))


def softmax(x: np.ndarray) -> np.ndarray:
    shifted = np.exp(x - x.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)
