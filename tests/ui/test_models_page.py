"""The model manager: what it lists, what it says of a model, and what it does with one."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QLineEdit, QMessageBox

from app import paths
from app.chats import ChatStore
from app.engine_service import EngineService
from app.library import Library
from app.model_details import memory_fit
from app.settings import SettingsFile
from engine import EngineConfig
from engine.convert.proof import Proof, store
from tests.support.dense_model import write_dense_model
from tests.support.qt_loop import Run
from tests.support.waiting import until
from ui.chat.drafts import Drafts
from ui.main_window import MainWindow, Services
from ui.management import CONVERT, MODELS
from ui.models import model_removal
from ui.models.model_loader import LoadState
from ui.models.models_page import ModelsPage
from ui.models.proof_facts import proof_sentence
from ui.models.trash import Trashed, move_to_trash, restore
from ui.navigation import CHAT

FIXTURES = Path(__file__).resolve().parents[1] / "data" / "fixtures"


@pytest.fixture
def models(colibri_home: Path) -> dict[str, Path]:
    """A mixture, a dense model and a file that is none, in Colibri's own folder."""
    folder = paths.models_dir()
    found = {}
    for name, fixture in (("moe", "mixtral-mixed"), ("dense", "qwen2-mixed")):
        found[name] = Path(shutil.copy(FIXTURES / f"{fixture}.gguf", folder / f"{name}.gguf"))
    found["broken"] = folder / "broken.gguf"
    found["broken"].write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n")
    return found


@pytest.fixture
def window(models: dict[str, Path], run: Run, qtbot: Any, tmp_path: Path) -> Iterator[MainWindow]:
    store, engine = ChatStore(tmp_path / "chats.db"), EngineService()
    settings = SettingsFile(tmp_path / "settings.json")
    window = MainWindow(Services(store, engine, settings, Drafts(tmp_path / "drafts.json")))
    qtbot.addWidget(window)
    with qtbot.waitExposed(window):
        window.show()
    library = Library(lambda: settings.settings)

    async def fill() -> None:
        await library.refresh()
        window.attach_library(library)
        window.pages.show_page(MODELS)

    run(fill())
    yield window
    page_of(window).leave()
    engine.close()
    settings.flush()
    store.close()


def page_of(window: MainWindow) -> ModelsPage:
    page = window.pages.page(MODELS)
    assert isinstance(page, ModelsPage)
    return page


def test_the_list_has_every_model_and_the_details_of_one(window: MainWindow, models: dict[str, Path], run: Run) -> None:
    page = page_of(window)
    assert {model.path for model in page.list.models} == set(models.values())
    assert [model.path for model in page.list.models if model.has_problem] == [models["broken"]]
    page.list.select(models["moe"])
    run(until(lambda: page.inspector.fit is not None))
    facts = page.view.facts.facts
    assert facts["Experts"] == "8, 2 for each token" and facts["Architecture"] == "llama"
    assert facts["Licence"] == "not said in the file"
    assert re.fullmatch(r"all \d+ passed", facts["Checks"]) and not page.view.checks.isVisible()
    assert page.inspector.fit is not None
    expected = memory_fit(models["moe"], EngineConfig(context_length=4096))
    assert page.inspector.fit.plan == expected.plan
    assert page.view.fit.text().startswith("It fits: ")


def test_a_file_that_cannot_be_used_says_why_and_cannot_be_loaded(
    window: MainWindow, models: dict[str, Path], run: Run
) -> None:
    page = page_of(window)
    page.list.select(models["broken"])
    run(until(lambda: page.inspector.problem != ""))
    assert "Git LFS pointer" in page.view.problem.text and page.view.problem.isVisible()
    assert not page.view.load.isEnabled() and not page.view.chat.isEnabled()
    assert page.view.delete.isEnabled()


def test_a_file_that_contradicts_itself_says_in_what(window: MainWindow, models: dict[str, Path], run: Run) -> None:
    (models["moe"].parent / "config.json").write_text('{"num_local_experts": 64}')
    page = page_of(window)
    page.list.select(models["moe"])
    run(until(lambda: page.inspector.details is not None))
    assert "num_local_experts is 64 in config.json" in page.view.checks.text and page.view.checks.isVisible()
    assert re.fullmatch(r"\d+ of \d+ passed", page.view.facts.facts["Checks"])


def test_a_longer_context_in_the_settings_needs_more_memory(
    window: MainWindow, models: dict[str, Path], run: Run
) -> None:
    page = page_of(window)
    page.list.select(models["moe"])

    async def story() -> None:
        await until(lambda: page.inspector.fit is not None)
        assert page.inspector.fit is not None
        before = page.inspector.fit.plan.kv_bytes
        window.services.settings.change(context_length=256)
        await until(lambda: page.inspector.fit is not None and page.inspector.fit.plan.kv_bytes < before)

    run(story())


