from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtGui import QColor, QFont, QFontDatabase

from ui.resources import resource_path
from ui.theme import themed_pixmap
from ui.theme.theme import usual_font_size_px

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("light", "dark")


def tokens(name: str) -> dict[str, str]:
    return json.loads(resource_path("themes", f"{name}.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def contrast(one: str, other: str) -> float:
    def luminance(color: QColor) -> float:
        parts = [
            part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4
            for part in (color.redF(), color.greenF(), color.blueF())
        ]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    light, dark = sorted((luminance(QColor(one)), luminance(QColor(other))), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_both_themes_have_the_same_tokens() -> None:
    assert set(tokens("light")) == set(tokens("dark"))


def test_the_style_sheet_uses_only_known_tokens() -> None:
    used = set(re.findall(r"@([a-z_0-9]+)", resource_path("themes", "style.qss").read_text(encoding="utf-8"))) - {"px"}
    assert used <= set(tokens("light"))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("text", "ground"),
    [
        ("text", "surface"),
        ("text", "window"),
        ("text", "bubble"),
        ("text", "selected"),
        ("text_muted", "surface"),
        ("text_muted", "window"),
        ("text_faint", "surface"),
        ("text_faint", "window"),
        ("accent_text", "accent"),
        ("link", "surface"),
        ("danger", "surface"),
        ("text", "danger_soft"),
        ("toast_text", "toast"),
        ("toast_action", "toast"),
        ("selection_text", "selection"),
        ("text", "accent_soft"),
        *[
            (f"code_{kind}", "code_background")
            for kind in (
                "text",
                "keyword",
                "string",
                "number",
                "comment",
                "function",
                "type",
                "operator",
                "builtin",
                "error",
            )
        ],
    ],
)
def test_text_can_be_read(name: str, text: str, ground: str) -> None:
    colors = tokens(name)
    assert contrast(colors[text], colors[ground]) >= 4.5


def test_no_colour_is_written_into_a_widget() -> None:
    inline = re.compile(r"#[0-9a-fA-F]{6}\b|QColor\(\s*\d|GlobalColor\.(?!transparent)")
    found = [path.name for path in (ROOT / "ui").rglob("*.py") if inline.search(path.read_text(encoding="utf-8"))]
    assert found == []


def test_changing_the_theme_restyles_and_tells(theme: Any, qtbot: Any) -> None:
    light = theme.color("surface")
    with qtbot.waitSignal(theme.changed):
        theme.set_mode("dark")
    assert theme.is_dark and theme.color("surface") != light


def test_lengths_grow_with_the_text(theme: Any) -> None:
    assert theme.px(10) == 10
    theme.set_font_size(21)
    assert theme.px(10) == 15
    theme.set_font_size(500)
    assert theme.font_size_px == 24


@pytest.mark.parametrize("path", sorted(resource_path("icons").glob("*.svg")), ids=lambda path: path.stem)
def test_every_icon_draws_something(path: Path, qapp: Any) -> None:
    image = themed_pixmap(path.stem, "text", 24, 2.0).toImage()
    drawn = sum(image.pixelColor(x, y).alpha() > 0 for x in range(48) for y in range(48))
    assert image.width() == 48
    assert drawn > 40


def test_the_text_is_as_large_as_the_desktop_s_where_that_is_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    for system_px, expected_px in ((9, 14), (21, 21), (60, 24)):
        font = QFont()
        font.setPixelSize(system_px)
        monkeypatch.setattr(QFontDatabase, "systemFont", lambda _kind, font=font: font)
        assert usual_font_size_px() == expected_px
