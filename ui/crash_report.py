"""Sees to it that no exception goes unnoticed: the log has it, the window shows it, a crash leaves a trace."""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Any

log = logging.getLogger(__name__)


class CrashReport:
    """Installs the hooks; ``show`` is called on the main thread with one line for the user."""

    def __init__(self, trace_file: Path) -> None:
        self._show: Callable[[str], object] | None = None
        self.previous = trace_file.read_text(encoding="utf-8", errors="replace") if trace_file.exists() else ""
        if self.previous:
            log.error("the last run crashed:\n%s", self.previous)
        self._file: IO[str] = trace_file.open("w", encoding="utf-8")
        faulthandler.enable(self._file)
        sys.excepthook = self._on_exception
        threading.excepthook = self._on_thread_exception

    def watch_loop(self, loop: asyncio.AbstractEventLoop, show: Callable[[str], object]) -> None:
        """Take the event loop's unhandled exceptions too, and show everything from now on."""
        self._loop = loop
        self._show = show
        loop.set_exception_handler(self._on_loop_exception)

    def close(self) -> None:
        """Stop showing; the log goes on."""
        self._show = None

    def _on_exception(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, trace)
            return
        log.critical("unhandled exception", exc_info=(kind, error, trace))
        self._tell(error)

    def _on_thread_exception(self, arguments: threading.ExceptHookArgs) -> None:
        error = arguments.exc_value
        if error is None or isinstance(error, SystemExit):
            return
        name = arguments.thread.name if arguments.thread else "?"
        log.critical("unhandled exception in thread %s", name, exc_info=error)
        if self._show is not None:
            self._loop.call_soon_threadsafe(self._tell, error)

    def _on_loop_exception(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        log.error("unhandled: %s", context.get("message"), exc_info=error)
        if isinstance(error, BaseException):
            self._tell(error)

    def _tell(self, error: BaseException) -> None:
        if self._show is not None:
            self._show(str(error) or type(error).__name__)