def test_loading_unloading_and_chatting(window: MainWindow, models: dict[str, Path], run: Run, qtbot: Any) -> None:
    page = page_of(window)

    async def story() -> None:
        page.list.select(models["dense"])
        await until(lambda: page.inspector.fit is not None)
        page.view.load.click()
        await until(page.view.unload.isVisible)
        assert [model.path for model in page.list.models if model.is_loaded] == [models["dense"]]
        assert "loaded" in page.view.state.text()
        page.view.unload.click()
        await until(page.view.load.isVisible)
        assert not any(model.is_loaded for model in page.list.models)
        qtbot.keyClick(page.list, Qt.Key.Key_Return)
        assert window.pages.current == CHAT
        await until(lambda: window.loader.path == models["dense"])

    run(story())


def test_the_default_model_is_marked_and_kept(window: MainWindow, models: dict[str, Path], run: Run) -> None:
    page = page_of(window)
    page.list.select(models["moe"])
    page.view.default.click()
    assert window.services.settings.settings.default_model == str(models["moe"])

    async def story() -> None:
        await until(lambda: any(model.is_default for model in page.list.models))
        page.view.default.click()
        await until(lambda: not any(model.is_default for model in page.list.models))

    run(story())
    assert window.services.settings.settings.default_model == ""


def test_the_checksum_is_that_of_the_file(window: MainWindow, models: dict[str, Path], run: Run) -> None:
    page = page_of(window)
    page.list.select(models["moe"])

    async def story() -> None:
        await until(lambda: page.inspector.fit is not None)
        page.view.sum_button.click()
        await until(lambda: page.inspector.sums is not None)

    run(story())
    assert page.view.sums.text() == hashlib.sha256(models["moe"].read_bytes()).hexdigest()
    assert not page.view.sum_notice.isVisible() and not page.view.bar.isVisible()


