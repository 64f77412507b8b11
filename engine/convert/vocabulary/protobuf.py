"""A reader of Protocol Buffers' wire format, as far as sentencepiece models need it."""

from __future__ import annotations

import struct
from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_MAX_VARINT_BYTES = 10

Field = tuple[int, int, "int | bytes"]  # number, wire type, value


def fields(message: bytes) -> Iterator[Field]:
    """The fields of a message in order; fixed ones as bytes. Raises ValueError where the bytes are no message."""
    offset, end = 0, len(message)
    while offset < end:
        tag, offset = _varint(message, offset)
        number, wire = tag >> 3, tag & 7
        value: int | bytes
        if wire == VARINT:
            value, offset = _varint(message, offset)
        elif wire in (FIXED64, FIXED32, BYTES):
            n_bytes, offset = (8 if wire == FIXED64 else 4, offset) if wire != BYTES else _varint(message, offset)
            if n_bytes > end - offset:
                raise ValueError(
                    f"field {number} at byte {offset:,} has {n_bytes:,} bytes, but {end - offset:,} are left"
                )
            value, offset = message[offset : offset + n_bytes], offset + n_bytes
        else:
            raise ValueError(f"field {number} at byte {offset:,} has the unknown wire type {wire}")
        yield number, wire, value


def float_of(value: int | bytes) -> float:
    """The value of a fixed field of 32 bits."""
    if not isinstance(value, bytes) or len(value) != 4:
        raise ValueError("expected a float of 32 bits")
    number: float = struct.unpack("<f", value)[0]
    return number


def _varint(message: bytes, offset: int) -> tuple[int, int]:
    value = 0
    for index in range(_MAX_VARINT_BYTES):
        if offset + index >= len(message):
            break
        byte = message[offset + index]
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, offset + index + 1
    raise ValueError(f"the number at byte {offset:,} does not end")
