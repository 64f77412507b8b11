"""What the specifications of tiny models are put together from: sizes, keys and the shapes of well-known parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Shapes = dict[str, tuple[int, ...]]
Spec = tuple[dict[str, Any], Shapes]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Dimensions and flags of a made-up model. None: as the architecture usually has it."""

    n_vocab: int = 600
    layers: int = 2
    hidden: int = 64
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 32
    feed_forward: int = 96
    expert_columns: int = 32
    experts: int = 8
    top_k: int = 3
    n_shared: int = 1  # shared experts, where the architecture has any
    n_dense: int = 1  # first layers without experts, likewise
    n_latent: int = 64
    n_rope: int = 16
    n_plain: int = 32
    n_value: int = 32
    query_rank: int = 32  # 0: queries are not compressed
    delta_key_heads: int = 2
    delta_value_heads: int = 4
    delta_dim: int = 32
    window: int = 40
    slides: str = ""  # in which layers of the architectures that may have a window: "all", "first"
    is_mixed: bool = False  # the first layer is dense, where the architecture usually has experts in all of them
    has_output: bool | None = None  # or the embedding's matrix is used again
    has_biases: bool | None = None  # of queries, keys and values
    normalises: bool | None = None  # the chosen experts' weights
    scaling: dict[str, Any] | None = None  # keys below rope.scaling

    def prefixes(self, n: int | None = None) -> tuple[str, ...]:
        """The beginnings of the names of each layer's tensors."""
        return tuple(f"blk.{layer}." for layer in range(n or self.layers))

    def keys(self, **more: Any) -> dict[str, Any]:
        """Keys of every model, with `more` added or in their place."""
        return {
            "block_count": self.layers,
            "context_length": 512,
            "embedding_length": self.hidden,
            "feed_forward_length": self.feed_forward,
            "attention.head_count": self.heads,
            "attention.head_count_kv": self.kv_heads,
            "attention.key_length": self.head_dim,
            "attention.value_length": self.head_dim,
            "attention.layer_norm_rms_epsilon": 1e-5,
            "rope.freq_base": 10000.0,
            "rope.dimension_count": self.head_dim,
            **self._slides,
            **(more if self.scaling is None else {key: more[key] for key in more if "scaling" not in key}),
            **{f"rope.scaling.{key}": value for key, value in (self.scaling or {}).items()},
        }

    @property
    def _slides(self) -> dict[str, Any]:
        first = {"attention.sliding_window_pattern": [True] + [False] * 7} if self.slides == "first" else {}
        return {"attention.sliding_window": self.window, **first} if self.slides else {}

    @property
    def mixture(self) -> dict[str, Any]:
        """Keys of every mixture of experts."""
        found = {
            "expert_count": self.experts,
            "expert_used_count": self.top_k,
            "expert_feed_forward_length": self.expert_columns,
        }
        return found if self.normalises is None else found | {"expert_weights_norm": self.normalises}

    @property
    def groups(self) -> dict[str, Any]:
        """Keys of groups of experts, where each has two experts or more."""
        fits = self.experts % 4 == 0 and self.experts > 4
        return {"expert_group_count": 4, "expert_group_used_count": 2} if fits else {}

    def frame(self, *, output: bool = False) -> Shapes:
        """Embedding and final norm, and an output matrix where it is not the embedding."""
        output = output if self.has_output is None else self.has_output
        shapes: Shapes = {"token_embd.weight": (self.n_vocab, self.hidden), "output_norm.weight": (self.hidden,)}
        return shapes | ({"output.weight": (self.n_vocab, self.hidden)} if output else {})

    def attention(self, prefix: str, *, biases: str = "", head_norms: bool = False) -> Shapes:
        """Norm and projections; `biases`: of which of q, k, v, o there usually are biases."""
        biases = biases if self.has_biases is None else "qkv" * self.has_biases
        rows = {"q": self.heads * self.head_dim, "k": self.kv_heads * self.head_dim, "v": self.kv_heads * self.head_dim}
        shapes: Shapes = {f"{prefix}attn_norm.weight": (self.hidden,)}
        for part, n in rows.items():
            shapes[f"{prefix}attn_{part}.weight"] = (n, self.hidden)
            if part in biases:
                shapes[f"{prefix}attn_{part}.bias"] = (n,)
            if head_norms and part != "v":
                shapes[f"{prefix}attn_{part}_norm.weight"] = (self.head_dim,)
        shapes[f"{prefix}attn_output.weight"] = (self.hidden, self.heads * self.head_dim)
        if "o" in biases:
            shapes[f"{prefix}attn_output.bias"] = (self.hidden,)
        return shapes

    def usual_block(self, layer: int, prefix: str, norm: str = "ffn_norm", *, shared: int = 0) -> Shapes:
        """Experts, unless the model is mixed and this its first layer; `shared` experts are behind a gate."""
        if layer == 0 and self.is_mixed:
            return self.dense_block(prefix, norm)
        gate: Shapes = {f"{prefix}ffn_gate_inp_shexp.weight": (self.hidden,)} if shared else {}
        return self.expert_block(prefix, norm, shared=shared) | gate

    def dense_block(self, prefix: str, norm: str = "ffn_norm") -> Shapes:
        return {f"{prefix}{norm}.weight": (self.hidden,), **self.gated(prefix, "", self.feed_forward)}

    def gated(self, prefix: str, suffix: str, n: int) -> Shapes:
        return {
            f"{prefix}ffn_gate{suffix}.weight": (n, self.hidden),
            f"{prefix}ffn_up{suffix}.weight": (n, self.hidden),
            f"{prefix}ffn_down{suffix}.weight": (self.hidden, n),
        }

    def expert_block(self, prefix: str, norm: str = "ffn_norm", *, shared: int = 0, has_bias: bool = False) -> Shapes:
        shapes: Shapes = {f"{prefix}{norm}.weight": (self.hidden,)}
        shapes[f"{prefix}ffn_gate_inp.weight"] = (self.experts, self.hidden)
        for name, shape in self.gated(prefix, "_exps", self.expert_columns).items():
            shapes[name] = (self.experts, *shape)
        if shared:
            shapes |= self.gated(prefix, "_shexp", shared)
        if has_bias:
            shapes[f"{prefix}exp_probs_b.bias"] = (self.experts,)
        return shapes
