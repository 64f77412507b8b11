"""Settings: defaults, damage, unknown keys, and saving that a crash cannot spoil."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from app.settings import SamplingSettings, Settings, SettingsFile

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=8,
)
_names = st.sampled_from([*Settings.__dataclass_fields__, "version", "something_new"])


def test_a_missing_file_gives_the_defaults(tmp_path: Path) -> None:
    assert Settings.load(tmp_path / "none.json") == Settings()


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    settings = Settings(
        theme="dark", threads=3, model_folders=("/a", "/b"), sampling=SamplingSettings(temperature=0.1, seed=7)
    )
    settings.save(tmp_path / "deep" / "settings.json")
    assert Settings.load(tmp_path / "deep" / "settings.json") == settings


def test_keys_of_a_newer_version_survive(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"version": 9, "theme": "dark", "hologram": {"depth": 3}}')
    replace(Settings.load(path), font_size=14).save(path)
    values = json.loads(path.read_text())
    assert values["hologram"] == {"depth": 3}
    assert (values["theme"], values["font_size"]) == ("dark", 14)


def test_a_value_of_the_wrong_kind_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"theme": 5, "context_length": true, "font_size": 12, "sampling": {"top_k": "x", "top_p": 1}}')
    settings = Settings.load(path)
    assert (settings.theme, settings.context_length, settings.font_size) == ("system", 4096, 12)
    assert settings.sampling == SamplingSettings(top_p=1.0)


def test_what_the_user_has_set_comes_before_what_is_recommended_and_that_before_the_defaults() -> None:
    settings = SamplingSettings(top_p=0.5, seed=7)
    values = settings.resolved({"temperature": 0.2, "top_p": 0.9})
    assert (values["top_p"], values["temperature"], values["top_k"], values["seed"]) == (0.5, 0.2, 40, 7)
    assert settings.untouched() == SamplingSettings(seed=7)
    assert settings.untouched().is_untouched and not settings.is_untouched


def test_defaults_that_the_first_version_wrote_are_not_taken_for_choices(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"version": 1, "sampling": {"temperature": 0.8, "top_k": 40, "top_p": 0.9, "max_tokens": 50}}')
    settings = Settings.load(path)
    assert settings.sampling == SamplingSettings(top_p=0.9, max_tokens=50)
    replace(settings, sampling=SamplingSettings(temperature=0.8)).save(path)
    assert Settings.load(path).sampling.temperature == 0.8


def test_a_damaged_file_is_set_aside_and_the_defaults_are_used(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(b"\0" * 300)
    assert Settings.load(path) == Settings()
    assert (tmp_path / "settings.json.damaged").read_bytes() == b"\0" * 300


@given(st.dictionaries(_names, _json))
def test_any_json_object_gives_settings_that_survive_a_round_trip(values: dict[str, object]) -> None:
    settings = Settings.from_json(json.loads(json.dumps(values)))
    assert Settings.from_json(json.loads(json.dumps(settings.to_json()))) == settings


def test_the_newest_of_many_changes_is_the_one_on_the_disk(tmp_path: Path) -> None:
    file = SettingsFile(tmp_path / "settings.json")
    heard: list[int] = []
    file.on_change(lambda settings: heard.append(settings.font_size))
    for size in range(8, 60):
        file.change(font_size=size)
    file.flush()
    assert Settings.load(file.path).font_size == 59
    assert heard == list(range(8, 60))
    assert [path.name for path in tmp_path.iterdir()] == ["settings.json"]


def test_a_change_to_the_same_value_tells_nobody(tmp_path: Path) -> None:
    file = SettingsFile(tmp_path / "settings.json")
    heard: list[Settings] = []
    file.on_change(heard.append)
    file.change(theme="system")
    assert heard == []
    assert not file.path.exists()


def test_the_number_of_experts_is_kept_by_model_and_a_bad_one_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    Settings(experts_per_token={"/models/a.gguf": 10}).save(path)
    assert Settings.load(path).experts_per_token == {"/models/a.gguf": 10}
    path.write_text(json.dumps({"experts_per_token": {"/models/a.gguf": 0}, "theme": "dark"}))
    assert Settings.load(path) == Settings(theme="dark")
