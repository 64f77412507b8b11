"""Models that do not fit into memory, or are no files yet, are read some layers at a time, with the same results."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from engine import Engine
from engine.convert import ConversionOptions, Mixture, planned, write_gguf
from engine.convert.calibrate import calibrate
from engine.convert.likelihood import log_probabilities
from engine.convert.proof import compare
from engine.convert.streaming import ModelLayers, PlannedLayers, Reading
from engine.errors import OutOfMemoryPlanError
from engine.gguf import GGUFReader, GGUFWriter, TensorType
from tests.engine.compact import LLAMA, MIXTRAL, QWEN3_MOE, model_path, small_config
from tests.support.checkpoints import checkpoint_case

TEXTS = {"birds": "The hummingbird hovers before the flower and drinks. " * 30}
ONE_LAYER = 1


@pytest.mark.parametrize("name", [LLAMA, QWEN3_MOE])
def test_a_reading_in_single_layers_gives_the_logits_of_the_whole_model(name: str, tmp_path: Path) -> None:
    path, config = model_path(name), small_config(max_batch_tokens=64, logits_rows=64, max_sequences=1, kv_type="f32")
    passages = [[int(i) for i in np.random.default_rng(n).integers(3, 500, n)] for n in (70, 33)]
    source = ModelLayers(path)
    assert len(source.spans(ONE_LAYER)) == source.n_layers
    with Reading(source, passages, config, folder=tmp_path, budget_bytes=ONE_LAYER) as reading:
        reading.run()
        with reading.output() as output:
            found = [np.concatenate(list(output.log_probabilities(index))) for index in range(2)]
        routes = reading.experts
    assert list(tmp_path.iterdir()) == []
    with Engine.open(path, config) as engine:
        for index, ids in enumerate(passages):
            whole = engine.evaluate(ids)
            np.testing.assert_array_equal(found[index], log_probabilities(whole.logits))
            np.testing.assert_array_equal(routes[index], whole.experts)


@pytest.mark.parametrize("case", ["qwen3_moe", "llama", "gpt_oss"])
def test_a_checkpoint_is_read_as_its_conversion_is(case: str, tmp_path: Path) -> None:
    folder = checkpoint_case(case).write(tmp_path)
    work = tmp_path / "work"
    work.mkdir()
    with planned(folder) as plan:
        path = write_gguf(plan, tmp_path / "whole.gguf")
        layers = PlannedLayers(plan, work, "the checkpoint")
        streamed = calibrate(layers, TEXTS, n_most=2, passage_tokens=64, budget_bytes=ONE_LAYER, folder=work)
        proof = compare(layers, path, TEXTS, n_most=2, passage_tokens=64, budget_bytes=ONE_LAYER, folder=work)
    whole = calibrate(path, TEXTS, n_most=2, passage_tokens=64)
    assert streamed.tensors.keys() == whole.tensors.keys()
    for name, inputs in whole.tensors.items():
        np.testing.assert_array_equal(streamed.tensors[name].sums, inputs.sums)
    assert streamed.perplexity == whole.perplexity
    assert proof.divergence == 0
    assert proof.source == "the checkpoint"
    assert list(work.iterdir()) == []


def test_a_quantised_conversion_is_proved_against_its_checkpoint(tmp_path: Path) -> None:
    folder = checkpoint_case("qwen3_moe").write(tmp_path)
    with planned(folder, ConversionOptions(mixture=Mixture.Q4_K_M)) as plan:
        path = write_gguf(plan, tmp_path / "model.gguf")
    with planned(folder) as plan:
        proof = compare(PlannedLayers(plan, tmp_path, "it"), path, TEXTS, n_most=1, passage_tokens=64)
    assert proof.divergence > 0
    assert len(proof.route_agreement) == 2


N_LAYERS, HIDDEN, FEED_FORWARD = 16, 1024, 4096
# Proves a model against a plan of itself, layer by layer, and says how much memory that took at most.
PROVE = """
import sys
from pathlib import Path
from engine.convert import planned
from engine.convert.proof import compare
from engine.convert.streaming import PlannedLayers
path, folder, budget = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
with planned(path) as plan:
    source = PlannedLayers(plan, folder, "source")
    texts = {"text": "a b c d e f g " * 40}
    compare(source, path, texts, n_most=1, passage_tokens=32, budget_bytes=budget, folder=folder)
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
"""


def test_memory_for_a_proof_is_a_fraction_of_the_model(tmp_path: Path) -> None:
    path = large_model(tmp_path / "large.gguf")
    with GGUFReader.open(path) as reader:
        model_bytes = sum(tensor.n_bytes for tensor in reader.tensors.values())
    layer_bytes = model_bytes // N_LAYERS
    done = subprocess.run(
        [sys.executable, "-c", PROVE, str(path), str(tmp_path), str(layer_bytes)],
        capture_output=True,
        text=True,
        check=True,
    )
    peak_bytes = 1024 * int(done.stdout)
    assert model_bytes > 530e6
    assert peak_bytes < model_bytes / 2  # Python, its libraries and buffers take some 150 MB of it
    assert sorted(tmp_path.iterdir()) == [path]


def test_what_does_not_fit_layer_by_layer_either_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    source = ModelLayers(model_path(MIXTRAL))
    with GGUFReader.open(model_path(MIXTRAL)) as reader:
        sizes = {name: tensor.n_bytes for name, tensor in reader.tensors.items()}
    shares = {name: 2 / 8 if "_exps." in name else 1 for name in sizes}
    layers = [
        sum(n_bytes * shares[name] for name, n_bytes in sizes.items() if name.startswith(f"blk.{layer}."))
        for layer in (0, 1)
    ]
    needed = max(*layers, sizes["output.weight"])
    source.refuse_too_little(int(needed) + 1)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=int(needed) - 1))
    with pytest.raises(OutOfMemoryPlanError, match=r"one layer at a time takes .* MB of memory for layer"):
        Reading(source, [[1, 2, 3]], small_config()).__enter__()


def large_model(path: Path) -> Path:
    """A dense model of zeros that takes no room on the disk."""
    writer = GGUFWriter(path)
    with GGUFReader.open(model_path(LLAMA)) as reader:
        for key, encoded in reader.encoded_keys().items():
            if key.startswith(("general.arch", "tokenizer.")):
                writer.add_encoded(key, encoded)
        n_vocab = len(reader.metadata["tokenizer.ggml.tokens"])
    numbers = {"block_count": N_LAYERS, "embedding_length": HIDDEN, "feed_forward_length": FEED_FORWARD}
    numbers |= {"attention.head_count": 8, "attention.head_count_kv": 8, "context_length": 512}
    for key, number in numbers.items():
        writer.add(f"llama.{key}", number)
    writer.add("llama.attention.layer_norm_rms_epsilon", 1e-5)

    def add(name: str, type: TensorType, *shape: int) -> None:
        writer.add_tensor(name, type, shape, bytes)

    add("token_embd.weight", TensorType.BF16, n_vocab, HIDDEN)
    add("output_norm.weight", TensorType.F32, HIDDEN)
    for layer in range(N_LAYERS):
        for part in ("attn_norm", "ffn_norm"):
            add(f"blk.{layer}.{part}.weight", TensorType.F32, HIDDEN)
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add(f"blk.{layer}.{part}.weight", TensorType.BF16, HIDDEN, HIDDEN)
        for part in ("ffn_gate", "ffn_up"):
            add(f"blk.{layer}.{part}.weight", TensorType.BF16, FEED_FORWARD, HIDDEN)
        add(f"blk.{layer}.ffn_down.weight", TensorType.BF16, HIDDEN, FEED_FORWARD)
    with path.open("wb") as file:
        writer.write_outline(file)
    return path
