"""What a model is best sampled with: what its file says, else its publisher, else what suits so small a model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite
from typing import Any

_SMALL_PARAMETERS = 500_000_000

# The file's keys, as llama.cpp writes them since November 2025, and what they mean to SamplingParams with the values
# that it takes.
_KEYS: tuple[tuple[str, str, float, float], ...] = (
    ("temp", "temperature", 0, 100),
    ("top_k", "top_k", 0, 1 << 30),
    ("top_p", "top_p", 0, 1),
    ("min_p", "min_p", 0, 1),
    ("penalty_repeat", "repetition_penalty", 0.01, 100),
)

# Names of families, matched at the beginning of general.basename and general.name, and their publishers' advice, each
# from the model card of the instruction-tuned model, or from its generation_config.json.
_FAMILIES: tuple[tuple[str, str, Mapping[str, float]], ...] = (
    ("SmolLM2", r"smollm2\b", {"temperature": 0.2, "top_p": 0.9}),
    ("SmolLM3", r"smollm3\b", {"temperature": 0.6, "top_p": 0.95}),
    (
        "Qwen3",  # those that think or do not; the later ones that do only one of both are advised otherwise
        r"qwen3[ -]\d(?!.*(instruct|coder|thinking|2507))",
        {"temperature": 0.6, "top_p": 0.95, "top_k": 20, "min_p": 0.0},
    ),
    ("LFM2", r"lfm2[ -]", {"temperature": 0.3, "min_p": 0.15, "repetition_penalty": 1.05}),
)
# Small models' improbable tokens are mostly wrong ones, and they fall into loops: of 48 answers of SmolLM2 135M at
# these values 12 did so without the penalty, none with it.
_FOR_SMALL: Mapping[str, float] = {"temperature": 0.2, "top_p": 0.9, "repetition_penalty": 1.1}


class Source(StrEnum):
    """Who recommends it: the file's own keys, the publisher of its family, or a rule for small models."""

    FILE = "file"
    FAMILY = "family"
    SIZE = "size"


@dataclass(frozen=True, slots=True)
class RecommendedSampling:
    """`values`: of the SamplingParams named; of others nothing is recommended. `family`: where it is the source."""

    values: Mapping[str, float]
    source: Source
    family: str = ""


def recommended_sampling(metadata: Mapping[str, Any], n_parameters: int) -> RecommendedSampling | None:
    """What is recommended for a model with these keys; None: nothing. A value that makes no sense is left out."""
    said = {
        name: _number(metadata.get(f"general.sampling.{key}"), low, high, is_whole=name == "top_k")
        for key, name, low, high in _KEYS
    }
    values = {name: value for name, value in said.items() if value is not None}
    if values:
        return RecommendedSampling(values, Source.FILE)
    names = [str(metadata.get(f"general.{key}", "")).lower() for key in ("name", "basename")]
    is_small, advised = n_parameters < _SMALL_PARAMETERS, dict[str, float]()
    for family, pattern, advice in _FAMILIES:
        if any(re.match(pattern, name) for name in names):
            if not is_small or "repetition_penalty" in advice:
                return RecommendedSampling(advice, Source.FAMILY, family)
            advised |= advice
    return RecommendedSampling({**_FOR_SMALL, **advised}, Source.SIZE) if is_small else None


def _number(value: Any, low: float, high: float, *, is_whole: bool) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not isfinite(value) or not low <= value <= high:
        return None
    return int(value) if is_whole else float(f"{value:.6g}")  # the file has float32: 0.95 is not to be 0.949999988
