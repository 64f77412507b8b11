"""The list of models: where they are looked for, what is said of each, which one is the default."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app import paths
from app.library import Library, ModelEntry, with_recent, without
from app.model_files import model_files
from app.model_places import Place
from app.settings import Settings
from engine.gguf import GGUFWriter, TensorType


def make_model(path: Path, name: str = "", architecture: str = "llama") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = GGUFWriter(path)
    writer.add("general.architecture", architecture)
    if name:
        writer.add("general.name", name)
    writer.add_tensor("token_embd.weight", TensorType.F16, (64, 32), np.zeros((64, 32), np.float16))
    writer.add_tensor("output_norm.weight", TensorType.F32, (32,), np.zeros(32, np.float32))
    writer.write()
    return path


def scan(settings: Settings) -> list[ModelEntry]:
    return asyncio.run(Library(lambda: settings).refresh())


def test_models_of_all_places_are_listed_once(colibri_home: Path, tmp_path: Path) -> None:
    own = make_model(paths.models_dir() / "own.gguf", "Own model")
    deep = make_model(tmp_path / "folder" / "vendor" / "deep.GGUF", architecture="qwen3moe")
    recent = make_model(tmp_path / "elsewhere" / "recent.gguf")
    folders = (str(tmp_path / "folder"), str(tmp_path / "folder" / "vendor"), str(tmp_path / "missing"))
    entries = scan(Settings(model_folders=folders, recent_models=(str(recent), str(own), "/gone.gguf")))
    assert {(entry.path, entry.name, entry.architecture, entry.type_name) for entry in entries} == {
        (own, "Own model", "llama", "F16"),
        (deep, "deep", "qwen3moe", "F16"),
        (recent, "recent", "llama", "F16"),
    }
    assert all(entry.file_bytes == entry.path.stat().st_size and not entry.problem for entry in entries)


def test_later_parts_and_hidden_folders_are_left_out(tmp_path: Path) -> None:
    for name in ("big-00001-of-00002.gguf", "big-00002-of-00002.gguf", ".cache/x.gguf", "notes.txt", "a.gguf"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert [path.name for path in model_files(tmp_path)] == ["a.gguf", "big-00001-of-00002.gguf"]


@pytest.mark.parametrize(
    "content", [b"", b"version https://git-lfs.github.com/spec/v1\n", b"{}", b"GGUF\x03\0\0\0" + b"\xff" * 64]
)
def test_a_file_that_is_no_model_stays_in_the_list_with_the_reason(colibri_home: Path, content: bytes) -> None:
    path = paths.models_dir() / "broken.gguf"
    path.write_bytes(content)
    (entry,) = scan(Settings())
    assert entry.path == path
    assert len(entry.problem) > 20


def test_a_file_that_changed_is_read_again(colibri_home: Path) -> None:
    path = make_model(paths.models_dir() / "m.gguf", "First")
    library = Library(Settings)
    changes: list[int] = []
    library.on_change(lambda: changes.append(len(library.entries)))

    async def scenario() -> list[str]:
        names = [(await library.refresh())[0].name]
        await library.refresh()
        make_model(path, "Second, longer")
        return [*names, (await library.refresh())[0].name]

    assert asyncio.run(scenario()) == ["First", "Second, longer"]
    assert len(changes) == 2


def test_the_default_is_the_chosen_one_then_the_starter_then_any_sound_one(colibri_home: Path) -> None:
    (paths.models_dir() / "a-broken.gguf").write_bytes(b"{}")
    path = make_model(paths.models_dir() / "b.gguf")
    settings = Settings()
    library = Library(lambda: settings)
    asyncio.run(library.refresh())
    default = library.default()
    assert default is not None and default.path == path

    starter = replace(default, path=paths.models_dir() / "starter.gguf", is_starter=True)
    library.entries.append(starter)
    assert library.default() == starter
    settings = with_recent(settings, path)
    assert library.default() == default


def test_an_empty_machine_has_no_default(colibri_home: Path) -> None:
    library = Library(Settings)
    asyncio.run(library.refresh())
    assert library.default() is None


def test_the_recent_models_are_few_and_the_newest_is_first() -> None:
    settings = Settings()
    for number in [*range(30), 29, 25]:
        settings = with_recent(settings, Path(f"/models/{number}.gguf"))
    assert settings.recent_models[:3] == ("/models/25.gguf", "/models/29.gguf", "/models/28.gguf")
    assert len(settings.recent_models) == 12
    assert settings.model_path == "/models/25.gguf"


@pytest.mark.starter
def test_the_starter_model_is_listed_by_its_own_name(home_with_starter: Path) -> None:
    (entry,) = scan(Settings())
    assert (entry.is_starter, entry.name, entry.type_name, entry.architecture) == (
        True,
        "SmolLM2 135M Instruct",
        "Q4_1",
        "llama",
    )


def test_models_of_other_programs_are_listed_under_their_names(
    colibri_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = "ab" * 32
    store = tmp_path / "ollama"
    blob = make_model(store / "blobs" / f"sha256-{digest}", "Inside")
    manifest = store / "manifests/registry.ollama.ai/library/tiny/1b"
    manifest.parent.mkdir(parents=True)
    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{digest}"}
    manifest.write_text(json.dumps({"layers": [layer]}))
    monkeypatch.setenv("OLLAMA_MODELS", str(store))
    assert [(entry.path, entry.name, entry.place) for entry in scan(Settings())] == [(blob, "tiny:1b", Place.OLLAMA)]
    assert scan(Settings(scan_other_programs=False)) == []


def test_the_default_model_comes_before_the_last_one(colibri_home: Path, tmp_path: Path) -> None:
    default, last = (make_model(tmp_path / f"{name}.gguf") for name in ("default", "last"))
    settings = Settings(default_model=str(default), model_path=str(last), recent_models=(str(last), str(default)))
    library = Library(lambda: settings)
    asyncio.run(library.refresh())
    assert (entry := library.default()) is not None and entry.path == default


def test_nothing_points_to_a_model_that_was_removed(tmp_path: Path) -> None:
    gone, other = str(tmp_path / "gone.gguf"), str(tmp_path / "other.gguf")
    settings = Settings(default_model=gone, model_path=gone, recent_models=(gone, other))
    assert without(settings, Path(gone)) == Settings(recent_models=(other,))
    assert without(settings, Path(other)) == replace(settings, recent_models=(gone,))
