"""How fast a model that is not there yet will write on this machine, by what memory gives and what a token reads."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app import paths
from app.machine import cpu_name

if TYPE_CHECKING:
    from engine.convert import ConversionPlan

logger = logging.getLogger(__name__)

_FILE = "memory-speed.json"
_MEASURED_BYTES = 256 << 20
_REACHED = 0.85  # of the memory's speed, by our kernels
_TOKEN_S = 0.2e-3  # sampling, and what a step costs besides
_LAYER_S = 30e-6  # barriers, norms, attention to a short text: of tiny models with 2 and with 32 layers
_MOST = 300.0  # nobody sees more, and what a window costs besides is not counted here
_EXPERTS, _EMBEDDING, _OUTPUT = "_exps.", "token_embd.weight", "output.weight"


@dataclass(frozen=True, slots=True)
class Weights:
    """A tensor of the model, as far as its reading goes."""

    name: str
    n_bytes: int


def active_bytes(tensors: Iterable[Weights], n_experts: int | None, top_k: int | None) -> float:
    """Bytes that are read for each token: of routed experts those that are chosen, of embeddings one row."""
    found = list(tensors)
    share = min(1.0, (top_k or 1) / n_experts) if n_experts else 1.0
    has_output = any(tensor.name == _OUTPUT for tensor in found)
    total = 0.0
    for tensor in found:
        if tensor.name == _EMBEDDING and has_output:
            continue
        total += tensor.n_bytes * (share if _EXPERTS in tensor.name else 1.0)
    return total


def forecast(n_active_bytes: float, n_layers: int, memory_bytes_per_second: float) -> float:
    """Tokens per second, at most 300, rounded to two digits: it is no measurement."""
    seconds = n_active_bytes / (_REACHED * memory_bytes_per_second) + _LAYER_S * n_layers + _TOKEN_S
    rate = 1 / seconds
    return min(float(f"{rate:.2g}"), _MOST) if math.isfinite(rate) else 0.0


def is_most(tokens_per_second: float) -> bool:
    """Whether a forecast only says that the model is fast: as much as that, or more."""
    return tokens_per_second >= _MOST


def forecast_of(plan: ConversionPlan, memory_bytes_per_second: float) -> float:
    """Tokens per second of the file that a plan will make."""
    keys = {name.partition(".")[2]: entry.value for name, entry in plan.metadata.items()}
    n_experts, top_k, n_layers = (keys.get(name) for name in ("expert_count", "expert_used_count", "block_count"))
    weights = [Weights(tensor.name, tensor.n_bytes) for tensor in plan.tensors]
    return forecast(active_bytes(weights, n_experts, top_k), int(n_layers or 0), memory_bytes_per_second)


def memory_speed(n_threads: int) -> float | None:
    """Bytes per second that this machine's memory gives; measured once and kept. None if too little of it is free."""
    path = paths.cache_dir() / _FILE
    wanted = {"cpu": cpu_name(), "threads": n_threads}
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        if {key: known[key] for key in wanted} == wanted and known["bytes_per_second"] > 0:
            return float(known["bytes_per_second"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    from engine.hardware.memory_speed import measure_memory  # noqa: PLC0415 - it brings NumPy

    try:
        speed = measure_memory(n_threads, _MEASURED_BYTES).fastest  # what is not disturbed by others
        path.write_text(json.dumps({**wanted, "bytes_per_second": speed}), encoding="utf-8")
    except (MemoryError, OSError) as error:
        logger.info("no forecast of speeds: %s", error)
        return None
    return speed
