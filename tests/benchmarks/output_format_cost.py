"""What holding an answer to a form costs: `python -m tests.benchmarks.output_format_cost MODEL`.

Prints, for each form, the share of decode time that its masks take, and the longest of them.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

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
    spent: list[float] = []

    class Watched(Constraint):
        def allowed(self) -> int:
            began = time.perf_counter()
            address = Constraint_allowed(self)
            spent.append(time.perf_counter() - began)
            return address

        def accept(self, token: int) -> None:
            began = time.perf_counter()
            Constraint_accept(self, token)
            spent[-1] += time.perf_counter() - began

    Constraint_allowed, Constraint_accept = Constraint.allowed, Constraint.accept
    with Engine.open(path) as engine:
        for name, form in FORMS.items():
            Constraint.allowed, Constraint.accept = Watched.allowed, Watched.accept  # type: ignore[method-assign]
            prompt = engine.chat_prompts.prompt([{"role": "user", "content": "List books about birds."}]).ids
            spent.clear()
            times = []
            params = SamplingParams(seed=3, max_tokens=300, output_format=form)
            for delta in engine.generate(prompt, params):
                if delta.token_id is not None:
                    times.append(time.perf_counter())
            decode_s, masks_s = times[-1] - times[0], np.array(spent[1:])
            print(
                f"{name}: {len(times)} tokens, {decode_s / (len(times) - 1) * 1e3:.2f} ms each; masks "
                f"{masks_s.sum() / decode_s:.2%} of it, mean {masks_s.mean() * 1e6:.0f} us, "
                f"longest {masks_s.max() * 1e6:.0f} us"
            )
            Constraint.allowed, Constraint.accept = Constraint_allowed, Constraint_accept  # type: ignore[method-assign]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
