"""A checkpoint's config.json, every value checked when it is asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.convert.sizes import Size
from engine.errors import ModelFormatError

_LARGEST = 1 << 31


class Configuration:
    """Typed access to the model's values. A multimodal checkpoint's `text_config` counts before the top level.

    A name may be a tuple of names that mean the same; the first that is there (and not null) counts.
    """

    def __init__(self, values: Mapping[str, Any], path: Path) -> None:
        text = values.get("text_config")
        self._values = {**values, **(text if isinstance(text, dict) else {})}
        if "architectures" in values:
            self._values["architectures"] = values["architectures"]
        self.path = path
        self.rope = self._rope()

    @property
    def values(self) -> Mapping[str, Any]:
        """Every value as it is, those of `text_config` before those of the top level."""
        return self._values

    @property
    def architecture(self) -> str:
        """The model's class, the first of `architectures`."""
        names = self._values.get("architectures")
        if not isinstance(names, list) or not names or not isinstance(names[0], str):
            raise self.wrong("architectures", "a list with the model's class", names)
        return names[0]

    def get(self, name: str | tuple[str, ...]) -> Any:
        """The value as it is, None where it is missing."""
        return self._find(name)[1]

    def size(self, name: str | tuple[str, ...], default: int | None = None, *, least: int = 1) -> Size:
        """An integer from `least` on that knows its name."""
        found, value = self._find(name)
        if value is None:
            if default is None:
                raise self.wrong(found, f"an integer from {least} on", None)
            value = default
        if type(value) is not int or not least <= value <= _LARGEST:
            raise self.wrong(found, f"an integer from {least} to {_LARGEST:,}", value)
        return Size(value, found)

    def same_size(self, name: str, n_layers: int) -> Size:
        """An integer that may also be written once for each layer, all equal."""
        value = self.get(name)
        if isinstance(value, list):
            if len(value) < n_layers or any(item != value[0] for item in value):
                raise self.wrong(name, f"one integer, or {n_layers} equal ones", value)
            value = value[0]
        if type(value) is not int or not 1 <= value <= _LARGEST:
            raise self.wrong(name, f"an integer from 1 to {_LARGEST:,}", value)
        return Size(value, name)

    def number(self, name: str | tuple[str, ...], default: float | None = None) -> float:
        """A finite number."""
        found, value = self._find(name)
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise self.wrong(found, "a finite number", value)
        return float(value)

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        value = self.get(name)
        value = default if value is None else value
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false", value)
        return value

    def texts(self, name: str, length: int) -> list[str] | None:
        """A list of `length` strings, None where it is missing."""
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) != length or not all(isinstance(item, str) for item in value):
            raise self.wrong(name, f"a list of {length} names, one for each layer", value)
        return value

    def wrong(self, name: str, expected: str, found: Any) -> ModelFormatError:
        """An error about the value called `name`; the caller raises it."""
        what = "nothing" if found is None else f"{found!r:.80}"
        return ModelFormatError(f"{self.path}: expected {expected} for {name}, found {what}.")

    def _find(self, name: str | tuple[str, ...]) -> tuple[str, Any]:
        names = (name,) if isinstance(name, str) else name
        for candidate in names:
            if (value := self._values.get(candidate)) is not None:
                return candidate, value
        return names[0], None

    def _rope(self) -> Rope:
        scaling = self._values.get("rope_scaling")
        parameters = self._values.get("rope_parameters")
        values: dict[str, Any] = {}
        for name in ("rope_theta", "partial_rotary_factor", "original_max_position_embeddings"):
            if self._values.get(name) is not None:
                values[name] = self._values[name]
        for name, part in (("rope_scaling", scaling), ("rope_parameters", parameters)):
            if part is not None and not isinstance(part, dict):
                raise self.wrong(name, "an object or null", part)
            values |= part or {}
        return Rope(values, self)


class Rope:
    """The values about rotary positions, wherever the configuration has them.

    Published files have `rope_theta` and `rope_scaling` (with `type` or `rope_type`); newer ones `rope_parameters`.
    """

    def __init__(self, values: Mapping[str, Any], configuration: Configuration) -> None:
        self._values = values
        self._configuration = configuration

    @property
    def kind(self) -> str:
        """`default`, `linear`, `yarn`, `llama3`, `longrope`, `dynamic`."""
        kind = self._values.get("rope_type") or self._values.get("type") or "default"
        if not isinstance(kind, str):
            raise self._configuration.wrong("rope_scaling.rope_type", "a name", kind)
        return {"su": "longrope", "mrope": "default"}.get(kind, kind)

    def has(self, name: str) -> bool:
        return self._values.get(name) is not None

    def number(self, name: str, default: float | None = None) -> float:
        value = self._values.get(name)
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise self._configuration.wrong(f"rope_scaling.{name}", "a finite number", value)
        return float(value)

    def integer(self, name: str, default: int | None = None) -> int:
        value = self.number(name, default)
        if value != int(value) or not 0 < value <= _LARGEST:
            raise self._configuration.wrong(f"rope_scaling.{name}", "a positive integer", value)
        return int(value)

    def flag(self, name: str, default: bool) -> bool:
        value = self._values.get(name)
        value = default if value is None else value
        if not isinstance(value, bool):
            raise self._configuration.wrong(f"rope_scaling.{name}", "true or false", value)
        return value

    def numbers(self, name: str, length: int) -> list[float]:
        """`length` finite numbers."""
        value = self._values.get(name)
        if (
            not isinstance(value, list)
            or len(value) != length
            or not all(isinstance(item, int | float) and math.isfinite(item) for item in value)
        ):
            raise self._configuration.wrong(f"rope_scaling.{name}", f"{length} finite numbers", value)
        return [float(item) for item in value]

    def integers(self, name: str) -> list[int] | None:
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(type(item) is int and 0 <= item < _LARGEST for item in value):
            raise self._configuration.wrong(f"rope_scaling.{name}", "a list of integers", value)
        return list(value)
