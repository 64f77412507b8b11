"""A conversion as the window asks for it ends with figures, or says why there are none; a cancel leaves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from app import requested_conversion
from app.jobs import Job, JobCancelledError
from app.requested_conversion import Outcome, run_request
from app.unfinished import ConversionRequest
from engine.convert.proof import proof_of
from engine.errors import UnsupportedModelError
from engine.gguf import GGUFReader
from tests.support.checkpoints import checkpoint_case


@pytest.fixture
def request_(tmp_path: Path) -> ConversionRequest:
    checkpoint = checkpoint_case("qwen3_moe").write(tmp_path)
    return ConversionRequest(str(checkpoint), str(tmp_path / "out" / "model.gguf"), "q8_0")


def run(request: ConversionRequest) -> Outcome:
    return Job("conversion").run_blocking(lambda job: run_request(job, request))


def test_the_figures_of_the_comparison_are_in_the_file(request_: ConversionRequest) -> None:
    outcome = run(request_)
    proof = outcome.converted.proof
    assert proof is not None and outcome.proof_problem == "" and proof.divergence < 0.01
    with GGUFReader.open(outcome.path) as reader:
        kept = proof_of(reader.metadata)
    assert kept is not None and kept.sentence == proof.sentence
    assert [path.name for path in outcome.path.parent.iterdir()] == ["model.gguf"]


def test_a_file_that_cannot_be_compared_stays_and_says_why(
    request_: ConversionRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_arguments: object, **_options: object) -> None:
        raise UnsupportedModelError("This version cannot run it.")

    monkeypatch.setattr(requested_conversion, "prove", refused)
    outcome = run(request_)
    assert outcome.path.is_file() and outcome.converted.proof is None
    assert outcome.proof_problem == "This version cannot run it."


def test_a_cancel_while_it_is_compared_leaves_nothing(request_: ConversionRequest) -> None:
    def cancelled(job: Job) -> None:
        job.on_change(lambda job: job.cancel() if job.phase.startswith("comparing") and not job.cancelled else None)
        run_request(job, request_)

    with pytest.raises(JobCancelledError):
        Job("conversion").run_blocking(cancelled)
    assert list(Path(request_.target).parent.iterdir()) == []
