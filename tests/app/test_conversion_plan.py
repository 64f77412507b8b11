"""What is said of a conversion before it begins is what then comes of it; what was written is read again."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from app import paths
from app.conversion import convert
from app.conversion_plan import Outlook, examine, outlook, proposed_target, recommended
from app.file_types import FILE_TYPES, file_type, preferred
from app.jobs import Job, JobCancelledError
from app.model_details import MemoryFit, memory_fit
from app.target_errors import free_bytes
from app.unfinished import ConversionRequest, discard, forget, left_overs, remember, unfinished
from app.verification import verify
from engine import EngineConfig, MemoryPlan
from engine.convert import Checkpoint, plan_conversion, write_gguf
from engine.errors import ColibriError, ModelFormatError
from engine.gguf import GGUFReader
from tests.support.checkpoints import checkpoint_case

CONFIG = EngineConfig(context_length=512, threads=2)


@pytest.fixture
def checkpoint(tmp_path: Path, colibri_home: Path) -> Path:
    return checkpoint_case("qwen3_moe").write(tmp_path)


def fit(n_bytes: int, available: int) -> MemoryFit:
    return MemoryFit(MemoryPlan(n_bytes, 0, 0, 0, {}), available, available)


def test_the_examination_says_what_the_checkpoint_is(checkpoint: Path) -> None:
    found = examine(checkpoint)
    assert (found.architecture, found.n_experts, found.top_k, found.n_layers) == ("qwen3moe", 8, 3, 2)
    assert found.source_types == ("BF16",) and found.type_key == "bf16"
    assert found.source_bytes <= (checkpoint / "model.safetensors").stat().st_size
    assert found.n_parameters == 3_855_872


@pytest.mark.parametrize("kind", FILE_TYPES, ids=lambda kind: kind.key)
def test_size_and_memory_are_known_before_the_file_is_there(checkpoint: Path, kind: object) -> None:
    kind = file_type(kind.key)  # type: ignore[attr-defined]
    before = outlook(checkpoint, kind, CONFIG)
    done = convert(Job("c"), checkpoint, proposed_target(checkpoint, kind), kind.options())
    assert done.path is not None and before.memory is not None
    with GGUFReader.open(done.path) as reader:
        assert before.n_bytes == sum(tensor.n_bytes for tensor in reader.tensors.values())
    after = memory_fit(done.path, CONFIG)
    assert dataclasses.replace(before.memory.plan) == after.plan
    assert list(paths.cache_dir().iterdir()) == []


def test_a_checkpoint_that_contradicts_itself_is_refused_by_name(checkpoint: Path) -> None:
    config = json.loads((checkpoint / "config.json").read_text())
    (checkpoint / "config.json").write_text(json.dumps({**config, "num_experts": 16}))
    with pytest.raises(ColibriError, match="num_experts"):
        examine(checkpoint)


def test_the_proposed_name_is_free(checkpoint: Path) -> None:
    first = proposed_target(checkpoint, file_type("f16"))
    assert first == paths.models_dir() / "qwen3_moe-F16.gguf"
    first.touch()
    assert proposed_target(checkpoint, file_type("f16")).name == "qwen3_moe-F16-2.gguf"
    assert free_bytes(first) > 0 and free_bytes(first.parent / "new" / "deeper" / "x.gguf") > 0


def test_what_fits_is_recommended_and_else_the_smallest() -> None:
    large = Outlook(file_type("bf16"), 60, 30, fit(60, 100))
    huge = Outlook(file_type("f32"), 120, 30, fit(120, 100))
    spare = 100 << 20
    assert recommended([huge, large], 1000 + spare) == "bf16"
    assert recommended([huge, dataclasses.replace(large, memory=fit(101, 100))], 1000 + spare) == "bf16"
    assert recommended([huge], 1) == "f32"
    assert recommended([], 1) is None
    assert preferred(["f32", "q4_k_m", "bf16"]) == "q4_k_m"


def test_a_written_file_is_read_again_to_the_last_bit(checkpoint: Path, tmp_path: Path) -> None:
    job = Job("c")
    done = convert(job, checkpoint, tmp_path / "m.gguf", verified=True)
    assert done.verification is not None and done.verification.is_whole
    assert done.verification.compared_bytes == done.plan.n_bytes
    assert job.phase == "verifying" and job.fraction == 1.0


@pytest.mark.parametrize("place", [0.3, 0.9])
def test_one_changed_byte_is_found(checkpoint: Path, tmp_path: Path, place: float) -> None:
    with Checkpoint.open(checkpoint) as opened:
        plan = plan_conversion(opened)
        path = write_gguf(plan, tmp_path / "m.gguf")
        data = bytearray(path.read_bytes())
        data[int(len(data) * place)] ^= 1
        path.write_bytes(data)
        with pytest.raises(ModelFormatError, match="when the file was read back"):
            verify(Job("v"), plan, path)


def test_cancelling_while_verifying_leaves_nothing(checkpoint: Path, tmp_path: Path) -> None:
    job, target = Job("c"), tmp_path / "out" / "m.gguf"
    job.on_change(lambda job: job.cancel() if job.phase == "verifying" and not job.cancelled else None)
    with pytest.raises(JobCancelledError):
        convert(job, checkpoint, target, verified=True)
    assert list(target.parent.iterdir()) == []


def test_an_interrupted_conversion_is_remembered_until_it_ends(checkpoint: Path, tmp_path: Path) -> None:
    assert unfinished() is None
    request = ConversionRequest(str(checkpoint), str(tmp_path / "out.gguf"), "bf16", top_k=2)
    remember(request)
    assert unfinished() == request
    left, other = tmp_path / ".out.gguf.0123abcd.part", tmp_path / ".other.gguf.0123abcd.part"
    left.touch()
    other.touch()
    assert left_overs(tmp_path / "out.gguf") == [left]
    discard(request)
    assert unfinished() is None and not left.exists() and other.exists()


@pytest.mark.parametrize("content", ["", "[]", '{"source": 3}', '{"source": 1, "target": "b", "type_key": "c"}'])
def test_a_damaged_note_of_a_conversion_is_left_out(colibri_home: Path, content: str) -> None:
    (paths.data_dir() / "conversion.json").write_text(content)
    assert unfinished() is None


def test_a_conversion_whose_source_is_gone_is_not_offered_again(colibri_home: Path, tmp_path: Path) -> None:
    remember(ConversionRequest(str(tmp_path / "gone"), str(tmp_path / "out.gguf"), "bf16"))
    assert unfinished() is None
    forget()
