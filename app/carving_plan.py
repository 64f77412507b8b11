"""What can be said of a carving before it is begun: which models can be carved, into how many experts, at what size."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from app import paths
from app.carving_request import CarvingRequest
from app.library import ModelEntry, model_name
from engine.carve import Carving, check_dense
from engine.errors import ColibriError
from engine.gguf import GGUFReader, TensorType

_USUAL = Carving()
_OFFERED = (4, 8, 16, 32, 64, 128)
_PLAIN = (TensorType.F32, TensorType.F16, TensorType.BF16)
_F16_BYTES = 2


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model of this machine; `problem`: why it cannot be carved, "" if it can."""

    path: Path
    name: str
    file_bytes: int
    problem: str


@dataclass(frozen=True, slots=True)
class DenseModel:
    """A model that can be carved.

    expert_counts: into how many experts of equal size, some of those that are possible. n_bytes: of the file that comes
    out; it does not depend on how many are shared or chosen.
    """

    path: Path
    name: str
    file_bytes: int
    n_bytes: int
    n_parameters: int
    n_layers: int
    n_feed_forward: int
    expert_counts: tuple[int, ...]

    def request(self, **changes: object) -> CarvingRequest:
        """The one that most people should take, unless `changes` say otherwise."""
        usual = _USUAL.n_experts
        n_experts = usual if usual in self.expert_counts else self.expert_counts[len(self.expert_counts) // 2]
        values: dict[str, object] = {
            "source": str(self.path),
            "target": str(proposed_target(self.path)),
            "n_experts": n_experts,
            "n_shared": max(1, n_experts // 4),
            "n_dense_layers": min(_USUAL.n_dense_layers, self.n_layers - 1),
            "name": self.name,
        }
        return CarvingRequest(**{**values, **changes})  # type: ignore[arg-type]


def candidates(entries: Iterable[ModelEntry]) -> list[Candidate]:
    """The models of a library that can be carved first, then those that cannot, each with the reason."""
    found = []
    for entry in entries:
        problem = entry.problem
        if not problem:
            try:
                with GGUFReader.open(entry.path) as reader:
                    _dense(reader, entry.name)
            except (ColibriError, OSError) as error:
                problem = str(error)
        found.append(Candidate(entry.path, entry.name, entry.file_bytes, problem))
    return sorted(found, key=lambda candidate: bool(candidate.problem))


def examine(source: Path) -> DenseModel:
    """What a model can be carved into. Reads its header. Raises ColibriError for one that cannot be."""
    with GGUFReader.open(source) as reader:
        return _dense(reader, model_name(source, str(reader.metadata.get("general.name", ""))))


def proposed_target(source: Path) -> Path:
    """`<models folder>/SmolLM2-135M-carved.gguf`; with a number behind it where that name is taken."""
    stem = f"{source.name.removesuffix('.gguf')}-carved"
    target, number = paths.models_dir() / f"{stem}.gguf", 2
    while target.exists():
        target, number = paths.models_dir() / f"{stem}-{number}.gguf", number + 1
    return target


def _dense(reader: GGUFReader, name: str) -> DenseModel:
    sizes = check_dense(reader)
    possible = [n for n in _OFFERED if _can_be_cut(n, sizes.n_feed_forward)]
    if not possible:
        Carving(n_dense_layers=0).check(sizes.n_feed_forward, sizes.n_layers)  # says why
    return DenseModel(
        path=reader.paths[0],
        name=name,
        file_bytes=reader.file_bytes,
        n_bytes=_carved_bytes(reader),
        n_parameters=sum(math.prod(tensor.shape) for tensor in reader.tensors.values()),
        n_layers=sizes.n_layers,
        n_feed_forward=sizes.n_feed_forward,
        expert_counts=tuple(possible),
    )


def _can_be_cut(n_experts: int, n_feed_forward: int) -> bool:
    try:
        Carving(n_experts, 1, 0).check(n_feed_forward, 1)
    except ColibriError:
        return False
    return True


def _carved_bytes(reader: GGUFReader) -> int:
    """Down matrices are written in half width, and embeddings that serve as output too are written twice."""
    total = 0
    for name, tensor in reader.tensors.items():
        is_widened = ".ffn_down." in name and tensor.type not in _PLAIN
        total += _F16_BYTES * math.prod(tensor.shape) if is_widened else tensor.n_bytes
    if "output.weight" not in reader.tensors:
        total += reader.tensors["token_embd.weight"].n_bytes
    return total
