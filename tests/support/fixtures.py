"""Small models with known answers: tests/data/fixtures, and the whole folder that COLIBRI_FIXTURES names.

    CASES = fixture_cases()
    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)

A case's arrays are float32 evaluations of exactly the weights in its file (limit for a float32 engine: 1e-3).
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.convert import Checkpoint, ConversionOptions, plan_conversion, write_gguf
from engine.gguf import TensorType
from engine.gguf.expansions import EXPANSIONS
from engine.models import ARCHITECTURES
from tests.support.gguf_copy import SourceFile, split_experts, write_copy

COMPACT = Path(__file__).parents[1] / "data" / "fixtures"
PROMPTS = ("p0", "p1", "p2")
TENSOR_TYPES = frozenset(tensor_type.name for tensor_type in EXPANSIONS)


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt's expectations. Router arrays are None for dense models and where no routes were recorded."""

    input_ids: list[int]
    positions: np.ndarray  # (n_positions,) int32
    logits: np.ndarray  # (n_positions, n_vocab) float32, at those positions
    greedy_ids: list[int]  # not stopped at an end token
    greedy_gap: np.ndarray  # (n_greedy,) float32, best minus second-best logit
    router_idx: np.ndarray | None  # (n_moe_layers, n_tokens, k) int16, by falling weight
    router_w: np.ndarray | None  # (n_moe_layers, n_tokens, k) float32, as multiplied with the experts' outputs


@dataclass(frozen=True, slots=True)
class Case:
    """A model file and what it must compute."""

    name: str
    path: Path
    architecture: str
    type_names: frozenset[str]
    moe_layers: tuple[int, ...]
    prompts: tuple[Prompt, ...]


def fixture_cases(
    architectures: Collection[str] = frozenset(ARCHITECTURES), type_names: Collection[str] = TENSOR_TYPES
) -> list[Case]:
    """Every case whose architecture is in the first set and all of whose tensor types are in the second."""
    folder = os.environ.get("COLIBRI_FIXTURES")
    cases = [*compact_cases(), *(shared_cases(Path(folder)) if folder else ())]
    cases += converted_cases(Path(folder)) if folder else ()
    return [case for case in cases if case.architecture in architectures and case.type_names <= frozenset(type_names)]


def compact_cases() -> Iterator[Case]:
    """The models in the repository, and Mixtral once more with one tensor per expert."""
    for expected in sorted(COMPACT.glob("*.npz")):
        path = expected.with_suffix(".gguf")
        yield read_case(path.stem, path, expected)
        if path.stem.startswith("mixtral"):
            yield read_case(f"{path.stem}-split-experts", split_copy(path), expected)


def shared_cases(folder: Path) -> Iterator[Case]:
    """The F16 and quantised models of the shared folder; F16 there is exact, so the checkpoint's answers hold."""
    files = sorted(folder.glob("*/gguf/*.gguf"))
    if not files:
        raise FileNotFoundError(f"COLIBRI_FIXTURES names {folder}, where no */gguf/*.gguf file is.")
    for path in files:
        _, _, kind = path.stem.rpartition("-")
        expected = path.parents[1] / "expected.npz"
        if kind == "F16":
            yield read_case(f"shared/{path.stem}", path, expected)
        else:
            yield read_quantised_case(f"shared/{path.stem}", path, expected, kind)


def converted_cases(folder: Path) -> Iterator[Case]:
    """The published-style checkpoints of the shared folder that have no exact GGUF there, converted by the engine."""
    for config in sorted(folder.glob("*/config.json")):
        checkpoint = config.parent
        if not list(checkpoint.glob("gguf/*-F16.gguf")):
            yield read_case(f"converted/{checkpoint.name}", converted(checkpoint), checkpoint / "expected.npz")


@functools.cache
def converted(checkpoint: Path) -> Path:
    """The checkpoint as BF16, which is exact for all of them."""
    target = temporary_folder() / f"{checkpoint.name}.gguf"
    with Checkpoint.open(checkpoint) as opened:
        write_gguf(plan_conversion(opened, ConversionOptions(type=TensorType.BF16)), target)
    return target


def read_case(name: str, path: Path, expected: Path) -> Case:
    with np.load(expected) as arrays:
        prompts = []
        for prompt in PROMPTS:
            ids = arrays[f"{prompt}_input_ids"].tolist()
            every = np.arange(len(ids), dtype=np.int32)
            prompts.append(
                Prompt(
                    input_ids=ids,
                    positions=arrays.get(f"{prompt}_positions", every),
                    logits=arrays[f"{prompt}_logits"],
                    greedy_ids=arrays[f"{prompt}_greedy_ids"].tolist(),
                    greedy_gap=arrays[f"{prompt}_greedy_gap"],
                    router_idx=arrays.get(f"{prompt}_router_idx"),
                    router_w=arrays.get(f"{prompt}_router_w"),
                )
            )
        layers = arrays.get("moe_layers", np.empty(0, np.int32)).tolist()
    return make_case(name, path, layers, prompts)


def read_quantised_case(name: str, path: Path, expected: Path, kind: str) -> Case:
    """A quantised file of the shared folder: logits at some positions and greedy continuations, no routes."""
    with np.load(expected) as arrays, np.load(expected.with_name("expected_gguf.npz")) as quantised:
        prompts = [
            Prompt(
                input_ids=arrays[f"{prompt}_input_ids"].tolist(),
                positions=quantised[f"{prompt}_positions"],
                logits=quantised[f"{kind}_{prompt}_dequant"],
                greedy_ids=quantised[f"{kind}_{prompt}_dequant_greedy"].tolist(),
                greedy_gap=quantised[f"{kind}_{prompt}_dequant_gap"],
                router_idx=None,
                router_w=None,
            )
            for prompt in PROMPTS
        ]
        layers = arrays["moe_layers"].tolist()
    return make_case(name, path, layers, prompts)


def make_case(name: str, path: Path, moe_layers: list[int], prompts: list[Prompt]) -> Case:
    source = SourceFile.open(path)
    return Case(name, path, source.architecture, source.type_names(), tuple(moe_layers), tuple(prompts))


@functools.cache
def split_copy(path: Path) -> Path:
    """The same Mixtral in the older spelling, `blk.N.ffn_up.E.weight`, in the temporary folder."""
    target = temporary_folder() / f"{path.stem}-split-experts.gguf"
    write_copy(SourceFile.open(path), target, split_experts)
    return target


@functools.cache
def temporary_folder() -> Path:
    """A folder that goes when Python ends."""
    folder = Path(tempfile.mkdtemp(prefix="colibri-fixtures-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
