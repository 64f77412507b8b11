"""Converting a checkpoint or a GGUF file into a GGUF file as a job: checked, with progress, whole or not at all."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace as replaced
from pathlib import Path

from app.calibration import calibrated
from app.jobs import Job
from app.proving import prove
from app.target_errors import SPARE_BYTES, TargetError, check_folder, is_there, nearest_folder, not_written
from app.verification import Verification, verify
from engine.convert import ConversionOptions, ConversionPlan, Mixture, is_model_file, planned, write_gguf
from engine.convert.proof import Proof
from engine.convert.quantise import prepare
from engine.gguf import TensorType

_PART = re.compile(r"-\d{5}-of-\d{5}$")  # of a split file's name


@dataclass(frozen=True, slots=True)
class Converted:
    """What a conversion gives: the plan, the file unless it was only looked at, what was verified and proved."""

    plan: ConversionPlan
    path: Path | None
    verification: Verification | None = None
    proof: Proof | None = None


def convert(
    job: Job,
    source: Path,
    target: Path | None = None,
    options: ConversionOptions | None = None,
    *,
    calibration: Mapping[str, str] | None = None,
    proof: Mapping[str, str] | None = None,
    replace: bool = False,
    dry_run: bool = False,
    verified: bool = False,
) -> Converted:
    """Convert the checkpoint or GGUF file at `source` to the file `target`; by default it is named after the model.

    calibration: texts (name -> text) by which errors are weighted, in the place of `options.importance`. proof: texts
    that the result and the source read at the end; the figures are kept in the file.
    With `dry_run` everything is checked and nothing written. With `verified` the file is read again and compared with
    the checkpoint; one that differs is taken away. Raises ColibriError before anything is written if the
    checkpoint contradicts itself or the options, if `target` is there already (unless `replace`), or if the disk is
    too full; JobCancelledError after a cancel, which leaves nothing behind, but for the finished file during a proof.
    """
    options = options or ConversionOptions()
    job.report("checking the checkpoint")
    with planned(source, options) as plan:
        target = default_target(source, plan) if target is None else target
        _check_target(target, plan, replace=replace, n_copies=1 if proof is None else 2)
        if proof is not None and target.exists() and target.samefile(source):
            raise TargetError(
                f"{target}: a file in its source's place cannot be compared with it. Choose another name."
            )
        job.check()
        if dry_run:
            return Converted(plan, None)
        if calibration is None:
            done = _written(job, plan, target, verified=verified)
    if calibration is not None:
        importance = calibrated(job, source, target.absolute().parent, options, calibration)
        with planned(source, replaced(options, importance=importance)) as plan:
            done = _written(job, plan, target, verified=verified)
    if proof is None:
        return done
    return replaced(done, proof=prove(job, source, target, texts=proof))


def _written(job: Job, plan: ConversionPlan, target: Path, *, verified: bool) -> Converted:
    job.report("preparing the engine")
    prepare({tensor.type for tensor in plan.tensors}, lambda _, fraction: job.report(fraction=fraction))
    job.report("writing", done_bytes=0, total_bytes=plan.n_bytes)

    types = {tensor.name: tensor.type.name for tensor in plan.tensors}
    logged = set[str]()

    def progress(done_bytes: int, tensor: str) -> None:
        job.check()
        job.report(done_bytes=done_bytes)
        if tensor not in logged:
            logged.add(tensor)
            job.say(f"{tensor} as {types[tensor]}")

    try:
        path = write_gguf(plan, target, progress)
    except OSError as error:
        raise not_written(target, error) from error
    return Converted(plan, path, _verified(job, plan, path) if verified else None)


def _verified(job: Job, plan: ConversionPlan, path: Path) -> Verification:
    try:
        return verify(job, plan, path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def file_stem(source: Path) -> str:
    """What a model file is called without its type and part: `Qwen3-30B-A3B` for `Qwen3-30B-A3B-BF16.gguf`."""
    stem = _PART.sub("", source.stem)
    kinds = "|".join(re.escape(kind.name) for kind in (*Mixture, TensorType.F32, TensorType.F16, TensorType.BF16))
    return re.sub(f"[-.]({kinds})$", "", stem, flags=re.IGNORECASE)


def default_target(source: Path, plan: ConversionPlan) -> Path:
    """`Qwen3-30B-A3B-BF16.gguf` in the present folder, for a folder of that name or a file of it in another type."""
    if is_model_file(source):
        return Path(f"{file_stem(source)}-{plan.kind}.gguf")
    folder = source if source.is_dir() else source.parent
    return Path(f"{folder.resolve().name}-{plan.kind}.gguf")


def _check_target(target: Path, plan: ConversionPlan, *, replace: bool, n_copies: int) -> None:
    if target.is_dir():
        raise TargetError(f"{target}: expected the name of a file to write, found a folder. Name the file too.")
    if target.exists() and not replace:
        raise is_there(target)
    check_folder(nearest_folder(target), n_copies * plan.n_bytes + SPARE_BYTES)
