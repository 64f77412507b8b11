"""One answer under way: deltas put in by the engine's thread, taken out on an event loop."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable
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

    After `cancel`, iteration goes on to the delta that says "cancelled"; after `aclose`, it is over.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, on_cancel: Callable[[Generation], None]) -> None:
        self._loop = loop
        self._on_cancel = on_cancel
        self._deltas: deque[Delta] = deque()
        self._arrived = asyncio.Event()
        self._ended = False
        self._error: BaseException | None = None
        self.cancelled = False

    def __aiter__(self) -> Generation:
        return self

    async def __anext__(self) -> Delta:
        while not self._deltas:
            if self._ended:
                error, self._error = self._error, None
                raise error or StopAsyncIteration
            self._arrived.clear()
            try:
                await self._arrived.wait()
            except asyncio.CancelledError:
                self.cancel()
                raise
        return self._deltas.popleft()

    def cancel(self) -> None:
        """Stop within one step of the engine."""
        if not self.cancelled and not self._ended:
            self.cancelled = True
            self._on_cancel(self)

    async def aclose(self) -> None:
        """Stop, and drop what has not been read yet."""
        self.cancel()
        self._deltas.clear()
        self._ended, self._error = True, None
        self._arrived.set()

    async def __aenter__(self) -> Generation:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    # Called by the engine's thread.

    def put(self, delta: Delta) -> None:
        """Hand over a delta."""
        self._call(self._take, delta)

    def end(self, error: BaseException | None = None) -> None:
        """Say that nothing more comes."""
        self._call(self._finish, error)

    def _call(self, function: Callable[..., None], argument: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, argument)
        except RuntimeError:
            logger.debug("the event loop of an answer is closed")

    def _take(self, delta: Delta) -> None:
        if not self._ended:
            self._deltas.append(delta)
            self._arrived.set()

    def _finish(self, error: BaseException | None) -> None:
        if not self._ended:
            self._ended, self._error = True, error
            self._arrived.set()
