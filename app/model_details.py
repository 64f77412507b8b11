"""What the model manager says of one model: its facts, the memory it needs on this machine, its checksum."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from app import starter
from app.jobs import Job
from app.model_files import parts_of
from app.model_places import known_sha256
from engine.errors import ColibriError, UnsupportedModelError

if TYPE_CHECKING:
    from engine import EngineConfig, MemoryPlan
    from engine.carve import Loss
    from engine.checks import Check
    from engine.convert.proof import Proof

_CHUNK_BYTES = 8 << 20
_OWN_PREFIX = "colibri."
_SHOWN_APART = ("colibri.proof.", "colibri.carve.")


@dataclass(frozen=True, slots=True)
class ModelDetails:
    """Facts of a model file's header; None where it says nothing. `own_keys` are the texts of its `colibri.*` keys."""

    paths: tuple[Path, ...]
    file_bytes: int
    architecture: str | None
    n_parameters: int
    n_layers: int | None
    n_experts: int | None
    top_k: int | None
    context_length: int | None
    licence: str | None
    has_chat_template: bool
    bytes_by_type: Mapping[str, int]
    own_keys: Mapping[str, str] = field(default_factory=dict)
    proof: Proof | None = None  # beside what it was converted from
    losses: tuple[Loss, ...] = ()  # of a carved model, by the number of experts
    can_be_carved: bool = False
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryFit:
    """The engine's own plan for a model, beside what the machine has."""

    plan: MemoryPlan
    available_bytes: int
    total_bytes: int

    @property
    def fits(self) -> bool:
        return self.plan.total_bytes <= self.available_bytes


@dataclass(frozen=True, slots=True)
class Checksum:
    """SHA-256 of a file. `expected` is what its source promises; None when nobody does."""

    path: Path
    sha256: str
    expected: str | None

    @property
    def is_wrong(self) -> bool:
        return self.expected is not None and self.expected != self.sha256


def read_details(path: Path) -> ModelDetails:
    """What the file's header says. Raises ModelFormatError."""
    from engine.carve import check_dense, losses_of  # noqa: PLC0415 - it brings NumPy, which the window's first paint need not wait for
    from engine.checks import check_model  # noqa: PLC0415 - the same
    from engine.convert.proof import proof_of  # noqa: PLC0415 - the same
    from engine.gguf import GGUFReader  # noqa: PLC0415
    from engine.gguf.inspect import describe  # noqa: PLC0415

    with GGUFReader.open(path) as reader:
        model = describe(reader)
        proof, losses, checks = proof_of(reader.metadata), losses_of(reader.metadata), check_model(reader)
        try:
            check_dense(reader)
            can_be_carved = True
        except UnsupportedModelError:
            can_be_carved = False
    own = {
        key.name: str(key.value)
        for key in model.keys
        if key.name.startswith(_OWN_PREFIX) and not key.name.startswith(_SHOWN_APART) and key.n_items is None
    }
    return ModelDetails(
        paths=tuple(map(Path, model.paths)),
        file_bytes=model.file_bytes,
        architecture=model.architecture,
        n_parameters=model.n_parameters,
        n_layers=model.n_layers,
        n_experts=model.n_experts,
        top_k=model.top_k,
        context_length=model.context_length,
        licence=model.licence,
        has_chat_template=model.has_chat_template,
        bytes_by_type={total.type.name: total.n_bytes for total in model.types},
        own_keys=own,
        proof=proof,
        losses=losses,
        can_be_carved=can_be_carved,
        checks=tuple(checks),
    )


def memory_fit(path: Path, config: EngineConfig) -> MemoryFit:
    """What opening the model would take. Reads its header.

    Raises ModelFormatError, UnsupportedModelError, InvalidRequestError, KernelBuildError.
    """
    from engine.kernels.library import load_library  # noqa: PLC0415
    from engine.kernels.tiers import choose_tier  # noqa: PLC0415
    from engine.model import measure_memory  # noqa: PLC0415

    plan = measure_memory(path, config, load_library(choose_tier(config.tier)))
    memory = psutil.virtual_memory()
    return MemoryFit(plan, memory.available, memory.total)


def checksums(job: Job, path: Path) -> list[Checksum]:
    """Read the model whole and compute the SHA-256 of each of its files. Raises JobCancelledError, ColibriError."""
    files = parts_of(path)
    try:
        total_bytes = sum(file.stat().st_size for file in files)
        job.report("checksum", done_bytes=0, total_bytes=total_bytes)
        done_bytes, results = 0, list[Checksum]()
        for file in files:
            digest = hashlib.sha256()
            with file.open("rb", buffering=0) as source:
                while chunk := source.read(_CHUNK_BYTES):
                    job.check()
                    digest.update(chunk)
                    done_bytes += len(chunk)
                    job.report(done_bytes=done_bytes)
            results.append(Checksum(file, digest.hexdigest(), _expected_sha256(file)))
    except OSError as error:
        raise ColibriError(
            f"{error.filename or path}: the file cannot be read: {error.strerror}. Check its disk and its permissions."
        ) from error
    return results


def parameters(n_parameters: int) -> str:
    """A number of parameters as models are named after it: `30.5B`, `135M`."""
    if n_parameters <= 0:
        return "0"
    for unit, size in (("T", 1e12), ("B", 1e9), ("M", 1e6), ("K", 1e3)):
        if n_parameters >= size:
            value = n_parameters / size
            digits = max(0, 2 - math.floor(math.log10(value))) if value < 100 else 0
            text = f"{value:.{digits}f}"
            return (text.rstrip("0").rstrip(".") if "." in text else text) + unit
    return str(n_parameters)


def _expected_sha256(path: Path) -> str | None:
    manifest = starter.Manifest.load()
    return manifest.sha256 if path == starter.starter_path(manifest) else known_sha256(path)
