"""How long a model takes to open, and to its first token; how much memory the process had at most.

    python -m tests.benchmarks.opening MODEL.gguf [--repetitions 9]

The first opening of a process also loads the kernels' code, and compiles it, if this machine has not done so yet. The
peak is that of a prompt of 512 tokens and 32 answered; a peer's is what /usr/bin/time -v says of the same on its side.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import time
from pathlib import Path

from engine import Engine, EngineConfig, SamplingParams

PROMPT_TOKENS, ANSWER_TOKENS = 512, 32


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=9)
    arguments = parser.parse_args()
    config = EngineConfig(context_length=1024, threads=arguments.threads)
    opened, answered = [], []
    for _ in range(arguments.repetitions):
        start = time.perf_counter()
        with Engine.open(arguments.model, config) as engine:
            opened.append((time.perf_counter() - start) * 1e3)
            for _delta in engine.generate(engine.tokenizer.encode("Hello"), SamplingParams(max_tokens=1)):
                pass
            answered.append((time.perf_counter() - start) * 1e3)
    with Engine.open(arguments.model, config) as engine:
        prompt = [token % engine.info.n_vocab for token in range(1000, 1000 + PROMPT_TOKENS)]
        list(engine.generate(prompt, SamplingParams(max_tokens=ANSWER_TOKENS, ignore_eos=True)))
    figures = {
        "open_ms": {"first": opened[0], "median": statistics.median(opened), "least": min(opened)},
        "first_token_ms": {"first": answered[0], "median": statistics.median(answered), "least": min(answered)},
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
