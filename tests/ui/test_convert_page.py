"""From a dropped folder to a chat, and every way in which a conversion can end otherwise."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QAbstractButton, QLineEdit, QWidget

from app import paths, unfinished
from app.conversion_plan import recommended
from app.file_types import FILE_TYPES
from app.unfinished import ConversionRequest
from engine import EngineConfig
from engine.convert.proof import proof_of
from engine.gguf import GGUFReader
from tests.support.checkpoints import checkpoint_case
from tests.support.qt_loop import Run
from tests.support.waiting import until
from tests.ui.wizards import opened, shown
from ui.convert.conversion_task import ConversionTask
from ui.convert.convert_page import ConvertPage
from ui.convert.drop_zone import dropped_path
from ui.models.proof_facts import proof_sentence
from ui.wizard.long_task import Stage

FIXTURES = Path(__file__).resolve().parents[1] / "data" / "fixtures"


@pytest.fixture
def checkpoint(tmp_path: Path, colibri_home: Path) -> Path:
    return checkpoint_case("qwen3_moe").write(tmp_path)


@pytest.fixture
def page(qtbot: Any, colibri_home: Path) -> ConvertPage:
    return opened(ConvertPage(ConversionTask(lambda: EngineConfig(context_length=256, threads=1))), qtbot)


def without_extras(page: ConvertPage) -> None:
    """Neither calibrated nor compared: quick."""
    page.plan_view.calibration.field.setCurrentIndex(2)
    page.plan_view.options.proof_field.setChecked(False)


async def planned(page: ConvertPage, source: Path) -> None:
    page.task.choose(source)
    task = page.task
    await until(
        lambda: task.stage is Stage.FAILED or (task.stage is Stage.PLAN and len(task.outlooks) == len(task.kinds))
    )


def drop(widget: QWidget, *paths: Path) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    action, button = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
    widget.dropEvent(QDropEvent(QPointF(5, 5), action, data, button, Qt.KeyboardModifier.NoModifier))


def test_from_a_dropped_folder_to_a_chat_with_two_clicks(
    page: ConvertPage, checkpoint: Path, run: Run, qtbot: Any
) -> None:
    asked: list[Path] = []
    page.chat_requested.connect(asked.append)

    async def story() -> None:
        drop(page.choose_view.drop_zone, checkpoint)
        assert shown(page) is page.examine_view
        await until(lambda: page.task.stage is Stage.PLAN and len(page.task.outlooks) == len(FILE_TYPES))
        assert shown(page) is page.plan_view and page.plan_view.start.isEnabled()
        facts = page.plan_view.facts.facts
        assert facts["Experts"] == "8, 3 for each token" and facts["Parameters"] == "3.86M"
        assert page.plan_view.start.hasFocus()
        qtbot.keyClick(page.plan_view.start, Qt.Key.Key_Space)
        assert shown(page) is page.run_view
        assert unfinished.unfinished() is not None
        await until(lambda: not page.task.is_running)
        assert page.task.stage is Stage.DONE, page.task.failure
        assert shown(page) is page.end_view
        assert "prefers the same next token as its source" in page.end_view.text.text()
        facts = page.end_view.facts.facts
        assert facts["Read back"].endswith("tensors, as planned") and facts["Same experts"].endswith(" %")
        assert page.end_view.chat.hasFocus()
        qtbot.keyClick(page.end_view.chat, Qt.Key.Key_Space)

    run(story())
    target = paths.models_dir() / "qwen3_moe-Q4_K_M.gguf"
    assert asked == [target] and target.is_file()
    assert unfinished.unfinished() is None
    with GGUFReader.open(target) as reader:
        assert reader.metadata["general.architecture"] == "qwen3moe"
        proof = proof_of(reader.metadata)
    assert proof is not None and proof_sentence(proof) == page.end_view.text.text()


def test_every_kind_of_file_says_its_size_and_memory_and_one_is_recommended(
    page: ConvertPage, checkpoint: Path, run: Run
) -> None:
    run(planned(page, checkpoint))
    cards = page.plan_view.types.cards
    assert list(cards) == [kind.key for kind in FILE_TYPES]
    best = recommended(list(page.task.outlooks.values()), 1 << 60)
    assert [key for key, card in cards.items() if card.is_recommended] == [best]
    assert page.plan_view.types.key == best
    assert all(card.fit_text.startswith("Runs in") for card in cards.values())
    assert all("tok/s" in card.fit_text for card in cards.values())
    assert "16.0 bits per weight" in cards["bf16"].accessibleName()
    assert "32.0 bits per weight" in cards["f32"].accessibleName()


def test_another_kind_by_keyboard_changes_the_proposed_file(
    page: ConvertPage, checkpoint: Path, run: Run, qtbot: Any
) -> None:
    run(planned(page, checkpoint))
    plan = page.plan_view
    assert plan.types.key == "q4_k_m"
    assert not plan.types.cards["q8_0"].isVisible()  # only what is recommended, until more is asked for
    plan.types.toggle.click()
    assert plan.types.cards["q8_0"].isVisible()
    plan.types.cards["q4_k_m"].setFocus()
    qtbot.keyClick(plan.types.cards["q4_k_m"], Qt.Key.Key_Down)
    assert plan.types.key == "bf16"  # the recommended one is on top, then the others in their order
    assert plan.target.field.text().endswith("qwen3_moe-BF16.gguf")
    plan.target.choose(paths.models_dir() / "mine.gguf")
    qtbot.keyClick(plan.types.cards["bf16"], Qt.Key.Key_Down)
    assert plan.types.key == "f16" and plan.target.field.text().endswith("mine.gguf")


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("", "Name the file"),
        ("model.gguf", "whole path"),
        ("{models}", "This is a folder"),
        ("{models}/there.gguf", "there already"),
    ],
)
def test_a_target_that_cannot_be_written_is_refused_before_the_start(
    page: ConvertPage, checkpoint: Path, run: Run, target: str, problem: str
) -> None:
    run(planned(page, checkpoint))
    (paths.models_dir() / "there.gguf").touch()
    page.plan_view.target.field.setText(target.format(models=paths.models_dir()))
    assert not page.plan_view.start.isEnabled()
    assert problem in page.plan_view.notice.text and page.plan_view.notice.isVisible()
    page.plan_view.target.field.setText(str(paths.models_dir() / "new.gguf"))
    assert page.plan_view.start.isEnabled() and not page.plan_view.notice.isVisible()


def test_a_full_disk_is_said_with_both_sizes(
    page: ConvertPage, checkpoint: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.target_errors.free_bytes", lambda _target: 3_000_000)
    run(planned(page, checkpoint))
    assert "The disk has 3 MB free" in page.plan_view.notice.text
    assert not page.plan_view.start.isEnabled()


def test_options_reach_the_file(page: ConvertPage, checkpoint: Path, run: Run) -> None:
    async def story() -> None:
        await planned(page, checkpoint)
        options = page.plan_view.options
        options.toggle.click()
        assert options.name_field.isVisible()
        options.name_field.setText("Ours")
        options.top_k_field.setValue(2)
        options.router_field.setCurrentIndex(1)
        without_extras(page)
        page.plan_view.start.click()
        await until(lambda: page.task.stage is Stage.DONE)

    run(story())
    with GGUFReader.open(paths.models_dir() / "qwen3_moe-Q4_K_M.gguf") as reader:
        assert reader.metadata["general.name"] == "Ours"
        assert reader.metadata["qwen3moe.expert_used_count"] == 2
        assert reader.tensors["blk.0.ffn_gate_inp.weight"].type.name == "BF16"


def test_a_calibration_text_of_ones_own_is_asked_for_and_used(
    page: ConvertPage, checkpoint: Path, run: Run, tmp_path: Path
) -> None:
    text = tmp_path / "mine.txt"
    text.write_text("The hummingbird hovers before the flower and drinks. " * 400)

    async def story() -> None:
        await planned(page, checkpoint)
        plan = page.plan_view
        plan.options.proof_field.setChecked(False)
        plan.calibration.field.setCurrentIndex(1)
        assert not plan.start.isEnabled() and "Name the text" in plan.notice.text
        plan.calibration.set_text(str(text))
        plan.start.click()
        await until(lambda: page.task.stage is Stage.DONE)
        assert page.task.job is not None
        assert any("calibrating" in line for line in page.task.job.lines_after(0)[0])
        assert "tensors were read back" in page.end_view.text.text()
        assert "to the last bit" not in page.end_view.text.text()  # what is rounded does not equal its source
        page.task.back_to_plan()
        plan.types.cards["bf16"].click()
        assert not plan.calibration.isVisible() and plan.request().calibration == ""

    run(story())


def test_a_model_file_is_made_smaller(page: ConvertPage, run: Run) -> None:
    source = FIXTURES / "qwen3_moe-Q4_K_M.gguf"

    async def story() -> None:
        await planned(page, source)
        assert page.task.failure is None
        assert "quantised already" in page.plan_view.doubts.text
        without_extras(page)
        page.plan_view.types.cards["q4_0"].click()
        page.plan_view.start.click()
        await until(lambda: page.task.stage is Stage.DONE)

    run(story())
    assert (paths.models_dir() / "qwen3_moe-Q4_0.gguf").is_file()


def test_a_contradiction_is_named_and_can_be_looked_at_again(page: ConvertPage, checkpoint: Path, run: Run) -> None:
    config = checkpoint / "config.json"
    sound = config.read_text()

    async def story() -> None:
        config.write_text(json.dumps({**json.loads(sound), "num_experts": 16}))
        await planned(page, checkpoint)
        assert page.task.stage is Stage.FAILED and shown(page) is page.end_view
        assert "num_experts = 16" in page.end_view.error.text
        assert page.end_view.title.text() == "Parts of the model contradict each other"
        assert page.stepper.failed and page.stepper.index == 1
        assert not page.end_view.chat.isVisible() and not page.end_view.plan.isVisible()
        config.write_text(sound)
        page.end_view.retry.click()
        await until(lambda: page.task.stage is Stage.PLAN)

    run(story())


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("notes.txt", "A part of the model is missing"),
        ("pytorch_model.bin", "This format can run programs, so it is not opened"),
        ("missing", "A part of the model is missing"),
    ],
)
def test_what_is_no_checkpoint_is_refused_with_advice(
    page: ConvertPage, tmp_path: Path, run: Run, name: str, title: str
) -> None:
    path = tmp_path / name
    if name != "missing":
        path.write_bytes(b"something else")
    run(planned(page, path))
    assert page.task.stage is Stage.FAILED
    assert str(tmp_path) in page.end_view.error.text
    assert page.end_view.title.text() == title and page.end_view.steps.text().startswith("1.  ")


def test_a_missing_shard_says_what_to_download(page: ConvertPage, checkpoint: Path, run: Run) -> None:
    index = {"weight_map": {"model.embed_tokens.weight": "model-00002-of-00002.safetensors"}}
    (checkpoint / "model.safetensors.index.json").write_text(json.dumps(index))
    run(planned(page, checkpoint))
    assert page.end_view.title.text() == "A part of the model is missing"
    assert "model-00002-of-00002.safetensors" in page.end_view.error.text
    assert "Download the file that is named below" in page.end_view.steps.text()


def test_a_folder_that_cannot_be_read_says_so(
    page: ConvertPage, checkpoint: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path, **_options: Any) -> str:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr("pathlib.Path.read_text", refused)  # as root no right can be taken away
    run(planned(page, checkpoint))
    assert page.end_view.title.text() == "A file or folder cannot be read"
    assert "Permission denied" in page.end_view.error.text


def test_a_disk_that_fills_up_on_the_way_leads_back_to_the_plan(page: ConvertPage, checkpoint: Path, run: Run) -> None:
    async def story() -> None:
        await planned(page, checkpoint)
        without_extras(page)
        with file_size_limit(1 << 20):
            page.plan_view.start.click()
            await until(lambda: not page.task.is_running)
        assert page.end_view.title.text() == "The disk is full" and page.end_view.plan.isVisible()
        assert page.end_view.text.text() == "Nothing was left behind."
        assert list(paths.models_dir().iterdir()) == []
        page.end_view.plan.click()
        assert shown(page) is page.plan_view

    run(story())


@contextmanager
def file_size_limit(n_bytes: int) -> Iterator[None]:
    """The system refuses to let a file grow beyond it, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_cancelled_conversion_leaves_nothing_and_can_be_started_again(
    page: ConvertPage, checkpoint: Path, run: Run
) -> None:
    async def story() -> None:
        await planned(page, checkpoint)
        without_extras(page)
        page.plan_view.start.click()
        page.run_view.cancel.click()
        await until(lambda: page.task.stage is not Stage.RUN)
        assert page.task.stage is Stage.CANCELLED
        assert page.end_view.text.text() == "Nothing was left behind."
        assert list(paths.models_dir().iterdir()) == [] and unfinished.unfinished() is None
        page.end_view.retry.click()
        await until(lambda: page.task.stage is Stage.DONE)
        assert len(list(paths.models_dir().iterdir())) == 1

    run(story())


