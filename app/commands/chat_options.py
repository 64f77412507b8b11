"""The options of `colibri chat`, checked as they are read, and what they mean to the engine."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from app.settings import Settings

if TYPE_CHECKING:
    from engine import EngineConfig, ModelInfo, SamplingParams


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add all options; what is not given comes from the user's settings."""
    parser.add_argument("-m", "--model", metavar="FILE", help="a GGUF model (default: the starter model)")
    parser.add_argument("-p", "--prompt", metavar="TEXT", help="answer this and end")
    parser.add_argument("--system", metavar="TEXT", help='the system prompt; "" for an empty one')
    parser.add_argument("--think", metavar="HOW", help="on or off; low, medium or high: what the model knows of these")
    parser.add_argument("--no-prompt", action="store_true", help="a message per input line; print only the answers")
    parser.add_argument("--json", action="store_true", help="print one JSON object (with -p or text from a pipe)")
    parser.add_argument("--perf", action="store_true", help="say at the end where the time went, with advice")

    sampling = parser.add_argument_group("sampling")
    sampling.add_argument("--temperature", type=_number(0, math.inf), metavar="T", help="0: always the likeliest token")
    sampling.add_argument("--top-k", type=whole(0), metavar="K", help="choose among the K likeliest; 0: among all")
    sampling.add_argument("--top-p", type=_number(0, 1), metavar="P", help="choose among tokens that make up P")
    sampling.add_argument("--min-p", type=_number(0, 1), metavar="P", help="leave out tokens below P of the likeliest")
    sampling.add_argument("-n", "--max-tokens", type=whole(1), metavar="N", help="stop after N tokens")
    sampling.add_argument("--seed", type=whole(0), metavar="N", help="the same seed gives the same answer")

    engine = parser.add_argument_group("engine")
    engine.add_argument("--threads", type=whole(1), metavar="N", help="default: one for each physical core")
    engine.add_argument("--context", type=whole(1), metavar="N", help="how many tokens a conversation may have")
    add_cache_options(engine)
    engine.add_argument(
        "--router-precision",
        choices=("fp32", "bf16", "fp16"),
        help="round the routers to this (default: as in the file)",
    )


def add_cache_options(parser: argparse._ActionsContainer) -> None:
    """Options of how many experts stay in memory, and whether those to come are asked of the disk ahead."""
    parser.add_argument("--cache-size", type=whole(1), metavar="N", help="keep at most N experts in memory (all)")
    parser.add_argument(
        "--prefetch",
        choices=("auto", "always", "never"),
        default="auto",
        help="ask the disk for experts ahead of their turn (auto: while they come from the disk)",
    )


def sampling_params(options: argparse.Namespace, settings: Settings, model: ModelInfo) -> SamplingParams:
    """The engine's sampling parameters: the options, else the settings, else what is recommended for the model."""
    from engine import SamplingParams  # noqa: PLC0415 - loading the engine takes a while

    values = settings.sampling.resolved(model.sampling.values if model.sampling is not None else None)
    names = ("temperature", "top_k", "top_p", "min_p", "seed", "max_tokens")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    return SamplingParams(**values | given)


def engine_config(options: argparse.Namespace, settings: Settings) -> EngineConfig:
    """The engine's configuration: the settings, save where an option was given."""
    from engine import EngineConfig  # noqa: PLC0415

    context_length = options.context or settings.context_length
    threads = options.threads or settings.threads
    return EngineConfig(
        context_length,
        threads,
        max_sequences=1,
        kv_pool_tokens=context_length,
        router_precision=options.router_precision,
        expert_cache_experts=options.cache_size,
        prefetch=options.prefetch,
    )


def whole(least: int) -> Callable[[str], int]:
    """A reader of whole numbers, `least` or more."""

    def whole_number(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"expected {least} or more, found {value}")
        return value

    return whole_number


def _number(least: float, most: float) -> Callable[[str], float]:
    def number(text: str) -> float:
        value = float(text)
        if not (least <= value <= most) or math.isinf(value):
            limits = f"{least} or more" if math.isinf(most) else f"{least} to {most}"
            raise argparse.ArgumentTypeError(f"expected {limits}, found {text}")
        return value

    return number
