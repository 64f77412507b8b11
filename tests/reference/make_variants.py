"""Regenerate tests/data/variants.npz: what transformers computes for the checkpoints of tests/support/variants.py.

    python -m tests.reference.make_variants

Needs torch and transformers 5; float32 on a CPU, eager attention.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers

from tests.support.variants import DATA, N_POSITIONS, VARIANTS


def main() -> None:
    found = {}
    for variant in VARIANTS:
        with tempfile.TemporaryDirectory() as parent:
            folder = variant.write(Path(parent))
            model, info = transformers.AutoModelForCausalLM.from_pretrained(
                folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
            )
            if info["missing_keys"] or info["unexpected_keys"]:
                raise SystemExit(f"{variant.name}: {info}")
            model.eval()
            with torch.no_grad():
                logits = model(torch.tensor([variant.ids])).logits[0]
        found[variant.name] = logits[-N_POSITIONS:].numpy()
        print(variant.name, tuple(logits.shape), f"deviation {float(logits.std()):.3f}")
    np.savez_compressed(DATA, **found)


if __name__ == "__main__":
    main()
