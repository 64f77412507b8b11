"""`colibri calibrate` writes an importance matrix, from Colibri's texts or the user's; it refuses what is no text."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from app.calibration import CalibrationError, calibration_texts, sample_texts
from app.commands import calibrate as command
from engine.convert.calibrate import read_importance
from tests.engine.compact import MIXTRAL, model_path


def run(*arguments: object) -> int:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    options = parser.parse_args(["calibrate", *map(str, arguments)])
    code: int = options.run(options)
    return code


def test_a_model_is_measured_on_the_users_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, target = tmp_path / "mine.txt", tmp_path / "mine.imatrix.gguf"
    text.write_text("Colibrí: the smallest bird. 蜂鸟 hovers.\n" * 40)
    assert run(model_path(MIXTRAL), "-o", target, "--text", text, "--passages", 1) == 0
    importance = read_importance(target)
    assert (importance.datasets, importance.n_chunks) == (("mine",), 1)
    assert importance.of("blk.1.ffn_down_exps.weight", 128) is not None
    said = capsys.readouterr().out
    assert "1 passages of 512 tokens" in said
    assert str(target) in said
    with pytest.raises(CalibrationError, match="--replace"):
        run(model_path(MIXTRAL), "-o", target, "--text", text)


def test_a_text_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_bytes(b"abc\xff")
    with pytest.raises(CalibrationError, match="other bytes at 3"):
        calibration_texts(tmp_path / "bad.txt")
    with pytest.raises(CalibrationError, match="No such file"):
        calibration_texts(tmp_path / "none.txt")


def test_our_texts_are_of_three_kinds_and_the_sample_is_not_among_them() -> None:
    texts, sample = calibration_texts(), sample_texts()["sample"]
    assert set(texts) == {"english", "chinese", "code", "conversations"}
    assert sum("\u4e00" <= character <= "\u9fff" for character in texts["chinese"]) > 3000
    long_lines = [line for line in sample.splitlines() if len(line) > 40]
    assert len(long_lines) > 50
    assert not [line for line in long_lines if any(line in text for text in texts.values())]
