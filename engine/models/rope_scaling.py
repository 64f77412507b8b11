"""How a model stretches its rotary positions: the frequencies of each pair, and the factor on cosines and sines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.errors import ModelFormatError, UnsupportedModelError
from engine.models.keys import Keys

Array = np.ndarray[Any, Any]
KINDS = ("none", "linear", "yarn", "longrope")


@dataclass(frozen=True, slots=True)
class RopeScaling:
    """The keys below `rope.scaling`, and what an architecture's file knows beyond them.

    attention_factor: multiplies cosines and sines; None: as the method defines it.
    rounds_range: YaRN's range of corrected pairs is widened to whole pairs (as Peng et al. 2023 do; gpt-oss does not).
    """

    kind: str = "none"
    factor: float = 1.0
    original_context: int = 0
    attention_factor: float | None = None
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    rounds_range: bool = True

    @classmethod
    def read(cls, keys: Keys, training_context: int) -> RopeScaling:
        """Raises UnsupportedModelError for a method that is not known, ModelFormatError for a senseless number."""
        kind = keys.text("rope.scaling.type", "none")
        if kind not in KINDS:
            raise UnsupportedModelError(
                f"This model scales its positions by the method {kind!r}; known are {', '.join(KINDS)} and llama3."
            )
        factor = keys.number("rope.scaling.factor", 1.0) if kind in ("linear", "yarn") else 1.0
        if factor <= 0:
            raise ModelFormatError(f"{keys.architecture}.rope.scaling.factor must be positive, but is {factor}.")
        attention_factor = keys.number("rope.scaling.attn_factor", 0.0)
        if kind == "yarn":
            attention_factor = keys.number("rope.scaling.yarn_attn_factor", attention_factor)
        beta_fast = keys.number("rope.scaling.yarn_beta_fast", 32.0)
        beta_slow = keys.number("rope.scaling.yarn_beta_slow", 1.0)
        if not (beta_fast > 0 and beta_slow > 0):
            raise ModelFormatError(
                f"{keys.architecture}.rope.scaling.yarn_beta_fast and .yarn_beta_slow must be positive, but are "
                f"{beta_fast} and {beta_slow}."
            )
        return cls(
            kind=kind,
            factor=factor,
            original_context=keys.integer("rope.scaling.original_context_length", training_context),
            attention_factor=attention_factor if attention_factor > 0 else None,
            beta_fast=beta_fast,
            beta_slow=beta_slow,
            rounds_range=keys.flag("rope.scaling.yarn_truncate", True),
        )

    @property
    def scale(self) -> float:
        """What cosines and sines are multiplied with."""
        if self.attention_factor is not None:
            return self.attention_factor
        return yarn_magnitude(self.factor) if self.kind == "yarn" else 1.0

    def frequencies(self, rope_dim: int, base: float, factors: Array | None = None) -> Array:
        """(rope_dim / 2,) float32: the angle that one position adds to each pair.

        `factors` (rope_dim / 2,) divide the frequencies (llama3 and longrope keep them as tensors).
        """
        exponents = np.arange(0, rope_dim, 2, dtype=np.float32) / np.float32(rope_dim)
        found = 1 / np.float32(base) ** exponents
        if self.kind == "linear":
            found = found / np.float32(self.factor)
        elif self.kind == "yarn":
            share = self._extrapolated(rope_dim, base)
            found = found / np.float32(self.factor) * (1 - share) + found * share
        if factors is not None:
            found = found / factors
        return found.astype(np.float32)

    def _extrapolated(self, rope_dim: int, base: float) -> Array:
        """YaRN (Peng et al. 2023, 3.2): 1 for pairs that turn often in the original context, 0 for slow ones."""

        if base <= 1:
            raise ModelFormatError(f"YaRN needs a rope.freq_base above 1, but it is {base}.")

        def pair_with(n_turns: float) -> float:
            turns = self.original_context / (n_turns * 2 * math.pi)
            return rope_dim * math.log(turns) / (2 * math.log(base))

        low, high = pair_with(self.beta_fast), pair_with(self.beta_slow)
        if self.rounds_range:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, rope_dim - 1)
        width = high - low if high != low else 0.001
        ramp = (np.arange(rope_dim // 2, dtype=np.float32) - np.float32(low)) / np.float32(width)
        share: Array = 1 - np.clip(ramp, 0, 1)
        return share


def yarn_magnitude(factor: float, multiplier: float = 0.1) -> float:
    """YaRN's correction of the scores' size for positions stretched by `factor`."""
    return 1.0 if factor <= 1 else multiplier * math.log(factor) + 1.0
