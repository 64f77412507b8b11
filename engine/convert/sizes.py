"""Sizes that remember which configuration values they come from, so that a contradiction can be named."""

from __future__ import annotations


class Size(int):
    """An int with a label: `hidden_size`, or `num_attention_heads * head_dim` for a product of two."""

    label: str

    def __new__(cls, value: int, label: str) -> Size:
        size = super().__new__(cls, value)
        size.label = label
        return size

    def __mul__(self, other: int) -> Size:
        if not isinstance(other, int):
            return NotImplemented
        return Size(int(self) * int(other), f"{_factor(self)} * {_factor(other)}")

    __rmul__ = __mul__

    def __add__(self, other: int) -> Size:
        if not isinstance(other, int):
            return NotImplemented
        return Size(int(self) + int(other), f"{label_of(self)} + {label_of(other)}")

    @property
    def described(self) -> str:
        """`hidden_size = 256`."""
        return f"{self.label} = {int(self)}"


def label_of(value: int) -> str:
    """A size's label; other numbers are their own."""
    return value.label if isinstance(value, Size) else str(value)


def describe_shape(shape: tuple[int, ...]) -> str:
    """`(num_experts = 8, hidden_size = 256)`."""
    parts = (size.described if isinstance(size, Size) else str(size) for size in shape)
    return f"({', '.join(parts)})"


def _factor(value: int) -> str:
    label = label_of(value)
    return f"({label})" if " + " in label else label
