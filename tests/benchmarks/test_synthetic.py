"""Synthetic models are well-formed, sane in size of values, and of exactly the shapes that their names promise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.gguf import GGUFReader, dequantise
from tests.benchmarks.against_peer import OURS, Sizes, table_rows
from tests.benchmarks.synthetic import PRESETS, tensor_plans, write_model

BLOCK_BYTES = {"Q4_K": 144 / 256, "Q6_K": 210 / 256, "F32": 4}


def test_weights_have_the_deviation_of_trained_ones(tmp_path: Path) -> None:
    write_model(PRESETS["tiny-shape"], tmp_path / "tiny.gguf")

    with GGUFReader.open(tmp_path / "tiny.gguf") as reader:
        matrices = [info for info in reader.tensors.values() if len(info.shape) > 1]
        assert {info.type.name for info in matrices} == {"Q4_K", "Q6_K", "F32"}
        for info in matrices:
            values = dequantise(reader.data(info.name), info.type, info.shape)
            deviation = values.std() * np.sqrt(info.shape[-1])
            assert deviation == pytest.approx(1, abs=0.1), info.name
            assert abs(values.mean()) * np.sqrt(info.shape[-1]) < 0.05, info.name


def test_experts_differ_from_one_another(tmp_path: Path) -> None:
    write_model(PRESETS["tiny-shape"], tmp_path / "tiny.gguf")

    with GGUFReader.open(tmp_path / "tiny.gguf") as reader:
        info = reader.tensors["blk.0.ffn_up_exps.weight"]
        experts = dequantise(reader.data(info.name), info.type, info.shape)
    assert not any(np.array_equal(experts[0], other) for other in experts[1:])


def test_presets_weigh_what_the_facts_say() -> None:
    def gigabytes(preset: str) -> float:
        plans = tensor_plans(PRESETS[preset])
        return sum(float(np.prod(plan.shape)) * BLOCK_BYTES[plan.kind.name] for plan in plans) / 1e9

    assert gigabytes("mixtral-shape") == pytest.approx(3.45, abs=0.01)
    assert gigabytes("qwen3moe-shape") == pytest.approx(4.65, abs=0.01)


def test_table_compares_with_the_faster_setting_of_the_peer() -> None:
    samples = {
        OURS: {"prompt": [90.0, 100.0, 110.0], "generate": [12.0]},
        "llama.cpp": {"prompt": [40.0], "generate": [16.0]},
        "llama.cpp --repack 0": {"prompt": [50.0], "generate": [8.0]},
    }

    prompt, generate = table_rows(Path("model.gguf"), samples, Sizes(2, 512, 128))

    assert prompt == "| model | pp512 | 100.0 (90.0 to 110.0) | 40.0 (40.0 to 40.0) | 50.0 (50.0 to 50.0) | 2.00 |"
    assert generate.endswith("| 0.75 |")
