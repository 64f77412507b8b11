"""Split models open from any of their parts, and parts that are missing or do not belong together are named."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.errors import ModelFormatError
from engine.gguf import GGUFReader
from tests.support.gguf_files import gguf_file, gguf_key, gguf_string, gguf_tensor

N_PARTS = 3


def u16(key: str, value: int) -> bytes:
    return gguf_key(key, 2, struct.pack("<H", value))


def i32(key: str, value: int) -> bytes:
    return gguf_key(key, 5, struct.pack("<i", value))


def text(key: str, value: str) -> bytes:
    return gguf_key(key, 8, gguf_string(value))


def part(
    number: int,
    *,
    no: int | None = None,
    count: int = N_PARTS,
    tensor: str | None = None,
    architecture: str = "llama",
    n_tensors: int = N_PARTS,
    version: int = 3,
) -> bytes:
    keys = [u16("split.no", number if no is None else no), u16("split.count", count)]
    keys += [i32("split.tensors.count", n_tensors)]
    if number == 0 or architecture != "llama":
        keys += [text("general.architecture", architecture)]
    tensors = [gguf_tensor(tensor or f"t{number}", [4], 24, 0)]
    return gguf_file(keys, tensors, bytes([number] * 4), version=version)


def write_parts(folder: Path, **changes: dict[str, Any]) -> list[Path]:
    """Three parts; `changes` maps "part1" and so on to the arguments that differ."""
    paths = [folder / f"model-{number + 1:05}-of-{N_PARTS:05}.gguf" for number in range(N_PARTS)]
    for number, path in enumerate(paths):
        path.write_bytes(part(number, **changes.get(f"part{number}", {})))
    return paths


@pytest.mark.parametrize("chosen", range(N_PARTS))
def test_a_split_model_opens_from_any_part(tmp_path: Path, chosen: int) -> None:
    paths = write_parts(tmp_path)

    with GGUFReader.open(paths[chosen]) as reader:
        assert reader.paths == paths
        assert reader.file_bytes == sum(path.stat().st_size for path in paths)
        assert reader.metadata["general.architecture"] == "llama"
        assert {name: tensor.file_index for name, tensor in reader.tensors.items()} == {"t0": 0, "t1": 1, "t2": 2}
        for number in range(N_PARTS):
            assert np.array_equal(reader.data(f"t{number}"), [number] * 4)


def test_missing_parts_are_named(tmp_path: Path) -> None:
    paths = write_parts(tmp_path)
    paths[0].unlink()
    paths[2].unlink()

    with pytest.raises(ModelFormatError) as caught:
        GGUFReader.open(paths[1])

    assert "expected all 3 parts of the split model" in str(caught.value)
    assert "found 1; missing: model-00001-of-00003.gguf, model-00003-of-00003.gguf. Download" in str(caught.value)


def test_a_damaged_part_is_refused_by_its_own_name(tmp_path: Path) -> None:
    paths = write_parts(tmp_path)
    paths[2].write_bytes(paths[2].read_bytes()[:-1])

    with pytest.raises(ModelFormatError, match=r"model-00003-of-00003\.gguf: expected a file of .* 1 are missing"):
        GGUFReader.open(paths[0])


def test_a_renamed_part_is_refused(tmp_path: Path) -> None:
    paths = write_parts(tmp_path)
    renamed = paths[0].rename(tmp_path / "model.gguf")

    with pytest.raises(ModelFormatError, match=r"expected a name that ends in -00001-of-00003\.gguf"):
        GGUFReader.open(renamed)


CONTRADICTIONS: dict[str, tuple[dict[str, dict[str, Any]], str]] = {
    "another count by name": ({"part0": {"count": 4}}, "expected one of 4 parts .* found one of 3 by the file's name"),
    "another count": ({"part1": {"count": 4}}, r"00002-of-00003\.gguf: expected 3 for key 'split.count' .* found 4"),
    "another number": ({"part1": {"no": 2}}, r"00002-of-00003\.gguf: expected 1 for key 'split.no' .* found 2"),
    "another architecture": (
        {"part2": {"architecture": "qwen2"}},
        "expected llama for key 'general.architecture' of this part of a split model, found qwen2",
    ),
    "another version": ({"part2": {"version": 2}}, "expected 3 for version of this part .* found 2"),
    "a tensor twice": (
        {"part2": {"tensor": "t0"}},
        "expected each tensor in one part only, found 't0' also in model-00001",
    ),
    "other totals": ({"part2": {"n_tensors": 5}}, r"00003-of-00003\.gguf: expected 3 for key 'split.tensors.count'"),
    "a wrong total": (
        {f"part{number}": {"n_tensors": 5} for number in range(N_PARTS)},
        "expected 3, the tensors in all parts for key 'split.tensors.count' of this part of a split model, found 5",
    ),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_parts_that_contradict_one_another_are_refused(tmp_path: Path, name: str) -> None:
    changes, message = CONTRADICTIONS[name]
    paths = write_parts(tmp_path, **changes)

    with pytest.raises(ModelFormatError, match=message):
        GGUFReader.open(paths[0])


def test_a_count_that_is_no_number_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(gguf_file([text("split.count", "two")]))

    with pytest.raises(ModelFormatError, match=r"up to 99,999 for key 'split\.count', found two"):
        GGUFReader.open(path)
