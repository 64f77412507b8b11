"""Opens GGUF models: maps the file or all its parts, checks them, and gives metadata and tensors."""

from __future__ import annotations

import logging
import mmap
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.errors import ModelFormatError
from engine.gguf.foreign import name_foreign_file
from engine.gguf.header import Header, TensorInfo, encoded_keys, read_header
from engine.gguf.split import join_parts, part_paths, split_count

logger = logging.getLogger(__name__)


class GGUFReader:
    """An open GGUF model, version 2 or 3, of one file or several parts; use it as a context manager or `close` it.

    `metadata` maps keys to Python scalars, str, read-only NumPy arrays (numbers), StringArray (strings, decoded when
    asked for) or lists of these; it outlives the reader. `tensors` is in the order of the file. `version` is the
    format's. `paths` are the parts in order and `file_bytes` is the size of all of them.
    """

    def __init__(self, paths: list[Path], maps: list[mmap.mmap], headers: list[Header]) -> None:
        """Use `open`."""
        tensors = join_parts(paths, headers) if len(paths) > 1 else headers[0].tensors
        self.version = headers[0].version
        self.alignment = headers[0].alignment
        self.paths = paths
        self.file_bytes = sum(len(mapped) for mapped in maps)
        self.metadata: Mapping[str, Any] = MappingProxyType(headers[0].metadata)
        self.tensors: Mapping[str, TensorInfo] = MappingProxyType(tensors)
        self._maps = maps
        self._views = [np.frombuffer(mapped, np.uint8) for mapped in maps]
        self._addresses = [int(view.ctypes.data) for view in self._views]

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> GGUFReader:
        """Map and check the model at `path`: a GGUF file, or any part of a split one.

        Raises ModelFormatError for what is no sound GGUF file, UnsupportedModelError for a sound one of an unknown
        version, byte order or tensor type.
        """
        chosen = Path(path)
        maps: list[mmap.mmap] = []
        try:
            maps.append(_map_file(chosen))
            header = read_header(maps[0], chosen)
            count = split_count(header, chosen)
            if count == 1:
                return cls([chosen], maps, [header])
            paths = part_paths(chosen, count)
            maps.pop().close()
            headers: list[Header] = []
            for index, part in enumerate(paths):
                maps.append(_map_file(part))
                headers.append(read_header(maps[index], part, index))
            reader = cls(paths, maps, headers)
        except BaseException:
            for mapped in maps:
                _unmap(mapped)
            raise
        logger.info("opened %s: %d tensors in %d parts", chosen, len(reader.tensors), len(paths))
        return reader

    def encoded_keys(self) -> dict[str, bytes]:
        """Each key's type and value as the (first) file has them, for `GGUFWriter.add_encoded`."""
        return encoded_keys(self._maps[0], self.paths[0])

    def data(self, name: str) -> npt.NDArray[np.uint8]:
        """The bytes of tensor `name`, (n_bytes,) uint8, a read-only view of the mapped file; KeyError if unknown."""
        tensor = self.tensors[name]
        return self._view(tensor)[tensor.offset : tensor.offset + tensor.n_bytes]

    def address(self, name: str) -> int:
        """The memory address of tensor `name`'s bytes; valid until `close`. KeyError if unknown."""
        tensor = self.tensors[name]
        self._view(tensor)
        return self._addresses[tensor.file_index] + tensor.offset

    def require_whole(self) -> None:
        """Raise ModelFormatError if a file has become shorter since it was opened: what is missing cannot be read."""
        for path, mapped in zip(self.paths, self._maps, strict=True):
            n_bytes = mapped.size()
            if n_bytes < len(mapped):
                raise ModelFormatError(
                    f"{path}: expected the {len(mapped)} bytes that it had when it was opened, found {n_bytes}. "
                    "It was cut short or is being written anew: restore the file and open it again."
                )

    def _view(self, tensor: TensorInfo) -> npt.NDArray[np.uint8]:
        if not self._views:
            raise ValueError(f"the reader of {self.paths[0]} is closed: tensor {tensor.name!r} can no longer be read")
        return self._views[tensor.file_index]

    def close(self) -> None:
        """Unmap the files. An array that `data` gave keeps its file mapped for as long as the array is in use."""
        self._views.clear()
        while self._maps:
            _unmap(self._maps.pop())

    def __enter__(self) -> GGUFReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _map_file(path: Path) -> mmap.mmap:
    try:
        # Not blocking: opening a named pipe would wait for its other end.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except FileNotFoundError as error:
        raise ModelFormatError(
            f"{path}: expected a GGUF model, found no such file. Check the path, or download the model again."
        ) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ModelFormatError(
            f"{path}: expected a GGUF model that can be read, found: {reason}. Check the path and its permissions."
        ) from error
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise ModelFormatError(
                f"{path}: expected a GGUF model, found a folder. Choose a file with the ending .gguf; "
                "a folder with safetensors files must be converted to GGUF first."
            )
        if not stat.S_ISREG(status.st_mode):
            raise ModelFormatError(f"{path}: expected a GGUF model, found a device or pipe. Choose a file.")
        if not status.st_size:
            what, advice = name_foreign_file(b"", 0)
            raise ModelFormatError(f"{path}: expected a GGUF model, found {what}. {advice}")
        return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise ModelFormatError(
            f"{path}: expected a GGUF model that can be mapped into memory, found: {error.strerror}. "
            "Copy the file to a local disk."
        ) from error
    finally:
        os.close(descriptor)


def _unmap(mapped: mmap.mmap) -> None:
    try:
        mapped.close()
    except BufferError:
        logger.debug("a view of a closed model is still in use; its file is unmapped when the view is dropped")
