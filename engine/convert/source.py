"""What a conversion may begin with: a published checkpoint, or a GGUF file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.convert.checkpoint import Checkpoint
from engine.convert.options import ConversionOptions
from engine.convert.plan import ConversionPlan, plan_conversion
from engine.convert.requantise import plan_requantising
from engine.gguf import GGUFReader
from engine.gguf.header import MAGIC


@contextmanager
def planned(source: str | os.PathLike[str], options: ConversionOptions | None = None) -> Iterator[ConversionPlan]:
    """The plan for converting `source`, whose files stay open for the block. Raises as what makes the plan does."""
    if is_model_file(source):
        with GGUFReader.open(source) as reader:
            yield plan_requantising(reader, options)
        return
    with Checkpoint.open(source) as checkpoint:
        yield plan_conversion(checkpoint, options)


def is_model_file(source: str | os.PathLike[str]) -> bool:
    """Whether it is a GGUF file, by its name or its first bytes."""
    path = Path(source)
    if path.suffix.lower() == ".gguf" and not path.is_dir():
        return True
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False
