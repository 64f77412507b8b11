"""Which experts served an answer, token by token: kept for the newest answers, and looked into by words of them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from engine import Delta
    from engine.telemetry import Telemetry

    Array = np.ndarray[Any, Any]

_MOST_ANSWERS = 48
_COLLECT_EVERY = 64  # tokens; the telemetry's ring holds several hundred


@dataclass(frozen=True, slots=True)
class Balance:
    """How a layer's calls spread over its experts, means over the layers; experts are (layer, expert, share of calls).

    evenness: the entropy of the calls divided by that of equal ones: 1 is perfectly even, 0 always the same expert.
    """

    evenness: float
    n_used: int  # experts that were called at all, over all layers
    n_experts: int  # over all layers
    most: tuple[tuple[int, int, float], ...]
    least: tuple[tuple[int, int, float], ...]  # of those that were called


@dataclass(frozen=True, slots=True)
class AnswerRoutes:
    """One answer. text: all that its tokens brought; `ends[i]` is where in it token i's text ends."""

    message_id: int
    text: str
    ends: Array  # (n_tokens,) int64
    routes: Array  # (n_tokens, n_moe_layers, top_k) int16; -1 where the step served other answers, too
    moe_layers: tuple[int, ...]
    n_experts: int

    @property
    def n_tokens(self) -> int:
        return len(self.ends)

    @property
    def n_known(self) -> int:
        """Tokens whose experts are known."""
        return int((self.routes[:, 0, 0] >= 0).sum()) if self.n_tokens else 0

    def tokens_of(self, words: str) -> Array:
        """(n_tokens,) bool: which tokens wrote a part of `words`, wherever they stand in the text; "": all tokens.

        Upper and lower case are not told apart.
        """
        import numpy as np  # noqa: PLC0415  (not needed for the first paint of the window)

        chosen = np.zeros(self.n_tokens, bool)
        if not words:
            return ~chosen
        starts = np.concatenate([[0], self.ends[:-1]])
        text, wanted = self.text.lower(), words.lower()
        place = text.find(wanted)
        while place >= 0:
            chosen |= (starts < place + len(wanted)) & (self.ends > place)
            place = text.find(wanted, place + 1)
        return chosen

    def counts(self, words: str = "") -> Array:
        """(n_moe_layers, n_experts) int64: calls by the tokens of `words`."""
        import numpy as np  # noqa: PLC0415

        routes = self.routes[self.tokens_of(words)]
        counts = np.zeros((len(self.moe_layers), self.n_experts), np.int64)
        for row in range(len(self.moe_layers)):
            called = routes[:, row].ravel()
            counts[row] = np.bincount(called[called >= 0], minlength=self.n_experts)
        return counts


def balance_of(counts: Array, moe_layers: Sequence[int], n_shown: int = 3) -> Balance | None:
    """Of calls (n_moe_layers, n_experts); None when there are none."""
    import numpy as np  # noqa: PLC0415

    totals = counts.sum(1, keepdims=True)
    if not counts.size or not totals.any():
        return None
    shares = counts / np.maximum(totals, 1)
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    evenness = -(shares * logs).sum(1)[totals[:, 0] > 0] / max(np.log(counts.shape[1]), 1e-12)
    order = np.argsort(shares, axis=None, kind="stable")
    called = order[shares.ravel()[order] > 0]

    def named(places: Array) -> tuple[tuple[int, int, float], ...]:
        found = (divmod(int(place), counts.shape[1]) for place in places)
        return tuple((moe_layers[row], expert, float(shares[row, expert])) for row, expert in found)

    return Balance(
        evenness=float(evenness.mean()),
        n_used=int((counts > 0).sum()),
        n_experts=counts.size,
        most=named(called[: -n_shown - 1 : -1]),
        least=named(called[:n_shown]),
    )


def likeness(first: Array, second: Array) -> float:
    """From 0 (no expert in common) to 1: the calls that both have in common, mean over the layers; of equal shapes."""
    import numpy as np  # noqa: PLC0415

    one, other = (counts / np.maximum(counts.sum(1, keepdims=True), 1) for counts in (first, second))
    return float(np.minimum(one, other).sum(1).mean())


class RouteTrace:
    """Follows one answer while it is written. `take` gets its deltas in order."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._pieces: list[str] = []
        self._ends: list[int] = []
        self._steps: list[int] = []
        self._length = 0
        self._known: list[tuple[Array, Array]] = []  # numbers of steps and their routes
        self._n_collected = 0

    def take(self, delta: Delta) -> None:
        """Note a token's step, and the text that it brought."""
        if delta.kind == "prompt":
            return
        if delta.text:
            self._pieces.append(delta.text)
            self._length += len(delta.text)
        if delta.token_id is not None:
            self._steps.append(delta.step)
            self._ends.append(self._length)
        elif self._ends:
            self._ends[-1] = self._length  # what a token's further deltas bring is its text, too
        if len(self._steps) - self._n_collected >= _COLLECT_EVERY:
            self._collect()

    def _collect(self) -> None:
        import numpy as np  # noqa: PLC0415

        wanted = self._steps[self._n_collected :]
        self._n_collected = len(self._steps)
        if not wanted:
            return
        steps = self._telemetry.steps(wanted[0] - 1)
        alone = steps.chosen((steps.n_sequences == 1) & np.isin(steps.numbers, wanted))
        self._known.append((alone.numbers, alone.routes))

    def finish(self, message_id: int) -> AnswerRoutes | None:
        """All that was noted; None for an answer without tokens."""
        import numpy as np  # noqa: PLC0415

        self._collect()
        if not self._steps:
            return None
        telemetry = self._telemetry
        routes = np.full((len(self._steps), *telemetry.last_experts.shape), -1, np.int16)
        place_of = {step: place for place, step in enumerate(self._steps)}
        for numbers, known in self._known:
            for number, route in zip(numbers.tolist(), known, strict=True):
                routes[place_of[number]] = route
        return AnswerRoutes(
            message_id,
            "".join(self._pieces),
            np.array(self._ends, np.int64),
            routes,
            tuple(telemetry.moe_layers),
            int(telemetry.expert_counts.shape[1]),
        )


class RouteBook:
    """The routes of the newest answers, by their message. `on_change` listeners are told when one was added."""

    def __init__(self) -> None:
        self._answers: OrderedDict[int, AnswerRoutes] = OrderedDict()
        self._listeners: list[Callable[[], None]] = []

    def keep(self, answer: AnswerRoutes) -> None:
        """Add an answer; the oldest gives way."""
        self._answers[answer.message_id] = answer
        self._answers.move_to_end(answer.message_id)
        while len(self._answers) > _MOST_ANSWERS:
            self._answers.popitem(last=False)
        for listener in list(self._listeners):
            listener()

    def of(self, message_id: int) -> AnswerRoutes | None:
        """The routes of an answer, if it was written in this session by a model with experts."""
        return self._answers.get(message_id)

    def answers(self) -> list[AnswerRoutes]:
        """All that are kept, the newest first."""
        return list(reversed(self._answers.values()))

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener()` after each answer; returns a function that ends this."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None
