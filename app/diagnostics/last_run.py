"""What the newest answer shows of where its time went: the measured part of "why is it slow?"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.steps import Steps

LEAST_TOKENS = 8  # fewer say little about a machine
_MOST_TOKENS = 256
_LEAST_GROWTH = 1.2  # of the conversation, for what its length costs to be told from what every token costs


@dataclass(frozen=True, slots=True)
class LastRun:
    """The newest answered tokens, means unless it says otherwise; `shares` of the bands sum to 1.

    Prompt figures are of the newest answer alone. attention_growth: the part of attention's time that the
    conversation's length costs, from 0 to 1; None where the tokens seen were too much alike to tell.
    """

    n_tokens: int
    ms_per_token: float
    typical_ms: float  # the median token
    quiet_ms: float  # nine of ten tokens took longer
    shares: Mapping[str, float]  # of the wall time of decoding, by engine.steps.BANDS
    n_workers: int
    weight_bytes: float  # a token
    weight_bytes_per_s: float  # while the team worked
    loads: float  # experts read from the file, a token
    evictions: float
    kv_tokens: int  # positions in use at the end
    attention_growth: float | None
    prompt_tokens: int
    prompt_s: float
    answer_s: float  # after its prompt

    @property
    def team_share(self) -> float:
        """Of the wall time, in which the team walked the plan: all but sampling, disk and the engine's own thread."""
        return 1.0 - sum(self.shares[band] for band in ("sampling", "disk", "host"))

    @classmethod
    def of(cls, steps: Steps) -> LastRun | None:
        """Of the newest steps; None where they hold fewer than LEAST_TOKENS tokens of answers."""
        import numpy as np  # noqa: PLC0415  (not needed for the first paint of the window)

        from engine.steps import BANDS  # noqa: PLC0415

        tokens = steps.chosen(steps.is_decode & (steps.n_answered > 0)).chosen(slice(-_MOST_TOKENS, None))
        if len(tokens) < LEAST_TOKENS:
            return None
        wall_us, run_us = float(tokens.wall_us.sum()), float(tokens.run_us.sum())
        bands_us = tokens.bands_us.sum(0)
        prompt_tokens, prompt_s, answer_s = _newest_answer(steps)
        return cls(
            n_tokens=len(tokens),
            ms_per_token=wall_us / len(tokens) / 1e3,
            typical_ms=float(np.median(tokens.wall_us)) / 1e3,
            quiet_ms=float(np.percentile(tokens.wall_us, 10)) / 1e3,
            shares=dict(zip(BANDS, (bands_us / bands_us.sum()).tolist(), strict=True)),
            n_workers=int(tokens.busy_us.shape[1]),
            weight_bytes=float(tokens.weight_bytes.mean()),
            weight_bytes_per_s=float(tokens.weight_bytes.sum()) / max(run_us, 1.0) * 1e6,
            loads=float(tokens.expert_loads.mean()),
            evictions=float(tokens.expert_evictions.mean()),
            kv_tokens=_newest_positions(tokens),
            attention_growth=_attention_growth(tokens),
            prompt_tokens=prompt_tokens,
            prompt_s=prompt_s,
            answer_s=answer_s,
        )


def _newest_answer(steps: Steps) -> tuple[int, float, float]:
    """Tokens and seconds of its prompt, as far as the steps go back, and the seconds of its answer."""
    is_prompt = ~steps.is_decode
    if not is_prompt.any():
        return 0, 0.0, float(steps.wall_us.sum()) / 1e6
    last = int(is_prompt.nonzero()[0][-1])
    before = (~is_prompt[: last + 1]).nonzero()[0]
    first = int(before[-1]) + 1 if len(before) else 0
    read = slice(first, last + 1)
    return (
        int(steps.n_prompt[read].sum()),
        float(steps.wall_us[read].sum()) / 1e6,
        float(steps.wall_us[last + 1 :].sum()) / 1e6,
    )


def _newest_positions(tokens: Steps) -> int:
    """In use when the newest token was computed that did not end its answer: the end gives all of them back."""
    in_use = tokens.kv_tokens[tokens.kv_tokens > 0]
    return int(in_use[-1]) if len(in_use) else 0


def _attention_growth(tokens: Steps) -> float | None:
    """From a line through attention's time over the positions in use, fitted to the tokens by least squares."""
    import numpy as np  # noqa: PLC0415

    from engine.steps import BANDS  # noqa: PLC0415

    tokens = tokens.chosen(tokens.kv_tokens > 0)
    if len(tokens) < LEAST_TOKENS:
        return None
    positions = tokens.kv_tokens.astype(float)
    if positions.max() < _LEAST_GROWTH * max(positions.min(), 1.0):
        return None
    attention_us = tokens.bands_us[:, BANDS.index("attention")]
    per_position_us = float(np.polyfit(positions, attention_us, 1)[0])
    return min(max(per_position_us * float(positions.mean()) / max(float(attention_us.mean()), 1e-9), 0.0), 1.0)
