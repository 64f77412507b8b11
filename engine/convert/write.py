"""Writes a planned conversion as a GGUF file, whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.convert.plan import ConversionPlan
from engine.convert.tensor_plan import TensorPlan
from engine.gguf.writer import GGUFWriter

Progress = Callable[[int, str], None]


def write_gguf(plan: ConversionPlan, path: str | os.PathLike[str], progress: Progress | None = None) -> Path:
    """Write `plan` to `path` beside which it grows until it is complete; gives the path.

    progress(done_bytes, tensor's name) is called after each chunk, and may raise to end the work: then nothing stays.
    """
    writer = GGUFWriter(path)
    for key, entry in plan.metadata.items():
        writer.add(key, entry.value, entry.type)
    done_bytes = 0
    for tensor in plan.tensors:
        writer.add_tensor(tensor.name, tensor.type, tensor.shape, partial(_chunks, tensor, done_bytes, progress))
        done_bytes += tensor.n_bytes
    return writer.write()


def _chunks(tensor: TensorPlan, done_bytes: int, progress: Progress | None) -> Iterator[npt.NDArray[np.uint8]]:
    for chunk in tensor.chunks():
        yield chunk
        done_bytes += chunk.nbytes
        if progress is not None:
            progress(done_bytes, tensor.name)