def test_a_conversion_that_the_end_of_the_program_cut_short_is_offered_and_goes_on(
    page: ConvertPage, checkpoint: Path, run: Run
) -> None:
    target = paths.models_dir() / "qwen3_moe-Q4_K_M.gguf"

    async def story() -> None:
        await planned(page, checkpoint)
        without_extras(page)
        page.plan_view.start.click()
        page.task.leave()
        request = unfinished.unfinished()
        assert request is not None and request.target == str(target) and page.task.is_running
        await until(lambda: page.task.stage is Stage.DONE)
        target.rename(target.with_name(".qwen3_moe-Q4_K_M.gguf.0123.part"))  # as a process that was killed leaves it
        unfinished.remember(request)
        page.task.back()
        page.look_around()
        await until(page.choose_view.unfinished.isVisible)
        page.choose_view.unfinished.resume.click()
        await until(lambda: page.task.stage is Stage.DONE)

    run(story())
    assert list(paths.models_dir().iterdir()) == [target] and unfinished.unfinished() is None


def test_an_interrupted_conversion_can_be_discarded(page: ConvertPage, checkpoint: Path, run: Run) -> None:
    target = paths.models_dir() / "x.gguf"
    unfinished.remember(ConversionRequest(str(checkpoint), str(target), "bf16"))
    left = target.with_name(".x.gguf.0123.part")
    left.touch()

    async def story() -> None:
        page.look_around()
        await until(page.choose_view.unfinished.isVisible)
        page.choose_view.unfinished.discard.click()

    run(story())
    assert not left.exists() and unfinished.unfinished() is None and not page.choose_view.unfinished.isVisible()


