"""Loads the translation of the window and of Qt's own texts."""

from __future__ import annotations

import logging

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator

from ui.resources import resource_path

log = logging.getLogger(__name__)

LANGUAGES = {"en": "English", "zh_CN": "简体中文"}


def chosen_locale(setting: str) -> QLocale:
    """The locale of a setting: "system", or a language's code."""
    return QLocale.system() if setting == "system" else QLocale(setting)


def install_translation(app: QCoreApplication, setting: str) -> str:
    """Put the chosen language in force for texts made from now on; returns the code of the one that was found."""
    locale = chosen_locale(setting)
    if locale.language() == QLocale.Language.C:
        locale = QLocale("en")
    QLocale.setDefault(locale)
    if locale.language() != QLocale.Language.Chinese:
        return "en"
    for name, folder in (
        ("colibri_zh_CN", str(resource_path("translations"))),
        ("system_check_zh_CN", str(resource_path("translations"))),
        ("model_checks_zh_CN", str(resource_path("translations"))),
        ("qtbase_zh_CN", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)),
    ):
        translator = QTranslator(app)
        if translator.load(name, folder):
            app.installTranslator(translator)
        else:
            log.info("no translation %s in %s", name, folder)
    return "zh_CN"
