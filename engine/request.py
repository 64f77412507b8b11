"""One request's life from its prompt to its last token: sampling, whole characters, stop strings, the end."""

from __future__ import annotations

from dataclasses import dataclass

from engine.sampling import Sampler, SamplingParams
from engine.scheduler import Sequence
from engine.tokenizer import StreamDecoder


@dataclass(frozen=True, slots=True)
class Delta:
    """What a step adds to a request.

    token_id is None while the prompt is being read, and in a final delta that brings no token. `text` holds whole
    characters only and never a piece of a stop string. finish_reason: None while it goes on, then "stop" (an end token
    or a stop string), "length" (max_tokens), "context" (no room left), "cancelled" or "error" (`text` says which).
    """

    request_id: int
    token_id: int | None
    text: str
    finish_reason: str | None
    n_prefilled: int  # tokens of the prompt whose keys and values are there, reused ones included
    n_prompt_tokens: int
    n_reused: int


class StopStrings:
    """Holds text back while it could still become a stop string."""

    def __init__(self, stops: tuple[str, ...]) -> None:
        self._stops = stops
        self._held = ""

    def push(self, text: str) -> tuple[str, bool]:
        """The text that may be shown now, and whether a stop string has come (it and all after it are dropped)."""
        self._held += text
        found = [place for place in (self._held.find(stop) for stop in self._stops) if place >= 0]
        if found:
            shown, self._held = self._held[: min(found)], ""
            return shown, True
        n_held = max((self._overlap(stop) for stop in self._stops), default=0)
        shown, self._held = self._held[: len(self._held) - n_held], self._held[len(self._held) - n_held :]
        return shown, False

    def flush(self) -> str:
        shown, self._held = self._held, ""
        return shown

    def _overlap(self, stop: str) -> int:
        """The length of the longest end of the held text that begins `stop`."""
        longest = min(len(stop) - 1, len(self._held))
        return next((n for n in range(longest, 0, -1) if self._held.endswith(stop[:n])), 0)


class Request:
    """A sequence with its sampler and its text."""

    def __init__(
        self,
        sequence: Sequence,
        params: SamplingParams,
        sampler: Sampler,
        decoder: StreamDecoder,
        end_ids: frozenset[int],
        context_length: int,
    ) -> None:
        self.sequence, self.sampler = sequence, sampler
        self._params, self._decoder, self._end_ids = params, decoder, end_ids
        self._stops = StopStrings(params.stop)
        self._context_length = context_length

    @property
    def id(self) -> int:
        return self.sequence.request_id

    @property
    def n_completion(self) -> int:
        return len(self.sequence.tokens) - self.sequence.n_prompt

    def progress(self) -> Delta:
        """How far the prompt has been read."""
        return self._delta(None, "", None)

    def accept(self, token: int) -> Delta:
        """Take a sampled token into the sequence; the delta says whether it was the last."""
        self.sequence.tokens.append(token)
        if token in self._end_ids and not self._params.ignore_eos:
            return self._delta(token, self._rest(), "stop")
        text, stopped = self._stops.push(self._decoder.push(token))
        if stopped:
            return self._delta(token, text, "stop")
        if self._params.max_tokens is not None and self.n_completion >= self._params.max_tokens:
            return self._delta(token, text + self._rest(), "length")
        if len(self.sequence.tokens) >= self._context_length:
            return self._delta(token, text + self._rest(), "context")
        return self._delta(token, text, None)

    def end(self, reason: str, message: str = "") -> Delta:
        """The final delta of a request that ends between tokens."""
        return self._delta(None, message or self._rest(), reason)

    def _rest(self) -> str:
        text, stopped = self._stops.push(self._decoder.flush())
        return text if stopped else text + self._stops.flush()

    def _delta(self, token: int | None, text: str, reason: str | None) -> Delta:
        sequence = self.sequence
        n_prefilled = min(sequence.n_computed, sequence.n_prompt)
        return Delta(sequence.request_id, token, text, reason, n_prefilled, sequence.n_prompt, sequence.n_reused)
