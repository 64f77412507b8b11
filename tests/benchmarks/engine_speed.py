"""Measures our engine on one model: a prompt of some tokens, then a generation of some tokens from an empty context.

    python -m tests.benchmarks.engine_speed MODEL [--threads 2] [--prompt 512] [--generate 128] [--repetitions 1]

Prints one JSON object: lists of tokens per second. Generation includes sampling and turning tokens into text. Prompts
are random tokens, new ones each time, so that no reuse of a prefix can help.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from engine import Engine, EngineConfig, SamplingParams


def prompt_tokens_per_second(engine: Engine, ids: list[int]) -> float:
    """Time from adding a prompt to its first generated token."""
    params = SamplingParams(temperature=0.0, max_tokens=1, ignore_eos=True)
    start = time.perf_counter()
    for _ in engine.generate(ids, params):
        pass
    return len(ids) / (time.perf_counter() - start)


def generated_tokens_per_second(engine: Engine, first_id: int, n_tokens: int) -> float:
    """Rate of the tokens after the first one."""
    params = SamplingParams(temperature=0.0, max_tokens=n_tokens + 1, ignore_eos=True)
    times = [time.perf_counter() for d in engine.generate([first_id], params) if d.token_id is not None]
    assert len(times) == n_tokens + 1, f"expected {n_tokens + 1} tokens, got {len(times)}"
    return n_tokens / (times[-1] - times[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--generate", type=int, default=128)
    parser.add_argument("--repetitions", type=int, default=1)
    arguments = parser.parse_args()
    random = np.random.default_rng(time.time_ns())
    start = time.perf_counter()
    config = EngineConfig(context_length=max(1024, arguments.prompt + 64), threads=arguments.threads)
    with Engine.open(arguments.model, config) as engine:
        load_ms = (time.perf_counter() - start) * 1000

        def random_ids(n_tokens: int) -> list[int]:
            return [int(token) for token in random.integers(0, engine.info.n_vocab, n_tokens)]

        # Not measured: touches every weight and expert once, as the peer's own warm-up run does.
        prompt_tokens_per_second(engine, random_ids(arguments.prompt))
        generated_tokens_per_second(engine, random_ids(1)[0], 4)
        prompt = [prompt_tokens_per_second(engine, random_ids(arguments.prompt)) for _ in range(arguments.repetitions)]
        generate = [
            generated_tokens_per_second(engine, random_ids(1)[0], arguments.generate)
            for _ in range(arguments.repetitions)
        ]
    print(json.dumps({"prompt": prompt, "generate": generate, "load_ms": load_ms}))


if __name__ == "__main__":
    main()
