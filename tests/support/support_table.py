"""What runs: for each architecture, tensor type and instruction tier whether a model computes what its file means.

    found = run_cell("glm4moe", TensorType.Q4_K, folder)   # the tiers that are right

docs/support.md is `table_text` of all cells; `python -m tests.reference.make_support_table` writes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from engine import Engine, EngineConfig
from engine.gguf import TensorType
from engine.gguf.expansions import EXPANSIONS
from engine.kernels.tiers import TIERS
from tests.reference.numpy_decoder import NumpyDecoder
from tests.support.tiny_models import TINY_MODELS, Sizes, write_tiny_model

PAGE = Path(__file__).parents[2] / "docs" / "support.md"
NAMES = tuple(sorted(TINY_MODELS))
TYPES = tuple(sorted(EXPANSIONS, key=lambda type: type.value))
LETTERS = {"amx": "a", "avx512": "5", "avx2": "2", "generic": "g"}
AVAILABLE = tuple(name for name, tier in TIERS.items() if tier.available)
LIMIT = 0.05  # the median position's difference, in deviations of the logits; weights that mean nothing give 1.4

_N_TOKENS = 9
_CONFIG = {"context_length": 32, "max_batch_tokens": 16, "max_sequences": 1, "threads": 1, "kv_pool_tokens": 32}
# Every row of a matrix is a whole block of 256.
_WIDE = Sizes(
    hidden=256,
    head_dim=64,
    feed_forward=256,
    expert_columns=256,
    experts=4,
    top_k=2,
    n_latent=256,
    n_plain=256,
    n_value=64,
    query_rank=256,
    delta_dim=64,
)
_HEAD = """# What runs

Each cell is a test (`tests/engine/test_support.py`): a small model of the architecture, all of whose matrices have the
tensor type, is opened on the instruction tier as any model is, and must give the logits of a float64 evaluation of the
same file (`tests/reference/numpy_decoder.py`) within 5 % of their deviation (weights that mean nothing give 140 %; the
12 bits of the activations and the few routers that they tip give 1 to 2 %). That evaluation in turn equals the
independent results for each published architecture. `python -m tests.reference.make_support_table` wrote this page from
what ran; a test fails where it no longer holds.

Tiers: a AMX, 5 AVX-512 (VNNI), 2 AVX2, g any CPU; a missing letter would be a combination that is wrong or refused.
The file's norms, biases, routers and convolutions are F32, as converters leave them. "mixtral" is the architecture
`llama` with experts.

"""

_TAIL = """
## What is refused by name

No published model needs these; a file or checkpoint that does is refused before anything is computed:

- embeddings, feed-forward networks, experts and the values of all heads together whose width is no multiple of 4 (types
  of blocks ask for whole blocks besides); with layer norms, short convolutions or biases of experts: of 16
- heads of a gated delta net of which keys are no multiple of 16 values, or values of 32; latent attention likewise
- experts of one layer in several types; tensors that nothing of the architecture uses
- when converting: positions scaled by a method that the architecture's publisher does not have (NTK by `dynamic` but
  for Hunyuan, longrope but for Phi); DeepSeek's `moe_layer_freq` above 1; other gates than SiLU; biases of LFM2's
  convolutions; other layers without positions than every fourth in SmolLM3, other windows than every second in gpt-oss

Not refused, though llama.cpp refuses it or computes something else: sliding windows of Mistral 7B v0.1, of the first
Mixtral and of Qwen (`attention.sliding_window`, and `attention.sliding_window_pattern` where not all layers have them),
dense layers among sparse ones in Qwen's mixtures, llama3's scaling in any architecture whose heads rotate, heads and
networks of any even width (OpenLLaMA 3B: heads of 100 values; Danube 3: 120; stories260K: 8, and 172 columns).
`tests/engine/convert/test_variants.py` holds each against what transformers computes.
"""

Cells = Mapping[tuple[str, TensorType], str]  # (architecture, type) -> the letters of the tiers that are right


def run_cell(name: str, type: TensorType, folder: Path) -> str:
    """The letters of this machine's tiers on which a model of the architecture and type computes what it means."""
    path = write_tiny_model(folder / f"{name}-{type.name}.gguf", name, _WIDE, type)
    ids = np.random.default_rng(3).integers(0, _WIDE.n_vocab, _N_TOKENS).tolist()
    expected, _ = NumpyDecoder(path).forward(ids)
    letters = "".join(LETTERS[tier] for tier in AVAILABLE if _is_right(path, tier, ids, expected))
    path.unlink()
    return letters


def _is_right(path: Path, tier: str, ids: list[int], expected: np.ndarray) -> bool:
    with Engine.open(path, EngineConfig(tier=tier, **_CONFIG)) as engine:
        differences = np.sqrt(np.mean((engine.logits(ids) - expected) ** 2, axis=-1))
    return bool(np.median(differences) < LIMIT * expected.std())


def table_text(cells: Cells) -> str:
    """The whole page."""
    lines = ["| | " + " | ".join(type.name for type in TYPES) + " |", "| --- |" + " --- |" * len(TYPES)]
    lines += [f"| {name} | " + " | ".join(cells[name, type] or "-" for type in TYPES) + " |" for name in NAMES]
    return _HEAD + "\n".join(lines) + "\n" + _TAIL


def read_table(text: str) -> dict[tuple[str, TensorType], str]:
    """The cells of a page that `table_text` made."""
    head, _, *rows = [line for line in text.splitlines() if line.startswith("|")]
    types = [TensorType[name] for name in _entries(head)[1:]]
    cells = {}
    for name, *letters in map(_entries, rows):
        cells |= {(name, type): found.strip("-") for type, found in zip(types, letters, strict=True)}
    return cells


def _entries(line: str) -> list[str]:
    return [entry.strip() for entry in line.strip("|").split("|")]
