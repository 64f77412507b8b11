"""How the next token is chosen: the user's parameters, and the record that the sampling kernel reads."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from engine.errors import InvalidRequestError, NumericalError
from engine.kernels.layout import OPERANDS_OFFSET
from engine.kernels.library import KernelLibrary
from engine.output_format import OutputFormat

KERNELS = ("sample",)
_LARGEST_BIAS = 1e30  # far beyond any logit, and float32 still holds its sum with one


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """What decides the next token.

    temperature 0 is greedy; top_k 0, top_p 1 and min_p 0 leave everything in. Penalties see the newest
    `penalty_window` tokens, the prompt's included. max_tokens None: until the context is full. seed None: another
    answer each time. output_format: what form the answer must have; None: any.
    Raises InvalidRequestError for a value out of range.
    """

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    penalty_window: int = 256
    seed: int | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    ignore_eos: bool = False
    output_format: OutputFormat | None = None

    def __post_init__(self) -> None:
        for name, value, low, high in (
            ("temperature", self.temperature, 0, 100),
            ("top_k", self.top_k, 0, 1 << 30),
            ("top_p", self.top_p, 0, 1),
            ("min_p", self.min_p, 0, 1),
            ("repetition_penalty", self.repetition_penalty, 0.01, 100),
            ("presence_penalty", self.presence_penalty, -100, 100),
            ("frequency_penalty", self.frequency_penalty, -100, 100),
            ("penalty_window", self.penalty_window, 0, 4096),
            ("max_tokens", self.max_tokens, 1, 1 << 30),
            ("seed", self.seed, -(2**63), 2**64 - 1),
        ):
            if value is not None and not low <= value <= high:
                raise InvalidRequestError(f"{name} must be between {low} and {high}, not {value}.")
        if any(not text for text in self.stop):
            raise InvalidRequestError("A stop string must not be empty.")


class Sampler:
    """Chooses one request's tokens: keeps its history, its bias and its place in the random sequence."""

    def __init__(self, library: KernelLibrary, params: SamplingParams, n_vocab: int, prompt: list[int]) -> None:
        """Raises InvalidRequestError if the bias names a token that the vocabulary lacks, or is absurd."""
        for token, bias in params.logit_bias.items():
            if not 0 <= token < n_vocab:
                raise InvalidRequestError(f"logit_bias names token {token}; the vocabulary has 0 to {n_vocab - 1}.")
            if not -_LARGEST_BIAS <= bias <= _LARGEST_BIAS:
                raise InvalidRequestError(
                    f"logit_bias of token {token} must be between -{_LARGEST_BIAS:g} and {_LARGEST_BIAS:g}, not {bias}."
                )
        self._window = params.penalty_window
        history = np.zeros(max(1, self._window), np.int32)
        self._n_history = 0
        self._bias_ids = np.array(list(params.logit_bias), np.int32)
        self._bias_values = np.array(list(params.logit_bias.values()), np.float32)
        self._scratch = np.zeros(-(-n_vocab // 16) * 16 + 16, np.int32)
        out = np.zeros(1, np.int32)
        seed = params.seed if params.seed is not None else secrets.randbits(63)
        record = library.pack(
            "sample",
            {
                "logits": 0,
                "n_vocab": n_vocab,
                "history": history.ctypes.data,
                "n_history": 0,
                "bias_ids": self._bias_ids.ctypes.data,
                "bias_values": self._bias_values.ctypes.data,
                "n_bias": len(self._bias_ids),
                "allowed": 0,
                "repetition": params.repetition_penalty,
                "presence": params.presence_penalty,
                "frequency": params.frequency_penalty,
                "temperature": params.temperature,
                "top_k": params.top_k,
                "top_p": params.top_p,
                "min_p": params.min_p,
                "seed": seed if seed < 2**63 else seed - 2**64,
                "step": 0,
                "out": out.ctypes.data,
            },
        )
        names = [operand for operand, _ in library.schema("sample")]
        first = OPERANDS_OFFSET // 8
        self._cells = {name: first + names.index(name) for name in ("logits", "n_history", "allowed", "step")}
        self._run = library.function("sample")
        self._record_address, self._scratch_address = record.ctypes.data, self._scratch.ctypes.data
        self._record, self._history, self._out = record.data, history.data, out.data
        for token in prompt[-self._window :] if self._window else []:
            self._remember(token)

    def choose(self, logits: int, allowed: int = 0) -> int:
        """The next token for the row of logits at the address `logits`, which is changed. Raises NumericalError.

        `allowed`: the address of a mask, one bit a token, of those that may come (0: all may); some must be allowed.
        """
        record, cells = self._record, self._cells
        record[cells["logits"]], record[cells["allowed"]] = logits, allowed
        record[cells["n_history"]] = min(self._n_history, self._window)
        self._run(self._record_address, 0, self._scratch_address)
        record[cells["step"]] += 1
        token: int = self._out[0]
        if token < 0:
            raise NumericalError(
                "The model's output is not finite, so the answer ends here. The file may be damaged: check its "
                "checksum, or fetch it again."
            )
        self._remember(token)
        return token

    def _remember(self, token: int) -> None:
        if self._window:
            self._history[self._n_history % self._window] = token
            self._n_history += 1
