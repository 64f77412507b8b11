"""Long work as an object: its phase, progress, rate and time left, and a way to cancel it.

The same job feeds a progress bar in the window, one in the terminal, and a test.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any, TypeVar, cast

from engine.errors import ColibriError

logger = logging.getLogger(__name__)

T = TypeVar("T")
Listener = Callable[["Job"], None]

_RATE_WINDOW_S = 5.0
_RATE_SAMPLES = 256
_MOST_LINES = 2000


class JobState(StrEnum):
    """The life of a job; the last three are ends."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class JobCancelledError(ColibriError):
    """The job was cancelled by its user."""


class Job:
    """One piece of long work. `report`, `cancel` and `check` may be called from any thread.

    Listeners are called with the job after each change: in the thread that reports while no event loop runs the job,
    else on that loop's thread, several changes at once becoming one call.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.state = JobState.WAITING
        self.phase = ""
        self.done_bytes: int | None = None
        self.total_bytes: int | None = None
        self.error: BaseException | None = None
        self._fraction: float | None = None
        self._listeners: list[Listener] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._notifying = False
        self._lock = threading.Lock()
        self._cancel = threading.Event()
        self.started_s: float | None = None  # on time.monotonic's clock
        self._lines: deque[str] = deque(maxlen=_MOST_LINES)
        self._n_lines = 0
        self._samples: deque[tuple[float, float]] = deque(maxlen=_RATE_SAMPLES)  # (seconds, amount) in this phase

    # What a progress bar shows.

    @property
    def fraction(self) -> float | None:
        """How much of the present phase is done, 0 to 1; None while that is unknown."""
        if self._fraction is not None:
            return self._fraction
        if self.done_bytes is not None and self.total_bytes:
            return min(1.0, self.done_bytes / self.total_bytes)
        return None

    @property
    def rate_bytes_per_second(self) -> float | None:
        """The rate over the last seconds; None while nothing in bytes was measured."""
        return None if self.done_bytes is None else self._rate()

    @property
    def seconds_left(self) -> float | None:
        """What the present phase will still take at the present rate; None while that is unknown."""
        rate = self._rate()
        if not rate:
            return None
        if self.done_bytes is not None and self.total_bytes:
            return max(0.0, (self.total_bytes - self.done_bytes) / rate)
        return None if self._fraction is None else max(0.0, (1.0 - self._fraction) / rate)

    @property
    def is_finished(self) -> bool:
        """Whether the job has come to one of its ends."""
        return self.state in (JobState.DONE, JobState.FAILED, JobState.CANCELLED)

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked the job to stop; it may still be on its way to do so."""
        return self._cancel.is_set()

    @property
    def seconds_so_far(self) -> float:
        """Since the job began."""
        return 0.0 if self.started_s is None else time.monotonic() - self.started_s

    def lines_after(self, n_seen: int) -> tuple[list[str], int]:
        """The log's lines after the first `n_seen`, as far as they are kept, and how many there were in all."""
        with self._lock:
            n_new = min(self._n_lines - n_seen, len(self._lines))
            return list(self._lines)[len(self._lines) - n_new :], self._n_lines

    # What the work calls.

    def report(
        self,
        phase: str | None = None,
        *,
        fraction: float | None = None,
        done_bytes: int | None = None,
        total_bytes: int | None = None,
    ) -> None:
        """Say how far the work is. A new `phase` forgets the figures of the one before."""
        with self._lock:
            if phase is not None and phase != self.phase:
                self.phase = phase
                self._fraction = self.done_bytes = self.total_bytes = None
                self._samples.clear()
                self._log(phase)
            if total_bytes is not None:
                self.total_bytes = total_bytes
            if fraction is not None:
                self._fraction = min(1.0, max(0.0, fraction))
            if done_bytes is not None:
                self.done_bytes = done_bytes
            amount = float(self.done_bytes) if self.done_bytes is not None else self._fraction
            if amount is not None:
                self._samples.append((time.monotonic(), amount))
        self._notify()

    def say(self, text: str) -> None:
        """A line for the log: what was just done, with its figures."""
        with self._lock:
            self._log(text)
        self._notify()

    def _log(self, text: str) -> None:
        self._lines.append(f"{self.seconds_so_far:6.1f} s  {text}")
        self._n_lines += 1

    def check(self) -> None:
        """Raise JobCancelledError when the job was asked to stop; long work calls this now and then."""
        if self._cancel.is_set():
            raise JobCancelledError(f"{self.name}: cancelled")

    # What its user calls.

    def cancel(self) -> None:
        """Ask the work to stop; it ends at its next `check`."""
        self._cancel.set()
        self._notify()

    def on_change(self, listener: Listener) -> Callable[[], None]:
        """Call `listener(job)` after each change; returns a function that ends this."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    async def run(self, work: Callable[[Job], Awaitable[T]] | Callable[[Job], T]) -> T:
        """Run `work(job)` to its end: a coroutine function on this loop, another function in a thread of its own."""
        self._loop = asyncio.get_running_loop()
        self._start()
        try:
            if inspect.iscoroutinefunction(work):
                result = await cast(Callable[[Job], Awaitable[T]], work)(self)
            else:
                result = await _in_thread(cast(Callable[[Job], T], work), self)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError):
                self._cancel.set()
            self._end(error)
            raise
        self._end(None)
        return result

    def run_blocking(self, work: Callable[[Job], T]) -> T:
        """Run `work(job)` to its end in this thread, for programs without an event loop."""
        self._start()
        try:
            result = work(self)
        except BaseException as error:
            self._end(error)
            raise
        self._end(None)
        return result

    def _start(self) -> None:
        if self.state is not JobState.WAITING:
            raise RuntimeError(f"{self.name}: a job runs once, and this one is {self.state}")
        self.state = JobState.RUNNING
        self.started_s = time.monotonic()
        self._notify()

    def _end(self, error: BaseException | None) -> None:
        self.error = error
        if error is None:
            self.state = JobState.DONE
        elif isinstance(error, JobCancelledError | asyncio.CancelledError | KeyboardInterrupt):
            self.state = JobState.CANCELLED
        else:
            self.state = JobState.FAILED
        self._notify()

    def _rate(self) -> float | None:
        with self._lock:
            samples = list(self._samples)
        if not samples:
            return None
        newest_s, newest = samples[-1]
        first = next(number for number, sample in enumerate(samples) if newest_s - sample[0] <= _RATE_WINDOW_S)
        if first == len(samples) - 1 and first:  # reports are rare: the one before is the best there is
            first -= 1
        oldest_s, oldest = samples[first]
        return (newest - oldest) / (newest_s - oldest_s) if newest_s > oldest_s else None

    def _notify(self) -> None:
        if self._loop is None:
            self._call_listeners()
            return
        with self._lock:
            if self._notifying:
                return
            self._notifying = True
        try:
            self._loop.call_soon_threadsafe(self._call_listeners)
        except RuntimeError:  # the loop was closed under the work: nobody is left to tell
            logger.debug("%s: the event loop is gone", self.name)

    def _call_listeners(self) -> None:
        self._notifying = False
        for listener in list(self._listeners):
            listener(self)


async def _in_thread(work: Callable[[Job], T], job: Job) -> T:
    """Run `work(job)` in a daemon thread. When the awaiting task is cancelled, the job is, and its end is awaited."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)

    def body() -> None:
        result, error = None, None
        try:
            result = work(job)
        except BaseException as caught:
            error = caught
        try:
            loop.call_soon_threadsafe(settle, result, error)
        except RuntimeError:
            logger.warning("%s ended after its event loop did", job.name, exc_info=error)

    threading.Thread(target=body, name=f"job: {job.name}", daemon=True).start()
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        job.cancel()
        await asyncio.wait([future])
        if not future.cancelled():
            future.exception()  # seen: the cancellation is what the caller hears of
        raise
