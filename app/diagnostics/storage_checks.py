"""Checks of the disk: room in the folder of models, and the compiled kernels."""

from __future__ import annotations

import shutil
from pathlib import Path

from app.diagnostics.finding import Finding, Group, Status, unavailable
from app.diagnostics.inspection import Inspection
from app.diagnostics.message import size, text

_GROUP = Group.STORAGE
_LITTLE_BYTES = 10_000_000_000
_LARGE_CACHE_BYTES = 1_000_000_000


def disk_space(inspection: Inspection) -> Finding:
    title = text("SystemCheck", "Free disk")
    why = text("SystemCheck", "Models take 0.1 to 100 GB, and a conversion needs the source and the result at once.")
    folder = next(
        (place for place in (inspection.model_folder, *inspection.model_folder.parents) if place.is_dir()), None
    )
    try:
        free_bytes = shutil.disk_usage(folder).free if folder else None
    except OSError:
        free_bytes = None
    if free_bytes is None:
        return unavailable("disk", _GROUP, title, text("SystemCheck", "the folder of models cannot be read"), why)
    value = text("SystemCheck", "{size} free in {folder}").format(size=size(free_bytes), folder=inspection.model_folder)
    if free_bytes >= _LITTLE_BYTES:
        return Finding("disk", _GROUP, title, Status.OK, value, why)
    advice = text("SystemCheck", "Make room, or keep models in another folder (Settings, Model folders).")
    return Finding(
        "disk", _GROUP, title, Status.ADVICE, value, why, advice, f'du -h "{inspection.model_folder}" | sort -h'
    )


def kernel_cache(inspection: Inspection) -> Finding:
    title = text("SystemCheck", "Compiled kernels")
    why = text(
        "SystemCheck", "They are compiled once for this CPU, when a model first needs them; later starts load them."
    )
    folder = inspection.kernel_cache
    found = [path for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []
    if not found:
        value = text("SystemCheck", "none yet: the first start compiles them")
        return Finding("kernel-cache", _GROUP, title, Status.OK, value, why)
    n_bytes = sum(_bytes(path) for path in found)
    value = text("SystemCheck", "{size} in {folder}").format(size=size(n_bytes), folder=folder)
    if n_bytes < _LARGE_CACHE_BYTES:
        return Finding("kernel-cache", _GROUP, title, Status.OK, value, why)
    advice = text("SystemCheck", "Sets of older versions may be deleted; what is needed is compiled again.")
    return Finding("kernel-cache", _GROUP, title, Status.ADVICE, value, why, advice, f'rm -r "{folder}"')


def _bytes(folder: Path) -> int:
    total = 0
    for path in folder.iterdir():
        try:
            total += path.stat().st_size
        except OSError:  # another program deletes what it replaced
            continue
    return total
