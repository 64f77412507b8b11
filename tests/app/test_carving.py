"""A carving is measured before it is kept, goes on where a killed process was, and leaves nothing when given up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app import carving_request
from app.carving import keep, try_carving, worth_measuring
from app.carving_request import CarvingRequest, demonstration, discard
from app.jobs import Job, JobCancelledError
from app.target_errors import TargetError
from engine import Engine, EngineConfig
from engine.carve import losses_of
from engine.errors import FileInUseError, InvalidRequestError
from engine.gguf import GGUFReader
from tests.support.dense_model import write_dense_model


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dense_model(tmp_path_factory.mktemp("dense"))


@pytest.fixture
def request_(dense: Path, tmp_path: Path, colibri_home: Path) -> CarvingRequest:
    return CarvingRequest(str(dense), str(tmp_path / "moe.gguf"), 8, 5, 0, passages=1, name="Tiny")


def run(request: CarvingRequest) -> tuple[object, list[str]]:
    """The trial, and the phases that it went through."""
    phases: list[str] = []
    job = Job("carving")
    job.on_change(lambda job: phases.append(job.phase) if job.phase not in {"", *phases} else None)
    return job.run_blocking(lambda job: try_carving(job, request)), phases


def test_every_number_is_measured_and_nothing_is_at_the_target_until_one_is_chosen(request_: CarvingRequest) -> None:
    trial = Job("carving").run_blocking(lambda job: try_carving(job, request_))
    assert [loss.top_k for loss in trial.losses] == [3, 2, 1]
    assert not Path(request_.target).exists()
    path = Job("keeping").run_blocking(lambda job: keep(job, trial, 2))
    assert path == Path(request_.target) and [item.name for item in path.parent.glob("*moe*")] == ["moe.gguf"]
    with GGUFReader.open(path) as reader:
        kept = losses_of(reader.metadata)
        assert [(loss.top_k, loss.feed_forward_share) for loss in kept] == [(3, 1.0), (2, 0.875), (1, 0.75)]
        assert [loss.divergence for loss in kept] == pytest.approx([loss.divergence for loss in trial.losses])
        is_demonstration = trial.losses[1].is_demonstration
        assert reader.metadata["general.name"] == f"Tiny, carved{' (demonstration)' if is_demonstration else ''}"
        assert reader.metadata["deepseek.expert_used_count"] == 2
    with Engine.open(path, EngineConfig(context_length=64, top_k=3)) as engine:
        assert engine.info.top_k == 3


def test_what_a_killed_process_had_done_is_not_done_again(request_: CarvingRequest) -> None:
    first, _ = run(request_)
    again, phases = run(request_)
    assert again == first and phases == ["measuring the loss"]
    (request_.folder / "losses.json").unlink()
    measured_again, phases = run(request_)
    assert measured_again == first and phases == ["measuring the loss"]
    _, phases = run(replace(request_, n_shared=4))
    assert phases == ["reading the text", "splitting the layers", "measuring the loss"]


@pytest.mark.parametrize("phase", ["reading", "splitting", "measuring"])
def test_a_cancel_leaves_nothing_behind(request_: CarvingRequest, phase: str) -> None:
    def cancelled(job: Job) -> None:
        job.on_change(lambda job: job.cancel() if not job.cancelled and job.phase.startswith(phase) else None)
        try_carving(job, request_)

    with pytest.raises(JobCancelledError):
        Job("carving").run_blocking(cancelled)
    assert not request_.folder.exists()


def test_a_carving_under_way_elsewhere_is_left_alone(request_: CarvingRequest) -> None:
    def meddle(job: Job) -> None:
        if job.phase.startswith("splitting"):
            with pytest.raises(FileInUseError, match="another Colibri"):
                Job("second").run_blocking(lambda job: try_carving(job, request_))

    job = Job("first")
    job.on_change(meddle)
    trial = job.run_blocking(lambda job: try_carving(job, request_))
    assert trial.path.is_file()
    discard(request_)
    assert not request_.folder.exists()


def test_what_cannot_be_written_is_refused_before_anything_is_made(request_: CarvingRequest) -> None:
    Path(request_.target).touch()
    with pytest.raises(TargetError, match="there already"):
        run(request_)
    with pytest.raises(InvalidRequestError, match="cannot be cut into 7"):
        run(replace(request_, target=request_.target + "2", n_experts=7))
    assert not request_.folder.exists()


def test_only_a_carving_that_can_go_on_is_offered(request_: CarvingRequest) -> None:
    assert carving_request.unfinished() is None
    carving_request.remember(request_)
    assert carving_request.unfinished() == request_
    Path(request_.target).touch()
    assert carving_request.unfinished() is None
    carving_request.forget()
    assert carving_request.unfinished() is None


def test_of_many_experts_some_numbers_are_measured_and_always_the_chosen_one() -> None:
    assert worth_measuring(12) == list(range(12, 0, -1))
    many = worth_measuring(60, 53)
    assert many[0] == 60 and 53 in many and len(many) <= 17


def test_the_demonstration_leaves_something_to_route(colibri_home: Path) -> None:
    request = demonstration(Path("/models/Small.Q4_1.gguf"), "Small")
    assert (request.top_k, request.n_routed) == (10, 12)
    assert Path(request.target).name == "Small.Q4_1-carved.gguf"
