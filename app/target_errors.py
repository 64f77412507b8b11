"""What can be wrong with the place that a model file is to be written to."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

from engine.errors import ColibriError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class TargetError(ColibriError):
    """A file that cannot be written where it should."""


class DiskFullError(TargetError):
    """Less free disk than is needed; the text has both figures, or says that it ran out on the way."""


def check_folder(folder: Path, needed_bytes: int) -> None:
    """Raise TargetError unless `folder` can be written to, DiskFullError unless `needed_bytes` are free there."""
    if not os.access(folder, os.W_OK | os.X_OK):
        raise TargetError(f"{folder}: this folder cannot be written to. Choose another one.")
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < needed_bytes:
        raise DiskFullError(
            f"{folder}: expected {needed_bytes / 1e9:.2f} GB of free disk, found {free_bytes / 1e9:.2f}. "
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
