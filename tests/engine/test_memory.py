"""Memory for kernels: where it lies, what is known of it, and that the plan is exact before anything is taken."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import OutOfMemoryPlanError
from engine.gguf import GGUFReader
from engine.hardware.cpu import usable_cores
from engine.kernels.library import load_library
from engine.kernels.tiers import choose_tier
from engine.memory import Memory, MemoryPlan, ask_for_pages, check_fits, view
from engine.model import _build
from engine.models.hyperparameters import Hyperparameters
from engine.models.keys import Keys
from tests.engine.compact import LLAMA, MIXTRAL, NAMES, model_path, open_small, small_config
from tests.support.cold_file import cold_file, n_pages_in_memory, wait_for_pages

HUGE = 2 << 20


def test_large_buffers_begin_on_a_huge_page_and_small_ones_on_a_cache_line() -> None:
    memory = Memory()
    for n_bytes in (8 * HUGE, 8 * HUGE + 1, 19 * HUGE + 64):
        assert memory.allocate("large", n_bytes, "kv").address % HUGE == 0
    for n_bytes in (1, 63, 64, 65, 1000):
        assert memory.allocate("small", n_bytes, "buffers").address % 64 == 0
    memory.close()


def test_buffers_that_share_a_mapping_leave_no_room_between_them() -> None:
    memory = Memory()
    first = memory.allocate("a", 3 << 20, "weights")
    second = memory.allocate("b", 100, "buffers")
    third = memory.allocate("c", 5 << 20, "weights")
    assert (second.address, third.address) == (first.address + first.n_bytes, second.address + second.n_bytes)
    assert sum(memory.plan().page_kinds.values()) == first.n_bytes + second.n_bytes + third.n_bytes
    memory.close()


@given(sizes=st.lists(st.integers(0, 3 << 20), min_size=1, max_size=12))
def test_buffers_are_zero_apart_and_whole(sizes: list[int]) -> None:
    memory = Memory()
    buffers = [memory.allocate(str(i), size, "buffers") for i, size in enumerate(sizes)]
    for number, buffer in enumerate(buffers, 1):
        array = view(buffer, np.uint8, (buffer.n_bytes,))
        assert not array.any()
        array[:] = number
    for number, buffer in enumerate(buffers, 1):
        assert (view(buffer, np.uint8, (buffer.n_bytes,)) == number).all()
        assert buffer.n_bytes % 64 == 0
    memory.close()


def test_only_extents_inside_one_buffer_are_contained() -> None:
    memory = Memory()
    a = memory.allocate("a", 640, "buffers")
    b = memory.allocate("b", 64, "buffers")
    assert b.address == a.address + 640  # side by side, and still two
    for offset, n_bytes, inside in (
        (0, 640, True),
        (639, 1, True),
        (0, 641, False),
        (600, 41, False),
        (-1, 2, False),
        (640, 64, True),
        (640, 65, False),
        (704, 1, False),
    ):
        assert memory.contains(a.address + offset, n_bytes) is inside, (offset, n_bytes)
    assert not memory.contains(0, 1)
    memory.close()
    assert not memory.contains(a.address, 1)


def test_memory_of_a_mapped_file_is_known_and_not_writable() -> None:
    memory = Memory()
    memory.know(1 << 30, 100)
    assert memory.contains((1 << 30) + 10, 90)
    assert not memory.contains((1 << 30) + 10, 91)
    assert not memory.contains(1 << 30, 1, writable=True)
    buffer = memory.allocate("a", 64, "buffers")
    assert memory.contains(buffer.address, 64, writable=True)
    memory.close()


def test_a_view_beyond_its_buffer_is_refused() -> None:
    memory = Memory()
    buffer = memory.allocate("a", 64, "buffers")
    with pytest.raises(ValueError, match="64 bytes, a view of 128"):
        view(buffer, np.float64, (16,))
    memory.close()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("changes", [{}, {"kv_type": "f32", "threads": 3}, {"activations": "float32"}])
def test_the_plan_measured_before_opening_is_what_is_then_taken(name: str, changes: dict[str, object]) -> None:
    config = small_config(**changes)
    with GGUFReader.open(model_path(name)) as reader:
        keys = Keys(reader.metadata)
        measured = Memory(measure_only=True)
        n_workers = config.threads or usable_cores()
        _build(reader, Hyperparameters.read(keys), keys, config, n_workers, load_library(choose_tier()), measured)
    with open_small(name, **changes) as engine:
        taken = engine.memory
    for kind in ("weights_bytes", "expert_bytes", "kv_bytes", "buffer_bytes"):
        assert getattr(taken, kind) == getattr(measured.plan(), kind), kind
    assert taken.total_bytes == measured.plan().total_bytes > 0
    assert sum(taken.page_kinds.values()) == taken.total_bytes
    assert not measured.plan().page_kinds  # nothing was allocated


def test_kv_bytes_are_those_of_the_pool() -> None:
    with open_small(LLAMA, context_length=256, kv_pool_tokens=1000) as engine:
        reader = GGUFReader.open(model_path(LLAMA))
        hyper = Hyperparameters.read(Keys(reader.metadata))
        reader.close()
        per_token = hyper.n_layers * hyper.n_kv_heads * (hyper.head_dim + hyper.value_dim) * 2
        assert engine.memory.kv_bytes == math.ceil(1000 / 32) * 32 * per_token


def test_a_plan_beyond_the_available_memory_is_refused_with_all_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=4_000_000_000))
    check_fits(MemoryPlan(3_000_000_000, 0, 500_000_000, 200_000_000, {}))
    with pytest.raises(OutOfMemoryPlanError) as caught:
        check_fits(MemoryPlan(3_000_000_000, 1_250_000_000, 500_000_000, 70_000_000, {}))
    for figure in (
        "4.82 GB",
        "weights 3.00 GB",
        "experts 1.25 GB",
        "KV cache 0.50 GB",
        "buffers 0.07 GB",
        "3.73 GB are",
    ):
        assert figure in str(caught.value)


def test_a_model_that_does_not_fit_is_refused_before_anything_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    open_small(MIXTRAL).close()  # what is needed once in a process is there
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=1 << 28))
    process, page_kinds = psutil.Process(), []
    monkeypatch.setattr(Memory, "fill_later", lambda memory, _fill: page_kinds.append(memory.plan().page_kinds))
    before = process.memory_info().rss
    with pytest.raises(OutOfMemoryPlanError, match=r"KV cache 8\.59 GB.*0\.00 GB are available"):
        open_small(MIXTRAL, kv_pool_tokens=1 << 23)
    assert page_kinds  # buffers were reserved
    assert process.memory_info().rss - before < 8 << 20


def test_buffers_are_filled_once_and_in_order() -> None:
    memory, filled = Memory(), []
    memory.fill_later(lambda: filled.append(1))
    memory.fill_later(lambda: filled.append(2))
    memory.commit()
    assert not filled
    memory.fill()
    memory.fill()
    assert filled == [1, 2]
    memory.close()


def test_a_refusal_of_the_system_is_told_after_the_sum_of_all_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than the address space holds cannot even be reserved; the plan is made to its end nevertheless."""
    memory = Memory()
    first = memory.allocate("too much", 1 << 50, "kv")
    second = memory.allocate("small", 64, "buffers")
    assert second.address >= first.address + first.n_bytes
    with pytest.raises(OutOfMemoryPlanError, match=r"KV cache 1125899\.91 GB"):
        memory.commit()
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=1 << 60))
    with pytest.raises(OutOfMemoryPlanError, match=r"The system refused 1125899\.91 GB"):
        memory.commit()
    memory.close()


def test_pages_that_are_asked_for_come_without_being_touched_and_only_they(tmp_path: Path) -> None:
    with cold_file(tmp_path / "weights", 40 << 20) as start:
        address, wanted = start + (32 << 20), 3 << 20

        ask_for_pages(address + 100, wanted - 200)

        wait_for_pages(address, wanted)
        assert n_pages_in_memory(start, 16 << 20) == 0
