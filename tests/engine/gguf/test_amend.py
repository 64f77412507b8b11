"""Metadata of a model's file is changed without touching its tensors or the other keys."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest

from engine.gguf import GGUFReader, GGUFWriter, TensorType
from engine.gguf.amend import amend
from engine.gguf.value_types import ValueType


@pytest.fixture
def model(tmp_path: Path) -> Path:
    writer = GGUFWriter(tmp_path / "model.gguf", alignment=64)
    writer.add("general.architecture", "llama")
    writer.add("a.byte", 7, ValueType.UINT8)
    writer.add("a.double", 0.1, ValueType.FLOAT64)
    writer.add("a.texts", ["one", "zwei"])
    writer.add("old.one", 1)
    writer.add("old.two", "2")
    writer.add_tensor("x", TensorType.F32, (3, 5), np.arange(15, dtype=np.float32))
    writer.add_tensor("y", TensorType.F16, (2, 2), np.ones((2, 2), np.float16))
    return writer.write()


def test_keys_are_added_replaced_and_dropped(model: Path) -> None:
    told: list[int] = []
    amend(model, {"a.new": "text", "general.architecture": "qwen2"}, without="old.", progress=told.append)
    reader = gguf.GGUFReader(model)
    values = {name: field.contents() for name, field in reader.fields.items() if not name.startswith("GGUF.")}
    assert values == {
        "general.alignment": 64,
        "a.byte": 7,
        "a.double": 0.1,
        "a.texts": ["one", "zwei"],
        "a.new": "text",
        "general.architecture": "qwen2",
    }
    assert reader.fields["a.byte"].types == [gguf.GGUFValueType.UINT8]
    assert reader.fields["a.double"].types == [gguf.GGUFValueType.FLOAT64]
    assert told[-1] == 15 * 4 + 8
    with GGUFReader.open(model) as ours:
        assert ours.data("x").view("<f4").tolist() == list(range(15))
        assert ours.data("y").view("<f2").tolist() == [1] * 4


def test_what_ends_the_work_leaves_the_file_as_it_was(model: Path) -> None:
    before = model.read_bytes()

    def refuse(_done_bytes: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        amend(model, {"a.new": 1}, progress=refuse)
    assert model.read_bytes() == before
    assert list(model.parent.iterdir()) == [model]


def test_amending_twice_gives_the_same_bytes(model: Path) -> None:
    amend(model, {"a.new": 1.5})
    first = model.read_bytes()
    amend(model, {"a.new": 1.5})
    assert model.read_bytes() == first
