"""Regenerate tests/data/fixtures: small GGUF models of every architecture, with float32 expectations.

    python -m tests.reference.make_fixtures models --fixtures FOLDER    the GGUFs and prompts, from the shared folder
    python -m tests.reference.make_fixtures expected [NAME ...]         expectations, from the GGUFs and prompts alone

Needs the "reference" extra, save for models of the architecture deepseek. The models' weights are cut or quantised
again to be small; what they mean is what their tensors mean when expanded, so expectations are always computed from
the GGUF itself.
"""

from __future__ import annotations

import argparse
import functools
import json
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import dequantize
from gguf.quants import quantize

from tests.reference.deepseek_gguf import EVERY_CODE, N_DENSE_LAYERS, write_deepseek
from tests.reference.evaluation import Routes, greedy
from tests.reference.numpy_deepseek import NumpyDeepseek
from tests.support.gguf_copy import SourceFile, StoredTensor, write_copy

OUTPUT = Path(__file__).parents[1] / "data" / "fixtures"
PROMPTS = ("p0", "p1", "p2")
N_POSITIONS = 8

MIXTRAL_TYPES = {
    "token_embd": Type.Q8_0,
    "output": Type.Q8_0,
    "attn_q": Type.Q4_1,
    "attn_k": Type.Q8_0,
    "attn_v": Type.Q8_0,
    "attn_output": Type.Q4_0,
    "ffn_gate_exps": Type.Q4_1,
    "ffn_up_exps": Type.Q4_0,
    "ffn_down_exps": Type.Q4_0,
}
QWEN2_TYPES = {
    "token_embd": Type.F16,  # the output as well: this model is tied
    "attn_q": Type.BF16,
    "attn_k": Type.F16,
    "attn_v": Type.Q8_0,
    "attn_output": Type.Q4_1,
    "ffn_gate": Type.Q4_1,
    "ffn_up": Type.Q4_0,
    "ffn_down": Type.Q4_1,
}


def kind_of(name: str) -> str:
    """`blk.1.attn_q.weight` -> `attn_q`; `output.weight` -> `output`."""
    return name.split(".")[-2]


def requantise(types: Mapping[str, Type]) -> Callable[[StoredTensor], Iterable[StoredTensor]]:
    """A change for write_copy: matrices take the type named for their kind, biases and norms stay."""

    def change(tensor: StoredTensor) -> Iterable[StoredTensor]:
        name, kind, data = tensor
        wanted = types.get(kind_of(name))
        if wanted is None or name.endswith(".bias") or wanted == kind:
            return [tensor]
        return [(name, wanted, quantize(dequantize(data, kind), wanted))]

    return change


def first_experts(n_experts: int) -> Callable[[StoredTensor], Iterable[StoredTensor]]:
    """A change for write_copy: the other experts and their rows of the router are left out."""

    def change(tensor: StoredTensor) -> Iterable[StoredTensor]:
        name, kind, data = tensor
        routed = kind_of(name).endswith("_exps") or kind_of(name) == "ffn_gate_inp"
        return [(name, kind, data[:n_experts] if routed else data)]

    return change


def make_models(fixtures: Path) -> None:
    """Write the GGUFs, and prompts.json with each model's three prompts as token ids."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    prompts: dict[str, list[list[int]]] = {}

    def source(model: str, kind: str, name: str) -> SourceFile:
        arrays = np.load(fixtures / model / "expected.npz")
        prompts[name] = [arrays[f"{prompt}_input_ids"].tolist() for prompt in PROMPTS]
        return SourceFile.open(fixtures / model / "gguf" / f"{model}-{kind}.gguf")

    for name in ("llama-Q4_K_M", "olmoe-Q4_0"):
        kept = source(*name.split("-"), name)
        shutil.copyfile(kept.reader.data.filename, OUTPUT / f"{name}.gguf")
        (OUTPUT / f"{name}.gguf").chmod(0o644)
    for model, architecture, n_experts in (("qwen2_moe", "qwen2moe", 5), ("qwen3_moe", "qwen3moe", 4)):
        name = f"{model}-Q4_K_M"
        keys = {f"{architecture}.expert_count": n_experts}
        write_copy(source(model, "Q4_K_M", name), OUTPUT / f"{name}.gguf", first_experts(n_experts), keys)
    for name, types in (("mixtral-mixed", MIXTRAL_TYPES), ("qwen2-mixed", QWEN2_TYPES)):
        write_copy(source(name.split("-")[0], "F16", name), OUTPUT / f"{name}.gguf", requantise(types))
    write_deepseek(OUTPUT / "deepseek-mixed.gguf", source("qwen2", "F16", "deepseek-mixed"))
    write_deepseek(OUTPUT / "deepseek-codes.gguf", source("qwen2", "F16", "deepseek-codes"), EVERY_CODE)
    text = json.dumps(prompts, separators=(",", ":")).replace('],"', '],\n"')
    (OUTPUT / "prompts.json").write_text(text + "\n")


def make_expected(names: Collection[str]) -> None:
    """Write NAME.npz beside each NAME.gguf (or those named); the arrays are described in tests/data/README.md."""
    for name, prompts in json.loads((OUTPUT / "prompts.json").read_text()).items():
        if names and name not in names:
            continue
        path = OUTPUT / f"{name}.gguf"
        run, logits_of = evaluators(path)
        arrays: dict[str, np.ndarray] = {}
        for prompt, ids in zip(PROMPTS, prompts, strict=True):
            logits, routes = run(ids)
            positions = np.linspace(0, len(ids) - 1, N_POSITIONS).round().astype(np.int32)
            arrays[f"{prompt}_input_ids"] = np.array(ids, np.int32)
            arrays[f"{prompt}_positions"] = positions
            arrays[f"{prompt}_logits"] = logits[positions]
            arrays[f"{prompt}_greedy_ids"], arrays[f"{prompt}_greedy_gap"] = greedy(logits_of, ids)
            if routes is not None:
                arrays[f"{prompt}_router_idx"] = routes.idx
                arrays[f"{prompt}_router_w"] = routes.w
                arrays[f"{prompt}_router_margin"] = routes.margin
                first = N_DENSE_LAYERS if name.startswith("deepseek") else 0
                arrays["moe_layers"] = np.arange(first, first + len(routes.idx), dtype=np.int32)
        assert min(gap.min() for key, gap in arrays.items() if key.endswith("_gap")) > 1e-3, name
        np.savez_compressed(OUTPUT / f"{name}.npz", **arrays)


Run = Callable[[list[int]], tuple[np.ndarray, Routes | None]]


def evaluators(path: Path) -> tuple[Run, Callable[[list[int]], np.ndarray]]:
    """Functions of token ids: logits with routes, and logits alone."""
    run: Run
    if SourceFile.open(path).architecture == "deepseek":
        run = NumpyDeepseek(path).forward
    else:
        import torch

        from tests.reference.gguf_in_transformers import forward, load_gguf

        torch.set_num_threads(1)
        run = functools.partial(forward, load_gguf(path))
    return run, lambda ids: run(ids)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("models", "expected"))
    parser.add_argument("names", nargs="*", help="whose expectations to make; by default all")
    parser.add_argument("--fixtures", type=Path, help="the shared fixtures folder")
    arguments = parser.parse_args()
    if arguments.what == "expected":
        make_expected(arguments.names)
    elif arguments.fixtures is None:
        parser.error("models needs --fixtures FOLDER")
    else:
        make_models(arguments.fixtures)


if __name__ == "__main__":
    main()
