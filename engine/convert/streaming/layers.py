"""Where a model's layers come from, some at a time: a GGUF file, or a conversion that has not been written."""

from __future__ import annotations

import os
import re
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engine.convert.options import ConversionOptions
from engine.convert.plan import ConversionPlan
from engine.convert.source import is_model_file, planned
from engine.convert.write import outline
from engine.errors import OutOfMemoryPlanError
from engine.gguf import GGUFReader
from engine.models.hyperparameters import Hyperparameters
from engine.models.keys import Keys

BUDGET_BYTES = 768 << 20  # of weights at once; twice this and the buffers beside it stay below 2 GB
Layers = tuple[int, int]

_LAYER = re.compile(r"^blk\.(\d+)\.")
_EXPERTS = re.compile(r"_exps\.|\.ffn_(gate|up|down)\.\d+\.")
_LARGE = ("token_embd.weight", "output.weight")


class LayerSource(ABC):
    """`name` and `metadata` of a model of `n_layers` layers, which `opened` gives as a GGUF file, some at a time."""

    def __init__(self, name: str, metadata: Mapping[str, Any], tensor_bytes: Mapping[str, int]) -> None:
        """tensor_bytes: of every tensor, by name. Raises ModelFormatError for keys that make no model."""
        hyper = Hyperparameters.read(Keys(metadata))
        self.name, self.metadata = name, metadata
        self.n_layers, self.training_context = hyper.n_layers, hyper.training_context
        self.n_vocab = len(metadata.get("tokenizer.ggml.tokens", ()))
        self._layer_bytes = [0] * self.n_layers
        least, share = [0.0] * self.n_layers, hyper.top_k / max(1, hyper.n_experts)
        for tensor, n_bytes in tensor_bytes.items():
            if (layer := layer_of(tensor)) is not None and layer < self.n_layers:
                self._layer_bytes[layer] += n_bytes
                least[layer] += n_bytes * (share if _EXPERTS.search(tensor) else 1)
        output_bytes = next((tensor_bytes[name] for name in reversed(_LARGE) if name in tensor_bytes), 0)
        parts = [*((n_bytes, f"layer {i}") for i, n_bytes in enumerate(least)), (output_bytes, "the output")]
        self._least_bytes, self._largest = max(parts)

    @abstractmethod
    def opened(self, layers: Layers) -> Any:
        """A context manager that gives the path of a GGUF file whose tensors of `layers` (first, last) can be read.

        (n_layers, n_layers) stands for the output.
        """

    def refuse_too_little(self, memory_bytes: int) -> None:
        """Raise OutOfMemoryPlanError if so much memory does not hold any one layer, or the output.

        Of a layer with experts those of one token are counted: more are read as they are needed.
        """
        if self._least_bytes > memory_bytes:
            raise OutOfMemoryPlanError(
                f"Reading {self.name} one layer at a time takes {self._least_bytes / 1e6:,.0f} MB of memory for "
                f"{self._largest}, but {memory_bytes / 1e6:,.0f} MB are free. Close other programs, or do this on a "
                "machine with more memory."
            )

    def spans(self, budget_bytes: int = BUDGET_BYTES) -> list[Layers]:
        """All layers in groups, each of at most `budget_bytes` of weights in the file, or of one layer."""
        spans, first, n_bytes = list[Layers](), 0, 0
        for layer, more in enumerate(self._layer_bytes):
            if layer > first and n_bytes + more > budget_bytes:
                spans.append((first, layer))
                first, n_bytes = layer, 0
            n_bytes += more
        return [*spans, (first, self.n_layers)]


class ModelLayers(LayerSource):
    """Those of the GGUF file at `path`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Raises ModelFormatError, UnsupportedModelError."""
        self._path = Path(path)
        with GGUFReader.open(path) as reader:
            sizes = {tensor.name: tensor.n_bytes for tensor in reader.tensors.values()}
            super().__init__(self._path.name, reader.metadata, sizes)

    @contextmanager
    def opened(self, layers: Layers) -> Iterator[Path]:
        yield self._path


class PlannedLayers(LayerSource):
    """Those of a conversion: written to a file in `folder` when they are asked for, which is empty but for them."""

    def __init__(self, plan: ConversionPlan, folder: str | os.PathLike[str], name: str) -> None:
        """`plan`: whose source must be open for as long as layers are asked for. name: of its source."""
        self._plan, self._folder = plan, Path(folder)
        with self._outline() as path, GGUFReader.open(path) as reader:
            super().__init__(name, reader.metadata, {tensor.name: tensor.n_bytes for tensor in plan.tensors})

    @contextmanager
    def opened(self, layers: Layers) -> Iterator[Path]:
        with self._outline() as path:
            self._fill(path, layers)
            yield path

    @contextmanager
    def _outline(self) -> Iterator[Path]:
        """A file with the header and a hole for the data, that has no name: nothing can leave it behind."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=self._folder) as file:
            outline(self._plan, file)
            yield Path(f"/proc/self/fd/{file.fileno()}")

    def _fill(self, path: Path, layers: Layers) -> None:
        with GGUFReader.open(path) as reader:
            offsets = {name: tensor.offset for name, tensor in reader.tensors.items()}
        is_tied = "output.weight" not in offsets
        with path.open("r+b") as file:
            for tensor in self._plan.tensors:
                if not _is_needed(tensor.name, layers, self.n_layers, is_tied=is_tied):
                    continue
                file.seek(offsets[tensor.name])
                for chunk in tensor.chunks():
                    file.write(chunk.data)


@contextmanager
def open_layers(
    source: str | os.PathLike[str], folder: str | os.PathLike[str], options: ConversionOptions | None = None
) -> Iterator[LayerSource]:
    """The layers of a GGUF file, or of a checkpoint as `options` convert it, by way of files in `folder`.

    Raises as `planned` does.
    """
    if is_model_file(source):
        yield ModelLayers(source)
        return
    with planned(source, options) as plan:
        yield PlannedLayers(plan, folder, Path(source).resolve().name)


def layer_source(source: str | os.PathLike[str] | LayerSource) -> LayerSource:
    """The layers of a GGUF file, if they are not layers already."""
    return source if isinstance(source, LayerSource) else ModelLayers(source)


def layer_of(name: str) -> int | None:
    """The layer that a tensor belongs to; None for those of the whole model."""
    match = _LAYER.match(name)
    return int(match[1]) if match else None


def _is_needed(name: str, layers: Layers, n_layers: int, *, is_tied: bool) -> bool:
    if (layer := layer_of(name)) is not None:
        return layers[0] <= layer < layers[1]
    is_output = layers == (n_layers, n_layers)
    if name == "output.weight":
        return is_output
    return name not in _LARGE or layers[0] == 0 or (is_output and is_tied)
