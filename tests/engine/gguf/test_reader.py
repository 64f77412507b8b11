"""Sound GGUF files open, and everything in them is found as it was written."""

from __future__ import annotations

import ctypes
import gc
import os
import struct
import tracemalloc
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import gguf
import numpy as np
import pytest

from engine.gguf import GGUFReader, GGUFWriter, StringArray, TensorType, ValueType
from tests.support.gguf_files import gguf_array, gguf_file, gguf_key, gguf_string, gguf_tensor

SCALARS = [
    (0, "<B", 255),
    (1, "<b", -128),
    (2, "<H", 65_535),
    (3, "<h", -32_768),
    (4, "<I", 2**32 - 1),
    (5, "<i", -(2**31)),
    (6, "<f", 0.5),
    (10, "<Q", 2**64 - 1),
    (11, "<q", -(2**63)),
    (12, "<d", 0.1),
]


def open_bytes(folder: Path, content: bytes) -> GGUFReader:
    path = folder / "model.gguf"
    path.write_bytes(content)
    return GGUFReader.open(path)


@pytest.mark.parametrize("version", [2, 3])
def test_every_type_of_value_is_read(tmp_path: Path, version: int) -> None:
    keys = [gguf_key(f"s{number}", number, struct.pack(layout, value)) for number, layout, value in SCALARS]
    keys += [
        gguf_key(f"a{number}", 9, gguf_array(number, 2, struct.pack(layout, value) * 2))
        for number, layout, value in SCALARS
    ]
    keys += [
        gguf_key("true", 7, b"\1"),
        gguf_key("flags", 9, gguf_array(7, 3, b"\1\0\1")),
        gguf_key("text", 8, gguf_string("é 蜂鸟\n")),
        gguf_key("damaged text", 8, gguf_string(b"a\xffb")),
        gguf_key("nested", 9, gguf_array(9, 2, gguf_array(4, 1, struct.pack("<I", 7)) + gguf_array(8, 0, b""))),
    ]

    with open_bytes(tmp_path, gguf_file(keys, version=version)) as reader:
        metadata = reader.metadata

    assert reader.version == version
    for number, layout, value in SCALARS:
        assert metadata[f"s{number}"] == value
        assert metadata[f"a{number}"].dtype == np.dtype(layout)
        assert metadata[f"a{number}"].tolist() == [value, value]
        assert not metadata[f"a{number}"].flags.writeable
    assert metadata["true"] is True
    assert metadata["flags"].tolist() == [True, False, True]
    assert metadata["text"] == "é 蜂鸟\n"
    assert metadata["damaged text"] == "a\N{REPLACEMENT CHARACTER}b"
    assert metadata["nested"][0].tolist() == [7]
    assert metadata["nested"][1].tolist() == []


def test_tensors_are_found_with_numpy_shapes_and_their_bytes(tmp_path: Path) -> None:
    data = bytes(range(64)) + bytes(34 * 6)
    tensors = [
        gguf_tensor("scalar", [], 0, 0),
        gguf_tensor("experts", [32, 2, 3], 8, 64),
        gguf_tensor("bias", [4], 26, 32),
    ]

    with open_bytes(tmp_path, gguf_file([], tensors, data)) as reader:
        assert list(reader.tensors) == ["scalar", "experts", "bias"]
        experts = reader.tensors["experts"]
        assert (experts.type, experts.shape, experts.n_bytes) == (TensorType.Q8_0, (3, 2, 32), 204)
        assert reader.tensors["scalar"].shape == ()
        assert reader.data("bias").tolist() == list(range(32, 48))
        assert not reader.data("bias").flags.writeable
        assert ctypes.string_at(reader.address("bias"), 16) == bytes(range(32, 48))
        content = (tmp_path / "model.gguf").read_bytes()
        assert content[experts.offset : experts.offset + 204] == reader.data("experts").tobytes()
        assert reader.file_bytes == len(content)


def test_a_file_without_tensors_may_end_at_its_header(tmp_path: Path) -> None:
    content = gguf_file([gguf_key("general.architecture", 8, gguf_string("llama"))]).rstrip(b"\0")

    with open_bytes(tmp_path, content) as reader:
        assert dict(reader.metadata) == {"general.architecture": "llama"}
        assert not reader.tensors


def test_the_alignment_of_the_file_is_used(tmp_path: Path) -> None:
    keys = [gguf_key("general.alignment", 4, struct.pack("<I", 128))]
    content = gguf_file(keys, [gguf_tensor("t", [4], 24, 128)], bytes(128) + b"abcd", alignment=128)

    with open_bytes(tmp_path, content) as reader:
        assert reader.alignment == 128
        assert reader.data("t").tobytes() == b"abcd"


