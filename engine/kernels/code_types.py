"""How the file keeps the weights that are small integers behind a code: a code of 3 or 4 bits for each input, an
integer scale for 16 inputs, and an f16 scale for the 256 of a block.

    weight = d * factor * multiplier * values[code]

The multiplier is an odd or a signed integer and the factor a power of two, so that all products are exact in float32.
The one-bit types move points of a codebook by 1/8; here they are eighths, whole numbers again. Byte layouts (GGUF):

    Q3_K      32 x high bits | 64 x four low pairs of bits | 12: scales | d        values -4..3
    IQ4_XS    d | 2: high bits of scales | 4: low ones | 8 x 16 nibble pairs       a table of 16 values
    IQ3_XXS   d | 64: points of four | 8 x u32: 4 x 7 signs, scale                 8 magnitudes and a sign
    IQ3_S     d | 64: points of four | 8: ninth bits | 32: signs | 4: scales       8 magnitudes and a sign
    IQ2_XXS   d | 8 x (4: points of eight | u32: 4 x 7 signs, scale)               3 magnitudes and a sign
    IQ2_XS    d | 32 x u16: point, 7 signs | 8: scales                             3 magnitudes and a sign
    IQ2_S     d | 32: points | 32: signs | 8: high bits | 8: scales                3 magnitudes and a sign
    IQ1_S     d | 32: points | 8 x u16: 4 x 3 high bits, scale, sign of the move   8 (-1, 0, 1) +- 1
    IQ1_M     32: points | 16: 2 x (3 high bits, sign) | 4 x u16: 4 scales, of d   8 (-1, 0, 1) +- 1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.gguf.codebooks import CODEBOOKS
from engine.gguf.expansions.tables import NONLINEAR
from engine.kernels.lookup import ENTRIES, constant_address
from engine.kernels.memory import load_i64, load_u8, load_u16, load_u32
from engine.kernels.registry import device

BYTES_1, BYTES_3, BYTES_15 = 0x0101010101010101, 0x0303030303030303, 0x0F0F0F0F0F0F0F0F
_EVERY_SEVENTH = 0x0002040810204081  # times seven bits: bit i comes to stand at 8 i, among others


@dataclass(frozen=True, slots=True)
class CodeType:
    """A type of the file. `codes` (block, eight) -> the codes of inputs 8 eight .. 8 eight + 7, a byte each;
    `multiplier` (block, sixteen) -> the integer scale of 16 inputs; `d_bits` (block) -> the bits of d."""

    name: str
    block_bytes: int
    values: tuple[int, ...]  # for each code
    factor: float
    d_bits: Any
    multiplier: Any
    codes: Any

    @property
    def offset(self) -> int:
        """What makes all values unsigned."""
        return -min(self.values)

    @property
    def table(self) -> bytes:
        """The unsigned values of 16 codes; what no code names is 0."""
        unsigned = [value + self.offset for value in self.values]
        return bytes(unsigned + [0] * (ENTRIES - len(unsigned)))


def d_at(place: int) -> Any:
    @device
    def d_bits(block):
        return load_u16(block + place)

    return d_bits


@device
def spread(bits):
    """Eight bits -> eight bytes of 0 or 1, the lowest first. No sum here overflows; the compiler relies on that."""
    return (bits & 127) * _EVERY_SEVENTH & BYTES_1 | bits >> 7 << 56


@device
def with_eighth(seven):
    """Seven signs and the eighth that makes the number of minuses even."""
    parity = seven ^ seven >> 4
    parity ^= parity >> 2
    return seven | ((parity ^ parity >> 1) & 1) << 7


@device
def two_bits(quants, eight):
    """Eight of 256 inputs from 64 bytes, each of which has inputs 32 apart."""
    sub = eight >> 2
    return load_i64(quants + 32 * (sub >> 2) + 8 * (eight & 3)) >> 2 * (sub & 3) & BYTES_3


def nibble_at(place: int) -> Any:
    """(block, i) -> nibble i of those from byte `place` on."""

    @device
    def nibble(block, i):
        return load_u8(block + place + (i >> 1)) >> 4 * (i & 1) & 15

    return nibble


# Q3_K and IQ4_XS ------------------------------------------------------------------------------------------------------


@device
def codes_q3_k(block, eight):
    high = load_i64(block + 8 * (eight & 3)) >> (eight >> 2) & BYTES_1
    return two_bits(block + 32, eight) | high << 2


@device
def multiplier_q3_k(block, sixteen):
    low = load_u8(block + 96 + (sixteen & 7)) >> 4 * (sixteen >> 3) & 15
    high = load_u8(block + 104 + (sixteen & 3)) >> 2 * (sixteen >> 2) & 3
    return (low | high << 4) - 32


@device
def codes_iq4_xs(block, eight):
    part = eight & 3
    return load_i64(block + 8 + 16 * (eight >> 2) + 8 * (part & 1)) >> 4 * (part >> 1) & BYTES_15


low_scale = nibble_at(4)


@device
def multiplier_iq4_xs(block, sixteen):
    sub = sixteen >> 1
    return (low_scale(block, sub) | (load_u16(block + 2) >> 2 * sub & 3) << 4) - 32


# Codebooks ------------------------------------------------------------------------------------------------------------


def points_of(name: str) -> Any:
    """() -> address of the codebook's points: a byte for the level of each element."""
    return constant_address(CODEBOOKS[name].digits().tobytes())


