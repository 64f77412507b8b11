"""The GGUF files below a folder, and the parts of a split one."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

logger = logging.getLogger(__name__)

_PART = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$", re.IGNORECASE)
_DEEPEST = 5  # folders below a model folder


def model_files(folder: Path) -> Iterator[Path]:
    """GGUF files below a folder; of a split model only the first part. Hidden folders are left out."""
    for parent, folders, names in os.walk(folder, onerror=lambda error: logger.info("left out: %s", error)):
        depth = len(Path(parent).relative_to(folder).parts)
        folders[:] = sorted(name for name in folders if not name.startswith(".")) if depth < _DEEPEST else []
        for name in sorted(names):
            part = _PART.search(name)
            if name.lower().endswith(".gguf") and (part is None or int(part[1]) == 1):
                yield Path(parent) / name


def parts_of(path: Path) -> list[Path]:
    """All files of a model that are there: `path` itself, or every part of a split one."""
    part = _PART.search(path.name)
    if part is None:
        return [path]
    stem, count = path.name[: part.start()], part[2]
    names = (f"{stem}-{number:05}-of-{count}.gguf" for number in range(1, int(count) + 1))
    return [other for name in names if (other := path.with_name(name)).is_file()]
