"""What all tests share: a home of their own, the starter model, and the order in which they run."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

from app import model_places, starter
from app.jobs import Job

# Quick floors first, the whole program last.
_ORDER = (
    "test_layers",
    "test_project",
    "engine/gguf",
    "engine/tokenizer",
    "app",
    "engine",
    "ui",
    "end_to_end",
    "benchmarks",
)

# No example is ever too slow: how long one takes is the machine's doing. Fixtures are made once for all examples.
hypothesis.settings.register_profile(
    "colibri",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.function_scoped_fixture],
)
hypothesis.settings.load_profile("colibri")

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")  # the end-to-end tests start a virtual display of their own


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run quick tests first, so that a fault shows early."""
    items.sort(key=lambda item: (item.get_closest_marker("slow") is not None, _rank(item.path)))


def _rank(path: Path) -> int:
    inside = path.relative_to(Path(__file__).parent).as_posix()
    return next((rank for rank, part in enumerate(_ORDER) if inside.startswith(part)), len(_ORDER))


@pytest.fixture(autouse=True)
def no_other_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The models that other programs keep on the tester's machine are not seen."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "no-hugging-face"))
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path / "no-ollama"))
    monkeypatch.setattr(model_places, "_home", lambda: tmp_path / "no-home")
    monkeypatch.setattr(model_places, "_OLLAMA_SERVICES", ())


@pytest.fixture
def colibri_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty COLIBRI_HOME: chats, settings and models of this test alone."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("COLIBRI_HOME", str(home))
    return home


@pytest.fixture(scope="session")
def starter_model() -> Path:
    """The starter model's file, fetched on the first use; COLIBRI_STARTER may name one that is there already."""
    named = os.environ.get("COLIBRI_STARTER")
    return Path(named) if named else Job("starter model").run_blocking(starter.ensure)


@pytest.fixture
def home_with_starter(colibri_home: Path, starter_model: Path) -> Path:
    """A COLIBRI_HOME whose only content is the starter model (a link to it)."""
    models = colibri_home / "data" / "models"
    models.mkdir(parents=True)
    (models / starter.Manifest.load().file_name).symlink_to(starter_model)
    return colibri_home
