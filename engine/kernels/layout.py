"""Byte layouts shared by compiled kernels and the Python that prepares their records.

operation record   kernel address | extent address | unit | row chunks | operands, 8 bytes each
stage record       first operation | number of operations | order | halts
team block         one 64-byte line for each cell, so that workers do not share lines needlessly
"""

from __future__ import annotations

# operation record: n_chunks = ceil(load_i64(extent) / unit) * row_chunks
OP_BYTES = 256
OP_KERNEL, OP_EXTENT, OP_UNIT, OP_ROW_CHUNKS = 0, 8, 16, 24
OPERANDS_OFFSET = 32
MAX_OPERANDS = (OP_BYTES - OPERANDS_OFFSET) // 8

# stage record
STAGE_BYTES = 32
STAGE_FIRST, STAGE_COUNT, STAGE_ORDER, STAGE_HALT = 0, 8, 16, 24
SIDE_BY_SIDE = 0  # the chunks of all operations are handed out freely
IN_SEQUENCE = 1  # all operations have the same chunks; one worker runs chunk c of each in turn

# team block: offsets of its cells
TEAM_STATE = 0  # (stage << 32) | chunks left; the upper half is what sleepers wait on
TEAM_DONE = 64  # finished chunks of the current stage
TEAM_LAST_TICK = 72  # time stamp at which it began: who finishes it has this line
TEAM_SLEEPERS = 128
# addresses and sizes of the plan in force
TEAM_STAGES, TEAM_N_STAGES, TEAM_OPS, TEAM_KINDS = 192, 200, 208, 216
TEAM_SCRATCH, TEAM_SCRATCH_BYTES = 224, 232
TEAM_NOTES, TEAM_N_WORKERS = 240, 248  # the workers' blocks of notes (see notes.py), and how many they are
TEAM_HALTED_AT = 256  # stage at which the run stopped for missing experts, else -1
TEAM_SPINS = 264  # how long a worker spins before it sleeps
TEAM_BYTES = 320
STAGE_IDLE = 0x7FFFFFFF
STAGE_STOP = 0x7FFFFFFE

# activations, quantised to 12 bits in blocks of 32 inputs, with a scale for every 256 (see activation.py)
BLOCK = 32
SCALED_BLOCKS = 8  # blocks that share a scale; the last ones of a row may be fewer
LINE_BYTES = 64  # 32 high parts, 32 low parts
PAIRS, SUMS, SCALES = 64, 68, 72  # times the number of blocks: where these begin in a row
ROW_BLOCK_BYTES = 76
TILE_ROWS = 16  # rows that a tile product reads at once; it may read that many, less one, beyond the last