def test_a_deleted_model_can_be_brought_back(
    window: MainWindow, models: dict[str, Path], run: Run, qtbot: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trash = tmp_path / "trash"

    def to_trash(files: list[Path]) -> list[Trashed]:
        trash.mkdir(exist_ok=True)
        return [Trashed(path, path.rename(trash / path.name)) for path in files]

    monkeypatch.setattr(model_removal, "move_to_trash", to_trash)
    page, moe = page_of(window), models["moe"]
    content = moe.read_bytes()
    window.services.settings.change(default_model=str(moe), recent_models=(str(moe),))

    async def story() -> None:
        page.list.select(moe)
        qtbot.keyClick(page.list, Qt.Key.Key_Delete)
        dialog = window.management.removal.dialog
        assert dialog is not None and moe.name in dialog.informativeText()
        dialog.reject()
        assert moe.exists()
        page.view.delete.click()
        accept_dialog(window)
        await until(lambda: moe not in [model.path for model in page.list.models])
        assert not moe.exists() and "is in the trash" in window.toast.text()
        settings = window.services.settings.settings
        assert (settings.default_model, settings.recent_models) == ("", ())
        window.toast.act()
        await until(lambda: moe in [model.path for model in page.list.models])

    run(story())
    assert moe.read_bytes() == content


def accept_dialog(window: MainWindow) -> None:
    dialog = window.management.removal.dialog
    assert dialog is not None
    accept = [button for button in dialog.buttons() if dialog.buttonRole(button) == QMessageBox.ButtonRole.AcceptRole]
    accept[0].click()


def test_without_a_trash_a_second_question_comes_before_anything_is_lost(
    window: MainWindow, models: dict[str, Path], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_removal, "move_to_trash", lambda _files: None)
    page, broken = page_of(window), models["broken"]

    async def story() -> None:
        page.list.select(broken)
        page.view.delete.click()
        first = window.management.removal.dialog
        accept_dialog(window)
        await until(lambda: window.management.removal.dialog is not first)
        assert broken.exists()
        accept_dialog(window)
        await until(lambda: broken not in [model.path for model in page.list.models])

    run(story())
    assert not broken.exists()


def test_a_model_of_ollama_is_left_to_ollama(
    window: MainWindow, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = (FIXTURES / "qwen2-mixed.gguf").read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    store = tmp_path / "ollama"
    manifest = store / "manifests/registry.ollama.ai/library/tiny/1b"
    manifest.parent.mkdir(parents=True)
    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{digest}"}
    manifest.write_text(json.dumps({"layers": [layer]}))
    blob = store / "blobs" / f"sha256-{digest}"
    blob.parent.mkdir()
    blob.write_bytes(data)
    monkeypatch.setenv("OLLAMA_MODELS", str(store))
    page = page_of(window)

    async def story() -> None:
        page.look_again.click()
        await until(lambda: blob in [model.path for model in page.list.models])
        page.list.select(blob)
        await until(lambda: page.inspector.details is not None)
        page.view.delete.click()
        dialog = window.management.removal.dialog
        assert dialog is not None and "ollama rm tiny:1b" in dialog.informativeText()
        dialog.reject()
        page.view.sum_button.click()
        await until(lambda: page.inspector.sums is not None)
        assert page.view.sum_notice.text == "As its source promises."

    run(story())
    assert blob.exists()


def test_searching_narrows_the_list_and_says_when_nothing_is_found(
    window: MainWindow, models: dict[str, Path], run: Run
) -> None:
    page = page_of(window)
    page.filter.setText("moe q4_0")
    assert [model.path for model in page.list.models] == [models["moe"]]
    page.filter.setText("no such model")
    assert page.list.models == [] and page.empty.isVisible()
    assert page.empty.title.text() == "Nothing found"

    async def story() -> None:
        page.empty.convert.click()
        assert window.pages.current == CONVERT

    run(story())


def test_a_mixture_is_opened_with_another_number_of_experts(
    window: MainWindow, models: dict[str, Path], run: Run
) -> None:
    page, moe = page_of(window), models["moe"]
    settings = window.services.settings

    async def story() -> None:
        page.list.select(moe)
        await until(page.view.experts.isVisible)
        assert page.view.experts.field.value() == 2 and not page.view.experts.table.isVisible()
        page.view.experts.field.setValue(3)
        assert settings.settings.experts_per_token == {str(moe): 3}
        page.load_requested.emit(moe)
        await until(lambda: window.loader.state is LoadState.READY)
        assert window.loader.top_k == 3
        await until(page.view.experts.usual.isVisible)
        assert not page.view.experts.again.isVisible()
        page.view.experts.usual.click()
        assert settings.settings.experts_per_token == {}
        await until(page.view.experts.again.isVisible)
        page.view.experts.again.click()
        await until(lambda: window.loader.state is LoadState.READY and window.loader.top_k == 2)

    run(story())


def test_a_comparison_with_the_source_is_shown_with_its_figures(
    window: MainWindow, models: dict[str, Path], run: Run
) -> None:
    page, moe = page_of(window), models["moe"]
    proof = Proof("source-BF16.gguf", "sample", 3072, 20.5, 20.75, 0.0123, 0.1, 0.953, (0.98, 0.96))
    store(proof, moe)

    async def story() -> None:
        page.refresh_requested.emit()
        page.list.select(moe)
        page.inspector.look()
        await until(page.view.proof.isVisible)
        assert page.view.proof.text() == proof_sentence(proof)
        facts = page.view.proof_facts.facts
        assert (facts["Same next token"], facts["Same experts"]) == ("95.3 %", "97.0 %")
        assert facts["Perplexity"] == "20.75; the source has 20.50" and facts["Source"] == "source-BF16.gguf"
        assert not [name for name in page.view.facts.facts if name.startswith("proof")]

    run(story())


def test_a_dense_model_offers_to_be_cut_and_the_starter_a_demonstration(
    window: MainWindow, models: dict[str, Path], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, dense = page_of(window), write_dense_model(paths.models_dir())

    async def story() -> None:
        library = window.loader.library
        assert library is not None
        await library.refresh()
        page.list.select(dense)
        await until(page.view.carve.isVisible)
        assert not page.view.demonstration.isVisible()
        page.list.select(models["moe"])
        await until(page.view.experts.isVisible)
        assert not page.view.carve.isVisible()
        monkeypatch.setattr("app.starter.starter_path", lambda *_manifest: dense)
        library._known.clear()
        await library.refresh()
        page.list.select(dense)
        card = page.view.demonstration
        await until(card.isVisible)
        assert card.title.text().endswith(", carved (demonstration)") and card.button.text() == "Make it"

    run(story())


def test_everything_that_takes_the_focus_has_a_name(window: MainWindow) -> None:
    unnamed = [
        widget
        for kind in (QAbstractButton, QLineEdit)
        for widget in page_of(window).findChildren(kind)
        if not widget.accessibleName()
        and not (isinstance(widget, QAbstractButton) and widget.text())
        and not widget.objectName().startswith("qt_")
        and not isinstance(widget.parent(), QLineEdit)
    ]
    assert unnamed == []


def test_files_go_to_the_real_trash_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    files = [tmp_path / "a-00001-of-00002.gguf", tmp_path / "a-00002-of-00002.gguf"]
    for file in files:
        file.write_text(file.name)
    moved = move_to_trash(files)
    if moved is None:
        pytest.skip("this disk has no trash that can be written to")
    assert not any(file.exists() for file in files)
    restore(moved)
    assert [file.read_text() for file in files] == [file.name for file in files]
    assert not any(file.in_trash.exists() for file in moved)
    assert move_to_trash([tmp_path / "gone.gguf"]) is None


def test_nothing_is_overwritten_when_a_model_is_brought_back(tmp_path: Path) -> None:
    path, in_trash = tmp_path / "model.gguf", tmp_path / "files" / "model.gguf"
    in_trash.parent.mkdir()
    path.write_text("new")
    in_trash.write_text("old")
    with pytest.raises(FileExistsError):
        restore([Trashed(path, in_trash)])
    assert (path.read_text(), in_trash.read_text()) == ("new", "old")
