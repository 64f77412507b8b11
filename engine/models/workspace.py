"""The memory that a model computes in: buffers that its layers share by name, and each worker's scratch."""

from __future__ import annotations

from dataclasses import dataclass

from engine.config import EngineConfig
from engine.kernels.layout import BLOCK, TILE_ROWS, activation_row_bytes
from engine.memory import Buffer, Memory


@dataclass(frozen=True, slots=True)
class Rows:
    """Activations: (rows, n) float32 with rows of `stride` bytes, and perhaps the same rounded to 12 bits."""

    n: int
    address: int
    stride: int
    rounded: int = 0
    rounded_stride: int = 0


class Workspace:
    """Hands out buffers by name; `scratch_bytes` grows to what the neediest operation asks for."""

    def __init__(self, memory: Memory, config: EngineConfig) -> None:
        self.memory, self.config = memory, config
        self.scratch_bytes = 0
        self._rounds = config.activations == "int12"
        self._buffers: dict[str, Buffer] = {}

    def rows(self, name: str, n: int, *, n_rows: int | None = None, rounded: bool = False) -> Rows:
        """The activations called `name`; layers share them, so the same name is the same memory.

        Rows that are no whole blocks are not rounded: only float matrices can have such inputs.
        """
        n_rows = n_rows or self.config.max_batch_tokens
        # an odd number of cache lines, so that equal places of neighbouring rows lie in different sets of the cache
        stride = 64 * (-(-n // 16) | 1)
        plain = self.buffer(name, stride * n_rows)
        if not (rounded and self._rounds and n % BLOCK == 0):
            return Rows(n, plain.address, stride)
        rounded_stride = activation_row_bytes(n)
        return Rows(n, plain.address, stride, self.rounded_buffer(name, n_rows, rounded_stride), rounded_stride)

    def rounded_buffer(self, name: str, n_rows: int, stride: int) -> int:
        """Rounded activations, with room for the rows that a tile product reads beyond the last."""
        return self.buffer(f"{name}, rounded", stride * (n_rows + TILE_ROWS - 1)).address

    def buffer(self, name: str, n_bytes: int) -> Buffer:
        """The buffer called `name`; ValueError if it was made smaller than it is wanted now."""
        if name not in self._buffers:
            self._buffers[name] = self.memory.allocate(name, n_bytes, "buffers")
        if self._buffers[name].n_bytes < n_bytes:
            raise ValueError(f"the buffer {name} was made for {self._buffers[name].n_bytes} bytes, not {n_bytes}")
        return self._buffers[name]

    def need_scratch(self, n_bytes: int) -> None:
        """Let each worker's scratch be at least `n_bytes`."""
        self.scratch_bytes = max(self.scratch_bytes, -(-n_bytes // 4096) * 4096)