def signed_levels(name: str) -> tuple[int, ...]:
    """Values by code: the codebook's levels, room up to a power of two, then the same with a minus."""
    levels = CODEBOOKS[name].levels
    padded = levels + (0,) * (len(levels) % 2)
    return padded + tuple(-level for level in padded)


points_iq3_xxs, points_iq3_s = points_of("IQ3_XXS"), points_of("IQ3_S")
points_iq2_xxs, points_iq2_xs, points_iq2_s = points_of("IQ2_XXS"), points_of("IQ2_XS"), points_of("IQ2_S")
points_iq1 = points_of("IQ1_S")


@device
def pair_of_points(points, first, second):
    """Two points of four elements as eight bytes."""
    return load_u32(points + 4 * first) | load_u32(points + 4 * second) << 32


@device
def codes_iq3_xxs(block, eight):
    quants = block + 2 + 2 * eight
    signs = with_eighth(load_u32(block + 66 + 4 * (eight >> 2)) >> 7 * (eight & 3) & 127)
    return pair_of_points(points_iq3_xxs(), load_u8(quants), load_u8(quants + 1)) | spread(signs) << 3


@device
def multiplier_iq3_xxs(block, sixteen):
    return 2 * (load_u32(block + 66 + 4 * (sixteen >> 1)) >> 28) + 1


@device
def codes_iq3_s(block, eight):
    quants, ninth = block + 2 + 2 * eight, load_u8(block + 66 + (eight >> 2)) >> 2 * (eight & 3)
    first, second = load_u8(quants) | (ninth & 1) << 8, load_u8(quants + 1) | (ninth >> 1 & 1) << 8
    return pair_of_points(points_iq3_s(), first, second) | spread(load_u8(block + 74 + eight)) << 3


scale_iq3_s = nibble_at(106)


@device
def multiplier_iq3_s(block, sixteen):
    return 2 * scale_iq3_s(block, sixteen >> 1) + 1


@device
def codes_iq2_xxs(block, eight):
    part = block + 2 + 8 * (eight >> 2)
    signs = with_eighth(load_u32(part + 4) >> 7 * (eight & 3) & 127)
    return load_i64(points_iq2_xxs() + 8 * load_u8(part + (eight & 3))) | spread(signs) << 2


@device
def multiplier_iq2_xxs(block, sixteen):
    return 2 * (load_u32(block + 6 + 8 * (sixteen >> 1)) >> 28) + 1


