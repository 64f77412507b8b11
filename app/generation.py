"""One answer under way: deltas put in by the engine's thread, taken out on an event loop."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine import Delta

logger = logging.getLogger(__name__)


def text_of(delta: Delta) -> str:
    """What a reader is shown of a delta; a call of a tool that nobody offered is shown as it is."""
    if delta.call is None:
        return delta.text
    return f'\n\n```json\n{json.dumps({"name": delta.call.name})[:-1]}, "arguments": {delta.call.arguments}}}\n```\n'


class Generation:
    """An asynchronous iterator of Delta. Iterated by one task; the last delta has a finish_reason.

    After `cancel`, iteration goes on to the delta that says "cancelled"; after `aclose`, it is over. The engine's
    thread wakes the loop only while somebody waits there: whoever takes what has come in batches costs it nothing.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, on_cancel: Callable[[Generation], None]) -> None:
        self._loop = loop
        self._on_cancel = on_cancel
        self._arrivals: deque[tuple[float, Delta]] = deque()
        self._awake = asyncio.Event()
        self._is_waited_for = False
        self._closed = False  # by `aclose`
        self._ended = False  # by the engine
        self._error: BaseException | None = None
        self.cancelled = False

    def __aiter__(self) -> Generation:
        return self

    async def __anext__(self) -> Delta:
        if not await self._has_more():
            raise StopAsyncIteration
        return self._arrivals.popleft()[1]

    async def batches(self, pause_s: float) -> AsyncIterator[list[tuple[float, Delta]]]:
        """All that came since the last time, each with its moment on the clock of time.perf_counter.

        After a batch with a token nothing is looked at for `pause_s`; what comes before the first token, and the first
        token itself, is handed out at once.
        """
        while await self._has_more():
            batch = [self._arrivals.popleft() for _ in range(len(self._arrivals))]
            yield batch
            if not self._ended and any(delta.token_id is not None for _, delta in batch):
                await asyncio.sleep(pause_s)

    async def _has_more(self) -> bool:
        """Wait for the next delta; False at the end. Raises the error with which the engine ended the answer."""
        while not self._arrivals:
            if self._closed:
                return False
            if self._ended:
                error, self._error = self._error, None
                if error is not None:
                    raise error
                return False
            self._awake.clear()
            self._is_waited_for = True
            if self._arrivals or self._ended:  # it came between the last look and the line above
                continue
            try:
                await self._awake.wait()
            except asyncio.CancelledError:
                self.cancel()
                raise
        return not self._closed

    @property
    def has_ended(self) -> bool:
        """Whether the engine has said all; some of it may still have to be taken."""
        return self._ended

    def cancel(self) -> None:
        """Stop within one step of the engine."""
        if not self.cancelled and not self._ended:
            self.cancelled = True
            self._on_cancel(self)

    async def aclose(self) -> None:
        """Stop, and drop what has not been read yet."""
        self.cancel()
        self._closed = True
        self._arrivals.clear()
        self._awake.set()

    async def __aenter__(self) -> Generation:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    # Called by the engine's thread.

    def put(self, delta: Delta) -> None:
        """Hand over a delta."""
        self._arrivals.append((time.perf_counter(), delta))
        self._wake()

    def end(self, error: BaseException | None = None) -> None:
        """Say that nothing more comes."""
        if not self._ended:
            self._error = error
            self._ended = True
            self._wake()

    def _wake(self) -> None:
        if self._is_waited_for:
            self._is_waited_for = False
            try:
                self._loop.call_soon_threadsafe(self._awake.set)
            except RuntimeError:
                logger.debug("the event loop of an answer is closed")
