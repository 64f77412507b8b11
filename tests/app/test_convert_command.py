"""`colibri convert` writes a model file, says what it is, and refuses with one message that changes nothing."""

from __future__ import annotations

import argparse
import json
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from app import conversion
from app.calibration import measure_importance
from app.commands import convert as command
from app.conversion import convert
from app.jobs import Job, JobCancelledError
from app.target_errors import DiskFullError, TargetError
from engine.convert import ConversionOptions, Mixture
from engine.convert.calibrate import ImportanceMatrix, TensorInputs, write_importance
from engine.errors import InvalidRequestError, ModelFormatError
from engine.gguf import GGUFReader, TensorType, dequantise
from tests.support.checkpoints import checkpoint_case, write_files, write_weights, write_zeros
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


def test_the_model_may_be_named_by_an_option(checkpoint: Path, tmp_path: Path) -> None:
    assert run("--model-path", checkpoint, "--output-path", tmp_path / "model.gguf", "--expert-count", 8) == 0
    assert (tmp_path / "model.gguf").is_file()
    for arguments in ((), (checkpoint, "--model-path", checkpoint)):
        with pytest.raises(SystemExit):
            run(*arguments)


def test_a_dry_run_writes_nothing(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(checkpoint, "-o", tmp_path / "model.gguf", "--dry-run") == 0
    assert "qwen3moe" in capsys.readouterr().out
    assert not (tmp_path / "model.gguf").exists()


def test_a_file_that_is_there_stays_unless_it_may_be_replaced(checkpoint: Path, tmp_path: Path) -> None:
    target = tmp_path / "model.gguf"
    target.write_text("mine")
    with pytest.raises(TargetError, match="there already"):
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
    with pytest.raises(TargetError, match="a folder"):
        run(checkpoint, "-o", tmp_path)


def test_a_full_disk_is_found_before_writing(checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "SPARE_BYTES", 1 << 60)
    with pytest.raises(DiskFullError, match="of free disk"):
        run(checkpoint, "-o", tmp_path / "model.gguf")
    assert not (tmp_path / "model.gguf").exists()


def test_a_disk_that_fills_up_is_named_and_nothing_stays(checkpoint: Path, tmp_path: Path) -> None:
    target = tmp_path / "new" / "model.gguf"
    with file_size_limit(1 << 20), pytest.raises(DiskFullError, match="could not be written"):
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


@pytest.mark.parametrize(
    ("option", "file_type", "expected"),
    [("q4_k", 15, TensorType.Q4_K), ("Q5_K_M", 17, TensorType.Q5_K), ("mxfp4", 38, TensorType.MXFP4)],
)
def test_a_checkpoint_is_quantised(
    checkpoint: Path, tmp_path: Path, option: str, file_type: int, expected: TensorType
) -> None:
    target = tmp_path / "model.gguf"
    assert run(checkpoint, "-o", target, "--quantize", option, "--router-precision", "fp16") == 0
    with GGUFReader.open(target) as reader:
        assert reader.metadata["general.file_type"] == file_type
        assert reader.tensors["blk.0.ffn_up_exps.weight"].type is expected
        assert reader.tensors["blk.0.ffn_gate_inp.weight"].type is TensorType.F16


def test_what_calibration_measured_weights_each_expert(checkpoint: Path, tmp_path: Path) -> None:
    name, measured = "blk.0.ffn_up_exps.weight", tmp_path / "imatrix.gguf"
    sums = np.ones((8, 256), np.float32)
    sums[3, ::2] = 100
    inputs = TensorInputs(1000 * sums, np.full(8, 1000, np.float32))
    write_importance(ImportanceMatrix({name: inputs}, ("text",), 1, 8000), measured)
    plain, weighted = tmp_path / "plain.gguf", tmp_path / "weighted.gguf"
    assert run(checkpoint, "-o", plain, "--quantize", "q4_k_s") == 0
    assert run(checkpoint, "-o", weighted, "--quantize", "q4_k_s", "--calibration", measured) == 0

    source = tmp_path / "source.gguf"
    assert run(checkpoint, "-o", source, "--type", "f32") == 0
    errors = [
        np.square(values_of(path, name) - values_of(source, name))[3, :, ::2].mean() for path in (plain, weighted)
    ]
    assert errors[1] < 0.95 * errors[0]
    assert np.array_equal(values_of(plain, "output.weight"), values_of(weighted, "output.weight"))


def values_of(path: Path, name: str) -> npt.NDArray[np.float32]:
    with GGUFReader.open(path) as reader:
        tensor = reader.tensors[name]
        return dequantise(reader.data(name), tensor.type, tensor.shape)


def test_calibration_without_quantising_or_of_another_model_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    measured, target = tmp_path / "imatrix.gguf", tmp_path / "model.gguf"
    inputs = TensorInputs(np.ones((4, 256), np.float32), np.full(4, 10, np.float32))
    write_importance(ImportanceMatrix({"blk.0.ffn_up_exps.weight": inputs}, ("text",), 1, 10), measured)
    with pytest.raises(InvalidRequestError, match="say which type too"):
        run(checkpoint, "-o", target, "--calibration", measured)
    with pytest.raises(ModelFormatError, match=r"importance of 8 matrices for blk\.0\.ffn_up_exps.*found that of 4"):
        run(checkpoint, "-o", target, "--calibration", measured, "--quantize", "q4_k")
    assert not target.exists()


def test_a_number_that_is_none_is_named_with_its_tensor(checkpoint: Path, tmp_path: Path) -> None:
    path = checkpoint / "model.safetensors"
    content = bytearray(path.read_bytes())
    header_end = 8 + int.from_bytes(content[:8], "little")
    entry = json.loads(content[8:header_end])["model.layers.1.mlp.experts.7.down_proj.weight"]
    last = header_end + entry["data_offsets"][1]
    content[last - 2 : last] = b"\xc0\x7f"  # a NaN of BF16
    path.write_bytes(content)
    with pytest.raises(ModelFormatError, match=r"Tensor blk\.1\.ffn_down_exps.*found nan in row 2,047, column 255"):
        run(checkpoint, "-o", tmp_path / "new" / "model.gguf", "--quantize", "q4_k_m")
    assert list((tmp_path / "new").iterdir()) == []


# Converts as the command does, but with every tensor on disk before the next, and dies behind so many of them.
KILLED = """
import os, signal, sys
from engine.gguf import partial_file
partial_file.SYNC_BYTES = 1
n_last, go_on = int(sys.argv[1]), partial_file.PartialFile.part_done
def part_done(self, n_parts):
    go_on(self, n_parts)
    if n_parts == n_last:
        os.kill(os.getpid(), signal.SIGKILL)
partial_file.PartialFile.part_done = part_done
from app.__main__ import main
sys.exit(main(sys.argv[2:]))
"""
NEVER = "-1"


def test_a_killed_conversion_goes_on_where_it_was(tmp_path: Path) -> None:
    folder = large_checkpoint(tmp_path, n_layers=8)
    target, whole = tmp_path / "new" / "model.gguf", tmp_path / "whole.gguf"
    assert run(folder, "-o", whole, "--quantize", "q4_k_m", "--name", "M") == 0
    arguments = ["convert", str(folder), "-o", str(target), "--quantize", "q4_k_m", "--name", "M"]
    partial, journal = (target.with_name(f".model.gguf.{end}part") for end in ("", "journal."))
    n_kept = []
    for n_tensors in (5, 20, 60):
        killed = subprocess.run([sys.executable, "-c", KILLED, str(n_tensors), *arguments], check=False)
        assert killed.returncode == -signal.SIGKILL
        n_kept.append(len(journal.read_bytes().splitlines()) - 1)
        assert partial.stat().st_size > 0 and not target.exists()
    assert n_kept == [5, 20, 60]

    seen: list[int] = []
    job = Job("test")
    job.on_change(lambda job: seen.append(job.done_bytes or 0) if job.phase == "writing" else None)
    kind = ConversionOptions(mixture=Mixture.Q4_K_M, name="M")
    job.run_blocking(lambda job: convert(job, folder, target, kind))

    assert target.read_bytes() == whole.read_bytes()
    assert list(target.parent.iterdir()) == [target]
    assert min(done for done in seen if done) > 1_000_000  # what was there is not computed again


def test_ten_kills_at_random_moments_change_no_byte(tmp_path: Path) -> None:
    folder = large_checkpoint(tmp_path, n_layers=6)
    text, target, whole = tmp_path / "text.txt", tmp_path / "new" / "model.gguf", tmp_path / "whole.gguf"
    text.write_text(TEXT)
    options = ["--quantize", "q4_k_m", "--name", "M", "--calibration", str(text)]
    for _ in range(2):  # the first time kernels may have to be compiled
        began = time.monotonic()
        assert colibri("convert", str(folder), "-o", str(whole), "--replace", *options).returncode == 0
        seconds = time.monotonic() - began
    command = [sys.executable, "-c", KILLED, NEVER, "convert", str(folder), "-o", str(target), "--replace", *options]
    moments, n_killed = random.Random(5), 0
    while n_killed < 10:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(moments.uniform(0.1, 1) * seconds)
        process.kill()
        if process.wait() == -signal.SIGKILL:
            n_killed += 1
        else:
            seconds *= 0.8  # the machine was busier when the time was taken
        assert not target.exists() or target.read_bytes() == whole.read_bytes()
    assert subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == 0
    assert target.read_bytes() == whole.read_bytes()
    assert list(target.parent.iterdir()) == [target]


def large_checkpoint(parent: Path, n_layers: int, *, weights: bool = True) -> Path:
    """The Qwen3-MoE case with so many layers of 1.8 million weights each."""
    case, folder = checkpoint_case("qwen3_moe"), parent / f"layers-{n_layers}"
    folder.mkdir()
    write_files(folder, {**case.files, "config.json": json.dumps({**case.config, "num_hidden_layers": n_layers})})
    tensors = [spec for spec in case.tensors if ".layers." not in spec[0]]
    for name, dtype, shape in case.tensors:
        if ".layers.0." in name:
            tensors += [(name.replace(".layers.0.", f".layers.{i}."), dtype, shape) for i in range(n_layers)]
    (write_weights if weights else write_zeros)(folder / "model.safetensors", tuple(tensors))
    return folder


def test_memory_does_not_grow_with_the_checkpoint(tmp_path: Path) -> None:
    def peak_bytes(n_layers: int) -> int:
        folder = large_checkpoint(tmp_path, n_layers, weights=False)
        code = "import sys\nfrom app.__main__ import main\nmain(sys.argv[1:])\n"
        # not getrusage, which counts the memory that the test's own process had when it started this one
        code += "print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1])"
        arguments = ["convert", str(folder), "-o", str(tmp_path / f"{n_layers}.gguf"), "--quantize", "q4_k_m"]
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
        return 1024 * int(done.stdout.split()[-1])

    small, large = peak_bytes(2), peak_bytes(80)  # 8 MB and 290 MB of weights
    assert large < small + (64 << 20)
    assert large < 300 << 20


def test_a_model_file_is_quantised_and_named_after_itself(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(checkpoint, "-o", tmp_path / "mine-Q8_0.gguf", "--quantize", "q8_0") == 0
    assert run(tmp_path / "mine-Q8_0.gguf", "--quantize", "q4_k") == 0
    assert "quantised already (Q8_0)" in capsys.readouterr().out
    with GGUFReader.open(tmp_path / "mine-Q4_K_M.gguf") as reader:
        assert reader.tensors["blk.0.attn_q.weight"].type.is_quantised


TEXT = "The hummingbird hovers before the flower. " * 60


def test_a_text_calibrates_and_the_result_is_proved(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, folder = tmp_path / "mine.txt", tmp_path / "new"
    text.write_text(TEXT)
    plain, calibrated = folder / "plain.gguf", folder / "calibrated.gguf"
    assert run(checkpoint, "-o", plain, "--quantize", "q4_0") == 0
    assert run(checkpoint, "-o", calibrated, "--quantize", "q4_0", "--calibration", text, "--prove") == 0

    assert "prefers the same next token as its source" in capsys.readouterr().out
    assert sorted(folder.iterdir()) == [calibrated, plain]
    name = "blk.1.ffn_down_exps.weight"
    assert not np.array_equal(values_of(plain, name), values_of(calibrated, name))
    with GGUFReader.open(calibrated) as reader:
        metadata = reader.metadata
        assert metadata["quantize.imatrix.dataset"] == "mine"
        assert metadata["colibri.calibration.tokens"] >= 512
        assert "divergence" in metadata["colibri.proof.sentence"]
        assert metadata["colibri.proof.source"] == "qwen3_moe"


def test_calibrating_on_the_way_gives_what_a_measured_file_gives(checkpoint: Path, tmp_path: Path) -> None:
    text, measured = tmp_path / "mine.txt", tmp_path / "measured.gguf"
    text.write_text(TEXT)
    assert run(checkpoint, "-o", tmp_path / "bf16.gguf", "--type", "bf16") == 0
    Job("test").run_blocking(lambda job: measure_importance(job, tmp_path / "bf16.gguf", measured, text))
    for name, file in (("way", text), ("file", measured)):
        assert run(checkpoint, "-o", tmp_path / f"{name}.gguf", "--quantize", "q4_k", "--calibration", file) == 0
    assert (tmp_path / "way.gguf").read_bytes() == (tmp_path / "file.gguf").read_bytes()


def test_colibri_s_own_texts_calibrate_where_no_file_is_named(checkpoint: Path, tmp_path: Path) -> None:
    assert run(checkpoint, "-o", tmp_path / "model.gguf", "--quantize", "q4_k", "--calibration") == 0
    with GGUFReader.open(tmp_path / "model.gguf") as reader:
        assert reader.metadata["quantize.imatrix.dataset"] == "english, chinese, code, conversations"


def test_too_short_a_text_is_refused_and_leaves_nothing(checkpoint: Path, tmp_path: Path) -> None:
    text = tmp_path / "short.txt"
    text.write_text("Hi.")
    with pytest.raises(InvalidRequestError, match="Give a longer text"):
        run(checkpoint, "-o", tmp_path / "new" / "model.gguf", "--quantize", "q4_k", "--calibration", text)
    assert not any((tmp_path / "new").glob("*"))


@pytest.mark.parametrize("phase", ["calibrating", "writing", "comparing with the source"])
def test_a_cancel_in_any_phase_leaves_nothing_half_done(phase: str, checkpoint: Path, tmp_path: Path) -> None:
    target, kind = tmp_path / "new" / "model.gguf", ConversionOptions(mixture=Mixture.Q4_0)
    job = Job("test")
    job.on_change(lambda job: job.cancel() if job.phase == phase and job.fraction and not job.cancelled else None)
    with pytest.raises(JobCancelledError):
        job.run_blocking(lambda job: convert(job, checkpoint, target, kind, calibration={"t": TEXT}, proof={"t": TEXT}))
    assert list(target.parent.iterdir()) == ([target] if phase.startswith("comparing") else [])


def test_a_file_in_its_source_s_place_cannot_be_proved(checkpoint: Path, tmp_path: Path) -> None:
    source = tmp_path / "model.gguf"
    assert run(checkpoint, "-o", source) == 0
    before = source.read_bytes()
    with pytest.raises(TargetError, match="source's place"):
        run(source, "-o", source, "--replace", "--quantize", "q8_0", "--prove")
    assert source.read_bytes() == before
