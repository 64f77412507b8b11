"""Whatever bytes a file has: it opens, or it is refused by name, in little time and little memory."""

from __future__ import annotations

import struct
import time
import tracemalloc
from functools import cache
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.errors import ModelFormatError, UnsupportedModelError
from engine.gguf import GGUFReader, StringArray
from tests.support.gguf_files import gguf_array, gguf_file, gguf_key, gguf_string, gguf_tensor

MAX_MEMORY_BYTES = 50 * 1024 * 1024
MAX_SECONDS = 60.0  # what grows with the square of the file would take hours


@cache
def sound_file() -> bytes:
    """A small file in which every part of the format occurs."""
    strings = b"".join(gguf_string(text) for text in ["a", "", "bc" * 200, "é", *"tokens of a vocabulary" * 4])
    keys = [
        gguf_key("general.architecture", 8, gguf_string("llama")),
        gguf_key("general.alignment", 4, struct.pack("<I", 64)),
        gguf_key("llama.block_count", 4, struct.pack("<I", 2)),
        gguf_key("tokens", 9, gguf_array(8, 4 + 88, strings)),
        gguf_key("scores", 9, gguf_array(6, 3, struct.pack("<3f", 1, 2, 3))),
        gguf_key("flags", 9, gguf_array(7, 2, b"\0\1")),
        gguf_key("nested", 9, gguf_array(9, 2, gguf_array(4, 1, b"\1\0\0\0") + gguf_array(8, 1, gguf_string("x")))),
        gguf_key("bool", 7, b"\1"),
        gguf_key("double", 12, struct.pack("<d", 0.5)),
    ]
    tensors = [
        gguf_tensor("token_embd.weight", [256, 3], 12, 0),
        gguf_tensor("blk.0.ffn_down_exps.weight", [32, 2, 2], 8, 448),
        gguf_tensor("output_norm.weight", [16], 0, 640),
    ]
    return gguf_file(keys, tensors, bytes(range(256)) * 2 + bytes(192), alignment=64)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "model.gguf"


def open_or_refuse(path: Path, content: bytes) -> bool:
    """Whether `content` opens; reads all of what it has. Any other error than the two named ones comes through."""
    path.write_bytes(content)
    start = time.perf_counter()
    tracemalloc.start()
    try:
        with GGUFReader.open(path) as reader:
            for value in reader.metadata.values():
                if isinstance(value, StringArray):
                    assert len(value.tolist()) == len(value)
            for name, tensor in reader.tensors.items():
                assert reader.data(name).nbytes == tensor.n_bytes
        opened = True
    except (ModelFormatError, UnsupportedModelError):
        opened = False
    finally:
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak_bytes < MAX_MEMORY_BYTES
    assert time.perf_counter() - start < MAX_SECONDS
    return opened


def test_the_sound_file_opens(path: Path) -> None:
    assert open_or_refuse(path, sound_file())


@settings(max_examples=400)
@given(edits=st.lists(st.tuples(st.integers(0, 4000), st.binary(min_size=1, max_size=9)), min_size=1, max_size=4))
def test_changed_bytes_are_opened_or_refused(path: Path, edits: list[tuple[int, bytes]]) -> None:
    content = bytearray(sound_file())
    for place, new in edits:
        start = place % len(content)
        content[start : start + len(new)] = new

    open_or_refuse(path, bytes(content))


SPECIAL = [0, 1, 7, 31, 255, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**61, 2**63 - 1, 2**63, 2**64 - 8, 2**64 - 1]


@settings(max_examples=400)
@given(place=st.integers(4, 3000), value=st.sampled_from(SPECIAL), wide=st.booleans())
def test_telling_numbers_anywhere_are_opened_or_refused(path: Path, place: int, value: int, wide: bool) -> None:
    content = bytearray(sound_file())
    new = value.to_bytes(8, "little")[: 8 if wide else 4]
    start = place % len(content)
    content[start : start + len(new)] = new

    open_or_refuse(path, bytes(content))


@settings(max_examples=300)
@given(place=st.integers(0, 4000), n_bytes=st.integers(1, 300), put_in=st.binary(max_size=40))
def test_bytes_taken_out_and_put_in_are_opened_or_refused(path: Path, place: int, n_bytes: int, put_in: bytes) -> None:
    content = sound_file()
    start = place % len(content)

    open_or_refuse(path, content[:start] + put_in + content[start + n_bytes :])


def test_every_truncation_is_refused(path: Path) -> None:
    content = sound_file()

    for n_bytes in range(0, len(content), 3):
        assert not open_or_refuse(path, content[:n_bytes])


@settings(max_examples=200)
@given(content=st.binary(max_size=2000), sign=st.booleans())
@example(content=b"", sign=True)
def test_random_bytes_are_opened_or_refused(path: Path, content: bytes, sign: bool) -> None:
    head = b"GGUF" + struct.pack("<I", 3) if sign else b""

    open_or_refuse(path, head + content)


@pytest.mark.parametrize("n_strings", [1_000_000, 4_000_000])
@pytest.mark.parametrize("payload", [bytes(8), struct.pack("<Q", 1) + b"a", struct.pack("<Q", 300) + b"b" * 300])
def test_a_claim_of_millions_of_strings_in_a_small_file_costs_nothing(
    path: Path, n_strings: int, payload: bytes
) -> None:
    value = gguf_array(8, n_strings, payload * 1000)

    assert not open_or_refuse(path, gguf_file([gguf_key("tokens", 9, value)]))


PIECES = {
    "empty": bytes(8),
    "NULs": struct.pack("<Q", 8) + bytes(8),
    "33 short, then a long one": (struct.pack("<Q", 1) + b"a") * 33 + struct.pack("<Q", 256) + b"b" * 256,
    "one short, then an empty one": struct.pack("<Q", 1) + b"a" + bytes(8),
}


@pytest.mark.parametrize("piece", PIECES.values(), ids=PIECES.keys())
def test_strings_that_defeat_the_guess_take_little_time(path: Path, piece: bytes) -> None:
    content = piece * (4_000_000 // len(piece))
    n_strings, position = 0, 0
    while position < len(content):
        position += 8 + int.from_bytes(content[position : position + 8], "little")
        n_strings += 1

    path.write_bytes(gguf_file([gguf_key("tokens", 9, gguf_array(8, n_strings, content))]))
    start = time.perf_counter()
    with GGUFReader.open(path) as reader:
        assert len(reader.metadata["tokens"]) == n_strings
    assert time.perf_counter() - start < MAX_SECONDS
