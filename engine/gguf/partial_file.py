"""A file that grows beside its final name, and can be gone on with after its writer was killed."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from engine.errors import FileInUseError

SYNC_BYTES = 64 << 20  # how much may have to be written a second time, at most, but for one part


class PartialFile:
    """A context manager: `file` takes the place of `path` when the block ends well, and vanishes when it raises.

    Only when the process ends without leaving the block does the partial file stay, with a journal beside it: a line
    with `identity`, then one for each part that is on disk, with the parts and bytes up to there. Who opens it with
    the same identity goes on behind these: `n_parts` are done, and `file` stands at their end.
    """

    def __init__(self, path: Path, identity: str) -> None:
        self._path, self._identity = path, identity
        self._data = path.with_name(f".{path.name}.part")
        self._journal_path = path.with_name(f".{path.name}.journal.part")
        self.n_parts = 0

    def __enter__(self) -> PartialFile:
        """Raises FileInUseError if another process writes this file now."""
        self.file: BinaryIO = os.fdopen(os.open(self._data, os.O_RDWR | os.O_CREAT, 0o666), "r+b", buffering=1 << 20)
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(self.file.fileno()), self._data.stat()):
                raise BlockingIOError  # it became complete between these lines
        except (BlockingIOError, FileNotFoundError):
            self.file.close()
            raise FileInUseError(
                f"{self._path}: another conversion is writing this file. Wait for it, or choose another name."
            ) from None
        try:
            self._go_on()
        except OSError:  # a disk that is full to the last byte
            self._remove()
            self.file.close()
            raise
        return self

    def _go_on(self) -> None:
        self.n_parts, n_bytes = self._done_before()
        self.file.truncate(n_bytes)
        self.file.seek(n_bytes)
        self._synced_bytes = n_bytes
        self._journal = self._journal_path.open("ab" if self.n_parts else "wb", buffering=0)
        if not self.n_parts:
            self._journal.write(f"{self._identity}\n".encode())

    def part_done(self, n_parts: int) -> None:
        """The first `n_parts` parts are written, up to where `file` stands; now and then they are put on disk."""
        n_bytes = self.file.tell()
        if n_bytes - self._synced_bytes >= SYNC_BYTES:
            self._sync()
            self._journal.write(f"{n_parts} {n_bytes}\n".encode())
            os.fsync(self._journal.fileno())
            self._synced_bytes = n_bytes

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._sync()
                self._data.replace(self._path)
                sync_folder(self._path.parent)
        finally:
            self._remove()
            self._journal.close()
            try:
                self.file.close()
            except OSError:
                if kind is None:
                    raise  # else what was left to write no longer matters

    def _remove(self) -> None:
        self._data.unlink(missing_ok=True)
        self._journal_path.unlink(missing_ok=True)

    def _sync(self) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())

    def _done_before(self) -> tuple[int, int]:
        """Parts and bytes that an earlier writer of the same put on disk, by its last whole line."""
        try:
            lines = self._journal_path.read_bytes().split(b"\n")[:-1]
        except FileNotFoundError:
            return 0, 0
        if not lines or lines[0] != self._identity.encode():
            return 0, 0
        size = os.fstat(self.file.fileno()).st_size
        for line in reversed(lines[1:]):
            parts, _, n_bytes = line.partition(b" ")
            if parts.isdigit() and n_bytes.isdigit() and int(n_bytes) <= size:
                return int(parts), int(n_bytes)
        return 0, 0


def sync_folder(folder: Path) -> None:
    """Put the names in `folder` on disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