def test_checkpoints_of_other_programs_are_offered(
    page: ConvertPage, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, colibri_home: Path
) -> None:
    cache = tmp_path / "hub"
    folder = cache / "models--Qwen--Qwen3-Tiny" / "snapshots" / "1"
    folder.parent.mkdir(parents=True)
    checkpoint_case("qwen3_moe").write(folder.parent).rename(folder)
    monkeypatch.setenv("HF_HUB_CACHE", str(cache))

    async def story() -> None:
        page.look_around()
        await until(lambda: len(page.choose_view.found) == 1)
        assert page.choose_view.found[0].accessibleName() == "Qwen/Qwen3-Tiny"
        page.choose_view.found[0].click()
        await until(lambda: page.task.stage is Stage.PLAN)

    run(story())
    assert page.plan_view.target.field.text().endswith("/Qwen3-Tiny-Q4_K_M.gguf")


def test_a_running_conversion_is_not_replaced_by_a_drop(page: ConvertPage, checkpoint: Path, run: Run) -> None:
    async def story() -> None:
        await planned(page, checkpoint)
        without_extras(page)
        page.plan_view.start.click()
        page.task.choose(checkpoint.parent)
        assert page.task.stage is Stage.RUN and page.task.source == checkpoint
        await until(lambda: page.task.stage is Stage.DONE)

    run(story())


