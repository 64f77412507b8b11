"""Typed access to the metadata keys of one architecture, with every value checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from engine.errors import ModelFormatError

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

    def integers(self, key: str, n: int, *, least: int = 1) -> list[int]:
        """`n` integers, one for each layer; a file may give one for all."""
        values = self._one_or_more(key, None, least)
        if len(values) != 1 and len(values) < n:
            raise self._wrong(key, f"{n} integers", values)
        return values * n if len(values) == 1 else values[:n]

    def most(self, key: str, default: int, *, least: int = 1) -> int:
        """The largest of what `integers` would give."""
        return max(self._one_or_more(key, default, least))

    def _one_or_more(self, key: str, default: int | None, least: int) -> list[int]:
        value = self._value(key, default)
        values = value.tolist() if isinstance(value, np.ndarray) and value.size else [value]
        if any(isinstance(v, bool) or not isinstance(v, int) or not least <= v <= _LARGEST for v in values):
            raise self._wrong(key, f"an integer from {least} to {_LARGEST}, or one for each layer", value)
        return values

    def number(self, key: str, default: float | None = None) -> float:
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not -1e30 < value < 1e30:
            raise self._wrong(key, "a finite number", value)
        return float(value)

    def expert_groups(self, n_experts: int, *, n_best: int) -> tuple[int, int, int]:
        """Groups of experts, how many of them may be used, and how many of a group's best scores rank it."""
        n_groups = self.integer("expert_group_count", 1)
        n_used = self.integer("expert_group_used_count", n_groups)
        if n_experts % n_groups or n_used > n_groups or (n_groups > 1 and n_best > n_experts // n_groups):
            raise ModelFormatError(
                f"{self.architecture}.expert_group_count ({n_groups}) and .expert_group_used_count ({n_used}) do not "
                f"divide {n_experts} experts."
            )
        return n_groups, n_used, n_best if n_groups > 1 else 1

    def flag(self, key: str, default: bool) -> bool:
        value = self._value(key, default)
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false", value)
        return value

    def flags(self, key: str, n: int) -> list[bool] | None:
        """A flag for each of `n` layers, or None where the file does not say."""
        value = self._metadata.get(f"{self.architecture}.{key}")
        if value is None:
            return None
        flags = value.tolist() if isinstance(value, np.ndarray) else value
        if not isinstance(flags, list) or len(flags) < n or not all(isinstance(flag, bool) for flag in flags):
            raise self._wrong(key, f"{n} times true or false", value)
        return flags[:n]

    def windows(self, n_layers: int) -> list[int]:
        """The sliding window of each layer; 0: it attends to everything, as where the file says nothing."""
        window = self.integer("attention.sliding_window", 0, least=0)
        has_window = self.flags("attention.sliding_window_pattern", n_layers) or [True] * n_layers
        return [window * is_sliding for is_sliding in has_window]

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
