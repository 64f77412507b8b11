"""The facts, the memory and the checksum that the model manager shows of a model."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from app.jobs import Job, JobCancelledError
from app.model_details import checksums, memory_fit, parameters, read_details
from engine import Engine, EngineConfig
from engine.errors import ColibriError, ModelFormatError

FIXTURES = Path(__file__).parents[1] / "data" / "fixtures"
MOE = FIXTURES / "mixtral-mixed.gguf"


def test_the_header_tells_experts_context_and_types() -> None:
    details = read_details(MOE)
    assert (details.architecture, details.n_experts, details.top_k, details.n_layers) == ("llama", 8, 2, 2)
    assert details.context_length == 1024 and details.has_chat_template
    assert next(iter(details.bytes_by_type)) == "Q4_0"
    assert details.paths == (MOE,) and details.file_bytes == MOE.stat().st_size


def test_a_file_that_is_no_model_is_named_for_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "page.gguf"
    path.write_text("<!DOCTYPE html><html></html>")
    with pytest.raises(ModelFormatError, match="HTML"):
        read_details(path)


@pytest.mark.parametrize("name", ["mixtral-mixed", "qwen2-mixed", "deepseek-mixed"])
def test_the_memory_said_beforehand_is_the_memory_then_taken(name: str) -> None:
    path, config = FIXTURES / f"{name}.gguf", EngineConfig(context_length=512, threads=2)
    fit = memory_fit(path, config)
    with Engine.open(path, config) as engine:
        assert fit.plan.total_bytes == engine.memory.total_bytes
        assert fit.plan.kv_bytes == engine.memory.kv_bytes
    assert fit.fits and 0 < fit.available_bytes <= fit.total_bytes


def test_a_longer_context_needs_more_memory() -> None:
    short, long = (memory_fit(MOE, EngineConfig(context_length=length)).plan for length in (256, 1024))
    assert long.kv_bytes == 4 * short.kv_bytes


def test_checksums_are_those_of_the_files_and_are_compared_with_what_is_promised(tmp_path: Path) -> None:
    content = b"weights" * 1000
    right = tmp_path / f"sha256-{hashlib.sha256(content).hexdigest()}"
    wrong = tmp_path / f"sha256-{'0' * 64}"
    plain = tmp_path / "model.gguf"
    for path in (right, wrong, plain):
        path.write_bytes(content)
    found = [checksums(Job("checksum"), path)[0] for path in (right, wrong, plain)]
    assert {item.sha256 for item in found} == {hashlib.sha256(content).hexdigest()}
    assert [item.is_wrong for item in found] == [False, True, False]
    assert [item.expected is None for item in found] == [False, False, True]


def test_a_checksum_can_be_cancelled_and_fails_with_a_reason(tmp_path: Path) -> None:
    job = Job("checksum")
    job.cancel()
    with pytest.raises(JobCancelledError):
        checksums(job, MOE)
    with pytest.raises(ColibriError, match=r"gone\.gguf: the file cannot be read"):
        checksums(Job("checksum"), tmp_path / "gone.gguf")


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (999, "999"), (134_515_008, "135M"), (30_532_122_624, "30.5B"), (671e9, "671B"), (1_000_000_000, "1B")],
)
def test_parameters_are_written_as_models_are_named(number: int, text: str) -> None:
    assert parameters(int(number)) == text
