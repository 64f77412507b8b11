"""docs/support.md says which architectures run with which tensor types on which tiers: all of it is so."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.models import ARCHITECTURES
from tests.support.support_table import AVAILABLE, LETTERS, NAMES, PAGE, TYPES, read_table, run_cell, table_text

LISTED = read_table(PAGE.read_text(encoding="utf-8"))


def assert_as_listed(name: str, types: list[int], folder: Path) -> None:
    here = {LETTERS[tier] for tier in AVAILABLE}
    for place in types:
        listed = "".join(letter for letter in LISTED[name, TYPES[place]] if letter in here)
        assert run_cell(name, TYPES[place], folder) == listed, (name, TYPES[place].name)


def test_the_page_has_every_architecture_and_type_and_nothing_else() -> None:
    assert set(LISTED) == {(name, type) for name in NAMES for type in TYPES}
    assert set(NAMES) == {*ARCHITECTURES, "mixtral"}
    assert PAGE.read_text(encoding="utf-8") == table_text(LISTED)


@pytest.mark.parametrize("name", NAMES)
def test_a_type_of_each_architecture_runs_as_listed(tmp_path: Path, name: str) -> None:
    """One or two of them, others for each architecture, so that every type is met once."""
    assert_as_listed(name, list(range(NAMES.index(name), len(TYPES), len(NAMES))), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_all_types_of_each_architecture_run_as_listed(tmp_path: Path, name: str) -> None:
    assert_as_listed(name, list(range(len(TYPES))), tmp_path)
