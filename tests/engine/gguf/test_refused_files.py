"""Damaged, foreign and unknown files are refused with what was expected, what was found, where, and what to do."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import struct
import zipfile
from pathlib import Path

import pytest

from engine.errors import ModelFormatError, UnsupportedModelError
from engine.gguf import GGUFReader
from tests.support.gguf_files import gguf_array, gguf_file, gguf_key, gguf_string, gguf_tensor

U32_ONE = struct.pack("<I", 1)
HUGE = 2**64 - 1


def refusal(path: Path, kind: type[Exception] = ModelFormatError) -> str:
    with pytest.raises(kind) as caught:
        GGUFReader.open(path)
    assert type(caught.value) is kind
    return str(caught.value)


def refusal_of(folder: Path, content: bytes, kind: type[Exception] = ModelFormatError) -> str:
    path = folder / "model.gguf"
    path.write_bytes(content)
    text = refusal(path, kind)
    assert text.startswith(f"{path}: expected ")
    assert " found " in text
    assert text.endswith(".")
    return text


def zip_with(name: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, b"content")
    return buffer.getvalue()


SAFETENSORS_HEADER = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
FOREIGN: dict[str, tuple[bytes, str, str]] = {
    "empty": (b"", "an empty file", "download the model again"),
    "JSON": (b'{"architectures": ["LlamaForCausalLM"]}\n', "a JSON document", "Choose the model's GGUF file"),
    "JSON with BOM": (
        b'\xef\xbb\xbf\n [{"a": "' + "é".encode() * 600,
        "a JSON document",
        "Choose the model's GGUF file",
    ),
    "safetensors": (
        struct.pack("<Q", len(SAFETENSORS_HEADER)) + SAFETENSORS_HEADER + bytes(4),
        "a safetensors checkpoint",
        "Convert the model to GGUF",
    ),
    "ggml": (struct.pack("<I", 0x67676D6C) + bytes(40), "an old GGML model (ggml", "Convert the model"),
    "ggmf": (struct.pack("<I", 0x67676D66) + bytes(40), "an old GGML model (ggmf", "Convert the model"),
    "ggjt": (struct.pack("<I", 0x67676A74) + bytes(40), "an old GGML model (ggjt", "Convert the model"),
    "ggla": (struct.pack("<I", 0x67676C61) + bytes(40), "an old GGML adapter (ggla", "Convert the model"),
    "PyTorch zip": (zip_with("archive/data.pkl"), "a PyTorch checkpoint (zip)", "Convert the model"),
    "zip": (zip_with("model.gguf"), "a ZIP archive", "Unpack it"),
    "pickle": (pickle.dumps({"a": 1}, 2), "a Python pickle, perhaps an old PyTorch checkpoint", "Convert the model"),
    "gzip": (gzip.compress(b"GGUF"), "a gzip archive", "Unpack it"),
    "tar": (b"model.gguf".ljust(257, b"\0") + b"ustar\0" + bytes(300), "a tar archive", "Unpack it"),
    "LFS pointer": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 4368438944\n",
        "a Git LFS pointer, which stands for a file of 4,368,438,944 bytes",
        "git lfs pull",
    ),
    "HTML": (b"\n<!DOCTYPE html>\n<html><head><title>404</title>", "an HTML page", "Download the model again"),
    "XML": (b'<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>', "an XML document", "Download the model"),
    "text": (b"Entry not found\n", "a text file that begins with 'Entry not found'", "Choose a GGUF file"),
    "zeros": (bytes(5000), "a file that begins with zeros", "download the model again"),
    "big-endian magic": (b"FUGG" + bytes(40), "a GGUF file for big-endian machines", "Choose the little-endian file"),
    "unknown": (
        b"\x01\x02\xfe\xff" * 10,
        "an unknown file that begins with the bytes 01 02 fe ff",
        "Choose a GGUF file",
    ),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_file_is_named_for_what_it_is(tmp_path: Path, name: str) -> None:
    content, what, advice = FOREIGN[name]

    text = refusal_of(tmp_path, content)

    assert f"expected a GGUF model, found {what}" in text
    assert advice in text


def test_a_folder_a_pipe_and_a_missing_file_are_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    assert "found a folder. Choose a file" in refusal(tmp_path)
    assert "found a device or pipe" in refusal(tmp_path / "pipe")
    assert "found a device or pipe" in refusal(Path("/dev/zero"))
    assert "found no such file" in refusal(tmp_path / "missing.gguf")
    assert "found: Not a directory" in refusal(Path(__file__) / "model.gguf")
    assert "found: embedded null byte" in refusal(Path("a\0b"))


UNSUPPORTED: dict[str, tuple[bytes, str]] = {
    "version 1": (b"GGUF" + struct.pack("<IIIQ", 1, 0, 0, 0), "expected GGUF version 2 or 3, found version 1,"),
    "version 4": (gguf_file(version=4), "found version 4, which is newer than this program. Update Colibri"),
    "big-endian": (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "found a big-endian one (version 3)"),
    "removed type": (
        gguf_file([], [gguf_tensor("t", [32], 31, 0)], bytes(64)),
        "tensor 't', found Q4_0_4_4 (number 31)",
    ),
    "unknown type": (
        gguf_file([], [gguf_tensor("t", [32], 99, 0)], bytes(64)),
        "for tensor 't' (up to number 41), found number 99. Update Colibri",
    ),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_an_unknown_version_byte_order_or_tensor_type_is_unsupported(tmp_path: Path, name: str) -> None:
    content, text = UNSUPPORTED[name]

    assert text in refusal_of(tmp_path, content, UnsupportedModelError)


def f32(name: str, dimensions: list[int], offset: int = 0) -> bytes:
    return gguf_tensor(name, dimensions, 0, offset)


def with_key(type_number: int, payload: bytes) -> bytes:
    return gguf_file([gguf_key("k", type_number, payload)])


def nested(depth: int) -> bytes:
    return gguf_array(4, 1, U32_ONE) if not depth else gguf_array(9, 1, nested(depth - 1))


DAMAGED: dict[str, tuple[bytes, str]] = {
    "magic only": (b"GGUF", "expected a GGUF model of at least 24 bytes, found 4: it is cut short"),
    "version 0": (gguf_file(version=0), "expected 2 or 3 for the version at byte 4, found 0"),
    "version absurd": (gguf_file(version=0x12345678), "for the version at byte 4, found 305,419,896"),
    "too many tensors": (
        gguf_file(n_tensors=HUGE),
        "at most 262,144 for the number of tensors at byte 8, found 18,446",
    ),
    "too many keys": (gguf_file(n_keys=2**32), "at most 65,536 for the number of keys at byte 16, found 4,294,967,296"),
    "more keys than bytes": (
        gguf_file(n_keys=60_000),
        "expected 840,000 bytes for 60,000 keys and 0 tensors at byte 24",
    ),
    "key too long": (
        gguf_file([struct.pack("<Q", 2**40) + bytes(40)]),
        "expected 1 to 65,535 bytes for the length of the name of key 0 at byte 24, found 1,099,511,627,776",
    ),
    "key empty": (gguf_file([gguf_key("", 0, b"\1" * 9)]), "for the length of the name of key 0 at byte 24, found 0"),
    "key beyond the end": (
        gguf_file([struct.pack("<Q", 999) + bytes(40)]),
        "expected 999 bytes for the name of key 0 at byte 32, found 64 up to the file's end",
    ),
    "key not UTF-8": (
        gguf_file([gguf_key(b"\xff\xfe", 0, b"\1")]),
        "expected UTF-8 text for the name of key 0 at byte 32",
    ),
    "key twice": (
        gguf_file([gguf_key("k", 0, b"\1"), gguf_key("k", 0, b"\1")]),
        "expected a new name for the name of key 1 at byte 38, found 'k' again",
    ),
    "value type": (with_key(13, U32_ONE), "a number from 0 to 12 for the type of key 'k' at byte 33, found 13"),
    "truth value": (with_key(7, b"\2"), "expected a truth value, 0 or 1, for key 'k' at byte 37, found 2"),
    "truth values": (with_key(9, gguf_array(7, 3, b"\0\1\2")), "expected truth values, 0 or 1, for key 'k' at byte 49"),
    "string length": (
        with_key(8, struct.pack("<Q", HUGE)),
        "expected 18,446,744,073,709,551,615 bytes for key 'k' at byte 45, found 19 up to the file's end",
    ),
    "array length": (
        with_key(9, gguf_array(4, 2**61, U32_ONE)),
        "for key 'k', 2,305,843,009,213,693,952 elements of 4 bytes, at byte 49",
    ),
    "array type": (with_key(9, gguf_array(77, 1, U32_ONE)), "for the element type of key 'k' at byte"),
    "too many strings": (
        with_key(9, gguf_array(8, 2**40, b"")),
        "expected at most 4,194,304 strings for the length of key",
    ),
    "more strings than bytes": (
        with_key(9, gguf_array(8, 1000, b"")),
        "expected 8,000 bytes for the 1,000 lengths of key 'k' at byte 49",
    ),
    "a string in an array": (
        with_key(9, gguf_array(8, 2, gguf_string("abc") + struct.pack("<Q", 2**63))),
        "expected 9,223,372,036,854,775,808 bytes for string 1 of key 'k' at byte 68",
    ),
    "strings run out": (
        with_key(9, gguf_array(8, 4, gguf_string("a" * 21))),
        "expected 8 bytes for the length of string 3 of key 'k' at byte 94, found 2 up to the file's end",
    ),
    "arrays too deep": (with_key(9, nested(4)), "expected at most 4 arrays in one another for array 0 of array 0 of"),
    "arrays too many": (
        with_key(9, gguf_array(9, 65_537, b"")),
        "expected at most 65,536 arrays in arrays for key 'k'",
    ),
    "dimensions": (
        gguf_file([], [gguf_tensor("t", [1] * 5, 0, 0)]),
        "expected at most 4 for the number of dimensions of tensor 't' at byte 33, found 5",
    ),
    "dimension of zero": (
        gguf_file([], [f32("t", [4, 0])]),
        "expected from 1 to 2^62 elements for the shape of tensor 't' at byte 45, found the shape (0, 4)",
    ),
    "dimensions overflow": (
        gguf_file([], [f32("t", [2**32, 2**32])]),
        "from 1 to 2^62 elements for the shape of tensor 't' at byte 45, found the shape (4294967296, 4294967296)",
    ),
    "block size": (
        gguf_file([], [gguf_tensor("t", [48], 8, 0)], bytes(64)),
        "expected a multiple of 32 elements (a block of Q8_0) for the rows of tensor 't' at byte 45, found 48",
    ),
    "offset not aligned": (
        gguf_file([], [f32("t", [1], 4)], bytes(64)),
        "expected a multiple of 32 (the alignment) for the offset of tensor 't' at byte 49, found 4",
    ),
    "tensor twice": (
        gguf_file([], [f32("t", [1]), f32("t", [1], 32)], bytes(64)),
        "expected each tensor once, found 't' twice",
    ),
    "tensors overlap": (
        gguf_file([], [f32("a", [16]), f32("b", [1], 32)], bytes(64)),
        "expected tensor 'b' after byte 160, where tensor 'a' ends, found it at byte 128: they overlap",
    ),
    "tensor in tensor": (
        gguf_file([], [f32("a", [64]), f32("b", [1], 32), f32("c", [1], 256)], bytes(512)),
        "expected tensor 'b' after byte",
    ),
    "tensor name empty": (
        gguf_file([], [f32("", [16]) + b" " * 9]),
        "for the length of the name of tensor 0 at byte 24",
    ),
    "data cut": (
        gguf_file([], [f32("t", [100])], bytes(399)),
        "expected a file of 464 bytes (tensor 't' ends there), found 463 bytes: 1 are missing. The download",
    ),
    "data missing": (
        gguf_file([], [f32("t", [2**40])]),
        "expected a file of 4,398,046,511,168 bytes (tensor 't' ends there), found 64 bytes",
    ),
    "offset far away": (
        gguf_file([], [f32("t", [1], 2**64 - 32)], bytes(64)),
        "expected a file of 18,446,744,073,709,551,652 bytes (tensor 't' ends there), found 128 bytes",
    ),
}
for alignment, payload in {
    "0": (4, struct.pack("<I", 0)),
    "48": (4, struct.pack("<I", 48)),
    "4294967295": (4, struct.pack("<I", 2**32 - 1)),
    "big": (8, gguf_string("big")),
    "True": (7, b"\1"),
}.items():
    DAMAGED[f"alignment {alignment}"] = (
        gguf_file([gguf_key("general.alignment", *payload)]),
        f"expected a power of two up to 1,073,741,824 for key 'general.alignment', found {alignment}.",
    )


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_refused_with_the_place(tmp_path: Path, name: str) -> None:
    content, text = DAMAGED[name]

    assert text in refusal_of(tmp_path, content)
