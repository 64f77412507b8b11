"""Decides before each run whether experts are worth asking for ahead of their turn, and counts what came of it."""

from __future__ import annotations

from dataclasses import dataclass

from engine.experts.disk_use import DiskUse

_JUDGED_EXPERTS = 64  # after so many that were asked for it is looked how many of them were needed
_LEAST_SHARE = 0.5  # of them; else the disk is kept busy with the wrong ones. Measured: 0.8 gains, 0.4 loses
_PAUSE_RUNS = 256  # before it is tried again


@dataclass(frozen=True, slots=True)
class ForesightSums:
    """Sums over all layers since the model was opened."""

    foreseeable: int  # different experts of a run's layers for which something was foreseen
    foreseen: int  # of them those that had been foreseen
    asked: int  # experts that the disk was asked for ahead
    asked_bytes: int
    used: int  # of those asked for: needed when their layer's turn came
    unused: int


_NOTHING = ForesightSums(0, 0, 0, 0, 0, 0)


class Foresight:
    """One model's. `sums` are the six cells that the kernel `foresee` adds to; None where the plan has none of it."""

    def __init__(self, prefetch: str, sums: memoryview | None) -> None:
        self._prefetch, self._sums = prefetch, sums
        self._disk_use = DiskUse()
        self._judged_used = self._judged_unused = 0
        self._n_paused = 0

    @property
    def sums(self) -> ForesightSums:
        return ForesightSums(*self._sums.tolist()) if self._sums else _NOTHING

    @property
    def is_possible(self) -> bool:
        """Whether the plan can foresee anything at all."""
        return self._sums is not None

    def reads_disk(self) -> bool:
        """Whether experts come from the disk, as far as is known. To be asked once before each run."""
        return self._disk_use.is_recent()

    def is_of_use(self, reads_disk: bool) -> bool:
        """Whether the run that is about to begin should ask for experts ahead."""
        if self._sums is None or self._prefetch == "always":
            return self._sums is not None
        return reads_disk and self._is_often_right()

    def _is_often_right(self) -> bool:
        if self._n_paused:
            self._n_paused -= 1
            return False
        sums = self.sums
        n_used, n_unused = sums.used - self._judged_used, sums.unused - self._judged_unused
        if n_used + n_unused >= _JUDGED_EXPERTS:
            self._judged_used, self._judged_unused = sums.used, sums.unused
            if n_used < _LEAST_SHARE * (n_used + n_unused):
                self._n_paused = _PAUSE_RUNS
        return not self._n_paused
