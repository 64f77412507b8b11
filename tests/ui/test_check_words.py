"""What a check of a model file found is said in the language of the window."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QLocale, QTranslator

from engine.checks import Check, check_model
from engine.gguf import GGUFReader
from tests.engine.compact import MIXTRAL
from tests.engine.test_hostile_models import rewritten
from ui.models.check_words import found_in_words
from ui.translation import install_translation


@pytest.fixture
def broken(tmp_path: Path) -> dict[str, Check]:
    """The checks of a file whose parts contradict each other, and its configuration."""
    path = rewritten(tmp_path / "model.gguf", MIXTRAL, {"arch.block_count": 9, "arch.expert_used_count": 9})
    (tmp_path / "config.json").write_text('{"num_local_experts": 64, "vocab_size": 1}')
    with GGUFReader.open(path) as reader:
        return {check.name: check for check in check_model(reader)}


@pytest.fixture
def chinese(qapp: QCoreApplication) -> Iterator[None]:
    before = set(qapp.findChildren(QTranslator))
    install_translation(qapp, "zh_CN")
    yield
    for translator in set(qapp.findChildren(QTranslator)) - before:
        qapp.removeTranslator(translator)
    QLocale.setDefault(QLocale("en"))


def test_findings_are_said_in_english(qapp: QCoreApplication, broken: dict[str, Check]) -> None:
    words = found_in_words(broken["layers"])
    assert words == "layers: block_count is 9, but there are no tensors of layer 2, 3, 4, 5 and 3 more"


def test_findings_are_said_in_chinese(chinese: None, broken: dict[str, Check]) -> None:
    assert found_in_words(broken["layers"]) == "层：block_count 为 9，但缺少这些层的张量：2, 3, 4, 5 及另外 3 层"
    assert found_in_words(broken["experts"]).startswith("专家：llama.expert_used_count 为 9；应为 1 到 8")
    config = found_in_words(broken["config.json"])
    assert "num_local_experts 为 64，而文件中" in config and "文件有 600 个词元" in config