@device
def codes_iq2_xs(block, eight):
    word = load_u16(block + 2 + 2 * eight)
    return load_i64(points_iq2_xs() + 8 * (word & 511)) | spread(with_eighth(word >> 9)) << 2


scale_iq2_xs, scale_iq2_s = nibble_at(66), nibble_at(74)


@device
def multiplier_iq2_xs(block, sixteen):
    return 2 * scale_iq2_xs(block, sixteen) + 1


@device
def codes_iq2_s(block, eight):
    point = load_u8(block + 2 + eight) | (load_u8(block + 66 + (eight >> 2)) >> 2 * (eight & 3) & 3) << 8
    return load_i64(points_iq2_s() + 8 * point) | spread(load_u8(block + 34 + eight)) << 2


@device
def multiplier_iq2_s(block, sixteen):
    return 2 * scale_iq2_s(block, sixteen) + 1


@device
def codes_iq1_s(block, eight):
    word = load_u16(block + 34 + 2 * (eight >> 2))
    point = load_u8(block + 2 + eight) | (word >> 3 * (eight & 3) & 7) << 8
    return load_i64(points_iq1() + 8 * point) | (word >> 15) * BYTES_1 << 2


@device
def multiplier_iq1_s(block, sixteen):
    return 2 * (load_u16(block + 34 + 2 * (sixteen >> 1)) >> 12 & 7) + 1


high_iq1_m = nibble_at(32)


@device
def codes_iq1_m(block, eight):
    high = high_iq1_m(block, eight)
    return load_i64(points_iq1() + 8 * (load_u8(block + eight) | (high & 7) << 8)) | (high >> 3) * BYTES_1 << 2


@device
def multiplier_iq1_m(block, sixteen):
    return 2 * (load_u16(block + 48 + 2 * (sixteen >> 2)) >> 3 * (sixteen & 3) & 7) + 1


@device
def d_iq1_m(block):
    bits = load_u16(block + 48) >> 12 | load_u16(block + 50) >> 12 << 4
    return bits | load_u16(block + 52) >> 12 << 8 | load_u16(block + 54) >> 12 << 12


# 8 (-1, 0, 1) moved up or, with the third bit, down
MOVED = tuple(8 * level + move for move in (1, -1) for level in (*CODEBOOKS["IQ1_S"].levels, 0))
Q3_K_VALUES = tuple(range(-4, 4))

FOUR_BIT_TYPES = (
    CodeType("IQ4_XS", 136, NONLINEAR, 1.0, d_at(0), multiplier_iq4_xs, codes_iq4_xs),
    CodeType("IQ3_XXS", 98, signed_levels("IQ3_XXS"), 0.25, d_at(0), multiplier_iq3_xxs, codes_iq3_xxs),
    CodeType("IQ3_S", 110, signed_levels("IQ3_S"), 1.0, d_at(0), multiplier_iq3_s, codes_iq3_s),
)
THREE_BIT_TYPES = (
    CodeType("Q3_K", 110, Q3_K_VALUES, 1.0, d_at(108), multiplier_q3_k, codes_q3_k),
    CodeType("IQ2_XXS", 66, signed_levels("IQ2_XXS"), 0.125, d_at(0), multiplier_iq2_xxs, codes_iq2_xxs),
    CodeType("IQ2_XS", 74, signed_levels("IQ2_XS"), 0.125, d_at(0), multiplier_iq2_xs, codes_iq2_xs),
    CodeType("IQ2_S", 82, signed_levels("IQ2_S"), 0.125, d_at(0), multiplier_iq2_s, codes_iq2_s),
    CodeType("IQ1_S", 50, MOVED, 0.125, d_at(0), multiplier_iq1_s, codes_iq1_s),
    CodeType("IQ1_M", 56, MOVED, 0.125, d_iq1_m, multiplier_iq1_m, codes_iq1_m),
)
