"""Where Colibri keeps its files: data, settings, cache, models, chats.

COLIBRI_HOME, when set, holds all of them (tests, portable installations); otherwise the desktop's own folders are used.
"""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

HOME_VARIABLE = "COLIBRI_HOME"
_NAME = "colibri"
_PRIVATE = 0o700  # chats are nobody else's business


def data_dir() -> Path:
    """The folder of what must last: chats, models. Created when missing, like all folders of this module."""
    return _folder("data", platformdirs.user_data_path(_NAME, appauthor=False))


def config_dir() -> Path:
    """The folder of the settings file."""
    return _folder("config", platformdirs.user_config_path(_NAME, appauthor=False))


def cache_dir() -> Path:
    """The folder of what may be deleted at any time: downloads under way."""
    return _folder("cache", platformdirs.user_cache_path(_NAME, appauthor=False))


def log_dir() -> Path:
    """The folder of log files."""
    return _folder("log", platformdirs.user_log_path(_NAME, appauthor=False))


def models_dir() -> Path:
    """The folder of models that Colibri itself fetched or made."""
    return _folder_at(data_dir() / "models")


def chats_db() -> Path:
    """The SQLite file of all chats; it need not exist yet."""
    return data_dir() / "chats.db"


def settings_file() -> Path:
    """The settings file; it need not exist yet."""
    return config_dir() / "settings.json"


def _folder(part: str, default: Path) -> Path:
    home = os.environ.get(HOME_VARIABLE)
    return _folder_at(Path(home).expanduser().absolute() / part if home else default)


def _folder_at(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True, mode=_PRIVATE)
    return path
