"""Tells whether this process still reads from a disk, or finds what it reads in the system's page cache."""

from __future__ import annotations

import sys

_LOOKED_BACK = 16  # runs


class DiskUse:
    """Asked before each run of a plan."""

    def __init__(self) -> None:
        self._n_blocks = _blocks_read()
        self._n_quiet = 0  # runs since blocks were last read

    def is_recent(self) -> bool:
        """Whether blocks were read within the last runs; also at the beginning, and where the system does not say."""
        n_blocks = _blocks_read()
        self._n_quiet = 0 if n_blocks is None or n_blocks != self._n_blocks else self._n_quiet + 1
        self._n_blocks = n_blocks
        return self._n_quiet < _LOOKED_BACK


def _blocks_read() -> int | None:
    """Blocks that were read from disks because this process needed or wished for them."""
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415 - there is none on Windows

    return resource.getrusage(resource.RUSAGE_SELF).ru_inblock
