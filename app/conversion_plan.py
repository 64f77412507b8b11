"""What can be said of a conversion before it is begun: what the checkpoint is, and what each kind of file will take."""

from __future__ import annotations

import math
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app import paths
from app.conversion import SPARE_BYTES, nearest_folder
from app.file_types import FILE_TYPES, FileType, preferred
from app.model_details import MemoryFit, memory_fit
from app.model_places import checkpoint_name
from engine import EngineConfig
from engine.convert import Checkpoint, ConversionOptions, ConversionPlan, plan_conversion
from engine.convert.write import outline
from engine.errors import ColibriError

_ENDING = ".gguf"


@dataclass(frozen=True, slots=True)
class Examination:
    """A checkpoint that can be converted; None where it says nothing. `type_key`: the kind nearest to it."""

    source: Path
    name: str
    model_name: str
    architecture: str
    source_bytes: int
    source_types: tuple[str, ...]  # as the checkpoint names them, the most bytes first
    n_parameters: int
    n_tensors: int
    n_layers: int | None
    n_experts: int | None
    top_k: int | None
    context_length: int | None
    licence: str | None
    type_key: str


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a kind of file takes: `n_bytes` of disk, `memory` to run it (None: not known, `problem` says why)."""

    kind: FileType
    n_bytes: int
    n_parameters: int
    memory: MemoryFit | None
    problem: str = ""

    @property
    def bits_per_weight(self) -> float:
        return 8 * self.n_bytes / max(1, self.n_parameters)


def examine(source: Path) -> Examination:
    """Check a checkpoint as its conversion would. Reads headers and tokenizer files, no weights.

    Raises ColibriError for what is damaged, unknown, or contradicts itself.
    """
    with Checkpoint.open(source) as checkpoint:
        plan = plan_conversion(checkpoint)
        by_type: dict[str, int] = {}
        for tensor in checkpoint.tensors.values():
            by_type[tensor.dtype] = by_type.get(tensor.dtype, 0) + tensor.n_bytes
        keys = {name: entry.value for name, entry in plan.metadata.items()}
        return Examination(
            source=source,
            name=checkpoint_name(checkpoint.folder.absolute()),
            model_name=str(keys["general.name"]),
            architecture=plan.architecture,
            source_bytes=sum(by_type.values()),
            source_types=tuple(sorted(by_type, key=lambda name: -by_type[name])),
            n_parameters=_n_parameters(plan),
            n_tensors=len(plan.tensors),
            n_layers=_integer(keys.get(f"{plan.architecture}.block_count")),
            n_experts=_integer(keys.get(f"{plan.architecture}.expert_count")),
            top_k=_integer(keys.get(f"{plan.architecture}.expert_used_count")),
            context_length=_integer(keys.get(f"{plan.architecture}.context_length")),
            licence=_text(keys.get("general.license.name")) or _text(keys.get("general.license")),
            type_key=next((kind.key for kind in FILE_TYPES if kind.type is plan.type), FILE_TYPES[0].key),
        )


def outlook(source: Path, kind: FileType, config: EngineConfig, options: ConversionOptions | None = None) -> Outlook:
    """What a file of `kind` will take on the disk and, by the engine's own plan, in memory. Raises ColibriError."""
    with Checkpoint.open(source) as checkpoint:
        plan = plan_conversion(checkpoint, options or kind.options())
        n_parameters = _n_parameters(plan)
        try:
            return Outlook(kind, plan.n_bytes, n_parameters, _memory(plan, config))
        except ColibriError as error:
            return Outlook(kind, plan.n_bytes, n_parameters, None, str(error))


def recommended(outlooks: list[Outlook], free_bytes: int) -> str | None:
    """The key of the kind that most people should take: the best that fits memory and disk, else the smallest."""
    fitting = [
        item
        for item in outlooks
        if item.n_bytes + SPARE_BYTES <= free_bytes and (item.memory is None or item.memory.fits)
    ]
    if fitting:
        return preferred([item.kind.key for item in fitting])
    return min(outlooks, key=lambda item: item.n_bytes).kind.key if outlooks else None


def proposed_target(source: Path, kind: FileType, folder: Path | None = None) -> Path:
    """`<models folder>/Qwen3-30B-A3B-BF16.gguf`; with a number behind it where that name is taken."""
    found = source if source.is_dir() else source.parent
    stem = f"{checkpoint_name(found.absolute()).rpartition('/')[2]}-{kind.name}"
    folder = paths.models_dir() if folder is None else folder
    target, number = folder / f"{stem}{_ENDING}", 2
    while target.exists():
        target, number = folder / f"{stem}-{number}{_ENDING}", number + 1
    return target


def free_bytes(target: Path) -> int:
    """Free bytes of the disk that `target` would lie on; 0 where none can be told."""
    try:
        return shutil.disk_usage(nearest_folder(target)).free
    except OSError:
        return 0


def _memory(plan: ConversionPlan, config: EngineConfig) -> MemoryFit:
    """The engine's plan for a file that is not there yet: it is asked about one with this header and no data."""
    with tempfile.TemporaryDirectory(prefix="outline-", dir=paths.cache_dir()) as folder:
        return memory_fit(outline(plan, Path(folder) / f"outline{_ENDING}"), config)


def _n_parameters(plan: ConversionPlan) -> int:
    return sum(math.prod(tensor.shape) for tensor in plan.tensors)


def _integer(value: Any) -> int | None:
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
