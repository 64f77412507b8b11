"""What the system check's findings are called and how they look in the window."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from app.diagnostics import Finding, Group, Message, Status
from app.diagnostics.message import CONTEXT

ICONS = {  # icon and colour of each status
    Status.OK: ("check", "ok"),
    Status.ADVICE: ("bulb", "warning"),
    Status.PROBLEM: ("warning", "danger"),
    Status.UNAVAILABLE: ("minus", "text_faint"),
}


def translated(message: Message) -> str:
    """A finding's text in the language of the window."""
    return message.render(lambda template: QCoreApplication.translate(CONTEXT, template))


def heading(group: Group) -> str:
    """The heading above a group of findings."""
    translate = QCoreApplication.translate
    return {
        Group.PROCESSOR: translate("Findings", "Processor"),
        Group.SPEED: translate("Findings", "Speed of the cores"),
        Group.PAGES: translate("Findings", "Memory pages"),
        Group.MEMORY: translate("Findings", "Memory"),
        Group.SYSTEM: translate("Findings", "System"),
        Group.STORAGE: translate("Findings", "Storage"),
    }[group]


def status_word(status: Status) -> str:
    """A status in a word, for whoever cannot see its icon."""
    translate = QCoreApplication.translate
    return {
        Status.OK: translate("Findings", "in order"),
        Status.ADVICE: translate("Findings", "advice"),
        Status.PROBLEM: translate("Findings", "problem"),
        Status.UNAVAILABLE: translate("Findings", "not available"),
    }[status]


def summary(findings: list[Finding]) -> str:
    """The whole check in a line, the most important first."""
    counts = {status: sum(finding.status is status for finding in findings) for status in Status}
    translate = QCoreApplication.translate
    parts = []
    if counts[Status.PROBLEM]:
        parts.append(translate("Findings", "Problems: {n}").format(n=counts[Status.PROBLEM]))
    if counts[Status.ADVICE]:
        parts.append(translate("Findings", "Advice: {n}").format(n=counts[Status.ADVICE]))
    parts.append(translate("Findings", "In order: {n}").format(n=counts[Status.OK]))
    return "  ·  ".join(parts)
