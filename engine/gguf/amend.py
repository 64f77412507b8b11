"""Writes a GGUF file anew with other metadata; its tensors stay as they are."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.errors import UnsupportedModelError
from engine.gguf.reader import GGUFReader
from engine.gguf.writer import GGUFWriter

_ALIGNMENT, _SPLIT = "general.alignment", "split."
_PIECE_BYTES = 4 << 20
_LEAST_ALIGNMENT = 8


def amend(
    path: str | os.PathLike[str],
    keys: Mapping[str, object],
    *,
    without: str = "",
    progress: Callable[[int], None] | None = None,
) -> Path:
    """Give the model at `path` the metadata `keys`, in the place of those of the same name; gives the path.

    `without`: a prefix of keys that are dropped. The file is written beside itself and then replaced, so it needs its
    size of free disk, and an interruption leaves it as it was. progress(done bytes) may raise to end the work. Raises
    UnsupportedModelError for a split file, ModelFormatError for a damaged one, OSError where it cannot be written.
    """
    with GGUFReader.open(path) as reader:
        if len(reader.paths) > 1:
            raise UnsupportedModelError(f"{path}: expected a file in one piece, found {len(reader.paths)} parts.")
        writer = GGUFWriter(path, max(reader.alignment, _LEAST_ALIGNMENT))
        for key, encoded in reader.encoded_keys().items():
            is_dropped = bool(without) and key.startswith(without)
            if key not in keys and key != _ALIGNMENT and not key.startswith(_SPLIT) and not is_dropped:
                writer.add_encoded(key, encoded)
        for key, value in keys.items():
            writer.add(key, value)
        done_bytes = 0
        for tensor in reader.tensors.values():
            pieces = partial(_pieces, reader, tensor.name, done_bytes, progress)
            writer.add_tensor(tensor.name, tensor.type, tensor.shape, pieces)
            done_bytes += tensor.n_bytes
        return writer.write()


def _pieces(
    reader: GGUFReader, name: str, done_bytes: int, progress: Callable[[int], None] | None
) -> Iterator[npt.NDArray[np.uint8]]:
    data = reader.data(name)
    for first in range(0, len(data), _PIECE_BYTES):
        piece = data[first : first + _PIECE_BYTES]
        yield piece
        done_bytes += len(piece)
        if progress is not None:
            progress(done_bytes)
