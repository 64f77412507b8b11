"""Rows of a tensor are the same in whatever pieces they are read, and no piece needs the whole."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.convert import Checkpoint, TensorPlan, plan_conversion
from engine.convert.matrices import Constant, Mapped, Picked, Stacked, Transposed
from engine.convert.permutations import every_second, rotary_pairs, row_range, tiled_value_heads
from engine.gguf import TensorType
from tests.support.checkpoints import checkpoint_case, checkpoint_cases, write_zeros

VALUES = np.arange(24 * 5, dtype=np.float32).reshape(24, 5)
rows_of_24 = st.lists(st.integers(0, 23), min_size=1, max_size=40)


@given(rows=rows_of_24)
def test_rows_in_any_order_are_those_of_the_whole(rows: list[int]) -> None:
    whole = Constant(VALUES)
    cases = [
        (whole, VALUES),
        (Picked(whole, np.arange(23, -1, -1)), VALUES[::-1]),
        (Stacked([Constant(VALUES[:8]), Constant(VALUES[8:16]), Constant(VALUES[16:])]), VALUES),
        (Mapped(whole, lambda values: values * 2), VALUES * 2),
        (Transposed(Constant(VALUES.reshape(20, 6)), 5), VALUES.reshape(4, 5, 6).swapaxes(1, 2).reshape(24, 5)),
    ]
    for matrix, expected in cases:
        assert (matrix.n_rows, matrix.n_columns) == expected.shape
        assert np.array_equal(matrix.read(np.array(rows)), expected[rows])


def test_orders_are_those_of_reshaping_and_transposing() -> None:
    """Each against the formulation of the publishers' code, on arrays of several dimensions."""
    queries = np.arange(3 * 8)
    assert rotary_pairs(3, 8).tolist() == [
        head * 8 + half * 4 + pair for head in range(3) for pair in range(4) for half in range(2)
    ]
    assert sorted(rotary_pairs(3, 8)) == queries.tolist()
    assert tiled_value_heads(2, 6, 2).tolist() == [
        (key * 3 + value) * 2 + n for value in range(3) for key in range(2) for n in range(2)
    ]
    assert every_second(2, 4, 1).tolist() == [1, 3, 5, 7]
    assert row_range(2, 5, 1, 3).tolist() == [1, 2, 6, 7]


@pytest.mark.parametrize("name", [case.name for case in checkpoint_cases()])
def test_pieces_of_any_size_give_the_same_bytes(name: str, tmp_path: Path) -> None:
    with Checkpoint.open(checkpoint_case(name).write(tmp_path)) as checkpoint:
        for tensor in plan_conversion(checkpoint).tensors:
            whole = tensor.read().tobytes()
            assert len(whole) == tensor.n_bytes
            pieces = [piece.tobytes() for piece in tensor.chunks(max_bytes=30_000)]
            assert b"".join(pieces) == whole


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("qwen3_moe", "token_embd.weight"),
        ("qwen3_moe", "blk.0.ffn_gate_exps.weight"),
        ("qwen3_moe_fused", "blk.0.ffn_gate_exps.weight"),
        ("gpt_oss", "blk.0.ffn_up_exps.weight"),
        ("deepseek_v2", "blk.0.attn_k_b.weight"),
    ],
)
def test_memory_is_bounded_by_the_piece(name: str, target: str, tmp_path: Path) -> None:
    """Of a tensor some hundred times as large as a piece, no more is ever held than a few pieces."""
    max_bytes = 40_000
    with Checkpoint.open(checkpoint_case(name).write(tmp_path, weights=False)) as checkpoint:
        tensor = next(tensor for tensor in plan_conversion(checkpoint).tensors if tensor.name == target)
        largest = 0
        tracemalloc.start()
        for piece in tensor.chunks(max_bytes):
            largest = max(largest, piece.nbytes)
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert largest <= 2 * max_bytes
    assert peak_bytes < 20 * max_bytes  # of 1.2 to 4 MB in float32, imports and caches included


def test_a_plan_of_a_large_checkpoint_takes_no_memory_for_weights(tmp_path: Path) -> None:
    """50 GB of experts, on a disk with holes: planning and a first piece need some MB."""
    case = checkpoint_case("qwen3_moe")
    config = case.files["config.json"].replace('"moe_intermediate_size": 256', '"moe_intermediate_size": 2097152')
    tensors = [
        (name, dtype, [2_097_152 if ".experts." in name and n == axis else size for n, size in enumerate(shape)])
        for name, dtype, shape in case.tensors
        for axis in [1 if "down_proj" in name else 0]
    ]
    folder = tmp_path / "large"
    folder.mkdir()
    for name, text in {**case.files, "config.json": config}.items():
        (folder / name).write_text(text)
    write_zeros(folder / "model.safetensors", tuple(tensors))

    tracemalloc.start()
    with Checkpoint.open(folder) as checkpoint:
        plan = plan_conversion(checkpoint)
        tensor = largest_of(plan.tensors)
        first = next(iter(tensor.chunks()))
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert plan.n_bytes > 40e9
    assert tensor.type is TensorType.BF16
    assert 0 < first.nbytes <= 70e6
    assert peak_bytes < 700e6


def largest_of(tensors: tuple[TensorPlan, ...]) -> TensorPlan:
    return max(tensors, key=lambda tensor: tensor.n_bytes)
