"""Looks at this very machine: the real files, folders and settings."""

from __future__ import annotations

from pathlib import Path

from app import paths
from app.diagnostics.inspection import Host, Inspection, ModelNeeds
from engine.hardware.system_files import SystemFiles


def inspect_here(model: ModelNeeds | None = None, model_folder: Path | None = None) -> Inspection:
    """An inspection of this machine, as it is now. Takes some 100 ms the first time: not on the window's thread."""
    from app.machine_speeds import speeds_file  # noqa: PLC0415
    from engine.kernels.library import cache_root  # noqa: PLC0415  (loads the compiler's library)

    folder = model_folder or paths.models_dir()
    return Inspection(SystemFiles(), Host.live(), folder, cache_root(), model, speeds_file())
