"""The forms in which checkpoints are published open as the same tensors; what is unsafe or incomplete is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.convert import Checkpoint, plan_conversion
from engine.errors import ColibriError, ModelFormatError, UnsupportedModelError
from tests.support.checkpoints import CheckpointCase, TensorSpec, checkpoint_case, write_files, write_weights


@pytest.fixture
def case() -> CheckpointCase:
    return checkpoint_case("mixtral")


def converted(folder: Path) -> dict[str, bytes]:
    with Checkpoint.open(folder) as checkpoint:
        return {tensor.name: tensor.read().tobytes() for tensor in plan_conversion(checkpoint).tensors}


def write_shards(folder: Path, case: CheckpointCase, n_shards: int = 3) -> dict[str, str]:
    """Shards with an index; gives the map of names to shards."""
    folder.mkdir()
    write_files(folder, case.files)
    weight_map = {}
    for index in range(n_shards):
        shard = f"model-{index + 1:05}-of-{n_shards:05}.safetensors"
        part = case.tensors[index::n_shards]
        write_weights(folder / shard, part)
        weight_map |= {name: shard for name, _, _ in part}
    write_index(folder, weight_map)
    return weight_map


def write_index(folder: Path, weight_map: Any) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))


def refusal(path: Path, kind: type[ColibriError] = ModelFormatError) -> str:
    with pytest.raises(kind) as caught:
        Checkpoint.open(path)
    return str(caught.value)


def test_shards_with_and_without_index_give_what_one_file_gives(case: CheckpointCase, tmp_path: Path) -> None:
    expected = converted(case.write(tmp_path))
    write_shards(tmp_path / "shards", case)
    assert converted(tmp_path / "shards") == expected
    (tmp_path / "shards" / "model.safetensors.index.json").unlink()
    assert converted(tmp_path / "shards") == expected


def test_one_file_with_its_configuration_beside_it_opens(case: CheckpointCase, tmp_path: Path) -> None:
    folder = case.write(tmp_path)
    assert converted(folder / "model.safetensors") == converted(folder)


@pytest.mark.parametrize("naming", ["whole names", "names without the expert", "names without block and expert"])
def test_experts_in_folders_of_their_own_give_what_one_file_gives(naming: str, tmp_path: Path) -> None:
    case = checkpoint_case("qwen3_moe")
    expected = converted(case.write(tmp_path))
    folder = tmp_path / "folders"
    folder.mkdir()
    write_files(folder, case.files)
    write_weights(folder / "model.safetensors", tuple(spec for spec in case.tensors if ".experts." not in spec[0]))
    n_experts = 8
    for expert in range(n_experts):
        part = folder / "experts" / f"expert_{expert}"
        part.mkdir(parents=True)
        mine = tuple(spec for spec in case.tensors if f".experts.{expert}." in spec[0])
        write_weights(part / "model.safetensors", mine)
        if naming != "whole names":
            left_out = f"experts.{expert}." if naming == "names without the expert" else f"mlp.experts.{expert}."
            rename(part / "model.safetensors", left_out)
    assert converted(folder) == expected


def rename(path: Path, left_out: str) -> None:
    """Leave out a part of every name in the header."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = raw[8 : 8 + length].replace(left_out.encode(), b"")
    path.write_bytes(len(header).to_bytes(8, "little") + header + raw[8 + length :])


def test_an_expert_in_the_folder_of_another_is_refused(tmp_path: Path) -> None:
    case = checkpoint_case("qwen3_moe")
    folder = case.write(tmp_path)
    part = folder / "experts" / "expert_3"
    part.mkdir(parents=True)
    write_weights(part / "model.safetensors", (("model.layers.0.mlp.experts.4.up_proj.weight", "BF16", [2, 2]),))
    assert "expert 3" in refusal(folder)


@pytest.mark.parametrize(
    "shard", ["../outside.safetensors", "/etc/passwd.safetensors", "a/../../b.safetensors", "C:x.safetensors", "a.bin"]
)
def test_an_index_that_names_files_outside_of_the_folder_is_refused(
    shard: str, case: CheckpointCase, tmp_path: Path
) -> None:
    weight_map = write_shards(tmp_path / "shards", case)
    write_index(tmp_path / "shards", {**weight_map, "model.norm.weight": shard})
    assert repr(shard) in refusal(tmp_path / "shards")


