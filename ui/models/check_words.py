"""What a check of a model file found, in the language of the window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication

from engine.message import MODEL_CHECKS

if TYPE_CHECKING:
    from engine.checks import Check


def found_in_words(check: Check) -> str:
    """ "routers: experts, but no router …"; what is an error of the engine stays as it says it, in English."""

    def translate(template: str) -> str:
        return QCoreApplication.translate(MODEL_CHECKS, template)

    said = QCoreApplication.translate("CheckWords", "{check}: {findings}")
    findings = "; ".join(finding.render(translate) for finding in check.findings)
    return said.format(check=translate(check.name), findings=findings)
