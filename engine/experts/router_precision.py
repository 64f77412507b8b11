"""How often a less precise router chooses other experts: the same text with each precision, the choices compared."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engine.config import ROUTER_PRECISIONS, EngineConfig
from engine.engine import Engine
from engine.errors import InvalidRequestError

WINDOW_TOKENS = 512
Choices = np.ndarray[Any, Any]  # (n_moe_layers, n_tokens, top_k) int32


@dataclass(frozen=True, slots=True)
class RouterDifference:
    """Shares from 0 to 1 of what one precision chooses and fp32 does not.

    of_choices: experts among all that were chosen. by_layer: the same for each layer of `RouterReport.layers`.
    of_tokens: (token, layer) pairs of which at least one expert differs.
    """

    precision: str
    of_choices: float
    of_tokens: float
    by_layer: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class RouterReport:
    """What was measured; the layers are those that have routers."""

    layers: tuple[int, ...]
    n_tokens: int
    n_experts: int
    top_k: int
    differences: tuple[RouterDifference, ...]


def measure_router_precision(
    path: str | os.PathLike[str],
    text: str,
    config: EngineConfig,
    *,
    most_tokens: int = 4 * WINDOW_TOKENS,
    progress: Callable[[str, float], None] | None = None,
) -> RouterReport:
    """Run `text` through the model at `path` with fp32, bf16 and fp16 routers, and compare the chosen experts.

    Each window of WINDOW_TOKENS tokens is read from position 0. As in use, a different choice changes what later layers
    see, so their share includes what follows from it. `progress(precision, fraction)`.
    Raises InvalidRequestError for a dense model and for a text without tokens, and what Engine.open raises.
    """
    tell = progress or (lambda _precision, _fraction: None)
    chosen: dict[str, Choices] = {}
    for precision in ROUTER_PRECISIONS:
        tell(precision, 0.0)
        with Engine.open(path, replace(config, router_precision=precision)) as engine:
            info, layers = engine.info, tuple(engine.telemetry.moe_layers)
            if not info.n_moe_layers:
                raise InvalidRequestError(f"{info.name} is a dense model: it has no routers whose precision matters.")
            ids = engine.tokenizer.encode(text)[:most_tokens]
            if not ids:
                raise InvalidRequestError("The text is empty; at least one token is needed to see what routers choose.")
            window, pieces = min(WINDOW_TOKENS, engine.config.context_length - 1), []
            for first in range(0, len(ids), window):
                pieces.append(engine.evaluate(ids[first : first + window]).experts)
                tell(precision, min(1.0, (first + window) / len(ids)))
            chosen[precision] = np.concatenate(pieces, axis=1)
    reference = chosen.pop(ROUTER_PRECISIONS[0])
    differences = tuple(_difference(name, reference, other) for name, other in chosen.items())
    return RouterReport(layers, reference.shape[1], info.n_experts, info.top_k, differences)


def _difference(precision: str, reference: Choices, other: Choices) -> RouterDifference:
    differs = ~(other[..., :, None] == reference[..., None, :]).any(-1)  # (n_moe_layers, n_tokens, top_k)
    by_layer = tuple(float(share) for share in differs.mean((1, 2)))
    return RouterDifference(precision, float(differs.mean()), float(differs.any(-1).mean()), by_layer)
