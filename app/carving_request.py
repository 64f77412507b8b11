"""What is asked of a carving, and the place where it grows until its user has seen what it costs."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from app import paths
from app.remembered import Remembered

PASSAGES = 12
_FOLDER_ENDING = ".carving"


@dataclass(frozen=True, slots=True)
class CarvingRequest:
    """As the command takes it. `text`: the user's own for calibration. `top_k`: keep this number without asking.

    `name`: what the source is called, for people; "": as its file says.
    """

    source: str
    target: str
    n_experts: int = 16
    n_shared: int = 4
    n_dense_layers: int = 2
    text: str | None = None
    passages: int = PASSAGES
    top_k: int | None = None
    name: str = ""

    @property
    def n_routed(self) -> int:
        return self.n_experts - self.n_shared

    @property
    def folder(self) -> Path:
        """Beside the target: what is made before it is kept."""
        target = Path(self.target).absolute()
        return target.with_name(f".{target.name}{_FOLDER_ENDING}")


_remembered = Remembered(CarvingRequest, "carving.json")


def remember(request: CarvingRequest) -> None:
    """Write down what is about to be done. Raises OSError."""
    _remembered.remember(request)


def forget() -> None:
    """The carving was kept or given up."""
    _remembered.forget()


def unfinished() -> CarvingRequest | None:
    """The carving that was interrupted; None if there is none, or it cannot be taken up any more."""
    request = _remembered.recall()
    is_usable = request is not None and Path(request.source).is_file() and not Path(request.target).exists()
    return request if is_usable else None


def discard(request: CarvingRequest) -> None:
    """Give a carving up, and take away what there is of it."""
    shutil.rmtree(request.folder, ignore_errors=True)
    forget()


def demonstration(source: Path, name: str) -> CarvingRequest:
    """One click's: ten of twelve routed experts, so that there is something to route, and the answers are readable."""
    stem = source.name.removesuffix(".gguf")
    target = paths.models_dir() / f"{stem}-carved.gguf"
    return CarvingRequest(str(source), str(target), top_k=10, name=name)
