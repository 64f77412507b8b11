"""A model's hyper-parameters, read from GGUF metadata with every value checked."""

from __future__ import annotations

from dataclasses import dataclass

from engine.config import LEAST_CONTEXT
from engine.errors import ModelFormatError, UnsupportedModelError
from engine.models.keys import Keys
from engine.models.rope_scaling import RopeScaling

INPUTS_TOGETHER = 4  # that a product with floats takes


@dataclass(frozen=True, slots=True)
class Hyperparameters:
    """What decoder models have in common; an architecture's own values stay in its file."""

    architecture: str
    n_layers: int  # without those that only guess further tokens
    n_embedding: int
    n_heads: int
    n_kv_heads: int  # the most of any layer
    head_dim: int
    value_dim: int
    rope_dim: int
    rope_base: float
    rope_scaling: RopeScaling
    norm_epsilon: float
    training_context: int
    n_feed_forward: int  # 0 where every layer has experts and the file does not say
    n_experts: int
    top_k: int
    n_expert_feed_forward: int

    @classmethod
    def read(cls, keys: Keys) -> Hyperparameters:
        """Raises ModelFormatError for a missing or senseless value, UnsupportedModelError for what is not known."""
        n_embedding = keys.integer("embedding_length")
        n_heads = keys.integer("attention.head_count")
        n_layers = keys.integer("block_count")
        n_predicting = keys.integer("nextn_predict_layers", 0, least=0)  # layers for guessing further tokens: unused
        if n_predicting >= n_layers:
            raise ModelFormatError(
                f"{keys.architecture}.nextn_predict_layers ({n_predicting}) must be less than block_count ({n_layers})."
            )
        n_kv_heads = keys.most("attention.head_count_kv", n_heads, least=0)
        training_context = keys.integer("context_length", least=LEAST_CONTEXT)
        head_dim = keys.integer("attention.key_length", max(1, n_embedding // n_heads))
        n_experts = keys.integer("expert_count", 0, least=0)
        top_k = keys.integer("expert_used_count", 0 if n_experts == 0 else None, least=0 if n_experts == 0 else 1)
        n_feed_forward = keys.integer("feed_forward_length", 0, least=0)
        found = cls(
            architecture=keys.architecture,
            n_layers=n_layers - n_predicting,
            n_embedding=n_embedding,
            n_heads=n_heads,
            n_kv_heads=n_kv_heads,
            head_dim=head_dim,
            value_dim=keys.integer("attention.value_length", head_dim),
            rope_dim=keys.integer("rope.dimension_count", head_dim),
            rope_base=keys.number("rope.freq_base", 10000.0),
            rope_scaling=RopeScaling.read(keys, training_context),
            norm_epsilon=keys.number("attention.layer_norm_rms_epsilon"),
            training_context=training_context,
            n_feed_forward=n_feed_forward,
            n_experts=n_experts,
            top_k=top_k,
            n_expert_feed_forward=keys.integer("expert_feed_forward_length", n_feed_forward, least=0),
        )
        found._check()
        return found

    def _check(self) -> None:
        name = self.architecture
        if not self.n_kv_heads or self.n_heads % self.n_kv_heads:
            raise ModelFormatError(
                f"{name}.attention.head_count ({self.n_heads}) is not a multiple of head_count_kv ({self.n_kv_heads})."
            )
        for key, value, fits in (
            ("rope.freq_base", self.rope_base, self.rope_base > 0),
            ("attention.layer_norm_rms_epsilon", self.norm_epsilon, self.norm_epsilon >= 0),
        ):
            if not fits:
                raise ModelFormatError(f"{name}.{key} must be positive, but is {value}.")
        if self.rope_dim > self.head_dim or self.rope_dim % 2:
            raise ModelFormatError(
                f"{name}.rope.dimension_count is {self.rope_dim}; an even number up to the head size "
                f"{self.head_dim} was expected."
            )
        if self.top_k > self.n_experts:
            raise ModelFormatError(
                f"{name}.expert_used_count ({self.top_k}) is more than expert_count ({self.n_experts})."
            )
        for what, value in (
            ("embedding length", self.n_embedding),
            ("values of all heads", self.n_heads * self.value_dim),
            ("feed-forward length", self.n_feed_forward),
            ("feed-forward length of the experts", self.n_expert_feed_forward),
        ):
            if value % INPUTS_TOGETHER:
                raise UnsupportedModelError(
                    f"The {what} of this model: {value}; a multiple of {INPUTS_TOGETHER} is needed."
                )
