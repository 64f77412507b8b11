"""A recording of what the engine did: its steps, the model, the machine; one file, opened again later.

The file is a NumPy archive (.npz): `about`, a JSON text, and an array for each field of engine.steps.Steps.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.machine_state import MachineState
from engine.errors import ColibriError

if TYPE_CHECKING:
    from engine.steps import Steps
    from engine.telemetry import Telemetry

SUFFIX = ".colibri-recording"
VERSION = 1
_MOST_BYTES = 1 << 30  # of one array, unpacked


class RecordingError(ColibriError):
    """A file that is no recording, or is damaged, or is of a newer version."""


@dataclass(frozen=True, slots=True)
class Recording:
    """Steps with what they were made with. `bands` names the columns of `steps.bands_us`."""

    label: str
    model: str
    started_at: datetime
    machine: MachineState
    settings: Mapping[str, Any]  # the engine's configuration, as far as JSON can hold it
    bands: tuple[str, ...]
    moe_layers: tuple[int, ...]
    n_experts: int
    weight_limit_bytes_per_s: float  # the measured limit of the memory; 0: not measured
    steps: Steps

    # What panels read, as they read an engine's telemetry.

    @property
    def n_steps(self) -> int:
        return int(self.steps.numbers[-1]) if len(self.steps) else 0

    @property
    def n_workers(self) -> int:
        return int(self.steps.busy_us.shape[1])

    def steps_after(self, after: int) -> Steps:
        """Those with a number above `after`."""
        return self.steps.chosen(self.steps.numbers > after)

    def save(self, path: Path) -> None:
        """Write the file beside `path` and move it into place whole. Raises OSError."""
        import numpy as np  # noqa: PLC0415 - the window's first paint need not wait for it

        about = {
            "version": VERSION,
            "label": self.label,
            "model": self.model,
            "started_at": self.started_at.isoformat(),
            "machine": self.machine.to_json(),
            "settings": dict(self.settings),
            "bands": self.bands,
            "moe_layers": self.moe_layers,
            "n_experts": self.n_experts,
            "weight_limit_bytes_per_s": self.weight_limit_bytes_per_s,
        }
        arrays = {field.name: getattr(self.steps, field.name) for field in fields(self.steps)}
        temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        try:
            with temporary.open("wb") as target:
                np.savez_compressed(target, about=np.array(json.dumps(about)), **arrays)
                target.flush()
                os.fsync(target.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: Path) -> Recording:
        """Raises RecordingError, and OSError when the file cannot be read."""
        import numpy as np  # noqa: PLC0415

        try:
            _check_sizes(path)
            with np.load(path, allow_pickle=False) as archive:
                about = json.loads(str(archive["about"]))
                if about["version"] > VERSION:
                    raise RecordingError(
                        f"{path}: this recording is of version {about['version']}, this program knows versions up to "
                        f"{VERSION}. Update Colibri to open it."
                    )
                return cls._of(about, archive)
        except (ValueError, KeyError, TypeError, zipfile.BadZipFile, EOFError, AttributeError) as error:
            raise RecordingError(
                f"{path}: expected a recording of Colibri, found something else or a damaged file ({error}). "
                "Choose another file."
            ) from None

    @classmethod
    def _of(cls, about: Mapping[str, Any], archive: Mapping[str, Any]) -> Recording:
        import numpy as np  # noqa: PLC0415

        from engine.steps import FORESIGHT, Steps  # noqa: PLC0415

        numbers = archive["numbers"]
        unknown = {name: np.zeros(len(numbers), np.int64) for name in FORESIGHT if name not in archive}  # until 2026
        names = (field.name for field in fields(Steps))
        steps = Steps(*(unknown[name] if name in unknown else archive[name] for name in names))
        bands, moe_layers = tuple(about["bands"]), tuple(about["moe_layers"])
        n = len(steps.numbers)
        lengths = {field.name: len(getattr(steps, field.name)) for field in fields(Steps)}
        if set(lengths.values()) != {n} or steps.bands_us.shape != (n, len(bands)) or steps.busy_us.ndim != 2:
            raise ValueError(f"its arrays do not fit each other: {lengths}")
        if steps.routes.ndim != 3 or steps.routes.shape[1] != len(moe_layers):
            raise ValueError(f"routes of shape {steps.routes.shape} for {len(moe_layers)} layers with experts")
        return cls(
            label=str(about["label"]),
            model=str(about["model"]),
            started_at=datetime.fromisoformat(about["started_at"]),
            machine=MachineState.from_json(about["machine"]),
            settings=dict(about["settings"]),
            bands=bands,
            moe_layers=moe_layers,
            n_experts=int(about["n_experts"]),
            weight_limit_bytes_per_s=float(about["weight_limit_bytes_per_s"]),
            steps=steps,
        )


def _check_sizes(path: Path) -> None:
    """A small file must not unpack to more than memory holds."""
    with zipfile.ZipFile(path) as archive:
        for item in archive.infolist():
            if item.file_size > _MOST_BYTES:
                raise ValueError(f"{item.filename} takes {item.file_size} bytes, more than {_MOST_BYTES}")


class Recorder:
    """Collects the steps of an engine from now on. `collect` must be called every few seconds: the ring is finite."""

    def __init__(
        self, telemetry: Telemetry, model: str, settings: Mapping[str, Any], *, machine: MachineState | None = None
    ) -> None:
        self._telemetry, self._model, self._settings = telemetry, model, settings
        self._machine = machine or MachineState.read()
        self._started_at = datetime.now().astimezone()
        self._seen = telemetry.n_steps
        self._first = self._seen
        self._pieces: list[Steps] = []

    @property
    def n_steps(self) -> int:
        """Steps recorded so far."""
        return self._seen - self._first

    def collect(self) -> None:
        """Take what is new."""
        steps = self._telemetry.steps(self._seen)
        if len(steps):
            self._pieces.append(steps)
            self._seen = int(steps.numbers[-1])

    def finish(self, label: str, weight_limit_bytes_per_s: float = 0.0) -> Recording:
        """Everything since the beginning. Raises RecordingError when nothing was done in that time."""
        from engine.steps import BANDS  # noqa: PLC0415

        self.collect()
        if not self._pieces:
            raise RecordingError("Nothing was recorded: ask the model something while the recording runs.")
        first, *others = self._pieces
        steps = first
        for piece in others:
            steps = steps.joined(piece, len(steps) + len(piece))
        telemetry = self._telemetry
        return Recording(
            label=label,
            model=self._model,
            started_at=self._started_at,
            machine=self._machine,
            settings=self._settings,
            bands=BANDS,
            moe_layers=tuple(telemetry.moe_layers),
            n_experts=int(telemetry.expert_counts.shape[1]),
            weight_limit_bytes_per_s=weight_limit_bytes_per_s,
            steps=steps,
        )
