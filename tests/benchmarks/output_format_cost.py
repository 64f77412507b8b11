"""What holding an answer to a form costs: `python -m tests.benchmarks.output_format_cost MODEL`.

Prints, for each form, the share of decode time that the engine waits for its masks, what they take of the thread that
works them out meanwhile, and the median token's time beside that of free answers before and after.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from engine import Engine, OutputFormat, SamplingParams
from engine.constraint import Constraint

ITEM = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "year": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["title", "year", "tags"],
}
FORMS = {
    "JSON schema": OutputFormat(json_schema={"type": "array", "items": ITEM, "minItems": 30}),
    "any JSON": OutputFormat(json_schema={}),
    "regex": OutputFormat(regex=r"([A-Z][a-z]+( [a-z]+){2,12}[.!?] ){40}"),
    "grammar": OutputFormat(grammar='start: (line "\\n")+\nline: WORD (" " WORD)~2..9\nWORD: /[a-z]{1,12}/'),
}


def main(path: Path) -> None:
    waited, computed = Spent(), Spent()
    Constraint.allowed = waited.watched(Constraint.allowed)  # type: ignore[method-assign]
    Constraint.accept = waited.watched(Constraint.accept)  # type: ignore[method-assign]
    Constraint._compute_mask = computed.watched(Constraint._compute_mask)  # type: ignore[method-assign]
    with Engine.open(path) as engine:
        prompt = engine.chat_prompts.prompt([{"role": "user", "content": "List books about birds."}]).ids
        free_ms = median_token_ms(engine, prompt, None)[0]
        for name, form in FORMS.items():
            waited.seconds.clear(), computed.seconds.clear()
            token_ms, decode_ms, n_tokens = median_token_ms(engine, prompt, form)
            again_ms = median_token_ms(engine, prompt, None)[0]
            print(
                f"{name}: {n_tokens} tokens, waited for masks {waited.total_ms / decode_ms:.2%} of the decode time; "
                f"a mask takes {computed.mean_us:.0f} us (longest {computed.longest_us:.0f}) of another thread; "
                f"median token {token_ms:.2f} ms, without a form {free_ms:.2f} before and {again_ms:.2f} after"
            )
            free_ms = again_ms


def median_token_ms(engine: Engine, prompt: list[int], form: OutputFormat | None) -> tuple[float, float, int]:
    """The median token's milliseconds, those of all after the first, and how many tokens there were."""
    params = SamplingParams(seed=3, max_tokens=300, output_format=form, ignore_eos=form is None)
    times = [time.perf_counter() for delta in engine.generate(prompt, params) if delta.token_id is not None]
    steps = np.diff(times) * 1e3
    return float(np.median(steps)), float(steps.sum()), len(times)


class Spent:
    """Sums the time of every call of some functions."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def watched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            began = time.perf_counter()
            result = function(*arguments)
            self.seconds.append(time.perf_counter() - began)
            return result

        return call

    @property
    def total_ms(self) -> float:
        return sum(self.seconds) * 1e3

    @property
    def mean_us(self) -> float:
        return float(np.mean(self.seconds)) * 1e6

    @property
    def longest_us(self) -> float:
        return max(self.seconds) * 1e6


if __name__ == "__main__":
    main(Path(sys.argv[1]))
