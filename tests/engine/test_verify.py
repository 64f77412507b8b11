"""Whatever number of a plan is wrong, the plan is refused before a kernel sees it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import PlanError
from engine.model import Model
from engine.plan import Operation, Plan
from engine.verify import verify
from tests.engine import compact
from tests.engine.compact import LLAMA, MIXTRAL, ODD, open_model, open_small
from tests.support.tiny_models import TINY_MODELS

FORESEEING = "foreseeing"  # the plan of a model whose experts are asked for ahead
NAMES = (*compact.NAMES, *sorted(TINY_MODELS), ODD, FORESEEING)

FLAGS = {
    "neox",
    "normalise",
    "sigmoid",
    "is_silu",
    "silu_after",
    "is_tiled",
}  # any value is one of two ways to compute, within the same bytes
HARMLESS_WHEN_LARGE = {
    *(
        "groups_per_chunk",
        "columns_per_chunk",
        "max_rows",
        "window",
    ),
    *("expert_bytes", "gate_bytes", "up_bytes", "down_bytes"),  # what is counted, and what the system is asked for
    # pieces of a row that end with the row
}
ADDRESSES = {
    *("x", "y", "q", "k", "v", "out", "rounded", "table", "weight", "weights", "bias", "gate", "up", "logits"),
    *("tokens", "positions", "sequences", "pages", "rows", "items", "extent", "experts", "slots"),
    *("n_tokens", "n_items", "n_pairs", "pair_tokens", "pair_of", "missing", "counts", "last_used", "clock"),
    *("newest", "outputs", "sinks", "rope_rows", "gate_bias", "up_bias", "queries", "kv", "mixed", "gates"),
    *("heads_done", "chosen", "foreseen", "asked", "next_foreseen", "next_slots", "next_asked", "wanted", "n_wanted"),
}
PLACES = {
    *("tokens", "positions", "rope_rows", "sequences", "pages", "rows", "items", "extent", "slots", "pair_of"),
    *("old_states", "new_states"),
}
MAY_BE_ABSENT = {"bias", "rounded", "sinks", "foreseen", "next_foreseen"}
OFFSETS = {"matrix_offset", "layer_offset", "state_offset"}  # other values may lie inside the expert or page, too


@pytest.fixture(scope="module")
def models() -> Iterator[dict[str, Model]]:
    opened = {name: open_model(name) for name in NAMES if name != FORESEEING}
    opened[FORESEEING] = open_model(MIXTRAL, expert_cache_experts=9)
    yield opened
    for model in opened.values():
        model.close()


def operations(model: Model) -> list[Operation]:
    return [operation for stage in model.plan.stages for operation in stage.operations]


def one_of_each_kind(model: Model) -> list[Operation]:
    """The first operation of each kernel and form: layers repeat each other."""
    kinds: dict[Any, Operation] = {}
    for operation in operations(model):
        form = tuple(bool(operation.operands.get(name)) for name in ("items", "bias", "rounded"))
        kinds.setdefault((operation.kernel, form), operation)
    return list(kinds.values())


@contextmanager
def operand_changed(operation: Operation, name: str, value: float) -> Iterator[None]:
    original = operation.operands[name]
    operation.operands[name] = value
    try:
        yield
    finally:
        operation.operands[name] = original


@contextmanager
def extent_changed(model: Model, operation: Operation, **changes: int) -> Iterator[None]:
    stage = next(s for s in model.plan.stages if any(o is operation for o in s.operations))
    place = next(i for i, o in enumerate(stage.operations) if o is operation)
    stage.operations[place] = replace(operation, extent=replace(operation.extent, **changes))
    try:
        yield
    finally:
        stage.operations[place] = operation


def is_refused(model: Model) -> bool:
    try:
        verify(model.plan, model.memory, model.limits)
    except PlanError:
        return True
    return False


def corruptions(operation: Operation) -> Iterator[tuple[str, int]]:
    """Each operand with values that would lead a kernel out of its buffers, or that make no sense."""
    for name, value in operation.operands.items():
        if isinstance(value, float) or name in FLAGS:
            continue
        yield name, -1
        yield name, -(1 << 40)
        yield name, 1 << 62
        if name in ADDRESSES:
            if value:
                yield name, int(value) + (1 << 44)
                if name not in MAY_BE_ABSENT and (operation.kernel, name) != ("rope_store", "n_pairs"):
                    yield name, 0
            if name in PLACES and value:
                yield name, int(value) + 4
        elif name not in HARMLESS_WHEN_LARGE and name != "is_half":
            yield name, 1000 * int(value) + (1 << 40 if name in OFFSETS else 4096)
            if value and name not in OFFSETS and name != "rounded_stride":
                yield name, 0


@pytest.mark.parametrize("name", NAMES)
def test_plans_as_built_are_accepted(models: dict[str, Model], name: str) -> None:
    verify(models[name].plan, models[name].memory, models[name].limits)


@pytest.mark.parametrize("name", NAMES)
def test_every_wrong_operand_is_refused(models: dict[str, Model], name: str) -> None:
    model, accepted = models[name], set[Any]()
    for operation in one_of_each_kind(model):
        for operand, value in corruptions(operation):
            with operand_changed(operation, operand, value):
                if not is_refused(model):
                    accepted.add((operation.kernel, operand, value))
    assert not accepted
    verify(model.plan, model.memory, model.limits)


@pytest.mark.parametrize("name", NAMES)
def test_every_wrong_extent_is_refused(models: dict[str, Model], name: str) -> None:
    model, accepted = models[name], set[Any]()
    for operation in one_of_each_kind(model):
        extent = operation.extent
        for changes in (
            {"cell": extent.cell + 8},
            {"cell": 0},
            {"most": extent.most - 1},
            {"most": extent.most + (1 << 40)},
            {"unit": 0},
            {"unit": -1},
            {"unit": extent.unit + 1},
            {"row_chunks": 0},
            {"row_chunks": extent.row_chunks + 1},
        ):
            with extent_changed(model, operation, **changes):
                if not is_refused(model):
                    accepted.add((operation.kernel, *changes.items()))
    assert not accepted


SIZES = (
    *(
        "n_groups",
        "group_bytes",
        "n_inputs",
        "x_stride",
        "out_stride",
        "stride",
        "n",
        "n_parts",
        "row_bytes",
        "n_heads",
    ),
    *("n_kv_heads", "head_dim", "value_dim", "n_pairs", "max_pages", "head_bytes", "n_columns", "row_chunks", "top_k"),
)


@settings(max_examples=400)
@given(data=st.data())
def test_sizes_are_refused_from_where_they_leave_the_buffer(models: dict[str, Model], data: st.DataObject) -> None:
    """Between the true size and the first refused one lies at most what alignment pads buffers with."""
    model = models[data.draw(st.sampled_from(NAMES))]
    candidates = [o for o in operations(model) if any(name in SIZES for name in o.operands)]
    operation = data.draw(st.sampled_from(candidates))
    name = data.draw(st.sampled_from([name for name in operation.operands if name in SIZES]))
    value = operation.operands[name]
    if isinstance(value, float) or value == 0 or (name == "n_pairs" and operation.kernel == "group"):
        return
    factor = data.draw(st.integers(2, 1 << 20))
    if operation.kernel == "gather_rows" or name in ("n", "n_parts", "n_pairs", "n_columns", "n_inputs"):
        factor = max(factor, 64)  # a row's stride may have been made for a longer row of another use
    with operand_changed(operation, name, int(value) * factor):
        assert is_refused(model), (operation.kernel, operation.operands, name, factor)


def test_writing_into_the_mapped_file_is_refused(models: dict[str, Model]) -> None:
    model = models[MIXTRAL]
    table = operations(model)[0].operands["table"]
    addition = next(o for o in operations(model) if o.kernel == "rms_norm")
    with operand_changed(addition, "out", table):
        assert is_refused(model)


def test_writing_over_the_page_table_is_refused() -> None:
    """The table is large and a row is small here, so that only the overlap is wrong."""
    model = open_model(LLAMA, max_batch_tokens=1, max_sequences=64)
    try:
        norm = next(o for o in operations(model) if o.kernel == "rms_norm")
        with (
            operand_changed(norm, "out", model.limits.arrays["pages"]),
            pytest.raises(PlanError, match="would write over"),
        ):
            verify(model.plan, model.memory, model.limits)
    finally:
        model.close()


def test_a_stage_without_operations_is_refused(models: dict[str, Model]) -> None:
    model = models[LLAMA]
    emptied = model.plan.stages[3]
    operations_before, emptied.operations = emptied.operations, []
    try:
        assert is_refused(model)
    finally:
        emptied.operations = operations_before


def test_an_interrupt_outside_of_memory_is_refused(models: dict[str, Model]) -> None:
    plan = models[LLAMA].plan
    before, plan.interrupt = plan.interrupt, 8
    try:
        assert is_refused(models[LLAMA])
    finally:
        plan.interrupt = before


def test_a_halt_that_nobody_sets_is_refused(models: dict[str, Model]) -> None:
    model = models[MIXTRAL]
    stage = next(stage for stage in model.plan.stages if stage.halt)
    before, stage.halt = stage.halt, 8
    try:
        assert is_refused(model)
    finally:
        stage.halt = before


def test_a_kernel_without_a_rule_is_refused(models: dict[str, Model]) -> None:
    model = models[LLAMA]
    stage = model.plan.stages[1]
    before = stage.operations[0]
    stage.operations[0] = replace(before, kernel="unheard_of")
    try:
        with pytest.raises(PlanError, match="no rule"):
            verify(model.plan, model.memory, model.limits)
    finally:
        stage.operations[0] = before


def test_opening_a_model_whose_plan_is_wrong_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    finish = Plan.finish

    def finish_wrongly(plan: Plan) -> None:
        for stage in plan.stages:
            for operation in stage.operations:
                if operation.kernel.startswith("matmul"):
                    operation.operands["n_groups"] += 1
        finish(plan)

    monkeypatch.setattr(Plan, "finish", finish_wrongly)
    n_threads = threading.active_count()
    with pytest.raises(PlanError, match="matmul"):
        open_small(LLAMA)
    assert threading.active_count() == n_threads
