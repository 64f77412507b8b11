"""Two recordings side by side: each figure's median and spread, and whether they really differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.recording import Recording

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_N_RESAMPLES = 400
_MOST_SAMPLES = 2000  # of a figure; a longer recording is thinned evenly
_SEED = 7


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure's samples: their median and quartiles."""

    n: int
    median: float
    low: float  # first quartile
    high: float  # third quartile


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure of both recordings. `change`: from the first's median to the second's, as a fraction.

    `interval`: the change's 95 % interval, from resampling; `is_clear`: it does not contain 0.
    """

    name: str
    unit: str
    first: Spread
    second: Spread
    change: float
    interval: tuple[float, float]

    @property
    def is_clear(self) -> bool:
        return self.interval[0] > 0 or self.interval[1] < 0


Samples = Callable[[Recording], "NDArray[np.float64]"]


def _ms_per_token(recording: Recording) -> NDArray[np.float64]:
    steps = recording.steps
    return steps.wall_us[steps.is_decode] / 1e3


def _prompt_rate(recording: Recording) -> NDArray[np.float64]:
    steps = recording.steps
    reading = ~steps.is_decode
    return steps.n_prompt[reading] / steps.wall_us[reading] * 1e6


def _first_token_ms(recording: Recording) -> NDArray[np.float64]:
    ttft_us: NDArray[np.float64] = recording.steps.ttft_us
    return ttft_us[ttft_us > 0] / 1e3


def _bandwidth(recording: Recording) -> NDArray[np.float64]:
    tokens = recording.steps.chosen(recording.steps.is_decode & (recording.steps.run_us > 0))
    rates: NDArray[np.float64] = tokens.weight_bytes / tokens.run_us / 1e3
    return rates


def _reads(recording: Recording) -> NDArray[np.float64]:
    steps = recording.steps
    loads: NDArray[np.float64] = steps.expert_loads[steps.is_decode].astype(float)
    return loads


def _band(name: str) -> Samples:
    def samples(recording: Recording) -> NDArray[np.float64]:
        import numpy as np  # noqa: PLC0415

        if name not in recording.bands:
            return np.zeros(0)
        steps = recording.steps
        band_us: NDArray[np.float64] = steps.bands_us[steps.is_decode, recording.bands.index(name)]
        return band_us / 1e3

    return samples


def compare(first: Recording, second: Recording) -> list[Difference]:
    """Every figure of which both have samples. Names are the engine's own words, for the window to translate."""
    figures: list[tuple[str, str, Samples]] = [
        ("time per token", "ms", _ms_per_token),
        ("time to first token", "ms", _first_token_ms),
        ("reading prompts", "tok/s", _prompt_rate),
        ("weights read", "GB/s", _bandwidth),
        ("experts read per token", "", _reads),
    ]
    figures += [(band, "ms", _band(band)) for band in first.bands]
    differences = []
    for name, unit, samples in figures:
        one, other = samples(first), samples(second)
        if len(one) and len(other) and (one.any() or other.any()):
            differences.append(difference(name, unit, one, other))
    return differences


def difference(name: str, unit: str, one: NDArray[np.float64], other: NDArray[np.float64]) -> Difference:
    """Of two sets of samples, neither empty. The interval is that of the bootstrap's percentiles, of the medians."""
    import numpy as np  # noqa: PLC0415

    random = np.random.default_rng(_SEED)
    one, other = _thinned(one), _thinned(other)
    before, after = (
        np.median(random.choice(samples, (_N_RESAMPLES, len(samples))), axis=1) for samples in (one, other)
    )
    changes = (after - before) / np.maximum(np.abs(before), 1e-12)
    low, high = np.percentile(changes, (2.5, 97.5))
    middle = float(np.median(one))
    change = (float(np.median(other)) - middle) / max(abs(middle), 1e-12)
    return Difference(name, unit, _spread(one), _spread(other), change, (float(low), float(high)))


def _thinned(samples: NDArray[np.float64]) -> NDArray[np.float64]:
    return samples[:: -(-len(samples) // _MOST_SAMPLES)]


def _spread(samples: NDArray[np.float64]) -> Spread:
    import numpy as np  # noqa: PLC0415

    low, median, high = (float(value) for value in np.percentile(samples, (25, 50, 75)))
    return Spread(len(samples), median, low, high)
