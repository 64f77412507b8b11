"""A model's hyper-parameters, read from GGUF metadata with every value checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.config import LEAST_CONTEXT
from engine.errors import ModelFormatError, UnsupportedModelError

_LARGEST = 1 << 24  # no dimension or count of a real model comes near it


class Keys:
    """The metadata keys of one architecture: `integer("block_count")` reads `llama.block_count`."""

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        self._metadata = metadata
        architecture = metadata.get("general.architecture")
        if not isinstance(architecture, str):
            raise ModelFormatError("This GGUF does not say its architecture: the key general.architecture is missing.")
        self.architecture = architecture

    def integer(self, key: str, default: int | None = None, *, least: int = 1) -> int:
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _LARGEST:
            raise self._wrong(key, f"an integer from {least} to {_LARGEST}", value)
        return value

    def number(self, key: str, default: float | None = None) -> float:
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not -1e30 < value < 1e30:
            raise self._wrong(key, "a finite number", value)
        return float(value)

    def flag(self, key: str, default: bool) -> bool:
        value = self._value(key, default)
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false", value)
        return value

    def text(self, key: str, default: str | None = None) -> str:
        value = self._value(key, default)
        if not isinstance(value, str):
            raise self._wrong(key, "a text", value)
        return value

    def _value(self, key: str, default: Any) -> Any:
        full = f"{self.architecture}.{key}"
        if full in self._metadata:
            return self._metadata[full]
        if default is None:
            raise ModelFormatError(f"The key {full} is missing; a {self.architecture} model needs it.")
        return default

    def _wrong(self, key: str, expected: str, found: Any) -> ModelFormatError:
        return ModelFormatError(f"The key {self.architecture}.{key} should be {expected}, but is {found!r:.80}.")


@dataclass(frozen=True, slots=True)
class Hyperparameters:
    """What decoder models have in common; an architecture's own values stay in its file."""

    architecture: str
    n_layers: int
    n_embedding: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    value_dim: int
    rope_dim: int
    rope_base: float
    rope_factor: float  # positions are divided by it (linear scaling)
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
        n_kv_heads = keys.integer("attention.head_count_kv", n_heads)
        head_dim = keys.integer("attention.key_length", max(1, n_embedding // n_heads))
        n_experts = keys.integer("expert_count", 0, least=0)
        top_k = keys.integer("expert_used_count", 0 if n_experts == 0 else None, least=0 if n_experts == 0 else 1)
        n_feed_forward = keys.integer("feed_forward_length", 0, least=0)
        found = cls(
            architecture=keys.architecture,
            n_layers=keys.integer("block_count"),
            n_embedding=n_embedding,
            n_heads=n_heads,
            n_kv_heads=n_kv_heads,
            head_dim=head_dim,
            value_dim=keys.integer("attention.value_length", head_dim),
            rope_dim=keys.integer("rope.dimension_count", head_dim),
            rope_base=keys.number("rope.freq_base", 10000.0),
            rope_factor=_linear_factor(keys),
            norm_epsilon=keys.number("attention.layer_norm_rms_epsilon"),
            training_context=keys.integer("context_length", least=LEAST_CONTEXT),
            n_feed_forward=n_feed_forward,
            n_experts=n_experts,
            top_k=top_k,
            n_expert_feed_forward=keys.integer("expert_feed_forward_length", n_feed_forward, least=0),
        )
        found._check()
        return found

    def _check(self) -> None:
        name = self.architecture
        if self.n_heads % self.n_kv_heads:
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
        for what, value, multiple in (
            ("embedding length", self.n_embedding, 32),
            ("head size", self.head_dim, 16),
            ("value size", self.value_dim, 32),
        ):
            if value % multiple:
                raise UnsupportedModelError(
                    f"The {what} of this model is {value}; it must be a multiple of {multiple}."
                )


def _linear_factor(keys: Keys) -> float:
    scaling = keys.text("rope.scaling.type", "none")
    if scaling not in ("none", "linear"):
        raise UnsupportedModelError(
            f"This model scales its positions by the method {scaling!r}; known are none, linear and llama3."
        )
    factor = keys.number("rope.scaling.factor", 1.0) if scaling == "linear" else 1.0
    if factor <= 0:
        raise ModelFormatError(f"{keys.architecture}.rope.scaling.factor must be positive, but is {factor}.")
    return factor
