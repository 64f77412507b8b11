"""Headers of safetensors files: sound ones are read as the safetensors package reads them, all others are refused."""

from __future__ import annotations

import json
import os
import re
import struct
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open

from engine.convert.safetensors import ITEM_BYTES, read_header
from engine.errors import ColibriError, MissingFileError, ModelFormatError, UnsupportedModelError
from tests.support.checkpoints import write_weights

ENTRY = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}


def write(path: Path, header: Any, n_data_bytes: int = 24) -> Path:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(raw)) + raw + bytes(n_data_bytes))
    return path


def refusal(path: Path, kind: type[ColibriError] = ModelFormatError) -> str:
    with pytest.raises(kind) as caught:
        read_header(path)
    assert type(caught.value) is kind
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_a_sound_file_is_read_as_the_safetensors_package_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    write_weights(path, (("b", "F32", [3, 5]), ("a", "F16", [7]), ("scalar", "F32", []), ("none", "BF16", [0, 4])))

    found = read_header(path)

    with safe_open(path, "numpy") as reference:
        assert set(found) == set(reference.keys())
        raw = path.read_bytes()
        for name, dtype in (("b", "<f4"), ("a", "<f2"), ("scalar", "<f4")):
            tensor = found[name]
            values = np.frombuffer(raw[tensor.offset : tensor.offset + tensor.n_bytes], dtype).reshape(tensor.shape)
            assert np.array_equal(values, reference.get_tensor(name))


def test_metadata_is_no_tensor(tmp_path: Path) -> None:
    header = {"__metadata__": {"format": "pt"}, "a": ENTRY}
    assert list(read_header(write(tmp_path / "m.safetensors", header))) == ["a"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"shape": [2, 4]}, "32 bytes"),
        ({"data_offsets": [0, 23]}, "24 bytes"),
        ({"data_offsets": [1, 25]}, "within the file's"),
        ({"data_offsets": [24, 0]}, "24 bytes"),
        ({"data_offsets": [-24, 0]}, "data_offsets"),
        ({"data_offsets": [0]}, "data_offsets"),
        ({"data_offsets": [0.0, 24.0]}, "data_offsets"),
        ({"shape": [-2, -3]}, "shape"),
        ({"shape": [True, 6]}, "shape"),
        ({"shape": [2**40, 2**40, 0]}, "24"),
        ({"shape": [2**40, 2**40]}, "shape"),
        ({"shape": [1] * 9}, "shape"),
        ({"shape": "23"}, "shape"),
        ({"dtype": 4}, "dtype"),
    ],
)
def test_a_contradictory_entry_is_refused_by_name(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    path = write(tmp_path / "m.safetensors", {"weight": {**ENTRY, **change}})
    text = refusal(path)
    assert "'weight'" in text
    assert words in text


def test_an_unknown_type_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    path = write(tmp_path / "m.safetensors", {"weight": {**ENTRY, "dtype": "F6_E2M3"}})
    text = refusal(path, UnsupportedModelError)
    assert "F6_E2M3" in text
    assert "BF16" in text


def test_overlapping_tensors_are_refused_with_both_names(tmp_path: Path) -> None:
    other = {"dtype": "U8", "shape": [8], "data_offsets": [20, 28]}
    text = refusal(write(tmp_path / "m.safetensors", {"weight": ENTRY, "bias": other}, 28))
    assert "'weight'" in text
    assert "'bias'" in text


def test_a_name_that_stands_twice_is_refused(tmp_path: Path) -> None:
    entry = json.dumps(ENTRY)
    text = refusal(write(tmp_path / "m.safetensors", f'{{"weight": {entry}, "weight": {entry}}}'.encode()))
    assert "'weight' twice" in text


@pytest.mark.parametrize("header", [b"[]", b"{", b"\xff\xfe", b"null", b"[" * 100_000, b'{"a": 1}', b'{"a": NaN}'])
def test_what_is_no_header_is_refused(header: bytes, tmp_path: Path) -> None:
    refusal(write(tmp_path / "m.safetensors", header))


@pytest.mark.parametrize("length", [0, 1, 2**63, 2**64 - 1, 100_000_001, 1000])
def test_a_header_length_that_cannot_be_is_refused(length: int, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(struct.pack("<Q", length) + b"{}" + bytes(64))
    refusal(path)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 4976698672\n",
            "pointer.*4,976,698,672.*git lfs",
        ),
        (b"<!DOCTYPE html><html><body>Not found</body></html>", "HTML page.*Download"),
        (b"GGUF\x03\x00\x00\x00" + bytes(64), "a GGUF model.*open it as it is"),
        (b"PK\x03\x04" + b"archive/data.pkl" + bytes(64), "PyTorch checkpoint.*safetensors files"),
        (b"", "an empty file"),
    ],
)
def test_another_kind_of_file_is_named_for_what_it_is(content: bytes, what: str, tmp_path: Path) -> None:
    path = tmp_path / "model-00001-of-00002.safetensors"
    path.write_bytes(content)
    assert re.search(what, refusal(path))


def test_a_missing_file_a_folder_and_a_pipe_are_refused(tmp_path: Path) -> None:
    refusal(tmp_path / "none.safetensors", MissingFileError)
    (tmp_path / "folder.safetensors").mkdir()
    refusal(tmp_path / "folder.safetensors")
    os.mkfifo(tmp_path / "pipe.safetensors")
    refusal(tmp_path / "pipe.safetensors")
    (tmp_path / "loop.safetensors").symlink_to("loop.safetensors")
    refusal(tmp_path / "loop.safetensors", MissingFileError)


@settings(max_examples=200)
@given(cut=st.integers(0, 400))
def test_every_truncation_is_refused(cut: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("cut") / "m.safetensors"
    header = {
        name: {"dtype": "F32", "shape": [4], "data_offsets": [16 * n, 16 * n + 16]} for n, name in enumerate("abc")
    }
    whole = write(path, header, 48).read_bytes()
    path.write_bytes(whole[: min(cut, len(whole) - 1)])
    refusal(path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
entries = st.fixed_dictionaries(
    {},
    optional={
        "dtype": st.sampled_from([*ITEM_BYTES, "F31"]) | json_values,
        "shape": st.lists(st.integers(-1, 2**40), max_size=4) | json_values,
        "data_offsets": st.lists(st.integers(-1, 200), min_size=2, max_size=2) | json_values,
    },
)


@settings(max_examples=400)
@given(header=st.dictionaries(st.text(max_size=12), entries | json_values, max_size=4), n_bytes=st.integers(0, 100))
def test_any_header_is_read_soundly_or_refused(
    header: dict[str, Any], n_bytes: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = write(tmp_path_factory.mktemp("any") / "m.safetensors", header, n_bytes)
    file_bytes = path.stat().st_size
    try:
        tensors = read_header(path)
    except (ModelFormatError, UnsupportedModelError):
        return
    ends = sorted((tensor.offset, tensor.offset + tensor.n_bytes) for tensor in tensors.values() if tensor.n_bytes)
    assert all(0 < first <= last <= file_bytes for first, last in ends)
    assert all(before[1] <= after[0] for before, after in pairwise(ends))


@settings(max_examples=200)
@given(raw=st.binary(max_size=64))
def test_any_bytes_are_refused_or_empty(raw: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("raw") / "m.safetensors"
    path.write_bytes(raw)
    try:
        read_header(path)
    except (ModelFormatError, UnsupportedModelError) as error:
        assert str(path) in str(error)
