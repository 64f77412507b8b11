"""One result of the system check."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from app.diagnostics.message import Message, text


class Status(StrEnum):
    """How a finding is to be taken; the last means that this machine has nothing to look at."""

    OK = "ok"
    ADVICE = "advice"
    PROBLEM = "problem"
    UNAVAILABLE = "unavailable"


class Group(StrEnum):
    """Under which heading a finding stands."""

    PROCESSOR = "processor"
    SPEED = "speed"
    PAGES = "pages"
    MEMORY = "memory"
    SYSTEM = "system"
    STORAGE = "storage"


class Verb(StrEnum):
    """All that the privileged helper can do."""

    GOVERNOR = "set-governor"
    HUGE_PAGES = "set-nr-hugepages"
    TRANSPARENT_PAGES = "set-thp"
    LOCKED_MEMORY = "set-memlock"


@dataclass(frozen=True, slots=True)
class Fix:
    """A change that the helper can make: a verb and its values."""

    verb: Verb
    values: tuple[str, ...]
    effect: Message  # what will be different, for the user to consent to


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, what was found, why it matters here, and what can be done.

    command: what a user can type to change it. fix: the same through the helper; None where that cannot be done.
    """

    id: str
    group: Group
    title: Message
    status: Status
    value: Message
    why: Message
    advice: Message | None = None
    command: str | None = None
    fix: Fix | None = None


def unavailable(id_: str, group: Group, title: Message, reason: Message, why: Message) -> Finding:
    """A finding for what this machine does not have or show."""
    value = text("SystemCheck", "not available here, because {reason}").format(reason=reason)
    return Finding(id_, group, title, Status.UNAVAILABLE, value, why)
