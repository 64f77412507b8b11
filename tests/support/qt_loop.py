"""Runs coroutines on Qt's event loop, as the program does, and leaves nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from PySide6.QtWidgets import QApplication
from qasync import QEventLoop

from tests.support.waiting import PATIENCE_S

Run = Callable[[Coroutine[Any, Any, None]], None]


@contextmanager
def qt_loop(application: QApplication) -> Iterator[Run]:
    """Gives a function that runs a coroutine to its end; what it left running is cancelled when the loop closes."""
    loop = QEventLoop(application, already_running=False)
    asyncio.set_event_loop(loop)
    try:
        yield lambda work: loop.run_until_complete(asyncio.wait_for(work, 3 * PATIENCE_S))
        loop.run_until_complete(_end_tasks())
    finally:
        loop.close()
        asyncio.set_event_loop(None)


async def _end_tasks() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
