"""Where files are kept."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from app import paths


def test_colibri_home_holds_everything(colibri_home: Path) -> None:
    for path in (
        paths.data_dir(),
        paths.config_dir(),
        paths.cache_dir(),
        paths.log_dir(),
        paths.models_dir(),
        paths.chats_db(),
        paths.settings_file(),
    ):
        assert path.is_relative_to(colibri_home)


def test_folders_are_made_for_their_owner_alone(colibri_home: Path) -> None:
    assert stat.S_IMODE(paths.data_dir().stat().st_mode) == 0o700


def test_without_colibri_home_the_desktops_folders_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLIBRI_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    assert paths.chats_db() == tmp_path / "share" / "colibri" / "chats.db"
