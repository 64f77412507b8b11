"""Whether long answers decay: `python -m tests.benchmarks.long_answer MODEL [--tokens 2000] [--answers 3]`.

The engine continues a story, with its usual activations and in float32. Printed, by parts of the answer: the share of
4-grams that the part had before (of both), and the divergence in nats of the usual engine's next-token distributions
from float32's, at 16 positions in the middle of each part of its own first answer.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from engine import Engine, EngineConfig, SamplingParams
from tests.support.divergence import log_softmax

BEGINNING = (
    "Chapter One\n\nThe ship left the harbour at dawn, and the old captain, who had sailed this sea for forty years, "
    "stood at the rail and"
)
N_PARTS = 4
N_POSITIONS = 16  # of each part


def main(path: Path, n_tokens: int, n_answers: int) -> None:
    config = {"context_length": n_tokens + 64, "max_sequences": n_answers}
    with Engine.open(path, EngineConfig(**config, kv_pool_tokens=n_answers * (n_tokens + 64))) as engine:
        prompt = engine.tokenizer.encode(BEGINNING)
        answers = [generate(engine, prompt, n_tokens, seed) for seed in range(n_answers)]
        report("usual activations", answers)
        positions = [len(prompt) + n_tokens * (2 * part + 1) // (2 * N_PARTS) for part in range(N_PARTS)]
        usual = distributions(engine, prompt + answers[0], positions)
    precise = EngineConfig(
        **config, kv_pool_tokens=n_answers * (n_tokens + 64), activations="float32", kv_type="f32", max_batch_tokens=128
    )
    with Engine.open(path, precise) as engine:
        exact = distributions(engine, prompt + answers[0], positions)
        divergence = (np.exp(exact) * (exact - usual)).sum(-1).mean(-1)
        print("mean divergence by part:", " ".join(f"{value:.2e}" for value in divergence), flush=True)
        report("float32", [generate(engine, prompt, n_tokens, seed) for seed in range(n_answers)])


def generate(engine: Engine, prompt: list[int], n_tokens: int, seed: int) -> list[int]:
    """`n_tokens` tokens, none of which ends the answer."""
    never = dict.fromkeys(engine.tokenizer.end_ids, -1e9)
    params = SamplingParams(temperature=0.8, top_p=0.95, seed=seed, max_tokens=n_tokens, logit_bias=never)
    return [delta.token_id for delta in engine.generate(prompt, params) if delta.token_id is not None]


def distributions(engine: Engine, ids: list[int], positions: list[int]) -> np.ndarray:
    """Log-probabilities of the next token, (len(positions), N_POSITIONS, n_vocab), around each position."""
    engine.reset_cache()
    chosen = [range(position - N_POSITIONS // 2, position + N_POSITIONS // 2) for position in positions]
    logits = engine.logits(ids)
    return np.stack([log_softmax(logits[list(places)]) for places in chosen])


def report(name: str, answers: list[list[int]]) -> None:
    """Print the share of repeated 4-grams of each part, the mean of all answers."""
    shares = [[repeated(part) for part in np.array_split(np.array(answer), N_PARTS)] for answer in answers]
    print(f"{name}, repeated 4-grams by part:", " ".join(f"{share:.3f}" for share in np.mean(shares, 0)), flush=True)


def repeated(tokens: np.ndarray) -> float:
    """The share of 4-grams that stood in `tokens` before."""
    grams = [tuple(tokens[i : i + 4]) for i in range(len(tokens) - 3)]
    return 1 - len(set(grams)) / len(grams)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--tokens", type=int, default=2000)
    parser.add_argument("--answers", type=int, default=3)
    arguments = parser.parse_args()
    main(arguments.model, arguments.tokens, arguments.answers)
