"""The button by the message field that says how long the model thinks: only for models that can be told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt

from app.engine_service import EngineService
from app.settings import SettingsFile
from engine import EngineConfig, SamplingParams
from tests.engine.chat.test_chat_prompts import HERMES, THINKING
from tests.engine.chat.test_thinking import EFFORT
from tests.engine.compact import LLAMA, model_path
from tests.support.gguf_copy import SourceFile, write_copy
from tests.support.qt_loop import Run
from tests.support.waiting import until
from ui.chat.composer import Composer
from ui.chat.thinking_button import ThinkingButton
from ui.chat.thinking_setting import ThinkingSetting

ONE_TOKEN = SamplingParams(max_tokens=1, temperature=0.0, ignore_eos=True)


@pytest.fixture
def button(qtbot: Any) -> Iterator[ThinkingButton]:
    composer = Composer()
    qtbot.addWidget(composer)
    composer.resize(600, 60)
    with qtbot.waitExposed(composer):
        composer.show()
    yield composer.thinking
    composer.close()


def test_a_model_that_cannot_be_told_has_no_button(button: ThinkingButton) -> None:
    assert not button.isVisible()
    button.set_choices(("on", "off"), "on")
    assert button.isVisible()
    button.set_choices((), "")
    assert not button.isVisible()


def test_a_click_and_the_space_bar_switch_thinking(button: ThinkingButton, qtbot: Any) -> None:
    button.set_choices(("on", "off"), "on")
    assert button.isChecked() and button.toolTip() == "The model thinks before it answers"

    with qtbot.waitSignal(button.chosen) as chosen:
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert chosen.args == ["off"]
    assert button.isChecked()  # until the settings say otherwise

    button.set_choices(("on", "off"), "off")
    assert not button.isChecked() and button.accessibleDescription() == "The model answers at once"
    with qtbot.waitSignal(button.chosen) as chosen:
        qtbot.keyClick(button, Qt.Key.Key_Space)
    assert chosen.args == ["on"]


def test_efforts_are_chosen_from_a_menu(button: ThinkingButton, qtbot: Any) -> None:
    button.set_choices(("low", "medium", "high"), "medium")
    menu = button.menu_of_efforts()
    assert [(action.text(), action.isChecked()) for action in menu.actions()] == [
        ("Think briefly", False),
        ("Think", True),
        ("Think long", False),
    ]
    with qtbot.waitSignal(button.chosen) as chosen:
        menu.actions()[2].trigger()
    assert chosen.args == ["high"]
    menu.close()


async def story(service: EngineService, settings: SettingsFile, button: ThinkingButton, folder: Path) -> None:
    """What is chosen reaches the prompt; a model without the setting has no button; another model's choice is kept."""
    lengths = {}
    for name, template in (("switch", THINKING), ("none", HERMES), ("effort", EFFORT)):
        path = folder / f"{name}.gguf"
        keys = {"tokenizer.chat_template": template}
        write_copy(SourceFile.open(model_path(LLAMA)), path, lambda tensor: [tensor], keys)
        await service.load(path, EngineConfig(context_length=256))
        await until(lambda: service.thinking is not None)
        if name == "none":
            assert not button.isVisible()
        if name == "switch":
            assert (button.isVisible(), button.current) == (True, "on")
            lengths["on"] = await prompt_length(service, settings)
            button.click()
            assert (settings.settings.thinking, button.current) == ("off", "off")
            lengths["off"] = await prompt_length(service, settings)
        if name == "effort":
            assert button.current == "medium"
            button.menu_of_efforts().actions()[0].trigger()
            assert (button.current, settings.settings.thinking) == ("low", "off")
    assert lengths["on"] > lengths["off"]


async def prompt_length(service: EngineService, settings: SettingsFile) -> int:
    thinking = (settings.settings.thinking, settings.settings.thinking_effort)
    generation = service.generate([{"role": "user", "content": "Why?"}], ONE_TOKEN, thinking=thinking)
    return [delta.n_prompt_tokens async for delta in generation][-1]


def test_the_choice_is_kept_and_reaches_the_model(run: Run, button: ThinkingButton, tmp_path: Path) -> None:
    settings, service = SettingsFile(tmp_path / "settings.json"), EngineService()
    ThinkingSetting(button, service, settings)
    try:
        run(story(service, settings, button, tmp_path))
    finally:
        service.close()
        settings.flush()
    assert SettingsFile(settings.path).settings.thinking_effort == "low"
