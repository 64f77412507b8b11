"""The benchmarks of costs: their statistics, and that the copy without telemetry is still what it says."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.benchmarks.pairs import Cost
from tests.benchmarks.telemetry_cost import write_silent_copy


def test_a_cost_is_the_median_loss_of_pairs_with_its_interval() -> None:
    cost = Cost.of([(100.0, 97.0), (100.0, 98.0), (200.0, 198.0)])
    assert cost.median == pytest.approx(0.02)
    assert 0.01 <= cost.low <= cost.median <= cost.high <= 0.03 + 1e-9
    assert str(Cost.of([(100.0, 98.0)])) == "2.00% (95 % within 2.00% to 2.00%)"


def test_the_copy_without_telemetry_books_and_notes_nothing(tmp_path: Path) -> None:
    write_silent_copy(tmp_path)
    walk = (tmp_path / "engine/kernels/walk.py").read_text(encoding="utf-8")
    functions = {node.name: node for node in ast.walk(ast.parse(walk)) if isinstance(node, ast.FunctionDef)}
    assert isinstance(functions["book"].body[-1], ast.Pass)
    assert "cycle_counter()" not in walk
    assert (tmp_path / "engine/step_notes.py").read_text(encoding="utf-8").endswith("StepNotes = _Silent\n")
    assert (tmp_path / "tests/benchmarks/engine_speed.py").exists()
