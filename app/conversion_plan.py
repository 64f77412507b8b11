"""What can be said of a conversion before it is begun: what the checkpoint is, and what each kind of file will take."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from app import paths
from app.conversion import file_stem
from app.file_types import FILE_TYPES, FileType, preferred
from app.model_details import MemoryFit, memory_fit
from app.model_places import checkpoint_name
from app.speed_forecast import forecast_of
from app.target_errors import SPARE_BYTES
from engine import EngineConfig
from engine.convert import Checkpoint, ConversionOptions, ConversionPlan, is_model_file, plan_conversion, planned
from engine.convert.write import outline
from engine.errors import ColibriError
from engine.gguf import GGUFReader

_ENDING = ".gguf"


class Doubt(StrEnum):
    """What the user should know before converting."""

    NO_CHAT_TEMPLATE = "no-chat-template"
    NO_LICENCE = "no-licence"
    QUANTISED = "quantised"  # what that lost stays lost


@dataclass(frozen=True, slots=True)
class Examination:
    """A model that can be converted; None where it says nothing. `type_key`: the kind nearest to it."""

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
    doubts: tuple[Doubt, ...] = ()
    is_model_file: bool = False  # a GGUF file already


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a kind of file takes: `n_bytes` of disk, `memory` to run it (None: not known, `problem` says why)."""

    kind: FileType
    n_bytes: int
    n_parameters: int
    memory: MemoryFit | None
    problem: str = ""
    tokens_per_second: float | None = None  # a forecast

    @property
    def bits_per_weight(self) -> float:
        return 8 * self.n_bytes / max(1, self.n_parameters)


def examine(source: Path) -> Examination:
    """Check a checkpoint or GGUF file as its conversion would. Reads headers and tokenizer files, no weights.

    Raises ColibriError for what is damaged, unknown, or contradicts itself.
    """
    if is_model_file(source):
        with GGUFReader.open(source) as reader, planned(source) as plan:
            by_type = _bytes_by_type((tensor.type.name, tensor.n_bytes) for tensor in reader.tensors.values())
            return _examined(plan, source, source.stem, by_type, is_model_file=True)
    with Checkpoint.open(source) as checkpoint:
        plan = plan_conversion(checkpoint)
        by_type = _bytes_by_type((tensor.dtype, tensor.n_bytes) for tensor in checkpoint.tensors.values())
        return _examined(plan, source, checkpoint_name(checkpoint.folder.absolute()), by_type, is_model_file=False)


def _bytes_by_type(tensors: Iterable[tuple[str, int]]) -> dict[str, int]:
    by_type = Counter[str]()
    for name, n_bytes in tensors:
        by_type[name] += n_bytes
    return dict(by_type.most_common())


def _examined(
    plan: ConversionPlan, source: Path, name: str, by_type: dict[str, int], *, is_model_file: bool
) -> Examination:
    keys = {key: entry.value for key, entry in plan.metadata.items()}
    licence = _text(keys.get("general.license.name")) or _text(keys.get("general.license"))
    doubts = (
        (Doubt.QUANTISED, bool(plan.quantised_source)),
        (Doubt.NO_CHAT_TEMPLATE, not _text(keys.get("tokenizer.chat_template"))),
        (Doubt.NO_LICENCE, licence is None),
    )
    return Examination(
        source=source,
        name=name,
        model_name=_text(keys.get("general.name")) or name,
        architecture=plan.architecture,
        source_bytes=sum(by_type.values()),
        source_types=tuple(by_type),
        n_parameters=_n_parameters(plan),
        n_tensors=len(plan.tensors),
        n_layers=_integer(keys.get(f"{plan.architecture}.block_count")),
        n_experts=_integer(keys.get(f"{plan.architecture}.expert_count")),
        top_k=_integer(keys.get(f"{plan.architecture}.expert_used_count")),
        context_length=_integer(keys.get(f"{plan.architecture}.context_length")),
        licence=licence,
        type_key=next((kind.key for kind in FILE_TYPES if kind.type is plan.type), FILE_TYPES[0].key),
        doubts=tuple(doubt for doubt, is_so in doubts if is_so),
        is_model_file=is_model_file,
    )


def outlook(
    source: Path,
    kind: FileType,
    config: EngineConfig,
    options: ConversionOptions | None = None,
    memory_bytes_per_second: float | None = None,
) -> Outlook:
    """What a file of `kind` will take on the disk and, by the engine's own plan, in memory. Raises ColibriError.

    memory_bytes_per_second: of this machine, for a forecast of the file's speed.
    """
    with planned(source, options or kind.options()) as plan:
        n_parameters = _n_parameters(plan)
        speed = None if memory_bytes_per_second is None else forecast_of(plan, memory_bytes_per_second)
        try:
            return Outlook(kind, plan.n_bytes, n_parameters, _memory(plan, config), "", speed)
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
    if is_model_file(source):
        stem = f"{file_stem(source)}-{kind.name}"
    else:
        found = source if source.is_dir() else source.parent
        stem = f"{checkpoint_name(found.absolute()).rpartition('/')[2]}-{kind.name}"
    folder = paths.models_dir() if folder is None else folder
    target, number = folder / f"{stem}{_ENDING}", 2
    while target.exists():
        target, number = folder / f"{stem}-{number}{_ENDING}", number + 1
    return target


def _memory(plan: ConversionPlan, config: EngineConfig) -> MemoryFit:
    """The engine's plan for a file that is not there yet: it is asked about one with this header and no data."""
    with tempfile.TemporaryDirectory(prefix="outline-", dir=paths.cache_dir()) as folder:
        path = Path(folder) / f"outline{_ENDING}"
        with path.open("wb") as file:
            outline(plan, file)
        return memory_fit(path, config)


def _n_parameters(plan: ConversionPlan) -> int:
    return sum(math.prod(tensor.shape) for tensor in plan.tensors)


def _integer(value: Any) -> int | None:
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
