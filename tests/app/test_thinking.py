"""`/think` and `--think`: how long a model thinks, in the terminal chat, with a model whose template knows it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.commands.chat_session import ChatSession
from app.commands.chat_terminal import converse
from engine import Engine, SamplingParams
from engine.errors import InvalidRequestError
from tests.engine.chat.test_chat_prompts import HERMES, THINKING
from tests.engine.compact import LLAMA, model_path, small_config
from tests.support.gguf_copy import SourceFile, write_copy

SHORT = SamplingParams(max_tokens=2, temperature=0.0, ignore_eos=True)
QUESTION = "Why?"


def opened(template: str, folder: Path) -> Engine:
    path = folder / "model.gguf"
    write_copy(SourceFile.open(model_path(LLAMA)), path, lambda tensor: [tensor], {"tokenizer.chat_template": template})
    return Engine.open(path, small_config())


@pytest.fixture(scope="module")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with opened(THINKING, tmp_path_factory.mktemp("thinker")) as engine:
        yield engine


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with opened(HERMES, tmp_path_factory.mktemp("plain")) as engine:
        yield engine


def prompt_tokens(engine: Engine, thinking: str | None) -> int:
    return ChatSession(engine, SHORT, None, thinking).answer(QUESTION, lambda _: None).prompt_tokens


def said(session: ChatSession, lines: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    given = iter([*lines, "/quit"])
    monkeypatch.setattr("builtins.input", lambda _prompt: next(given))
    converse(session)


def test_the_choice_reaches_the_prompt(thinker: Engine) -> None:
    usual, on, off = (prompt_tokens(thinker, choice) for choice in (None, "on", "off"))

    assert usual == on > off


def test_the_commands_of_the_terminal_change_it_from_the_next_answer_on(
    thinker: Engine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], colibri_home: Path
) -> None:
    session = ChatSession(thinker, SHORT, None)

    said(session, ["/think", "/think much", "/think off"], monkeypatch)

    shown = capsys.readouterr().err
    assert "/think on|off. Usual: on." in shown
    assert "'much' for this model: expected on or off" in shown
    assert "Thinking: off." in shown
    assert session.answer(QUESTION, lambda _: None).prompt_tokens == prompt_tokens(thinker, "off")


def test_a_model_without_the_setting_says_so(
    plain: Engine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], colibri_home: Path
) -> None:
    said(ChatSession(plain, SHORT, None), ["/think off"], monkeypatch)

    assert "no setting for thinking" in capsys.readouterr().err
    with pytest.raises(InvalidRequestError, match="no such setting"):
        ChatSession(plain, SHORT, None, "off")
