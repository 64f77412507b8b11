"""The resident weights on their way into memory: by the team, in a thread of its own, while others make ready."""

from __future__ import annotations

import threading
from collections.abc import Callable

from engine.loader import Loader
from engine.models.weights import Packing


class _Stopped(Exception):
    """The model is being closed."""


class Loading:
    """Begins at once. The team belongs to it until `wait` has returned True."""

    def __init__(self, loader: Loader, packings: list[Packing], rest: Callable[[], None]) -> None:
        """`rest` is called by the same thread when all is packed, while the team is still its own."""
        self.fraction = 0.0  # of the bytes, packed so far
        self._stops = False
        self._failure: BaseException | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(
            target=self._work, args=(loader, packings, rest), name="colibri-loading", daemon=True
        )
        self._thread.start()

    def wait(self, seconds: float | None = None) -> bool:
        """Whether everything is packed, after at most `seconds`. Raises what went wrong, each time."""
        is_over = self._over.wait(seconds)
        if self._failure:
            raise self._failure
        return is_over

    def close(self) -> None:
        """End early if it is not over; the team is idle afterwards."""
        self._stops = True
        self._thread.join()

    def _work(self, loader: Loader, packings: list[Packing], rest: Callable[[], None]) -> None:
        try:
            loader.load(packings, self._note)
            rest()
        except _Stopped:
            pass
        except BaseException as failure:
            self._failure = failure
        finally:
            self._over.set()

    def _note(self, fraction: float) -> None:
        self.fraction = fraction
        if self._stops:
            raise _Stopped
