"""Waiting for what must come about, as long as the busiest machine may take: time is never what a test asserts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

PATIENCE_S = 300.0


def still_patient(what: str = "it") -> Callable[[], bool]:
    """A condition for a loop that waits: true, until after `PATIENCE_S` it fails the test."""
    end_s = time.monotonic() + PATIENCE_S

    def is_patient() -> bool:
        assert time.monotonic() < end_s, f"{what} did not come about within {PATIENCE_S:.0f} s"
        return True

    return is_patient


async def until(condition: Callable[[], bool], between: Callable[[], object] = lambda: None) -> None:
    """Return when the condition holds; in between, others have their turn and `between` is called."""
    is_patient = still_patient()
    while not condition() and is_patient():
        between()
        await asyncio.sleep(0.005)