def test_a_missing_shard_is_named(case: CheckpointCase, tmp_path: Path) -> None:
    write_shards(tmp_path / "shards", case)
    (tmp_path / "shards" / "model-00002-of-00003.safetensors").unlink()
    assert "model-00002-of-00003.safetensors" in refusal(tmp_path / "shards")


def test_an_index_that_contradicts_its_shards_is_refused(case: CheckpointCase, tmp_path: Path) -> None:
    folder = tmp_path / "shards"
    weight_map = write_shards(folder, case)
    write_index(folder, {**weight_map, "model.extra.weight": "model-00001-of-00003.safetensors"})
    assert "'model.extra.weight'" in refusal(folder)
    write_index(folder, {name: shard for name, shard in weight_map.items() if name != "model.norm.weight"})
    assert "'model.norm.weight'" in refusal(folder)
    write_index(folder, ["model.norm.weight"])
    assert "weight_map" in refusal(folder)


def test_a_tensor_in_two_files_is_refused(case: CheckpointCase, tmp_path: Path) -> None:
    folder = case.write(tmp_path)
    shutil.copy(folder / "model.safetensors", folder / "consolidated.safetensors")
    assert "more than one copy" in refusal(folder)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.pth"])
def test_pickles_are_never_loaded_and_the_message_says_why(name: str, case: CheckpointCase, tmp_path: Path) -> None:
    folder = case.write(tmp_path)
    (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(b"cos\nsystem\n(S'touch pwned'\ntR.")
    for path in (folder, folder / name):
        text = refusal(path, UnsupportedModelError)
        assert "pickle" in text
        assert "safetensors" in text
    assert not Path("pwned").exists()


def test_a_folder_without_weights_or_configuration_is_refused(case: CheckpointCase, tmp_path: Path) -> None:
    folder = case.write(tmp_path)
    (folder / "model.safetensors").unlink()
    assert "weights" in refusal(folder)
    (folder / "config.json").unlink()
    assert "config.json" in refusal(folder)
    assert "config.json" in refusal(tmp_path / "nowhere")


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": 1, "a": 2}', "\x00", '{"a":' * 5000])
def test_a_configuration_that_is_no_sound_json_is_refused(text: str, case: CheckpointCase, tmp_path: Path) -> None:
    folder = case.write(tmp_path)
    (folder / "config.json").write_text(text)
    assert "config.json" in refusal(folder)


def test_a_file_that_was_cut_while_it_is_open_is_named(case: CheckpointCase, tmp_path: Path) -> None:
    folder = case.write(tmp_path)
    with Checkpoint.open(folder) as checkpoint:
        plan = plan_conversion(checkpoint)
        path = folder / "model.safetensors"
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size // 2)
        with pytest.raises(ModelFormatError, match="changed while it was in use"):
            for tensor in plan.tensors:
                tensor.read()


def test_a_value_that_is_no_number_is_named_with_its_place(tmp_path: Path) -> None:
    case = checkpoint_case("llama_yarn")
    folder = case.write(tmp_path)
    with Checkpoint.open(folder) as checkpoint:
        tensor = checkpoint.tensors["model.layers.1.mlp.down_proj.weight"]
        with tensor.path.open("r+b") as file:
            file.seek(tensor.offset + 4 * (512 * 3 + 7))
            file.write(np.float32("nan").tobytes())
        plan = plan_conversion(checkpoint)
        with pytest.raises(ModelFormatError, match=r"blk\.1\.ffn_down\.weight .* nan in row 3, column 7"):
            next(tensor for tensor in plan.tensors if tensor.name == "blk.1.ffn_down.weight").read()


def specs(case: CheckpointCase) -> list[TensorSpec]:
    return list(case.tensors)


def test_a_saved_model_without_its_head_has_plain_names(tmp_path: Path) -> None:
    case = checkpoint_case("llama")
    expected = converted(case.write(tmp_path))
    folder = tmp_path / "bare"
    folder.mkdir()
    write_files(folder, case.files)
    write_weights(folder / "model.safetensors", tuple(specs(case)))
    rename(folder / "model.safetensors", "model.")
    assert converted(folder) == expected
