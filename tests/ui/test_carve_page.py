"""From a dense model to one with experts: planned, measured, decided about, and every other way it can go."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QLineEdit

from app import carving_request, paths
from app.carving_request import CarvingRequest
from app.library import describe
from engine.carve import Loss, losses_of
from engine.gguf import GGUFReader
from tests.support.dense_model import write_dense_model
from tests.support.qt_loop import Run
from tests.support.waiting import until
from tests.ui.wizards import opened, shown
from ui.carve.carve_page import CarvePage
from ui.carve.carving_task import CarvingTask
from ui.carve.loss_table import LossTable
from ui.wizard.long_task import Stage

FIXTURES = Path(__file__).resolve().parents[1] / "data" / "fixtures"


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dense_model(tmp_path_factory.mktemp("dense"))


@pytest.fixture
def page(qtbot: Any, colibri_home: Path, dense: Path) -> CarvePage:
    mixture = colibri_home / "mixture.gguf"
    shutil.copy(FIXTURES / "qwen3_moe-Q4_K_M.gguf", mixture)
    entries = [describe(mixture), describe(dense)]
    return opened(CarvePage(CarvingTask(), lambda: entries), qtbot)


async def planned(page: CarvePage, source: Path) -> None:
    page.task.choose(source)
    await until(lambda: page.task.stage in {Stage.PLAN, Stage.FAILED})


def small(page: CarvePage) -> CarvingRequest:
    """The plan of the page with as little reading as possible."""
    request = page.cut_view.request()
    assert request is not None
    return CarvingRequest(request.source, request.target, 8, 5, 0, passages=1, name=request.name)


def test_from_a_dense_model_to_a_chat_with_experts(page: CarvePage, dense: Path, run: Run, qtbot: Any) -> None:
    asked: list[Path] = []
    page.chat_requested.connect(asked.append)

    async def story() -> None:
        page.look_around()
        await until(lambda: len(page.dense_view.buttons) == 1)  # the mixture is not offered
        page.dense_view.buttons[0].click()
        await until(lambda: page.task.stage is Stage.PLAN)
        cut = page.cut_view
        assert shown(page) is cut and cut.start.hasFocus() and cut.start.isEnabled()
        assert cut.facts.facts["Neurons of a network"] == "512"
        assert (cut.experts.currentText(), cut.shared.value()) == ("16", 4)
        page.task.start(small(page))
        assert shown(page) is page.run_view
        await until(lambda: page.task.stage is Stage.DECIDE)
        decide = page.decide_view
        assert shown(page) is decide and decide.keep.hasFocus()
        assert [row.loss.top_k for row in decide.table.rows] == [3, 2, 1]
        assert decide.table.loss is not None and decide.table.loss.top_k == 3  # all of them: nothing is lost
        assert not Path(page.task.request.target).exists()  # type: ignore[union-attr]
        decide.table.rows[0].setFocus()
        qtbot.keyClick(decide.table.rows[0], Qt.Key.Key_Down)
        assert decide.table.loss.top_k == 2
        decide.keep.click()
        await until(lambda: page.task.stage is Stage.DONE)
        assert shown(page) is page.end_view and page.end_view.chat.hasFocus()
        assert page.end_view.facts.facts["Experts"] == "3, 2 for each token"
        qtbot.keyClick(page.end_view.chat, Qt.Key.Key_Space)

    run(story())
    assert asked == [paths.models_dir() / "dense-carved.gguf"]
    with GGUFReader.open(asked[0]) as reader:
        assert reader.metadata["deepseek.expert_used_count"] == 2
        assert [loss.top_k for loss in losses_of(reader.metadata)] == [3, 2, 1]
    assert carving_request.unfinished() is None
    assert not list(paths.models_dir().glob(".*"))


def test_what_was_measured_waits_for_a_decision_beyond_the_programs_end(
    page: CarvePage, dense: Path, run: Run, qtbot: Any
) -> None:
    async def story() -> None:
        await planned(page, dense)
        page.task.start(small(page))
        await until(lambda: page.task.stage is Stage.DECIDE)
        page.task.leave()
        later = CarvePage(CarvingTask(), list)
        qtbot.addWidget(later)
        later.show()
        later.look_around()
        await until(later.dense_view.unfinished.isVisible)
        later.dense_view.unfinished.resume.click()
        await until(lambda: later.task.stage is Stage.DECIDE)
        assert later.task.trial == page.task.trial
        later.decide_view.discard.click()
        assert later.task.stage is Stage.CHOOSE
        await until(lambda: not list(paths.models_dir().iterdir()))
        assert carving_request.unfinished() is None

    run(story())


def test_a_cancelled_carving_leaves_nothing_and_can_be_started_again(page: CarvePage, dense: Path, run: Run) -> None:
    async def story() -> None:
        await planned(page, dense)
        page.task.start(small(page))
        page.run_view.cancel.click()
        await until(lambda: not page.task.is_running)
        assert page.task.stage is Stage.CANCELLED and page.end_view.plan.isVisible()
        assert not list(paths.models_dir().iterdir()) and carving_request.unfinished() is None
        page.end_view.retry.click()
        await until(lambda: page.task.stage is Stage.DECIDE)
        page.task.back()

    run(story())


def test_a_model_with_experts_is_refused_with_advice(page: CarvePage, run: Run) -> None:
    run(planned(page, FIXTURES / "qwen3_moe-Q4_K_M.gguf"))
    assert page.task.stage is Stage.FAILED and shown(page) is page.end_view
    assert page.end_view.title.text() == "This kind of model is not known here"
    assert "dense model" in page.end_view.error.text and page.end_view.steps.text().startswith("1.  ")
    assert not page.end_view.plan.isVisible()


@pytest.mark.parametrize(
    ("target", "problem"), [("", "Name the file"), ("moe.gguf", "whole path"), ("{models}", "This is a folder")]
)
def test_a_target_that_cannot_be_written_is_refused_before_the_start(
    page: CarvePage, dense: Path, run: Run, target: str, problem: str
) -> None:
    run(planned(page, dense))
    page.cut_view.target.field.setText(target.format(models=paths.models_dir()))
    assert problem in page.cut_view.notice.text and not page.cut_view.start.isEnabled()


def test_the_plan_follows_its_fields(page: CarvePage, dense: Path, run: Run, tmp_path: Path) -> None:
    run(planned(page, dense))
    cut = page.cut_view
    cut.experts.setCurrentIndex(cut.experts.findText("8"))
    assert cut.shared.value() == 2 and cut.shared.maximum() == 6
    assert cut.picture.accessibleName() == "2 parts work for every token, the router chooses among 6"
    cut.set_text(str(tmp_path / "none.txt"))
    assert "no such text" in cut.notice.text and not cut.start.isEnabled()
    cut.set_text("")
    request = cut.request()
    assert request is not None and (request.n_experts, request.n_shared, request.text) == (8, 2, None)


def test_a_loss_is_called_what_it_is(qtbot: Any) -> None:
    table = LossTable()
    qtbot.addWidget(table)
    losses = [
        Loss(12, 1.0, 10.0, 10.0, 0.0001, 0.99),
        Loss(11, 0.94, 10.4, 10.0, 0.06, 0.9),
        Loss(10, 0.88, 11.4, 10.0, 0.135, 0.8),
        Loss(6, 0.63, 60.0, 10.0, 1.7, 0.4),
    ]
    table.show_losses(losses, 10)
    assert [row.verdict for row in table.rows] == [
        "As the dense model",
        "Close to it",
        "Demonstration",
        "Broken",
    ]
    assert table.loss == losses[2]
    assert "Divergence, nats: 0.14" in table.rows[2].accessibleName()  # 0.135 with two digits


def test_everything_that_takes_the_focus_has_a_name(page: CarvePage, dense: Path, run: Run) -> None:
    run(planned(page, dense))
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
