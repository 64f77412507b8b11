"""What GGUFWriter writes is read back equal, by our reader and by the gguf package; and it is written whole or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.gguf import GGUFReader, GGUFWriter, TensorType, ValueType
from tests.support.gguf_files import RANDOM_TYPES, random_tensor

INFERRED = [
    (True, "BOOL"),
    (0, "UINT32"),
    (2**32 - 1, "UINT32"),
    (-1, "INT32"),
    (2**32, "UINT64"),
    (-(2**31) - 1, "INT64"),
    (0.5, "FLOAT32"),
    ("text é 蜂鸟", "STRING"),
    (np.uint16(7), "UINT16"),
    (np.float64(0.1), "FLOAT64"),
]
INFERRED_LISTS = [
    ([True, False], "BOOL"),
    ([1, -2], "INT32"),
    ([1, 2**31], "UINT32"),
    ([-1, 2**31], "INT64"),
    ([2**63], "UINT64"),
    ([1, 0.5], "FLOAT32"),
    (["a", "", "é\0b"], "STRING"),
    (np.arange(3, dtype=np.int8), "INT8"),
]


def write(path: Path, *keys: tuple[Any, ...]) -> Path:
    writer = GGUFWriter(path)
    for key in keys:
        writer.add(*key)
    return writer.write()


@pytest.mark.parametrize(("value", "type_name"), INFERRED, ids=str)
def test_a_scalar_gets_the_type_that_holds_it(tmp_path: Path, value: Any, type_name: str) -> None:
    path = write(tmp_path / "m.gguf", ("key", value))

    field = gguf.GGUFReader(path).fields["key"]
    assert field.types[0].name == type_name
    assert field.contents() == value
    with GGUFReader.open(path) as reader:
        assert reader.metadata["key"] == value
        assert isinstance(reader.metadata["key"], bool) is isinstance(value, bool)


@pytest.mark.parametrize(("values", "type_name"), INFERRED_LISTS, ids=str)
def test_a_list_gets_the_type_that_holds_its_elements(tmp_path: Path, values: Any, type_name: str) -> None:
    path = write(tmp_path / "m.gguf", ("key", values))

    field = gguf.GGUFReader(path).fields["key"]
    assert [value_type.name for value_type in field.types] == ["ARRAY", type_name]
    assert field.contents() == list(values)
    with GGUFReader.open(path) as reader:
        assert list(reader.metadata["key"]) == list(values)


@pytest.mark.parametrize("value_type", [t for t in ValueType if t not in (ValueType.ARRAY, ValueType.STRING)])
def test_an_explicit_type_is_kept(tmp_path: Path, value_type: ValueType) -> None:
    value = value_type is ValueType.BOOL or 1
    path = write(tmp_path / "m.gguf", ("one", value, value_type), ("many", [value] * 3, value_type))

    fields = gguf.GGUFReader(path).fields
    assert fields["one"].types[0].name == value_type.name
    assert fields["many"].types[1].name == value_type.name


def test_an_empty_list_with_a_type_is_kept(tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", ("merges", [], ValueType.STRING), ("scores", [], ValueType.FLOAT32))

    with GGUFReader.open(path) as reader:
        assert reader.metadata["merges"].tolist() == []
        assert reader.metadata["scores"].shape == (0,)


@pytest.mark.parametrize(
    ("key", "value", "value_type", "message"),
    [
        ("k", [], None, "element type of an empty list"),
        ("k", [1, "a"], None, "elements of one type, found STRING, UINT32"),
        ("k", 256, ValueType.UINT8, "key 'k': expected a number that fits UINT8, found 256"),
        ("k", -1, ValueType.UINT32, "fits UINT32, found -1"),
        ("k", 1e300, ValueType.FLOAT32, "fits FLOAT32, found 1e\\+300"),
        ("k", 2**64, None, "at most 64 bits"),
        ("k", 1, ValueType.STRING, "expected text for STRING, found 1"),
        ("k", "a", ValueType.UINT8, "expected a number for UINT8, found 'a'"),
        ("k", 1, ValueType.BOOL, "expected True or False"),
        ("k", True, ValueType.UINT8, "expected a number"),
        ("k", None, None, "found NoneType"),
        ("k", "\ud800", None, "key 'k': 'utf-8' codec can't encode"),
        ("k", np.arange(4).reshape(2, 2), None, "one dimension, found 2"),
        ("k", np.array([300]), ValueType.UINT8, "fit UINT8, found 300 to 300"),
        ("k", np.arange(3), ValueType.ARRAY, "elements"),
        ("", 1, None, "1 to 65,535 bytes, found 0"),
        ("general.alignment", 64, None, "found 'general.alignment' again"),
    ],
    ids=str,
)
def test_a_value_that_does_not_fit_is_refused(
    tmp_path: Path, key: str, value: Any, value_type: ValueType | None, message: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        GGUFWriter(tmp_path / "m.gguf").add(key, value, value_type)


@settings(max_examples=40)
@given(
    strings=st.lists(st.text(max_size=400), max_size=30),
    shapes=st.lists(
        st.tuples(st.sampled_from(RANDOM_TYPES), st.lists(st.integers(1, 3), max_size=3), st.integers(1, 2)), max_size=6
    ),
    alignment=st.sampled_from([8, 32, 4096]),
    seed=st.integers(0, 99),
)
def test_tensors_and_strings_come_back_as_they_went_in(
    tmp_path_factory: pytest.TempPathFactory,
    strings: list[str],
    shapes: list[tuple[TensorType, list[int], int]],
    alignment: int,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    path = tmp_path_factory.mktemp("round") / "m.gguf"
    writer = GGUFWriter(path, alignment)
    writer.add("strings", strings, ValueType.STRING)
    written = {}
    for index, (tensor_type, leading, n_blocks) in enumerate(shapes):
        shape = (*leading, n_blocks * tensor_type.block_size)
        written[f"t{index}"] = (tensor_type, shape, random_tensor(rng, tensor_type, shape))
        writer.add_tensor(f"t{index}", *written[f"t{index}"])
    writer.write()

    theirs = gguf.GGUFReader(path)
    assert {tensor.name for tensor in theirs.tensors} == set(written)
    with GGUFReader.open(path) as ours:
        assert ours.metadata["strings"] == strings
        assert list(ours.tensors) == list(written)
        for tensor in theirs.tensors:
            tensor_type, shape, data = written[tensor.name]
            info = ours.tensors[tensor.name]
            assert (info.type, info.shape, info.n_bytes) == (tensor_type, shape, len(data))
            assert info.offset == tensor.data_offset
            assert info.offset % alignment == 0
            assert np.array_equal(ours.data(tensor.name), data)
            assert np.array_equal(tensor.data.reshape(-1).view(np.uint8), data)


def test_data_may_be_bytes_a_float_array_or_a_function(tmp_path: Path) -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    writer = GGUFWriter(tmp_path / "m.gguf")
    writer.add_tensor("bytes", TensorType.F32, (2, 3), values.tobytes())
    writer.add_tensor("array", TensorType.F32, (2, 3), np.asfortranarray(values))
    writer.add_tensor("later", TensorType.F32, (2, 3), lambda: values)

    with GGUFReader.open(writer.write()) as reader:
        for name in ("bytes", "array", "later"):
            assert np.array_equal(reader.data(name).view(np.float32), values.reshape(-1))


@pytest.mark.parametrize(
    ("name", "shape", "n_bytes", "message"),
    [
        ("t", (32,), 34, "found 't' again"),
        ("u", (32,), 33, "expected 34 bytes for Q8_0 of shape \\(32,\\), found 33"),
        ("u", (33,), 34, "do not divide rows of 33"),
        ("u", (0, 32), 0, "dimensions from 1 on"),
        ("u", (1, 1, 1, 1, 32), 34, "up to 4 dimensions"),
        ("u" * 64, (32,), 34, "1 to 63 bytes"),
    ],
)
def test_a_tensor_that_contradicts_itself_is_refused(
    tmp_path: Path, name: str, shape: tuple[int, ...], n_bytes: int, message: str
) -> None:
    writer = GGUFWriter(tmp_path / "m.gguf")
    writer.add_tensor("t", TensorType.Q8_0, (32,), bytes(34))

    with pytest.raises(ValueError, match=message):
        writer.add_tensor(name, TensorType.Q8_0, shape, bytes(n_bytes))


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", ("key", "old"))
    before = path.read_bytes()
    writer = GGUFWriter(path)
    writer.add_tensor("t", TensorType.F32, (4,), lambda: bytes(15))

    with pytest.raises(ValueError, match="expected 16 bytes"):
        writer.write()

    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_replaces_the_old_file_while_a_reader_keeps_its_own(tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", ("key", "old"))
    with GGUFReader.open(path) as old:
        write(path, ("key", "new"))

        assert old.metadata["key"] == "old"
        with GGUFReader.open(path) as new:
            assert new.metadata["key"] == "new"


@pytest.mark.parametrize("alignment", [0, 4, 48, -32])
def test_an_alignment_that_is_no_power_of_two_is_refused(tmp_path: Path, alignment: int) -> None:
    with pytest.raises(ValueError, match=f"found {alignment}"):
        GGUFWriter(tmp_path / "m.gguf", alignment)


def test_a_tensor_may_come_in_pieces(tmp_path: Path) -> None:
    values = np.arange(64, dtype=np.float32).reshape(8, 8)
    writer = GGUFWriter(tmp_path / "model.gguf")
    writer.add_tensor("a.weight", TensorType.F32, (8, 8), lambda: iter([values[:3], values[3:7].tobytes(), values[7:]]))
    with GGUFReader.open(writer.write()) as reader:
        assert reader.data("a.weight").tobytes() == values.tobytes()


@pytest.mark.parametrize("n_rows", [7, 9])
def test_pieces_of_another_size_in_all_are_refused_and_leave_no_file(n_rows: int, tmp_path: Path) -> None:
    rows = [np.zeros(8, np.float32)] * n_rows
    writer = GGUFWriter(tmp_path / "model.gguf")
    writer.add_tensor("a.weight", TensorType.F32, (8, 8), lambda: iter(rows))
    with pytest.raises(ValueError, match=rf"expected 256 bytes .* found {n_rows * 32}"):
        writer.write()
    assert list(tmp_path.iterdir()) == []


def test_an_outline_has_the_header_and_the_length_but_no_data(tmp_path: Path) -> None:
    def writer(path: Path) -> GGUFWriter:
        made = GGUFWriter(path)
        made.add("general.name", "outline")
        for name in ("a", "b"):
            made.add_tensor(name, TensorType.F32, (1000, 1000), lambda: np.ones((1000, 1000), np.float32))
        return made

    outline, whole = tmp_path / "outline.gguf", writer(tmp_path / "whole.gguf").write()
    with outline.open("wb") as file:
        writer(outline).write_outline(file)
    assert outline.stat().st_size == whole.stat().st_size
    assert outline.stat().st_blocks * 512 < 100_000
    with GGUFReader.open(outline) as some, GGUFReader.open(whole) as all_:
        assert some.metadata == all_.metadata
        assert dict(some.tensors) == dict(all_.tensors)
