"""Writes a planned conversion as a GGUF file, whole or not at all."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from engine.convert.plan import ConversionPlan
from engine.convert.quantise import prepare
from engine.convert.tensor_plan import TensorPlan
from engine.gguf.writer import GGUFWriter

Progress = Callable[[int, str], None]
Bytes = npt.NDArray[np.uint8]

_CHUNKS_AHEAD = 2  # beside one for each thread: what keeps the threads busy while a chunk is written


def write_gguf(
    plan: ConversionPlan,
    path: str | os.PathLike[str],
    progress: Progress | None = None,
    *,
    n_threads: int | None = None,
) -> Path:
    """Write `plan` to `path` beside which it grows until it is complete; gives the path.

    progress(done_bytes, tensor's name) is called after each chunk, and may raise to end the work: then nothing stays.
    If the process is killed, the next call with the same plan goes on where it was. n_threads: that compute; by
    default one for each core. Raises FileInUseError if another process writes this file now.
    """
    writer = _writer(plan, path)
    prepare({tensor.type for tensor in plan.tensors if tensor.packed is None})
    n_threads = n_threads or len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(n_threads, "convert") as pool:
        pipeline = _Pipeline(plan.tensors, pool, n_threads + _CHUNKS_AHEAD)
        done_bytes = 0
        for index, tensor in enumerate(plan.tensors):
            chunks = partial(_counted, pipeline, index, tensor.name, done_bytes, progress)
            writer.add_tensor(tensor.name, tensor.type, tensor.shape, chunks)
            done_bytes += tensor.n_bytes
        try:
            return writer.write(plan.identity or None)
        finally:
            pool.shutdown(cancel_futures=True)


def outline(plan: ConversionPlan, file: BinaryIO) -> None:
    """Write the header alone, with a hole in the place of the data, which takes no room on the disk."""
    writer = _writer(plan, "")
    for tensor in plan.tensors:
        writer.add_tensor(tensor.name, tensor.type, tensor.shape, tensor.chunks)
    writer.write_outline(file)


def _writer(plan: ConversionPlan, path: str | os.PathLike[str]) -> GGUFWriter:
    writer = GGUFWriter(path)
    for key, entry in plan.metadata.items():
        if entry.encoded is None:
            writer.add(key, entry.value, entry.type)
        else:
            writer.add_encoded(key, entry.encoded)
    return writer


class _Pipeline:
    """The chunks of all tensors, computed by the pool's threads some way ahead of who takes them, in order."""

    def __init__(self, tensors: Sequence[TensorPlan], pool: ThreadPoolExecutor, depth: int) -> None:
        self._tensors, self._pool, self._depth = tensors, pool, depth
        self._pending: deque[tuple[int, Future[Bytes]]] = deque()
        self._submitted: Iterator[tuple[int, Future[Bytes]]] | None = None

    def chunks(self, index: int) -> Iterator[Bytes]:
        """Those of tensor `index`; tensors are taken one after another, from the first that is asked for."""
        if self._submitted is None:
            self._submitted = self._submit_from(index)
        while True:
            while len(self._pending) < self._depth and (job := next(self._submitted, None)):
                self._pending.append(job)
            if not self._pending or self._pending[0][0] != index:
                return
            yield self._pending.popleft()[1].result()

    def _submit_from(self, start: int) -> Iterator[tuple[int, Future[Bytes]]]:
        for index in range(start, len(self._tensors)):
            for first, last in self._tensors[index].row_ranges():
                yield index, self._pool.submit(self._tensors[index].chunk, first, last)


def _counted(pipeline: _Pipeline, index: int, name: str, done_bytes: int, progress: Progress | None) -> Iterator[Bytes]:
    for chunk in pipeline.chunks(index):
        yield chunk
        done_bytes += chunk.nbytes
        if progress is not None:
            progress(done_bytes, name)