def test_a_closed_reader_gives_no_more_data_but_keeps_its_metadata(tmp_path: Path) -> None:
    keys = [gguf_key("tokens", 9, gguf_array(8, 2, gguf_string("a") + gguf_string("b")))]
    reader = open_bytes(tmp_path, gguf_file(keys, [gguf_tensor("t", [4], 24, 0)], b"abcd"))
    view = reader.data("t")

    reader.close()
    reader.close()

    assert view.tobytes() == b"abcd"
    assert reader.metadata["tokens"].tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="is closed: tensor 't' can no longer be read"):
        reader.data("t")
    with pytest.raises(ValueError, match="is closed"):
        reader.address("t")


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="reads Linux's list of mappings")
@pytest.mark.parametrize("content", [gguf_file(), gguf_file(version=7), b"{}"], ids=["sound", "unknown", "foreign"])
def test_nothing_stays_mapped_or_open(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    n_open = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 (Path.iterdir needs a descriptor of its own)

    try:
        GGUFReader.open(path).close()
    except Exception:
        gc.collect()

    assert str(path) not in Path("/proc/self/maps").read_text()
    assert len(os.listdir("/proc/self/fd")) == n_open  # noqa: PTH208


# Each list visits another way through the walk: guessed chains, single steps, changes between them.
STRING_LISTS: dict[str, list[str]] = {
    "none": [],
    "one": ["a"],
    "empty": [""] * 1000,
    "short": [f"token {i}" for i in range(5000)],
    "long": ["x" * 300] * 100,
    "mixed": ["" if i % 7 == 0 else "y" * (i % 600) for i in range(3000)],
    "long now and then": ["z" * 256 if i % 40 == 39 else "ab" for i in range(2000)],
    "with NULs": ["\0" * (i % 20) + "w" for i in range(1000)],
    "all NULs": ["\0" * 8] * 300,
    "looks like lengths": ["\1\0\0\0\0\0\0\0q", "a"] * 400,
    "not ASCII": ["é蜂🐦" * (i % 5) for i in range(2000)],
}


@pytest.mark.parametrize("strings", STRING_LISTS.values(), ids=STRING_LISTS.keys())
def test_string_arrays_are_sequences_of_the_strings(tmp_path: Path, strings: list[str]) -> None:
    writer = GGUFWriter(tmp_path / "m.gguf")
    writer.add("strings", strings, ValueType.STRING)
    writer.add("after", 7)

    with GGUFReader.open(writer.write()) as reader:
        array = reader.metadata["strings"]
        assert reader.metadata["after"] == 7

    assert isinstance(array, Sequence)
    assert len(array) == len(strings)
    assert array.tolist() == list(array) == strings
    assert array == strings
    assert [array[i] for i in range(len(strings))] == strings
    assert [array.raw(i) for i in range(len(strings))] == [text.encode() for text in strings]
    assert array[1:-1:3] == strings[1:-1:3]
    if strings:
        assert array[-1] == strings[-1]
        assert strings[len(strings) // 2] in array
    assert array != [*strings, "more"]
    for index in (len(strings), -len(strings) - 1):
        with pytest.raises(IndexError):
            array[index]


def test_strings_that_are_not_utf8_decode_with_replacement_and_keep_their_bytes(tmp_path: Path) -> None:
    payload = gguf_array(8, 3, gguf_string("a") + gguf_string(b"\xe2\x82") + gguf_string("c"))

    with open_bytes(tmp_path, gguf_file([gguf_key("tokens", 9, payload)])) as reader:
        tokens = reader.metadata["tokens"]

    assert tokens.tolist() == ["a", "\N{REPLACEMENT CHARACTER}", "c"]
    assert tokens[1] == "\N{REPLACEMENT CHARACTER}"
    assert tokens.raw(1) == b"\xe2\x82"


def test_a_large_vocabulary_is_decoded_only_when_asked(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    letters = rng.integers(97, 123, 152_000 * 12, np.uint8).tobytes().decode()
    tokens = [letters[12 * i : 12 * i + 1 + i % 12] for i in range(152_000)]
    merges = [f"{left} {right}" for left, right in pairwise(tokens[:150_001])]
    writer = GGUFWriter(tmp_path / "m.gguf")
    writer.add("tokenizer.ggml.tokens", tokens)
    writer.add("tokenizer.ggml.merges", merges)
    writer.add("tokenizer.ggml.token_type", np.ones(len(tokens), np.int32))
    path = writer.write()

    tracemalloc.start()
    reader = GGUFReader.open(path)
    n_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    reader.close()

    assert n_bytes < 12e6  # some 8 million for 302,000 strings; an object for each would take 15 million more
    assert isinstance(reader.metadata["tokenizer.ggml.tokens"], StringArray)
    assert reader.metadata["tokenizer.ggml.tokens"] == tokens
    assert reader.metadata["tokenizer.ggml.merges"] == merges


FIXTURES = os.environ.get("COLIBRI_FIXTURES")
if FIXTURES:

    @pytest.mark.parametrize("path", sorted(Path(FIXTURES).glob("*/gguf/*.gguf")), ids=lambda path: path.stem)
    def test_a_fixture_is_read_as_the_gguf_package_reads_it(path: Path) -> None:
        theirs = gguf.GGUFReader(path)

        with GGUFReader.open(path) as ours:
            keys = {name: field for name, field in theirs.fields.items() if not name.startswith("GGUF.")}
            assert list(ours.metadata) == list(keys)
            for name, field in keys.items():
                value = ours.metadata[name]
                expected = field.contents()
                assert (list(value) if isinstance(expected, list) else value) == expected, name
            assert list(ours.tensors) == [tensor.name for tensor in theirs.tensors]
            for tensor in theirs.tensors:
                info = ours.tensors[tensor.name]
                assert int(info.type) == int(tensor.tensor_type)
                assert info.shape == tuple(tensor.shape.tolist()[::-1])
                assert (info.offset, info.n_bytes) == (tensor.data_offset, tensor.n_bytes)
                assert np.array_equal(ours.data(tensor.name), tensor.data.reshape(-1).view(np.uint8))
