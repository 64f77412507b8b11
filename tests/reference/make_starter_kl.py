"""Regenerate tests/data/starter_kl.npz: next-token distributions of the starter model, evaluated in float32.

Run with the "reference" extra installed: COLIBRI_STARTER=<file> python -m tests.reference.make_starter_kl
With --logits FILE.npy the full logits, (n_windows, n_tokens, n_vocab) float32, are kept there as well.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

from tests.reference.starter_model import load_model, load_tokenizer, starter_path
from tests.reference.starter_texts import DIVERGENCE_WINDOWS
from tests.support.divergence import REFERENCE, log_softmax

N_TOKENS = 256
N_POSITIONS = 48
N_TOP = 256


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logits", type=Path)
    arguments = parser.parse_args()
    path = starter_path()
    model, tokenizer = load_model(path), load_tokenizer(path)
    window_ids = np.array(
        [tokenizer.encode(text, add_special_tokens=False).ids[:N_TOKENS] for text in DIVERGENCE_WINDOWS]
    )
    logits = np.stack([model(torch.tensor([ids])).logits[0].numpy() for ids in window_ids.tolist()])
    if arguments.logits:
        np.save(arguments.logits, logits)

    positions = np.stack([np.linspace(15, N_TOKENS - 1, N_POSITIONS).round().astype(np.int16)] * len(window_ids))
    log_p = log_softmax(np.take_along_axis(logits, positions[..., None].astype(np.int64), axis=1))
    order = np.argsort(-log_p, axis=-1, kind="stable")
    top_ids, rest_ids = order[..., :N_TOP], order[..., N_TOP:]
    rest_logprob = np.log(np.exp(np.take_along_axis(log_p, rest_ids, axis=-1)).sum(axis=-1))
    np.savez_compressed(
        REFERENCE,
        window_ids=window_ids.astype(np.uint16),
        positions=positions,
        top_ids=top_ids.astype(np.uint16),
        top_logprob=np.take_along_axis(log_p, top_ids, axis=-1).astype(np.float32),
        rest_logprob=rest_logprob.astype(np.float32),
    )


if __name__ == "__main__":
    main()
