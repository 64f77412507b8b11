"""Takes recordings of the open model's work, and keeps them in the program's folder."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from app import paths
from ui.performance.bandwidth_panel import kept_limit

if TYPE_CHECKING:
    from app.engine_service import EngineService
    from app.recording import Recorder
    from app.settings import Settings

_COLLECT_EVERY_MS = 1000
_NAME = "%Y-%m-%d %H.%M.%S"


def recordings_dir() -> Path:
    """Where recordings are kept; made when missing."""
    folder = paths.data_dir() / "recordings"
    folder.mkdir(exist_ok=True)
    return folder


def measurements_dir() -> Path:
    """Where the results of the "measure" button are filed; made when missing."""
    folder = paths.data_dir() / "measurements"
    folder.mkdir(exist_ok=True)
    return folder


class Recordings(QObject):
    """``changed`` tells that a recording has begun, grown or ended."""

    changed = Signal()

    def __init__(self, service: EngineService, settings: Callable[[], Settings], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._service, self._settings = service, settings
        self._recorder: Recorder | None = None
        self._telemetry: object = None
        self._timer = QTimer(self)
        self._timer.setInterval(_COLLECT_EVERY_MS)
        self._timer.timeout.connect(self._collect)

    @property
    def is_recording(self) -> bool:
        return self._recorder is not None

    @property
    def n_steps(self) -> int:
        """Steps recorded so far."""
        return 0 if self._recorder is None else self._recorder.n_steps

    def start(self) -> bool:
        """Record from now on; False when no model is open."""
        from app.recording import Recorder  # noqa: PLC0415  (not needed for the first paint of the window)

        telemetry, info = self._service.telemetry, self._service.info
        if telemetry is None or info is None:
            return False
        settings = self._settings()
        facts = {
            "threads": settings.threads,
            "context_length": settings.context_length,
            "tier": info.tier,
            "sampling": settings.sampling.resolved(info.sampling.values if info.sampling is not None else None),
        }
        self._recorder, self._telemetry = Recorder(telemetry, info.name, facts), telemetry
        self._timer.start()
        self.changed.emit()
        return True

    def stop(self) -> Path:
        """End the recording and keep it. Raises RecordingError when nothing was done, OSError."""
        from app.recording import SUFFIX  # noqa: PLC0415

        assert self._recorder is not None
        recorder, self._recorder, self._telemetry = self._recorder, None, None
        self._timer.stop()
        self.changed.emit()
        label = datetime.now().strftime(_NAME)
        path = recordings_dir() / f"{label}{SUFFIX}"
        recorder.finish(label, kept_limit()).save(path)
        return path

    def _collect(self) -> None:
        if self._recorder is not None and self._service.telemetry is self._telemetry:
            self._recorder.collect()
            self.changed.emit()
