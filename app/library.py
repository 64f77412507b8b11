"""The models on this machine: Colibri's own, those in the user's folders, those of other programs, those opened lately.

Only headers are read. A file that cannot be used stays in the list with the reason.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from app import paths, starter
from app.model_files import model_files
from app.model_places import FoundModel, Place, models_of_other_programs
from app.settings import Settings
from engine.errors import ColibriError

logger = logging.getLogger(__name__)

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
    comparison: str = ""  # with the model that it was converted from
    problem: str = ""
    place: Place = Place.FOLDER


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
        """The model to open at the start: the default, else the last one, the starter, the first that can be used."""
        usable = [entry for entry in self.entries if not entry.problem]
        settings = self._settings()
        for wanted in (
            lambda entry: str(entry.path) == settings.default_model,
            lambda entry: str(entry.path) == settings.model_path,
            lambda entry: entry.is_starter,
            lambda _: True,
        ):
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
        for candidate in self._candidates(settings):
            path = candidate.path
            if path not in found:
                try:
                    found[path] = self._entry(candidate)
                except OSError as error:  # gone since it was listed, or not ours to read
                    logger.info("%s is left out: %s", path, error)
        return sorted(found.values(), key=lambda entry: (not entry.is_starter, entry.name.casefold(), entry.path))

    def _candidates(self, settings: Settings) -> Iterator[FoundModel]:
        if starter.is_present():
            yield FoundModel(starter.starter_path(), Place.COLIBRI)
        for path in model_files(paths.models_dir()):
            yield FoundModel(path, Place.COLIBRI)
        for folder in map(Path, settings.model_folders):
            for path in model_files(folder):
                yield FoundModel(path, Place.FOLDER)
        if settings.scan_other_programs:
            yield from models_of_other_programs()
        for recent in (settings.default_model, settings.model_path, *settings.recent_models):
            if recent and Path(recent).is_file():
                yield FoundModel(Path(recent), Place.FOLDER)

    def _entry(self, candidate: FoundModel) -> ModelEntry:
        path = candidate.path
        status = path.stat()
        key = (path, status.st_size, status.st_mtime_ns)
        if key not in self._known:
            self._known[key] = describe(path)
        entry = self._known[key]
        return replace(entry, place=candidate.place, name=candidate.name or entry.name)


def describe(path: Path) -> ModelEntry:
    """What a model file's header says. Raises OSError when the file cannot be read."""
    from engine.convert.proof import proof_of  # noqa: PLC0415 - the same
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
                comparison=((proof := proof_of(reader.metadata)) and proof.sentence) or "",
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


def without(settings: Settings, path: Path) -> Settings:
    """The settings after a model's file was removed: nothing points to it any more."""
    gone = str(path)
    return replace(
        settings,
        default_model="" if settings.default_model == gone else settings.default_model,
        model_path="" if settings.model_path == gone else settings.model_path,
        recent_models=tuple(recent for recent in settings.recent_models if recent != gone),
        experts_per_token={path: k for path, k in settings.experts_per_token.items() if path != gone},
    )
