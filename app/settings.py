"""The user's settings: typed, versioned, with defaults, in one JSON file that a crash cannot damage.

Keys that this version does not know survive; a value of the wrong kind gives way to its default.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)

VERSION = 2
_DEFAULTS: Mapping[str, float] = types.MappingProxyType(  # of a model for which nothing else is recommended
    {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "repetition_penalty": 1.0}
)


@dataclass(frozen=True, slots=True)
class SamplingSettings:
    """How tokens are chosen, unless a chat says otherwise. Names and meanings are those of engine.SamplingParams.

    Of the first five, None means that the user has set nothing: what is recommended for the model counts then.
    """

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int | None = None
    max_tokens: int | None = None

    def resolved(self, recommended: Mapping[str, float] | None = None) -> dict[str, Any]:
        """All values: the user's, else what is `recommended` for the model, else Colibri's own defaults."""
        own = {name: value for name, value in asdict(self).items() if value is not None or name not in _DEFAULTS}
        values: dict[str, Any] = {**_DEFAULTS, **(recommended or {}), **own}
        return values

    @property
    def is_untouched(self) -> bool:
        """Whether the user has set none of the values that can be recommended."""
        return all(getattr(self, name) is None for name in _DEFAULTS)

    def untouched(self) -> SamplingSettings:
        """The same without the user's own choices of what can be recommended."""
        nothing: dict[str, Any] = dict.fromkeys(_DEFAULTS)
        return replace(self, **nothing)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings. Values are replaced, never changed: `dataclasses.replace(settings, theme="dark")`."""

    theme: str = "system"  # "system", "light", "dark"
    language: str = "system"  # "system", or a language's code
    font_size: int = 0  # in logical pixels; 0: the theme's own, or the desktop's where that is larger
    default_model: str = ""  # the model opened at every start; "": the last one
    model_path: str = ""  # the model opened last; "": the starter model
    model_folders: tuple[str, ...] = ()
    scan_other_programs: bool = True  # list the models of LM Studio, Ollama and the Hugging Face cache
    recent_models: tuple[str, ...] = ()
    context_length: int = 4096
    experts_per_token: Mapping[str, int] = field(default_factory=dict)  # by a model's path, where not its own number
    threads: int | None = None  # None: as many as there are physical cores
    system_prompt: str = ""  # for new chats
    thinking: str = ""  # "on" or "off", for models that know these; "": as the model usually does
    thinking_effort: str = ""  # "low", "medium" or "high", likewise
    sampling: SamplingSettings = SamplingSettings()
    last_chat_id: int | None = None
    window_geometry: str = ""  # what Qt saved, in base64
    window_state: str = ""
    expert_panel_shown: bool = True
    unknown: Mapping[str, Any] = field(default_factory=dict)  # keys of a newer version, kept as they are

    @classmethod
    def load(cls, path: Path) -> Settings:
        """Read the file; what is missing or cannot be used is at its default. Never raises for a bad file."""
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError) as error:
            logger.warning("%s cannot be read and is replaced by default settings: %s", path, error)
            _keep_damaged(path)
            return cls()
        if not isinstance(values, dict):
            logger.warning("%s: expected a JSON object; default settings are used", path)
            _keep_damaged(path)
            return cls()
        return cls.from_json(values)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Settings:
        """Settings from a parsed file."""
        if values.get("version", 1) == 1:
            values = _without_written_defaults(values)
        names = {item.name for item in fields(cls)} - {"unknown"}
        unknown = {name: value for name, value in values.items() if name not in names and name != "version"}
        settings: Settings = _read(cls, {name: values[name] for name in names if name in values})
        return replace(settings, unknown=unknown)

    def to_json(self) -> dict[str, Any]:
        """What the file holds."""
        known = asdict(self)
        unknown = known.pop("unknown")
        return {"version": VERSION, **unknown, **known}

    def save(self, path: Path) -> None:
        """Write the file beside `path` and move it into place whole."""
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        with temporary.open("w", encoding="utf-8") as target:
            json.dump(self.to_json(), target, indent=2, ensure_ascii=False)
            target.write("\n")
            target.flush()
            os.fsync(target.fileno())
        temporary.replace(path)


class SettingsFile:
    """The settings in force and the file they live in. Changes are saved in the background, the newest one last."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.settings = Settings.load(path)
        self._listeners: list[Callable[[Settings], None]] = []
        self._lock = threading.Lock()
        self._unsaved: Settings | None = None
        self._saver: threading.Thread | None = None

    def change(self, **changes: Any) -> Settings:
        """Put other values in force, tell the listeners, save."""
        settings = replace(self.settings, **changes)
        if settings == self.settings:
            return settings
        self.settings = settings
        with self._lock:
            self._unsaved = settings
            if self._saver is None:
                self._saver = threading.Thread(target=self._save, name="settings")
                self._saver.start()
        for listener in list(self._listeners):
            listener(settings)
        return settings

    def on_change(self, listener: Callable[[Settings], None]) -> Callable[[], None]:
        """Call `listener(settings)` after each change; returns a function that ends this."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def flush(self) -> None:
        """Return when the newest settings are on the disk."""
        saver = self._saver
        if saver is not None:
            saver.join()

    def _save(self) -> None:
        while True:
            with self._lock:
                settings, self._unsaved = self._unsaved, None
                if settings is None:
                    self._saver = None
                    return
            try:
                settings.save(self.path)
            except OSError as error:
                logger.warning("%s: the settings could not be saved: %s", self.path, error)


def _read(cls: type[Any], values: Mapping[str, Any]) -> Any:
    """A dataclass from JSON values; one of the wrong type is left at its default."""
    hints = typing.get_type_hints(cls)
    arguments = {}
    for name, value in values.items():
        try:
            arguments[name] = _convert(value, hints[name])
        except (TypeError, ValueError):
            logger.warning("setting %s: expected %s, found %r; its default is used", name, hints[name], value)
    return cls(**arguments)


def _convert(value: Any, wanted: Any) -> Any:
    if wanted is SamplingSettings:
        if not isinstance(value, dict):
            raise TypeError
        known = {item.name for item in fields(SamplingSettings)}
        return _read(SamplingSettings, {name: item for name, item in value.items() if name in known})
    if isinstance(wanted, types.UnionType):  # X | None
        return None if value is None else _convert(value, typing.get_args(wanted)[0])
    if typing.get_origin(wanted) is Mapping:
        if not isinstance(value, dict) or not all(type(item) is int and item > 0 for item in value.values()):
            raise TypeError
        return value
    if typing.get_origin(wanted) is tuple:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise TypeError
        return tuple(value)
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        raise TypeError
    return value


def _without_written_defaults(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Of version 1, which wrote defaults into the file as if the user had chosen them."""
    sampling = values.get("sampling")
    if not isinstance(sampling, dict):
        return values
    chosen = {name: value for name, value in sampling.items() if name not in _DEFAULTS or value != _DEFAULTS[name]}
    return {**values, "sampling": chosen}


def _keep_damaged(path: Path) -> None:
    try:
        path.replace(path.with_name(f"{path.name}.damaged"))
    except OSError as error:
        logger.warning("%s could not be set aside: %s", path, error)
