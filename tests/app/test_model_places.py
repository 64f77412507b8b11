"""Models and checkpoints of LM Studio, Ollama and the Hugging Face cache are found where those programs keep them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app import model_places
from app.model_files import parts_of
from app.model_places import (
    FoundModel,
    Place,
    checkpoint_name,
    checkpoints_of_other_programs,
    known_sha256,
    models_of_other_programs,
)

DIGEST = "ab" * 32


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "user"
    home.mkdir()
    monkeypatch.setattr(model_places, "_home", lambda: home)
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "OLLAMA_MODELS"):
        monkeypatch.delenv(name, raising=False)
    return home


def touch(path: Path, content: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def ollama_manifest(store: Path, inside: str, digest: str = f"sha256:{DIGEST}") -> Path:
    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": digest}
    other = {"mediaType": "application/vnd.ollama.image.template", "digest": f"sha256:{'cd' * 32}"}
    return touch(store / "manifests" / inside, json.dumps({"layers": [other, layer]}))


def test_lm_studio_models_are_found_in_both_of_its_homes(home: Path) -> None:
    new = touch(home / ".lmstudio/models/publisher/model/model-Q4_K_M.gguf")
    old = touch(home / ".cache/lm-studio/models/publisher/old.gguf")
    touch(home / ".lmstudio/models/publisher/model/mmproj.txt")
    assert list(models_of_other_programs()) == [FoundModel(new, Place.LM_STUDIO), FoundModel(old, Place.LM_STUDIO)]


def test_lm_studio_is_found_where_its_pointer_says(home: Path, tmp_path: Path) -> None:
    model = touch(tmp_path / "elsewhere/models/a/b.gguf")
    touch(home / ".lmstudio-home-pointer", f"{tmp_path / 'elsewhere'}\n")
    assert [found.path for found in models_of_other_programs()] == [model]


def test_ollama_models_have_the_names_that_ollama_prints(home: Path) -> None:
    store = home / ".ollama/models"
    ollama_manifest(store, "registry.ollama.ai/library/qwen3/30b")
    ollama_manifest(store, "registry.ollama.ai/library/qwen3/latest")  # the same blob again
    blob = touch(store / "blobs" / f"sha256-{DIGEST}")
    assert list(models_of_other_programs()) == [FoundModel(blob, Place.OLLAMA, "qwen3:30b")]
    assert known_sha256(blob) == DIGEST


@pytest.mark.parametrize(
    ("inside", "name"),
    [
        ("registry.ollama.ai/someone/tiny/1b", "someone/tiny:1b"),
        ("hf.co/someone/tiny-GGUF/Q4_K_M", "hf.co/someone/tiny-GGUF:Q4_K_M"),
    ],
)
def test_ollama_names_of_other_publishers(home: Path, inside: str, name: str) -> None:
    store = home / ".ollama/models"
    ollama_manifest(store, inside)
    touch(store / "blobs" / f"sha256-{DIGEST}")
    assert [found.name for found in models_of_other_programs()] == [name]


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"layers": 3}', '{"layers": [1]}', '{"layers": [{"mediaType": 1}]}', "[" * 100_000]
)
def test_a_damaged_ollama_manifest_is_left_out(home: Path, content: str) -> None:
    touch(home / ".ollama/models/manifests/registry.ollama.ai/library/a/b", content)
    assert list(models_of_other_programs()) == []


def test_an_ollama_digest_cannot_lead_out_of_the_store(home: Path) -> None:
    store = home / ".ollama/models"
    touch(home / ".ollama/secret")
    ollama_manifest(store, "registry.ollama.ai/library/a/b", "sha256:../../secret")
    assert list(models_of_other_programs()) == []


def test_the_hugging_face_cache_gives_each_blob_once(home: Path) -> None:
    repository = home / ".cache/huggingface/hub/models--someone--model-GGUF"
    blob = touch(repository / "blobs" / DIGEST)
    for revision in ("1111", "2222"):
        link = repository / "snapshots" / revision / "model.gguf"
        link.parent.mkdir(parents=True)
        link.symlink_to(blob)
    found = list(models_of_other_programs())
    assert found == [FoundModel(repository / "snapshots/1111/model.gguf", Place.HUGGING_FACE)]
    assert known_sha256(found[0].path) == DIGEST


@pytest.mark.parametrize(("variable", "below"), [("HF_HUB_CACHE", ""), ("HF_HOME", "hub")])
def test_the_hugging_face_cache_may_be_elsewhere(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, below: str
) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "cache"))
    model = touch(tmp_path / "cache" / below / "models--a--b/snapshots/1/m.gguf")
    assert [found.path for found in models_of_other_programs()] == [model]


def test_checkpoints_that_can_be_converted_are_found(home: Path) -> None:
    cached = home / ".cache/huggingface/hub/models--Qwen--Qwen3-30B-A3B/snapshots/1111"
    touch(cached / "config.json")
    touch(cached / "model-00001-of-00002.safetensors")
    touch(home / ".cache/huggingface/hub/models--a--only-config/snapshots/1/config.json")
    own = touch(home / ".lmstudio/models/mlx/model/config.json").parent
    touch(own / "model.safetensors")
    assert list(checkpoints_of_other_programs()) == [cached, own]
    assert [checkpoint_name(path) for path in (cached, own)] == ["Qwen/Qwen3-30B-A3B", "model"]


def test_a_machine_without_other_programs_has_none(home: Path) -> None:
    assert list(models_of_other_programs()) == list(checkpoints_of_other_programs()) == []


def test_all_parts_of_a_split_model_belong_to_it(tmp_path: Path) -> None:
    parts = [touch(tmp_path / f"m-0000{number}-of-00003.gguf") for number in (1, 2, 3)]
    single = touch(tmp_path / "single.gguf")
    assert parts_of(parts[0]) == parts
    assert parts_of(single) == [single]
    parts[1].unlink()
    assert parts_of(parts[0]) == [parts[0], parts[2]]
