"""The system check: what this machine is, what holds the engine back on it, and what to do about it."""

from app.diagnostics.check import run_checks
from app.diagnostics.finding import Finding, Fix, Group, Status, Verb
from app.diagnostics.inspection import Host, Inspection, ModelNeeds
from app.diagnostics.message import Message

__all__ = [
    "Finding",
    "Fix",
    "Group",
    "Host",
    "Inspection",
    "Message",
    "ModelNeeds",
    "Status",
    "Verb",
    "run_checks",
]