def test_escape_goes_back_to_the_choice(page: ConvertPage, checkpoint: Path, run: Run, qtbot: Any) -> None:
    run(planned(page, checkpoint))
    qtbot.keyClick(page.plan_view.start, Qt.Key.Key_Escape)
    assert shown(page) is page.choose_view


def test_only_one_local_path_can_be_dropped() -> None:
    data = QMimeData()
    assert dropped_path(data) is None
    data.setUrls([QUrl("https://example.org/model")])
    assert dropped_path(data) is None
    data.setUrls([QUrl.fromLocalFile("/a"), QUrl.fromLocalFile("/b")])
    assert dropped_path(data) is None
    data.setUrls([QUrl.fromLocalFile("/a")])
    assert dropped_path(data) == Path("/a")


def test_everything_that_takes_the_focus_has_a_name(page: ConvertPage, checkpoint: Path, run: Run) -> None:
    run(planned(page, checkpoint))
    page.plan_view.options.toggle.click()
    unnamed = [
        widget
        for kind in (QAbstractButton, QLineEdit)
        for widget in page.findChildren(kind)
        if widget.focusPolicy() != Qt.FocusPolicy.NoFocus
        and not widget.accessibleName()
        and not (isinstance(widget, QAbstractButton) and widget.text())
        and not widget.objectName().startswith("qt_")
    ]
    assert unnamed == []
