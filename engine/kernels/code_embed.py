"""Token embeddings in types behind codes, read from the file's own blocks like those of embed.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.gguf.expansions.tables import E2M1_DOUBLED, NONLINEAR
from engine.kernels.code_repack import codes_q2_k, codes_tq1_0, codes_tq2_0
from engine.kernels.code_types import FOUR_BIT_TYPES, THREE_BIT_TYPES, CodeType
from engine.kernels.embed import nibble, register_embed
from engine.kernels.lookup import constant_address
from engine.kernels.memory import float_of_bits, half_of_bits, load_f16, load_i8, load_u8, store_f32
from engine.kernels.registry import device


def signed_table(values: tuple[int, ...]) -> Any:
    """() -> the address of int8 values."""
    return constant_address(np.array(values, np.int8).tobytes())


nonlinear, e2m1_doubled = signed_table(NONLINEAR), signed_table(E2M1_DOUBLED)


@device
def row_iq4_nl(p, out, n):
    for i in range(n):
        block = p + 18 * (i // 32)
        store_f32(out + 4 * i, load_f16(block) * np.float32(load_i8(nonlinear() + nibble(block + 2, i % 32))))


@device
def row_mxfp4(p, out, n):
    for i in range(n):
        block = p + 17 * (i // 32)
        e = load_u8(block)
        scale = float_of_bits(max(e - 1 << 23, e + 1 << 21))
        store_f32(out + 4 * i, scale * np.float32(load_i8(e2m1_doubled() + nibble(block + 1, i % 32))))


def row_of(kind: CodeType) -> Any:
    table, factor, block_bytes = signed_table(kind.values), np.float32(kind.factor), kind.block_bytes
    codes, multiplier, d_bits = kind.codes, kind.multiplier, kind.d_bits

    @device
    def row(p, out, n):
        for eight in range(n // 8):
            block, place = p + block_bytes * (eight // 32), eight % 32
            scale = half_of_bits(d_bits(block)) * factor * np.float32(multiplier(block, place // 2))
            eight_codes = codes(block, place)
            for j in range(8):
                value = load_i8(table() + (eight_codes >> 8 * j & 15))
                store_f32(out + 4 * (8 * eight + j), scale * np.float32(value))

    return row


@device
def row_q2_k(p, out, n):
    for eight in range(n // 8):
        block, place = p + 84 * (eight // 32), eight % 32
        both = load_u8(block + place // 2)
        scale, minimum = load_f16(block + 80) * np.float32(both & 15), load_f16(block + 82) * np.float32(both >> 4)
        eight_codes = codes_q2_k(block, place)
        for j in range(8):
            store_f32(out + 4 * (8 * eight + j), scale * np.float32(eight_codes >> 8 * j & 3) - minimum)


def ternary_row(block_bytes: int, codes: Any) -> Any:
    @device
    def row(p, out, n):
        for eight in range(n // 8):
            block = p + block_bytes * (eight // 32)
            d, eight_codes = load_f16(block + block_bytes - 2), codes(block, eight % 32)
            for j in range(8):
                store_f32(out + 4 * (8 * eight + j), d * np.float32((eight_codes >> 8 * j & 3) - 1))

    return row


register_embed("IQ4_NL", row_iq4_nl)
register_embed("MXFP4", row_mxfp4)
for _kind in (*FOUR_BIT_TYPES, *THREE_BIT_TYPES):
    register_embed(_kind.name, row_of(_kind))
register_embed("Q2_K", row_q2_k)
register_embed("TQ1_0", ternary_row(54, codes_tq1_0))
register_embed("TQ2_0", ternary_row(66, codes_tq2_0))
