"""Reads a written model file again and holds it against its plan, tensor by tensor."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.jobs import Job
from engine.convert import ConversionPlan
from engine.errors import ModelFormatError
from engine.gguf import GGUFReader, TensorType

_EXACT = frozenset({TensorType.F32, TensorType.F16, TensorType.BF16})


@dataclass(frozen=True, slots=True)
class Verification:
    """How much was held against the source: all tensors by name, type and shape, `compared_bytes` of their values."""

    n_tensors: int
    compared_bytes: int
    total_bytes: int
    is_rounded: bool = False  # some tensors are quantised, and were compared with a second quantisation

    @property
    def is_whole(self) -> bool:
        """Whether every value of the file was compared, and is the source's."""
        return self.compared_bytes == self.total_bytes and not self.is_rounded


def verify(job: Job, plan: ConversionPlan, path: Path) -> Verification:
    """Compare the file at `path` with the plan that it was written from, whose checkpoint must still be open.

    Values that are only converted are compared to the last bit; of quantised tensors, which are slow to compute a
    second time, the first rows are. Raises ModelFormatError where they differ, JobCancelledError.
    """
    job.report("verifying", done_bytes=0, total_bytes=plan.n_bytes)
    done_bytes = compared_bytes = 0
    with GGUFReader.open(path) as reader:
        if reader.tensors.keys() != {tensor.name for tensor in plan.tensors}:
            raise _damaged(path, f"{len(plan.tensors)} tensors", f"{len(reader.tensors)}, or others")
        for tensor in plan.tensors:
            found = reader.tensors[tensor.name]
            if (found.type, found.shape) != (tensor.type, tuple(map(int, tensor.shape))):
                expected = f"{tensor.type.name} of shape {tuple(map(int, tensor.shape))}"
                raise _damaged(path, f"tensor {tensor.name} to be {expected}", f"{found.type.name} {found.shape}")
            data, offset = reader.data(tensor.name), 0
            for chunk in tensor.chunks():
                job.check()
                if not np.array_equal(data[offset : offset + chunk.nbytes], chunk):
                    raise _damaged(path, f"in tensor {tensor.name} the source's values", "others")
                offset += chunk.nbytes
                job.report(done_bytes=done_bytes + offset)
                if tensor.type not in _EXACT:
                    break
            compared_bytes += offset
            done_bytes += tensor.n_bytes
            job.report(done_bytes=done_bytes)
    is_rounded = any(tensor.type not in _EXACT for tensor in plan.tensors)
    return Verification(len(plan.tensors), compared_bytes, plan.n_bytes, is_rounded)


def _damaged(path: Path, expected: str, found: str) -> ModelFormatError:
    return ModelFormatError(
        f"{path}: expected {expected}, found {found} when the file was read back. The disk or the memory may be "
        "faulty: check them, and convert again to another disk."
    )
