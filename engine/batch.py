"""What changes from one step to the next: tokens, positions, pages, and which rows want logits.

Operations hold the addresses of these arrays; the scheduler fills them before each run of the plan.
"""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

from engine.kernels.layout import PAGE
from engine.memory import Memory, view

Array = np.ndarray[Any, Any]


class Batch:
    """Arrays for up to `max_tokens` tokens of up to `max_sequences` sequences, and their addresses for operations."""

    page_tokens = PAGE

    def __init__(
        self, memory: Memory, max_tokens: int, max_sequences: int, max_outputs: int, context_length: int
    ) -> None:
        self.max_outputs = max_outputs
        self.max_pages = -(-context_length // PAGE)
        sizes: dict[str, tuple[type[np.generic[Any]], int]] = {
            "n_tokens": (np.int64, 1),
            "n_outputs": (np.int64, 1),
            "n_foreseen": (np.int64, 1),
            "one": (np.int64, 1),
            "clock": (np.int64, 1),
            "tokens": (np.int32, max_tokens),
            "positions": (np.int32, max_tokens),
            "rope_rows": (np.int32, max_tokens),
            "sequences": (np.int32, max_tokens),
            "output_rows": (np.int32, max_outputs),
            "pages": (np.int64, max_sequences * self.max_pages),
            "old_states": (np.int64, max_sequences),
            "new_states": (np.int64, max_sequences),
        }
        buffers = {
            name: memory.allocate(name, np.dtype(dtype).itemsize * n, "buffers") for name, (dtype, n) in sizes.items()
        }
        self.n_tokens, self.n_outputs, self.one, self.clock = (
            buffers[name].address for name in ("n_tokens", "n_outputs", "one", "clock")
        )
        self.n_foreseen = buffers["n_foreseen"].address
        self.tokens, self.positions, self.rope_rows, self.sequences, self.output_rows, self.pages = (
            buffers[name].address for name in ("tokens", "positions", "rope_rows", "sequences", "output_rows", "pages")
        )
        self.old_states, self.new_states = buffers["old_states"].address, buffers["new_states"].address
        # not in the model's memory: another thread may set it while the model is being closed
        self.interrupt_flag: Array = np.zeros(1, np.int64)
        self.interrupt = self.interrupt_flag.ctypes.data
        memory.know(self.interrupt, 8)
        # memory views, as single numbers and short stretches go into them at a fraction of what an array takes
        self._arrays = {name: view(buffers[name], dtype, (n,)).data for name, (dtype, n) in sizes.items()}
        self.page_table: Array = view(buffers["pages"], np.int64, (max_sequences, self.max_pages))

    def write_one(self) -> None:
        """Let `one` be one, as soon as the memory may be used."""
        self._arrays["one"][0] = 1

    @property
    def n_tokens_now(self) -> int:
        return self._arrays["n_tokens"][0]

    @property
    def n_outputs_now(self) -> int:
        return self._arrays["n_outputs"][0]

    @property
    def clock_now(self) -> int:
        return self._arrays["clock"][0]

    def foresee(self, is_wanted: bool) -> None:
        """Whether the run of this batch chooses experts for each layer in advance, too."""
        self._arrays["n_foreseen"][0] = self.n_tokens_now if is_wanted else 0

    def set_states(self, slot: int, old: int, new: int) -> None:
        """Addresses of the recurrent state that the sequence in `slot` comes with, and of the one that it leaves."""
        self._arrays["old_states"][slot], self._arrays["new_states"][slot] = old, new

    def begin(self, clock: int) -> None:
        """Start an empty batch; `clock` counts steps."""
        arrays = self._arrays
        arrays["n_tokens"][0], arrays["n_outputs"][0], arrays["clock"][0] = 0, 0, clock

    def add(
        self, slot: int, tokens: list[int], first_position: int, wants: list[int], *, first_rope_row: int = 0
    ) -> int:
        """Append consecutive tokens of the sequence in `slot`; `wants` are indices in tokens whose logits are wanted.

        `first_rope_row`: the row of the rope table that belongs to the sequence's position 0.

        Returns the logits' row of the first of them; the others follow it.
        """
        arrays = self._arrays
        start, n, first_output = arrays["n_tokens"][0], len(tokens), arrays["n_outputs"][0]
        end, last_output, first_row = start + n, first_output + len(wants), first_rope_row + first_position
        arrays["tokens"][start:end] = array("i", tokens)
        arrays["positions"][start:end] = array("i", range(first_position, first_position + n))
        arrays["rope_rows"][start:end] = array("i", range(first_row, first_row + n))
        arrays["sequences"][start:end] = array("i", (slot,)) * n
        arrays["output_rows"][first_output:last_output] = array("i", [start + i for i in wants])
        arrays["n_tokens"][0], arrays["n_outputs"][0] = end, last_output
        return first_output
