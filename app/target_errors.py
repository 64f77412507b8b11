"""What can be wrong with the place that a model file is to be written to."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

from engine.errors import ColibriError

SPARE_BYTES = 50 << 20  # what must stay free on the disk, a file's header included
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class TargetError(ColibriError):
    """A file that cannot be written where it should."""


class DiskFullError(TargetError):
    """Less free disk than is needed; the text has both figures, or says that it ran out on the way."""


def nearest_folder(target: Path) -> Path:
    """The folder in which `target` lies, or the nearest one above it that exists."""
    return next(parent for parent in target.absolute().parents if parent.is_dir())


def free_bytes(target: Path) -> int:
    """Free bytes of the disk that `target` would lie on; 0 where none can be told."""
    try:
        return shutil.disk_usage(nearest_folder(target)).free
    except OSError:
        return 0


def check_folder(folder: Path, needed_bytes: int) -> None:
    """Raise TargetError unless `folder` can be written to, DiskFullError unless `needed_bytes` are free there."""
    if not os.access(folder, os.W_OK | os.X_OK):
        raise TargetError(f"{folder}: this folder cannot be written to. Choose another one.")
    n_free_bytes = shutil.disk_usage(folder).free
    if n_free_bytes < needed_bytes:
        raise DiskFullError(
            f"{folder}: expected {needed_bytes / 1e9:.2f} GB of free disk, found {n_free_bytes / 1e9:.2f}. "
            "Free some, or choose a folder on another disk."
        )


def is_there(target: Path) -> TargetError:
    """A file is in the way."""
    return TargetError(f"{target}: the file is there already. Choose another name, or say --replace.")


def not_written(target: Path, error: OSError) -> TargetError:
    """What to tell of an error of the system while `target` was being written."""
    kind = DiskFullError if error.errno in _FULL else TargetError
    return kind(
        f"{target}: the file could not be written: {error.strerror}. Free some space, or choose another folder."
    )
