"""`colibri convert` writes a model file, says what it is, and refuses with one message that changes nothing."""

from __future__ import annotations

import argparse
import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app import conversion
from app.commands import convert as command
from app.conversion import ConversionError, convert
from app.jobs import Job, JobCancelledError
from engine.errors import ModelFormatError
from engine.gguf import GGUFReader, TensorType
from tests.support.checkpoints import checkpoint_case
from tests.support.program import colibri


def run(*arguments: object) -> int:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    options = parser.parse_args(["convert", *map(str, arguments)])
    code: int = options.run(options)
    return code


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return checkpoint_case("qwen3_moe").write(tmp_path)


def test_a_checkpoint_becomes_a_file(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "new" / "model.gguf"
    assert run(checkpoint, "-o", target, "--type", "f16", "--router-precision", "bf16", "--top-k", 2) == 0

    text = capsys.readouterr().out
    assert "Qwen3_Moe: qwen3moe" in text
    assert "8 experts, 2 for each token" in text
    assert str(target) in text
    with GGUFReader.open(target) as reader:
        assert reader.metadata["qwen3moe.expert_used_count"] == 2
        assert reader.tensors["blk.0.attn_q.weight"].type is TensorType.F16
        assert reader.tensors["blk.0.ffn_gate_inp.weight"].type is TensorType.BF16
    assert list(target.parent.iterdir()) == [target]


def test_the_file_is_named_after_the_model(checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(checkpoint / "model.safetensors") == 0
    assert (tmp_path / "qwen3_moe-BF16.gguf").is_file()


def test_a_dry_run_writes_nothing(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(checkpoint, "-o", tmp_path / "model.gguf", "--dry-run") == 0
    assert "qwen3moe" in capsys.readouterr().out
    assert not (tmp_path / "model.gguf").exists()


def test_a_file_that_is_there_stays_unless_it_may_be_replaced(checkpoint: Path, tmp_path: Path) -> None:
    target = tmp_path / "model.gguf"
    target.write_text("mine")
    with pytest.raises(ConversionError, match="there already"):
        run(checkpoint, "-o", target)
    assert target.read_text() == "mine"
    assert run(checkpoint, "-o", target, "--replace") == 0
    assert target.read_bytes()[:4] == b"GGUF"


def test_a_contradiction_leaves_the_target_as_it_was(checkpoint: Path, tmp_path: Path) -> None:
    target = tmp_path / "model.gguf"
    target.write_text("mine")
    with pytest.raises(ModelFormatError, match="64 experts were asked for"):
        run(checkpoint, "-o", target, "--replace", "--expert-count", 64)
    assert target.read_text() == "mine"


def test_a_folder_as_target_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match="a folder"):
        run(checkpoint, "-o", tmp_path)


def test_a_full_disk_is_found_before_writing(checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "SPARE_BYTES", 1 << 60)
    with pytest.raises(ConversionError, match="of free disk"):
        run(checkpoint, "-o", tmp_path / "model.gguf")
    assert not (tmp_path / "model.gguf").exists()


def test_a_disk_that_fills_up_is_named_and_nothing_stays(checkpoint: Path, tmp_path: Path) -> None:
    target = tmp_path / "new" / "model.gguf"
    with file_size_limit(1 << 20), pytest.raises(ConversionError, match="could not be written"):
        Job("test").run_blocking(lambda job: convert(job, checkpoint, target))
    assert list(target.parent.iterdir()) == []


@contextmanager
def file_size_limit(n_bytes: int) -> Iterator[None]:
    """A limit on the size of files that this process may write, in place of a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_cancelled_conversion_leaves_nothing_behind(checkpoint: Path, tmp_path: Path) -> None:
    target = tmp_path / "new" / "model.gguf"
    job = Job("test")
    begun = threading.Event()

    def cancel(job: Job) -> None:
        if job.phase == "writing" and job.done_bytes and not job.cancelled:
            begun.set()
            job.cancel()

    job.on_change(cancel)
    with pytest.raises(JobCancelledError):
        job.run_blocking(lambda job: convert(job, checkpoint, target))
    assert begun.is_set()
    assert list(target.parent.iterdir()) == []


def test_the_program_reports_errors_in_one_line(tmp_path: Path) -> None:
    done = colibri("convert", str(tmp_path / "nowhere"))
    assert done.returncode == 1
    assert done.stderr.startswith("colibri convert: ")
    assert "config.json" in done.stderr
    assert "Traceback" not in done.stderr
