"""A converted checkpoint is a model file: our reader and the gguf package read it, and the engine computes with it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import gguf
import numpy as np
import pytest

from engine import Engine, EngineConfig, SamplingParams
from engine.convert import Checkpoint, ConversionOptions, ConversionPlan, plan_conversion, write_gguf
from engine.gguf import GGUFReader, TensorType
from tests.support.checkpoints import checkpoint_case
from tests.support.fixtures import PROMPTS

REFERENCE = EngineConfig(context_length=256, max_batch_tokens=64, activations="float32", kv_type="f32")
LIMIT = 1e-3
FIXTURES = os.environ.get("COLIBRI_FIXTURES")
SHARED = sorted(path.parent for path in Path(FIXTURES).glob("*/config.json")) if FIXTURES else []


@pytest.fixture
def plan(tmp_path: Path) -> Iterator[ConversionPlan]:
    with Checkpoint.open(checkpoint_case("mixtral").write(tmp_path)) as checkpoint:
        yield plan_conversion(checkpoint)


def test_the_file_has_the_planned_keys_and_tensors(plan: ConversionPlan, tmp_path: Path) -> None:
    path = write_gguf(plan, tmp_path / "model.gguf")

    with GGUFReader.open(path) as reader:
        for name, entry in plan.metadata.items():
            found = reader.metadata[name]
            expected = np.float32(entry.value) if isinstance(entry.value, float) else entry.value
            assert np.array_equal(list(found), expected) if isinstance(expected, list) else found == expected, name
        assert list(reader.tensors) == [tensor.name for tensor in plan.tensors]
        for tensor in plan.tensors:
            assert reader.data(tensor.name).tobytes() == tensor.read().tobytes(), tensor.name


def test_the_gguf_package_reads_the_file(plan: ConversionPlan, tmp_path: Path) -> None:
    reader = gguf.GGUFReader(write_gguf(plan, tmp_path / "model.gguf"))

    assert reader.fields["general.architecture"].contents() == "llama"
    assert {tensor.name: tuple(reversed(tensor.shape.tolist())) for tensor in reader.tensors} == {
        tensor.name: tensor.shape for tensor in plan.tensors
    }


def test_progress_counts_every_byte_and_may_end_the_work(plan: ConversionPlan, tmp_path: Path) -> None:
    reports: list[int] = []
    write_gguf(plan, tmp_path / "model.gguf", lambda done_bytes, name: reports.append(done_bytes))
    assert reports == sorted(reports)
    assert reports[-1] == plan.n_bytes

    def stop(done_bytes: int, name: str) -> None:
        raise KeyboardInterrupt

    target = tmp_path / "other" / "model.gguf"
    with pytest.raises(KeyboardInterrupt):
        write_gguf(plan, target, stop)
    assert list(target.parent.iterdir()) == []


@pytest.mark.parametrize("type", [None, TensorType.F32], ids=["own type", "F32"])
@pytest.mark.parametrize("folder", SHARED, ids=lambda folder: folder.name)
def test_a_converted_fixture_computes_what_the_checkpoint_does(
    folder: Path, type: TensorType | None, tmp_path: Path
) -> None:
    with Checkpoint.open(folder) as checkpoint:
        converted = plan_conversion(checkpoint, ConversionOptions(type=type))
        path = write_gguf(converted, tmp_path / "model.gguf")

    greedy = SamplingParams(temperature=0.0, max_tokens=24, ignore_eos=True)
    with Engine.open(path, REFERENCE) as engine, np.load(folder / "expected.npz") as expected:
        for prompt in PROMPTS:
            ids = expected[f"{prompt}_input_ids"].tolist()
            found = engine.evaluate(ids)
            np.testing.assert_allclose(found.logits, expected[f"{prompt}_logits"], rtol=LIMIT, atol=LIMIT)
            if f"{prompt}_router_idx" in expected:
                assert np.array_equal(found.experts, expected[f"{prompt}_router_idx"])
            tokens = [delta.token_id for delta in engine.generate(ids, greedy) if delta.token_id is not None]
            assert tokens == expected[f"{prompt}_greedy_ids"].tolist()
