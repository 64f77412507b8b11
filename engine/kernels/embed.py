"""Token embeddings, read row by row from the file's own layout: only the rows in use are ever touched."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.kernels.memory import load_bf16, load_f16, load_f32, load_i8, load_i32, load_u8, load_u32, store_f32
from engine.kernels.registry import device, kernel


@device
def row_f32(p, out, n):
    for i in range(n):
        store_f32(out + 4 * i, load_f32(p + 4 * i))


@device
def row_f16(p, out, n):
    for i in range(n):
        store_f32(out + 4 * i, load_f16(p + 2 * i))


@device
def row_bf16(p, out, n):
    for i in range(n):
        store_f32(out + 4 * i, load_bf16(p + 2 * i))


@device
def row_q8_0(p, out, n):
    for i in range(n):
        block = p + 34 * (i // 32)
        store_f32(out + 4 * i, load_f16(block) * np.float32(load_i8(block + 2 + i % 32)))


@device
def nibble(quants, i):
    """Value i of 32 that are kept as 16 low nibbles, then 16 high ones."""
    return load_u8(quants + i % 16) >> (4 * (i // 16)) & 15


@device
def row_q4_0(p, out, n):
    for i in range(n):
        block = p + 18 * (i // 32)
        store_f32(out + 4 * i, load_f16(block) * np.float32(nibble(block + 2, i % 32) - 8))


@device
def row_q4_1(p, out, n):
    for i in range(n):
        block = p + 20 * (i // 32)
        store_f32(out + 4 * i, load_f16(block) * np.float32(nibble(block + 4, i % 32)) + load_f16(block + 2))


@device
def five_bits(bits, quants, i):
    """Value i of 32 with the fifth bits in 32 bits at `bits`."""
    return nibble(quants, i) | (load_u32(bits) >> i & 1) << 4


@device
def row_q5_0(p, out, n):
    for i in range(n):
        block = p + 22 * (i // 32)
        store_f32(out + 4 * i, load_f16(block) * np.float32(five_bits(block + 2, block + 6, i % 32) - 16))


@device
def row_q5_1(p, out, n):
    for i in range(n):
        block = p + 24 * (i // 32)
        q = np.float32(five_bits(block + 4, block + 8, i % 32))
        store_f32(out + 4 * i, load_f16(block) * q + load_f16(block + 2))


@device
def six_bit_scale(packed, sub):
    """Scale `sub` (0..7) of a K-quant's 12 packed bytes."""
    if sub < 4:
        return load_u8(packed + sub) & 63
    return load_u8(packed + 4 + sub) & 15 | load_u8(packed - 4 + sub) >> 6 << 4


@device
def six_bit_minimum(packed, sub):
    if sub < 4:
        return load_u8(packed + 4 + sub) & 63
    return load_u8(packed + 4 + sub) >> 4 | load_u8(packed + sub) >> 6 << 4


@device
def row_q4_k(p, out, n):
    for i in range(n):
        block, sub, j = p + 144 * (i // 256), i % 256 // 32, i % 32
        q = load_u8(block + 16 + 32 * (sub // 2) + j) >> (4 * (sub % 2)) & 15
        scale = load_f16(block) * np.float32(six_bit_scale(block + 4, sub))
        store_f32(
            out + 4 * i, scale * np.float32(q) - load_f16(block + 2) * np.float32(six_bit_minimum(block + 4, sub))
        )


@device
def row_q5_k(p, out, n):
    for i in range(n):
        block, sub, j = p + 176 * (i // 256), i % 256 // 32, i % 32
        q = load_u8(block + 48 + 32 * (sub // 2) + j) >> (4 * (sub % 2)) & 15
        q |= (load_u8(block + 16 + j) >> sub & 1) << 4
        scale = load_f16(block) * np.float32(six_bit_scale(block + 4, sub))
        store_f32(
            out + 4 * i, scale * np.float32(q) - load_f16(block + 2) * np.float32(six_bit_minimum(block + 4, sub))
        )


@device
def row_q6_k(p, out, n):
    for i in range(n):
        block, half, quarter, j = p + 210 * (i // 256), i % 256 // 128, i % 128 // 32, i % 32
        q = load_u8(block + 64 * half + 32 * (quarter % 2) + j) >> (4 * (quarter // 2)) & 15
        q |= (load_u8(block + 128 + 32 * half + j) >> (2 * quarter) & 3) << 4
        scale = load_f16(block + 208) * np.float32(load_i8(block + 192 + i % 256 // 16))
        store_f32(out + 4 * i, scale * np.float32(q - 32))


def register_embed(type_name: str, row: Any) -> None:
    """Register `embed_TYPE`: x[chunk] = the table's row tokens[chunk], as float32."""

    def embed(chunk, scratch, table: int, row_bytes: int, n: int, tokens: int, out: int, stride: int):
        row(table + row_bytes * load_i32(tokens + 4 * chunk), out + stride * chunk, n)

    kernel(embed, f"embed_{type_name}")


register_embed("F32", row_f32)
register_embed("F16", row_f16)
register_embed("BF16", row_bf16)
register_embed("Q8_0", row_q8_0)
register_embed("Q4_0", row_q4_0)
register_embed("Q4_1", row_q4_1)
register_embed("Q5_0", row_q5_0)
register_embed("Q5_1", row_q5_1)
register_embed("Q4_K", row_q4_k)
register_embed("Q5_K", row_q5_k)
register_embed("Q6_K", row_q6_k)
