"""Regenerate tests/data/starter_reference.json: float32 greedy continuations of the starter model.

Run with the "reference" extra installed: COLIBRI_STARTER=<file> python -m tests.reference.make_starter_reference
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import torch
import transformers

from tests.reference.starter_model import load_model, load_tokenizer, render, starter_path
from tests.reference.starter_texts import CONVERSATIONS

N_GREEDY = 48
OUTPUT = Path(__file__).parents[1] / "data" / "starter_reference.json"


def greedy(model: transformers.PreTrainedModel, prompt_ids: list[int]) -> tuple[list[int], list[float]]:
    """Return N_GREEDY most likely tokens, not stopped at an end token, and each step's gap to the second best.

    The steps run with transformers' key-value cache; one uncached pass over the whole then has to agree.
    """
    ids, gaps = [], []
    output = model(torch.tensor([prompt_ids]), use_cache=True)
    for _ in range(N_GREEDY):
        best = output.logits[0, -1].topk(2)
        ids.append(int(best.indices[0]))
        gaps.append(float(best.values[0] - best.values[1]))
        output = model(torch.tensor([[ids[-1]]]), past_key_values=output.past_key_values, use_cache=True)
    whole = model(torch.tensor([prompt_ids + ids[:-1]])).logits[0, -N_GREEDY:].topk(2)
    again = (whole.values[:, 0] - whole.values[:, 1]).tolist()
    assert whole.indices[:, 0].tolist() == ids, "cached and uncached passes choose different tokens"
    assert max(abs(a - b) for a, b in zip(gaps, again, strict=True)) < 2e-3
    return ids, gaps


def main() -> None:
    path = starter_path()
    model, tokenizer = load_model(path), load_tokenizer(path)
    end_id = int(model.config.eos_token_id)
    cases = []
    for name, messages in CONVERSATIONS.items():
        rendered = render(path, messages)
        prompt_ids = tokenizer.encode(rendered, add_special_tokens=False).ids
        ids, gaps = greedy(model, prompt_ids)
        cases.append(
            {
                "name": name,
                "messages": messages,
                "rendered": rendered,
                "prompt_ids": prompt_ids,
                "greedy_ids": ids,
                "greedy_gap": [round(gap, 4) for gap in gaps],
                "n_until_end": ids.index(end_id) + 1 if end_id in ids else None,
                "text": tokenizer.decode(ids[: ids.index(end_id)] if end_id in ids else ids),
            }
        )
    document = {
        "about": "float32 evaluation with transformers' GGUF loader, eager attention; see tests/data/README.md",
        "file_sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "versions": {"transformers": transformers.__version__, "torch": torch.__version__},
        "cases": cases,
    }
    lines = json.dumps(document, ensure_ascii=False, separators=(",", ":")).replace('{"name"', '\n{"name"')
    OUTPUT.write_text(lines + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
