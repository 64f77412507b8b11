"""Why long work with model files ended: the cause by which a page chooses its advice, and the full text."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from app.target_errors import DiskFullError, TargetError
from engine.errors import (
    ColibriError,
    ContradictionError,
    FileInUseError,
    InvalidRequestError,
    MissingFileError,
    ModelFormatError,
    OutOfMemoryPlanError,
    UnsafeFileError,
    UnsupportedModelError,
)


class Cause(StrEnum):
    """What kind of thing went wrong."""

    MISSING = "missing"  # a file that is not there
    UNREADABLE = "unreadable"
    CONTRADICTION = "contradiction"
    DAMAGED = "damaged"
    UNSAFE = "unsafe"
    UNSUPPORTED = "unsupported"
    DISK_FULL = "disk-full"
    TARGET = "target"
    IN_USE = "in-use"
    MEMORY = "memory"
    CHOICE = "choice"  # options that cannot be
    OTHER = "other"
    FAULT = "fault"  # of Colibri


@dataclass(frozen=True, slots=True)
class Failure:
    """`text`: what was expected, found, where."""

    cause: Cause
    text: str


_BY_TYPE: tuple[tuple[type[BaseException], Cause], ...] = (
    (DiskFullError, Cause.DISK_FULL),
    (TargetError, Cause.TARGET),
    (ContradictionError, Cause.CONTRADICTION),
    (MissingFileError, Cause.MISSING),
    (UnsafeFileError, Cause.UNSAFE),
    (UnsupportedModelError, Cause.UNSUPPORTED),
    (FileInUseError, Cause.IN_USE),
    (OutOfMemoryPlanError, Cause.MEMORY),
    (MemoryError, Cause.MEMORY),
    (InvalidRequestError, Cause.CHOICE),
    (ModelFormatError, Cause.DAMAGED),
    (ColibriError, Cause.OTHER),
)
_UNREADABLE = {errno.EACCES, errno.EPERM, errno.EIO, errno.ELOOP, errno.ENAMETOOLONG}
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def failure_of(error: BaseException, where: object = "") -> Failure:
    """The cause and text of an error; `where` is said where the system's own error names no file."""
    numbers = {item.errno for item in _chain(error) if isinstance(item, OSError)}
    text = str(error)
    if isinstance(error, OSError):
        text = f"{error.filename or where}: {error.strerror or error}"
    if numbers & _FULL:
        return Failure(Cause.DISK_FULL, text)
    if isinstance(error, OSError | MissingFileError) and numbers & _UNREADABLE:
        return Failure(Cause.UNREADABLE, text)
    if isinstance(error, OSError):
        return Failure(Cause.MISSING if error.errno == errno.ENOENT else Cause.OTHER, text)
    cause = next((cause for kind, cause in _BY_TYPE if isinstance(error, kind)), Cause.FAULT)
    return Failure(cause, text or type(error).__name__)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
