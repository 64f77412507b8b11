"""One request's life from its prompt to its last token: sampling, whole characters, stop strings, the end."""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.chat import AnswerKind, AnswerParser, Piece, ToolCall
from engine.constraint import Constraint
from engine.sampling import Sampler, SamplingParams
from engine.scheduler import Sequence
from engine.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Delta:
    """What a step adds to a request; one token may bring several.

    `kind`: "prompt" while the prompt is being read (token_id is None and text ""), else what `text` is: "answer" or
    "reasoning"; "tool_call" brings a `call` and no text. Only requests with an AnswerParser tell these apart; for the
    others everything is the answer. `text` holds whole characters only and never a piece of a stop string. token_id is
    None also in deltas beyond a token's first, and in a final one that brings no token. finish_reason: None while it
    goes on, then "stop" (an end token or a stop string), "tool_calls" (the same, and there were calls), "length"
    (max_tokens), "context" (no room left), "cancelled" or "error" (`text` says which). `problem` says why something
    that looked like a call is text. `step`: the number of the step in the telemetry that chose the token; 0 for none.
    """

    request_id: int
    token_id: int | None
    text: str
    finish_reason: str | None
    n_prefilled: int  # tokens of the prompt whose keys and values are there, reused ones included
    n_prompt_tokens: int
    n_reused: int
    kind: str = "answer"
    call: ToolCall | None = None
    problem: str = ""
    step: int = 0


class StopStrings:
    """Holds text back while it could still become a stop string."""

    def __init__(self, stops: tuple[str, ...]) -> None:
        self._stops = stops
        self._held = ""

    def push(self, text: str) -> tuple[str, bool]:
        """The text that may be shown now, and whether a stop string has come (it and all after it are dropped)."""
        if not self._stops:
            return text, False
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


_NOTHING = Piece(AnswerKind.ANSWER)


class PlainText:
    """The AnswerParser of requests that want all text as it comes."""

    is_answering = True
    is_divided_by_control = False

    def push(self, text: str) -> list[Piece]:
        """The text itself."""
        return [Piece(AnswerKind.ANSWER, text)] if text else []

    def push_control(self, token: str) -> list[Piece]:
        """Nothing: control tokens are hidden."""
        del token
        return []

    def finish(self) -> list[Piece]:
        """Nothing: no text was held back."""
        return []


class Request:
    """A sequence with its sampler and its text."""

    def __init__(
        self,
        sequence: Sequence,
        params: SamplingParams,
        sampler: Sampler,
        tokenizer: Tokenizer,
        context_length: int,
        parser: AnswerParser | None = None,
    ) -> None:
        self.sequence, self.sampler = sequence, sampler
        self._params, self._tokenizer = params, tokenizer
        self._decoder = tokenizer.stream(skip_special=False)  # see _read
        self._stops = StopStrings(params.stop)
        self._parser: AnswerParser = parser or PlainText()
        self.constraint: Constraint | None = None  # what the answer is held to; set before the first step
        self._context_length = context_length
        self._has_called = False
        self.step = 0  # the step under way, as the telemetry counts

    @property
    def id(self) -> int:
        return self.sequence.request_id

    @property
    def n_completion(self) -> int:
        return len(self.sequence.tokens) - self.sequence.n_prompt

    def progress(self) -> Delta:
        """How far the prompt has been read."""
        return self._delta(None, _NOTHING, None, kind="prompt")

    def choose(self, logits: int) -> int:
        """The next token for the row of logits at the address `logits`. Raises NumericalError, ConstraintError."""
        constraint = self.constraint
        if constraint is None or not self._parser.is_answering:
            return self.sampler.choose(logits)
        token = self.sampler.choose(logits, constraint.allowed())
        constraint.accept(token)
        return token

    def accept(self, token: int) -> list[Delta]:
        """Take a sampled token into the sequence; the last delta says whether it was the last."""
        self.sequence.tokens.append(token)
        if token in self._tokenizer.end_ids and not self._params.ignore_eos:
            return self._deltas(token, self._rest(), "stop")
        pieces, stopped = self._read(token)
        is_complete = self.constraint is not None and self.constraint.is_complete
        reason = "stop" if stopped or is_complete else self._limit()
        if reason is not None:
            pieces += self._rest(stopped=stopped)
        return self._deltas(token, pieces, reason)

    def end(self, reason: str, message: str = "") -> list[Delta]:
        """The final deltas of a request that ends between tokens."""
        if message:
            return [self._delta(None, Piece(AnswerKind.ANSWER, message), reason)]
        pieces = [replace(piece, problem="") for piece in self._rest()]
        return self._deltas(None, pieces, reason)

    def _limit(self) -> str | None:
        if self._params.max_tokens is not None and self.n_completion >= self._params.max_tokens:
            return "length"
        return "context" if len(self.sequence.tokens) >= self._context_length else None

    def _read(self, token: int) -> tuple[list[Piece], bool]:
        """What a token adds, and whether a stop string has come."""
        if self._tokenizer.is_special(token):
            held = self._stops.flush() if self._parser.is_divided_by_control else ""
            return self._parser.push(held) + self._parser.push_control(self._tokenizer.token_text(token)), False
        text, stopped = self._stops.push(self._decoder.push(token))
        return self._parser.push(text), stopped

    def _rest(self, *, stopped: bool = False) -> list[Piece]:
        """What was held back."""
        text = ""
        if not stopped:
            text, stopped = self._stops.push(self._decoder.flush())
            text += "" if stopped else self._stops.flush()
        return self._parser.push(text) + self._parser.finish()

    def _deltas(self, token: int | None, pieces: list[Piece], reason: str | None) -> list[Delta]:
        for piece in pieces:
            self._has_called |= piece.call is not None
        if reason == "stop" and self._has_called:
            reason = "tool_calls"
        if len(pieces) <= 1:
            return [self._delta(token, pieces[0] if pieces else _NOTHING, reason)]
        first, *others, last = pieces
        deltas = [self._delta(token, first, None), *(self._delta(None, piece, None) for piece in others)]
        return [*deltas, self._delta(None, last, reason)]

    def _delta(self, token: int | None, piece: Piece, reason: str | None, kind: str = "") -> Delta:
        sequence = self.sequence
        return Delta(
            sequence.request_id,
            token,
            piece.text,
            reason,
            n_prefilled=min(sequence.n_computed, sequence.n_prompt),
            n_prompt_tokens=sequence.n_prompt,
            n_reused=sequence.n_reused,
            kind=kind or str(piece.kind),
            call=piece.call,
            problem=piece.problem,
            step=0 if token is None else self.step,
        )
