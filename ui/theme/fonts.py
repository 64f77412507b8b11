"""Chooses the typefaces for text and for code from what the machine has."""

from __future__ import annotations

from functools import cache

from PySide6.QtGui import QFont, QFontDatabase

TEXT_FAMILIES = (
    "Inter",
    "Inter Variable",
    "SF Pro Text",
    "Segoe UI Variable Text",
    "Segoe UI",
    "Adwaita Sans",
    "Cantarell",
    "Ubuntu Sans",
    "Ubuntu",
    "Noto Sans",
    "Open Sans",
    "Noto Sans CJK SC",
    "DejaVu Sans",
)
HAN_FAMILIES = ("Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "PingFang SC", "Microsoft YaHei UI")
CODE_FAMILIES = (
    "JetBrains Mono",
    "Cascadia Code",
    "SF Mono",
    "Menlo",
    "Adwaita Mono",
    "Ubuntu Sans Mono",
    "Ubuntu Mono",
    "Noto Sans Mono",
    "DejaVu Sans Mono",
    "Consolas",
)


@cache
def _available() -> frozenset[str]:
    return frozenset(QFontDatabase.families())


def _chain(families: tuple[str, ...]) -> list[str]:
    present = [name for name in families if name in _available()]
    han = [name for name in HAN_FAMILIES if name in _available() and name not in present]
    return present[:2] + han[:1]


@cache
def text_families() -> list[str]:
    """Families for running text, best first, with one for Chinese behind it."""
    return _chain(TEXT_FAMILIES) or [QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont).family()]


@cache
def code_families() -> list[str]:
    """Families for code, all of one width, best first."""
    return _chain(CODE_FAMILIES) or [QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).family()]


def text_font(size_px: int, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
    """A font for text, ``size_px`` logical pixels high."""
    font = QFont()
    font.setFamilies(text_families())
    font.setPixelSize(size_px)
    font.setWeight(weight)
    font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    return font


def code_font(size_px: int) -> QFont:
    """A font for code, ``size_px`` logical pixels high."""
    font = QFont()
    font.setFamilies(code_families())
    font.setPixelSize(size_px)
    font.setStyleHint(QFont.StyleHint.Monospace)
    font.setFixedPitch(True)
    font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    return font
