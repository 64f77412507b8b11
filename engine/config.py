"""What an engine is opened with, and what it says about the model it opened."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.errors import InvalidRequestError
from engine.recommended_sampling import RecommendedSampling

KV_TYPES = ("f16", "f32")
ACTIVATIONS = ("int12", "float32")
POLICIES = ("lru", "lfu", "fifo")
PREFETCH = ("auto", "always", "never")
ROUTER_PRECISIONS = ("fp32", "bf16", "fp16")
LEAST_CONTEXT = 32
_MOST_THREADS = 1024


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """How to open a model. Every default suits a workstation on which other programs run too.

    context_length: tokens that one conversation may hold.
    threads: workers, the caller's thread included; None: one for each physical core that this process may use.
    max_batch_tokens: most tokens of one step; a longer prompt is read in several.
    max_sequences: most conversations that advance in one step.
    kv_pool_tokens: positions of all conversations together; None: twice the context.
    kv_type: "f16" or "f32". activations: "int12" (fast) or "float32" (the reference: every product in float32).
    router_precision: "fp32", "bf16" or "fp16": what the routers' matrices are rounded to; None: as in the file.
    tier: instruction-set tier; None: the best that the CPU has.
    expert_cache_bytes, expert_cache_experts: limits of the expert slabs; None: all experts may stay.
    cache_policy: which expert gives way: "lru", "lfu" or "fifo". prefetch: whether experts that will probably be needed
    are loaded ahead where not all are in memory: "always", "never", or "auto": while they come from the disk.
    top_k: experts for each token, instead of the model's own number. logits_rows: most positions of one step that give
    logits; `Engine.evaluate` reads as many at once.
    For calibration: measures_inputs: sum the squares of every matrix's inputs; keeps_inputs:
    keep the newest step's inputs of the matrices whose names end so. layers: (first, last, not included), see Span.
    """

    context_length: int = 4096
    threads: int | None = None
    max_batch_tokens: int = 512
    max_sequences: int = 8
    kv_pool_tokens: int | None = None
    kv_type: str = "f16"
    activations: str = "int12"
    router_precision: str | None = None
    tier: str | None = None
    expert_cache_bytes: int | None = None
    expert_cache_experts: int | None = None
    cache_policy: str = "lru"
    prefetch: str = "auto"
    top_k: int | None = None
    logits_rows: int = 32
    measures_inputs: bool = False
    keeps_inputs: str = ""
    layers: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        for name, value, low in (
            ("context_length", self.context_length, LEAST_CONTEXT),
            ("threads", self.threads, 1),
            ("max_batch_tokens", self.max_batch_tokens, 1),
            ("max_sequences", self.max_sequences, 1),
            ("kv_pool_tokens", self.kv_pool_tokens, self.context_length),
            ("top_k", self.top_k, 1),
            ("logits_rows", self.logits_rows, 1),
            ("expert_cache_bytes", self.expert_cache_bytes, 1),
            ("expert_cache_experts", self.expert_cache_experts, 1),
        ):
            if value is not None and value < low:
                raise InvalidRequestError(f"{name} must be at least {low}, not {value}.")
        if self.threads is not None and self.threads > _MOST_THREADS:
            raise InvalidRequestError(f"threads must be at most {_MOST_THREADS}, not {self.threads}.")
        for name, choice, choices in (
            ("kv_type", self.kv_type, KV_TYPES),
            ("activations", self.activations, ACTIVATIONS),
            ("cache_policy", self.cache_policy, POLICIES),
            ("prefetch", self.prefetch, PREFETCH),
            ("router_precision", self.router_precision or ROUTER_PRECISIONS[0], ROUTER_PRECISIONS),
        ):
            if choice not in choices:
                raise InvalidRequestError(f"{name} must be one of {', '.join(choices)}, not {choice!r}.")


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """Facts about an opened model, for people and for programs."""

    path: Path
    name: str
    architecture: str
    type_name: str  # the tensor type that most weights have, such as "Q4_K"
    licence: str | None
    file_bytes: int
    n_parameters: int
    n_layers: int
    n_embedding: int
    n_vocab: int
    training_context: int
    n_moe_layers: int
    n_experts: int
    top_k: int
    tier: str
    sampling: RecommendedSampling | None = None  # what the file, its publisher or its size recommends
