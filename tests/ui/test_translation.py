from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from PySide6.QtCore import QCoreApplication, QLocale, QTranslator

from ui import format as fmt
from ui.resources import resource_path
from ui.translation import install_translation

ROOT = Path(__file__).resolve().parents[2]
SOURCE = resource_path("translations", "colibri_zh_CN.ts")
FINDINGS = resource_path("translations", "system_check_zh_CN.ts")
MODEL_CHECKS = resource_path("translations", "model_checks_zh_CN.ts")
TOOLS = Path(sys.executable).parent


def messages(path: Path) -> list[tuple[str, str, str]]:
    """(context, source, translation) of every text that is in use."""
    found = []
    for context in ElementTree.parse(path).getroot().iter("context"):
        for message in context.iter("message"):
            translation = message.find("translation")
            assert translation is not None
            if translation.get("type") not in {"vanished", "obsolete"}:
                finished = translation.get("type") != "unfinished"
                text = (translation.text or "") if finished else ""
                found.append((context.findtext("name", ""), message.findtext("source", ""), text))
    return found


def test_every_text_of_the_window_is_translated(tmp_path: Path) -> None:
    fresh = tmp_path / "fresh.ts"
    files = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "ui").rglob("*.py"))
    command = [str(TOOLS / "pyside6-lupdate"), *files, "-ts", str(fresh), "-locations", "none"]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    in_use = {(context, source) for context, source, _ in messages(fresh)}
    translated = {(context, source) for context, source, text in messages(SOURCE) if text}
    assert len(in_use) > 150
    assert in_use - translated == set()


def findings_in_use(folder: Path, *places: str) -> set[str]:
    """The templates in the modules of `places` below the project's root."""
    fresh = folder / "fresh.ts"
    files = sorted(str(path.relative_to(ROOT)) for place in places for path in ROOT.glob(place))
    options = ["-locations", "none", "-tr-function-alias", "QT_TRANSLATE_NOOP+=text"]
    command = [str(TOOLS / "pyside6-lupdate"), *files, "-ts", str(fresh), *options]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    return {source for _, source, _ in messages(fresh)}


def test_every_text_of_the_system_check_is_translated(tmp_path: Path) -> None:
    in_use = findings_in_use(tmp_path, "app/diagnostics/*.py")
    assert len(in_use) > 120
    assert in_use == {source for _, source, text in messages(FINDINGS) if text}


def test_every_finding_in_a_model_file_is_translated(tmp_path: Path) -> None:
    in_use = findings_in_use(tmp_path, "engine/checks.py", "engine/convert/beside.py")
    assert len(in_use) > 40
    assert in_use == {source for _, source, text in messages(MODEL_CHECKS) if text}


@pytest.mark.parametrize("path", [SOURCE, FINDINGS, MODEL_CHECKS], ids=lambda path: path.stem)
def test_placeholders_survive_translation(path: Path) -> None:
    def placeholders(text: str) -> list[str]:
        return sorted(re.findall(r"\{\w+(?::[^}]*)?\}", text))

    wrong = [source for _, source, text in messages(path) if placeholders(source) != placeholders(text)]
    assert wrong == []


@pytest.mark.parametrize("path", [SOURCE, FINDINGS, MODEL_CHECKS], ids=lambda path: path.stem)
def test_the_compiled_translation_is_that_of_the_source(tmp_path: Path, path: Path) -> None:
    compiled = tmp_path / "fresh.qm"
    command = [str(TOOLS / "pyside6-lrelease"), str(path), "-qm", str(compiled)]
    subprocess.run(command, check=True, capture_output=True)
    assert compiled.read_bytes() == path.with_suffix(".qm").read_bytes()


def test_chinese_is_put_in_force(qapp: QCoreApplication, qtbot: Any) -> None:
    from ui.chat.sidebar import Sidebar

    before = set(qapp.findChildren(QTranslator))
    try:
        assert install_translation(qapp, "zh_CN") == "zh_CN"
        sidebar = Sidebar()
        qtbot.addWidget(sidebar)
        assert sidebar.search_field.placeholderText() == "搜索对话"
        assert fmt.rate(38.2) == "38.2 词元/秒"
    finally:
        for translator in set(qapp.findChildren(QTranslator)) - before:
            qapp.removeTranslator(translator)
        QLocale.setDefault(QLocale("en"))


@pytest.mark.parametrize("setting", ["en", "de", "fr_FR"])
def test_other_languages_are_shown_in_english(qapp: QCoreApplication, setting: str) -> None:
    assert install_translation(qapp, setting) == "en"
    QLocale.setDefault(QLocale("en"))
