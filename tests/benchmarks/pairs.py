"""Statistics of paired measurements: what changes between the two of a pair, with its uncertainty."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from random import Random

N_RESAMPLES = 4000
SEED = 11


@dataclass(frozen=True, slots=True)
class Cost:
    """By how much the second of each pair is lower than the first, as fractions of the first."""

    median: float
    low: float  # of the median's 95 % interval, from resampling the pairs
    high: float

    @classmethod
    def of(cls, pairs: list[tuple[float, float]]) -> Cost:
        """Of (without, with) pairs, at least one."""
        losses = [1 - second / first for first, second in pairs]
        random = Random(SEED)
        medians = sorted(statistics.median(random.choices(losses, k=len(losses))) for _ in range(N_RESAMPLES))
        return cls(statistics.median(losses), medians[N_RESAMPLES * 25 // 1000], medians[N_RESAMPLES * 975 // 1000 - 1])

    def __str__(self) -> str:
        return f"{self.median:.2%} (95 % within {self.low:.2%} to {self.high:.2%})"