def activation_row_bytes(n_inputs: int) -> int:
    """Bytes of one row of `n_inputs` quantised activations: lines, half sums, sums, scales.

    An odd number of cache lines, so that equal places of neighbouring rows lie in different sets of the cache.
    """
    n_lines = -(-n_inputs // BLOCK * ROW_BLOCK_BYTES // 64)
    return (n_lines | 1) * 64


GROUP = 16  # rows of a packed weight matrix that lie together
ITEM_BYTES = 32  # expert work item: expert, first pair, number of pairs, spare

# bytes of a packed group: {type: (inputs in a block, header bytes, sub-blocks, bytes of each)}; see weight_types.py
# and, from IQ4_NL on, code_weights.py
PACKED_BLOCKS = {
    "F32": (1, 0, 1, 64),
    "F32x8": (8, 0, 1, 256),
    "F16": (1, 0, 1, 32),
    "BF16": (1, 0, 1, 32),
    "Q8_0": (32, 0, 1, 544),
    "Q4_0": (32, 0, 1, 288),
    "Q4_1": (32, 0, 1, 320),
    "Q5_0": (32, 0, 1, 352),
    "Q5_1": (32, 0, 1, 384),
    "Q4_K": (256, 64, 8, 288),
    "Q5_K": (256, 64, 8, 352),
    "Q6_K": (256, 32, 8, 416),
    "IQ4_NL": (32, 0, 1, 288),
    "MXFP4": (32, 0, 1, 272),
    "CODES4": (256, 64, 8, 272),
    "CODES3": (256, 64, 8, 224),
    "Q2_K": (256, 64, 8, 160),
}
# types of the file that are packed into a layout which serves several
_SHARED_LAYOUTS = {
    **dict.fromkeys(("IQ4_XS", "IQ3_XXS", "IQ3_S"), "CODES4"),
    **dict.fromkeys(("Q3_K", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ1_S", "IQ1_M"), "CODES3"),
    **dict.fromkeys(("TQ1_0", "TQ2_0"), "Q2_K"),
}
PACKED_BLOCKS |= {name: PACKED_BLOCKS[shared] for name, shared in _SHARED_LAYOUTS.items()}
# places in the header of CODES3 and CODES4
CODE_TABLE, CODE_FACTOR, CODE_OFFSET, CODE_HEADER_BYTES = 32, 48, 52, 64
NARROW_ROWS = 8  # a float32 matrix of so few rows (the router of eight experts) is packed as F32x8
FLOAT_TYPES = ("F32", "F32x8", "F16", "BF16")


def matmul_kernel(type_name: str, *, floats: bool = False) -> str:
    """The kernel that multiplies weights of the type, packed, with rounded activations or with float32 ones."""
    name = f"matmul_{_SHARED_LAYOUTS.get(type_name, type_name)}"
    return f"{name}_f32" if floats and type_name not in FLOAT_TYPES else name


def packed_group_bytes(type_name: str, n_inputs: int) -> int:
    """Bytes of 16 packed rows of `n_inputs` weights of the type."""
    inputs, header, n_parts, part = PACKED_BLOCKS[type_name]
    return n_inputs // inputs * (header + n_parts * part)


# a worker's scratch in a matrix product of several rows: tile results, a panel of unpacked weights, activations as
# int16, running sums
TILE_BYTES = 7168  # the tile configuration, the products of two steps, and those of minima
PANEL_SCALES, PANEL_MINIMA, PANEL_D_MIN = 8192, 9216, 11264  # after its weights (see panels.py)
PANEL_BYTES = 11328
ROWS_AT_ONCE = 64  # activation rows whose part of a panel fits the first-level cache beside it
WIDE_ROW_BYTES = 2 * BLOCK * SCALED_BLOCKS  # a panel's inputs of one activation row as int16 (see word_rows.py)
WIDE_BYTES = WIDE_ROW_BYTES * (ROWS_AT_ONCE + TILE_ROWS)
N_TOTALS = 640  # running sums, a register each, of all rows and of several groups
MATMUL_SCRATCH_BYTES = TILE_BYTES + PANEL_BYTES + WIDE_BYTES + 64 * N_TOTALS


C_SYMBOLS = (
    "memcpy",
    "memset",
    "exp",
    "expf",
    "log",
    "sched_yield",
    "syscall",
)  # all that kernels call outside of themselves

PAGE = 32  # positions in a KV page


def kv_head_bytes(head_dim: int, value_dim: int, element_bytes: int) -> int:
    """Bytes of one KV head of one layer in a page: its keys, then its values (see rope.py)."""
    return PAGE * (head_dim + value_dim) * element_bytes


# a query in the scratch of attention: the addresses of its row and of its output, the last position that it sees, and
# the inverse of its weights' sum
QUERY_BYTES, QUERY_Q, QUERY_OUT, QUERY_LAST, QUERY_INVERSE = 32, 0, 8, 16, 24
LATENT_HEADS_TOGETHER = 4  # heads that attend to a compressed cache together (see latent.py)
OBSERVED_BYTES = 64  # of a row: the columns that one chunk of square_sums takes (see observe.py)
DELTA_COLUMNS = 64  # columns of a head's values that one chunk of the delta rule takes (see delta.py)
