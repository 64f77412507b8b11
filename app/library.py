"""The models on this machine: the starter, Colibri's own folder, the user's folders, and those opened lately.

Only headers are read. A file that cannot be used stays in the list with the reason.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from app import paths, starter
from app.settings import Settings
from engine.errors import ColibriError

logger = logging.getLogger(__name__)

_LATER_PART = re.compile(r"-(\d{5})-of-\d{5}\.gguf$", re.IGNORECASE)
_DEEPEST = 5  # folders below a model folder
_MOST_RECENT = 12


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model file; `problem` says why it cannot be used, "" when it can as far as its header tells."""

    path: Path
    name: str
    file_bytes: int
    architecture: str
    type_name: str
    is_starter: bool = False
    problem: str = ""


class Library:
    """The list of models, for one event loop. `entries` is what the last `refresh` found."""

    def __init__(self, settings: Callable[[], Settings]) -> None:
        self.entries: list[ModelEntry] = []
        self._settings = settings
        self._listeners: list[Callable[[], None]] = []
        self._known: dict[tuple[Path, int, int], ModelEntry] = {}  # by path, bytes and time of change

    async def refresh(self) -> list[ModelEntry]:
        """Look again, in another thread, and tell the listeners when the list has changed."""
        settings = self._settings()
        entries = await asyncio.get_running_loop().run_in_executor(None, self._scan, settings)
        if entries != self.entries:
            self.entries = entries
            for listener in list(self._listeners):
                listener()
        return entries

    def find(self, path: str | Path) -> ModelEntry | None:
        """The entry of a path, if it is in the list."""
        wanted = Path(path)
        return next((entry for entry in self.entries if entry.path == wanted), None)

    def default(self) -> ModelEntry | None:
        """The model to open at the start: the one chosen last, else the starter, else the first that can be used."""
        usable = [entry for entry in self.entries if not entry.problem]
        chosen = self._settings().model_path
        for wanted in (lambda entry: str(entry.path) == chosen, lambda entry: entry.is_starter, lambda _: True):
            found = next(filter(wanted, usable), None)
            if found is not None:
                return found
        return None

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener()` when the list has changed; returns a function that ends this."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def _scan(self, settings: Settings) -> list[ModelEntry]:
        found: dict[Path, ModelEntry] = {}
        for path in self._candidates(settings):
            if path not in found:
                try:
                    found[path] = self._entry(path)
                except OSError as error:  # gone since it was listed, or not ours to read
                    logger.info("%s is left out: %s", path, error)
        return sorted(found.values(), key=lambda entry: (not entry.is_starter, entry.name.casefold(), entry.path))

    def _candidates(self, settings: Settings) -> Iterator[Path]:
        if starter.is_present():
            yield starter.starter_path()
        for folder in (paths.models_dir(), *map(Path, settings.model_folders)):
            yield from model_files(folder)
        for recent in (settings.model_path, *settings.recent_models):
            if recent and Path(recent).is_file():
                yield Path(recent)

    def _entry(self, path: Path) -> ModelEntry:
        status = path.stat()
        key = (path, status.st_size, status.st_mtime_ns)
        if key not in self._known:
            self._known[key] = describe(path)
        return self._known[key]


def model_files(folder: Path) -> Iterator[Path]:
    """GGUF files below a folder; of a split model only the first part. Hidden folders are left out."""
    for parent, folders, names in os.walk(folder, onerror=lambda error: logger.info("left out: %s", error)):
        depth = len(Path(parent).relative_to(folder).parts)
        folders[:] = sorted(name for name in folders if not name.startswith(".")) if depth < _DEEPEST else []
        for name in sorted(names):
            part = _LATER_PART.search(name)
            if name.lower().endswith(".gguf") and (part is None or int(part[1]) == 1):
                yield Path(parent) / name


def describe(path: Path) -> ModelEntry:
    """What a model file's header says. Raises OSError when the file cannot be read."""
    from engine.gguf import GGUFReader  # noqa: PLC0415 - it brings NumPy, which the window's first paint need not wait for

    entry = ModelEntry(path, path.stem, path.stat().st_size, "", "", is_starter=path == starter.starter_path())
    try:
        with GGUFReader.open(path) as reader:
            architecture = str(reader.metadata.get("general.architecture", ""))
            bytes_by_type: Counter[str] = Counter()
            for tensor in reader.tensors.values():
                bytes_by_type[tensor.type.name] += tensor.n_bytes
            return replace(
                entry,
                name=model_name(path, str(reader.metadata.get("general.name", ""))),
                file_bytes=reader.file_bytes,
                architecture=architecture,
                type_name=bytes_by_type.most_common(1)[0][0] if bytes_by_type else "",
                problem="" if bytes_by_type else "The file holds no tensors.",
            )
    except ColibriError as error:
        return replace(entry, problem=str(error))


def model_name(path: Path, general_name: str) -> str:
    """The name to show for a model: the starter's own, else what its file says, else the file's name."""
    manifest = starter.Manifest.load()
    return manifest.name if path.name == manifest.file_name else general_name.strip() or path.stem


def with_recent(settings: Settings, path: Path) -> Settings:
    """The settings after a model was opened: it is the one to open next time, and the first of the recent ones."""
    others = [recent for recent in settings.recent_models if recent != str(path)]
    return replace(settings, model_path=str(path), recent_models=(str(path), *others)[:_MOST_RECENT])
