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

from app.benchmark import Kind, SpeedTest, measure
from engine import Engine, EngineConfig


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--generate", type=int, default=128)
    parser.add_argument("--repetitions", type=int, default=1)
    arguments = parser.parse_args()
    tests = [SpeedTest(Kind.PROMPT, arguments.prompt), SpeedTest(Kind.GENERATE, arguments.generate)]
    start = time.perf_counter()
    config = EngineConfig(context_length=max(1024, *(t.n_context_tokens for t in tests)), threads=arguments.threads)
    with Engine.open(arguments.model, config) as engine:
        open_ms = (time.perf_counter() - start) * 1000
        engine.load()
        load_ms = (time.perf_counter() - start) * 1000
        result = measure(engine, tests, arguments.repetitions)
    samples = {speed.test.kind.value: speed.samples for speed in result.speeds}
    print(json.dumps({**samples, "open_ms": open_ms, "load_ms": load_ms}))


if __name__ == "__main__":
    main()
