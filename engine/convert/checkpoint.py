"""A published checkpoint: its configuration and tokenizer files, and where each of its tensors is."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType

import numpy as np
import numpy.typing as npt

from engine.convert.configuration import Configuration
from engine.convert.json_files import read_json
from engine.convert.safetensors import StoredTensor, read_header
from engine.errors import ContradictionError, MissingFileError, ModelFormatError, UnsafeFileError

_INDEX = "model.safetensors.index.json"
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
_EXPERT_FOLDER = re.compile(r"expert_(\d{1,6})$")
_LAYER = re.compile(r"^(?:model\.)?layers\.(\d+)\.(.+)$")
_BLOCKS = ("mlp.", "block_sparse_moe.", "feed_forward.")
# Multimodal checkpoints keep the language model below a name of its own.
_PREFIXES = (
    ("model.language_model.", "model."),
    ("language_model.model.", "model."),
    ("language_model.lm_head.", "lm_head."),
)

_PICKLE_ADVICE = (
    "Such files are pickles: loading one can run any program that its author put into it, so Colibri never does. "
    "Look for a safetensors version of the model (most publishers have one, often on another branch), or turn it "
    "into safetensors on a machine that you can spare."
)


class Checkpoint:
    """An open checkpoint; use it as a context manager or `close` it. Opening reads headers only.

    `folder` holds its files, `configuration` is its config.json, `tensors` has each tensor by the name that the
    architecture's own code gives it (what multimodal checkpoints put before the language model's names is taken off).
    """

    def __init__(self, folder: Path, configuration: Configuration, tensors: Mapping[str, StoredTensor]) -> None:
        """Use `open`."""
        self.folder = folder
        self.configuration = configuration
        self.tensors = MappingProxyType(dict(tensors))
        self._descriptors: dict[Path, int] = {}
        self._lock = threading.Lock()

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Checkpoint:
        """Open a folder with config.json and safetensors, or one safetensors file with config.json beside it.

        The folder may have one file, shards with an index, shards without one, or experts in folders of their own
        (`experts/expert_N/`). Raises ModelFormatError for what is damaged, incomplete or contradicts itself,
        UnsafeFileError for pickles, UnsupportedModelError for unknown types.
        """
        chosen = Path(path)
        folder = chosen if chosen.is_dir() else chosen.parent
        if chosen.suffix in _PICKLES:
            raise UnsafeFileError(f"{chosen}: expected safetensors, found a {chosen.suffix} file. {_PICKLE_ADVICE}")
        values = read_json(folder / "config.json")
        if values is None:
            raise MissingFileError(
                f"{folder}: expected the model's config.json there, found none. "
                "Download it too: without it the tensors have no meaning."
            )
        tensors = _read_folder(folder) if chosen.is_dir() else read_header(chosen)
        return cls(folder, Configuration(values, folder / "config.json"), _with_plain_names(folder, tensors))

    def read(self, tensor: StoredTensor, first_byte: int, n_bytes: int) -> npt.NDArray[np.uint8]:
        """Bytes of `tensor` from `first_byte` on, (n_bytes,) uint8.

        Raises ModelFormatError if the file has become shorter since it was opened, or cannot be read.
        """
        result = np.empty(n_bytes, np.uint8)
        view, done = result.data, 0
        while done < n_bytes:
            try:
                n_read = os.preadv(self._descriptor(tensor.path), [view[done:]], tensor.offset + first_byte + done)
            except OSError as error:
                raise MissingFileError(
                    f"{tensor.path}: tensor {tensor.name!r} cannot be read: {error.strerror}."
                ) from error
            if not n_read:
                raise ModelFormatError(
                    f"{tensor.path}: expected {n_bytes:,} bytes of tensor {tensor.name!r}, found {done:,} up to the "
                    "file's end. The file was changed while it was in use."
                )
            done += n_read
        return result

    def _descriptor(self, path: Path) -> int:
        with self._lock:
            if path not in self._descriptors:
                self._descriptors[path] = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
            return self._descriptors[path]

    def close(self) -> None:
        """Close the files; a later `read` opens them again."""
        while self._descriptors:
            os.close(self._descriptors.popitem()[1])

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _read_folder(folder: Path) -> dict[str, StoredTensor]:
    index = read_json(folder / _INDEX)
    tensors: dict[str, StoredTensor] = {}
    if index is not None:
        _merge(tensors, _read_shards(folder, index))
    else:
        for path in sorted(folder.glob("*.safetensors")):
            _merge(tensors, read_header(path))
    for expert in sorted(folder.glob("experts/expert_*")):
        if match := _EXPERT_FOLDER.search(expert.name):
            for path in sorted(expert.glob("*.safetensors")):
                _merge(tensors, _named_for_expert(read_header(path), int(match[1])))
    if tensors:
        return tensors
    pickles = sorted(path.name for path in folder.iterdir() if path.suffix in _PICKLES)
    if pickles:
        raise UnsafeFileError(f"{folder}: expected safetensors files, found {pickles[0]}. {_PICKLE_ADVICE}")
    raise MissingFileError(f"{folder}: expected safetensors files there, found none. Download the model's weights too.")


def _read_shards(folder: Path, index: dict[str, object]) -> dict[str, StoredTensor]:
    """The tensors that the index names, each from the shard that it names."""
    where = folder / _INDEX
    weight_map = index.get("weight_map")
    if not isinstance(weight_map, dict) or not all(isinstance(shard, str) for shard in weight_map.values()):
        raise ModelFormatError(f"{where}: expected a weight_map of names to files, found {weight_map!r:.80}.")
    headers: dict[str, dict[str, StoredTensor]] = {}
    for shard in sorted(set(weight_map.values())):
        parts = shard.replace("\\", "/").split("/")
        if not shard.endswith(".safetensors") or shard.startswith("/") or ":" in shard or ".." in parts:
            raise ModelFormatError(
                f"{where}: expected names of safetensors files in the model's folder, found {shard[:200]!r}. "
                "Such a name may be an attack: get the model from a source that you trust."
            )
        if not (folder / shard).is_file():
            raise MissingFileError(
                f"{folder}: expected the shard {shard}, which the index names, found no such file. Download it."
            )
        headers[shard] = read_header(folder / shard)
    for name, shard in weight_map.items():
        if name not in headers[shard]:
            raise ContradictionError(
                f"{folder / shard}: expected tensor {name!r}, which the index places there, found none of that name. "
                "Index and shards are of different versions: download both again."
            )
    unnamed = [name for header in headers.values() for name in header if name not in weight_map]
    if unnamed:
        raise ContradictionError(
            f"{where}: expected every tensor of the shards, found no entry for {unnamed[0]!r}. "
            "Index and shards are of different versions: download both again."
        )
    return {name: headers[shard][name] for name, shard in weight_map.items()}


def _merge(tensors: dict[str, StoredTensor], more: Mapping[str, StoredTensor]) -> None:
    for name, tensor in more.items():
        if name in tensors:
            raise ContradictionError(
                f"{tensor.path}: expected each tensor in one file, found {name!r} also in {tensors[name].path}. "
                "The folder holds more than one copy of the model: remove one."
            )
        tensors[name] = tensor


def _named_for_expert(tensors: dict[str, StoredTensor], expert: int) -> dict[str, StoredTensor]:
    """Whole names: a file of one expert may leave out which one it is."""
    found: dict[str, StoredTensor] = {}
    for name, tensor in tensors.items():
        match = _LAYER.match(name)
        if ".experts." not in name and match:
            block = next((block for block in _BLOCKS if match[2].startswith(block)), "")
            leaf = match[2].removeprefix(block)
            found[f"model.layers.{match[1]}.{block or 'mlp.'}experts.{expert}.{leaf}"] = tensor
        elif f".experts.{expert}." not in name:
            raise ModelFormatError(
                f"{tensor.path}: expected tensors of expert {expert}, as the folder says, found {name!r}."
            )
        else:
            found[name] = tensor
    return found


def _with_plain_names(folder: Path, tensors: dict[str, StoredTensor]) -> dict[str, StoredTensor]:
    bare = "embed_tokens.weight" in tensors  # saved from the model without its head
    found: dict[str, StoredTensor] = {}
    for name, tensor in tensors.items():
        plain = next((new + name.removeprefix(old) for old, new in _PREFIXES if name.startswith(old)), name)
        if bare and not plain.startswith(("model.", "lm_head.")):
            plain = f"model.{plain}"
        if plain in found:
            raise ModelFormatError(
                f"{folder}: expected one tensor {plain!r}, found {found[plain].name!r} and {name!r}."
            )
        found[plain] = tensor
    return found
