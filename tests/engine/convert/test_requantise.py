"""A GGUF file becomes one of another type, as its checkpoint would have; what is no longer true of it is left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.convert import ConversionOptions, Mixture, planned, write_gguf
from engine.errors import InvalidRequestError, ModelFormatError, UnsupportedModelError
from engine.gguf import GGUFReader, GGUFWriter, TensorType, dequantise
from engine.gguf.amend import amend
from engine.gguf.value_types import ValueType
from tests.support.checkpoints import checkpoint_case


def converted(source: Path, target: Path, **options: object) -> Path:
    with planned(source, ConversionOptions(**options)) as plan:  # type: ignore[arg-type]
        return write_gguf(plan, target)


def split_file(path: Path, folder: Path, n_parts: int) -> list[Path]:
    """The same model in several files, the tensors dealt out in order."""
    paths = [folder / f"model-{number + 1:05}-of-{n_parts:05}.gguf" for number in range(n_parts)]
    with GGUFReader.open(path) as reader:
        tensors = list(reader.tensors.values())
        for number, target in enumerate(paths):
            writer = GGUFWriter(target)
            for key, encoded in reader.encoded_keys().items() if number == 0 else ():
                if key != "general.alignment":
                    writer.add_encoded(key, encoded)
            writer.add("split.no", number, ValueType.UINT16)
            writer.add("split.count", n_parts, ValueType.UINT16)
            writer.add("split.tensors.count", len(tensors), ValueType.INT32)
            share = -(-len(tensors) // n_parts)
            for tensor in tensors[number * share : (number + 1) * share]:
                writer.add_tensor(tensor.name, tensor.type, tensor.shape, reader.data(tensor.name))
            writer.write()
    return paths


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return checkpoint_case("qwen3_moe").write(tmp_path)


@pytest.fixture
def bf16(checkpoint: Path, tmp_path: Path) -> Path:
    return converted(checkpoint, tmp_path / "bf16.gguf", type=TensorType.BF16)


@pytest.mark.parametrize("mixture", [Mixture.Q4_K_M, Mixture.Q8_0, Mixture.MXFP4])
def test_a_file_of_the_checkpoint_s_type_gives_the_bytes_that_the_checkpoint_gives(
    mixture: Mixture, checkpoint: Path, bf16: Path, tmp_path: Path
) -> None:
    direct = converted(checkpoint, tmp_path / "direct.gguf", mixture=mixture)
    again = converted(bf16, tmp_path / "again.gguf", mixture=mixture)
    assert again.read_bytes() == direct.read_bytes()


def test_without_a_type_nothing_changes(bf16: Path, tmp_path: Path) -> None:
    assert converted(bf16, tmp_path / "same.gguf").read_bytes() == bf16.read_bytes()


def test_quantised_values_are_expanded_and_quantised_anew(checkpoint: Path, tmp_path: Path) -> None:
    source = converted(checkpoint, tmp_path / "q8.gguf", mixture=Mixture.Q8_0)
    with planned(source, ConversionOptions(type=TensorType.F32)) as plan:
        assert plan.quantised_source == ("Q8_0",)
        target = write_gguf(plan, tmp_path / "f32.gguf")
    with GGUFReader.open(source) as old, GGUFReader.open(target) as new:
        name = "blk.1.ffn_down_exps.weight"
        tensor = old.tensors[name]
        expected = dequantise(old.data(name), tensor.type, tensor.shape)
        assert new.tensors[name].type is TensorType.F32
        assert np.array_equal(new.data(name).view("<f4").reshape(tensor.shape), expected)
        assert new.metadata["general.file_type"] == 0


def test_tensors_that_have_their_type_already_keep_their_bytes(checkpoint: Path, tmp_path: Path) -> None:
    source = converted(checkpoint, tmp_path / "q4.gguf", mixture=Mixture.Q4_K_M)
    target = converted(source, tmp_path / "again.gguf", mixture=Mixture.Q4_K_M)
    assert target.read_bytes() == source.read_bytes()


def test_published_mxfp4_stays_when_the_rest_is_quantised(tmp_path: Path) -> None:
    source = converted(checkpoint_case("gpt_oss").write(tmp_path), tmp_path / "source.gguf", type=TensorType.BF16)
    target = converted(source, tmp_path / "q4.gguf", mixture=Mixture.Q4_K_M)
    name = "blk.0.ffn_down_exps.weight"
    with GGUFReader.open(source) as old, GGUFReader.open(target) as new:
        assert new.tensors[name].type is TensorType.MXFP4
        assert np.array_equal(new.data(name), old.data(name))
        assert new.tensors["blk.0.attn_q.weight"].type.is_quantised


def test_keys_stay_unless_they_were_true_of_the_old_file_alone(bf16: Path, tmp_path: Path) -> None:
    kept = {"general.license": "apache-2.0", "colibri.carve.is_demonstration": True, "someone.note": [1, 2, 3]}
    untrue = {
        "colibri.proof.perplexity": 3.0,
        "colibri.carve.perplexity": np.ones(3, np.float32),
        "quantize.imatrix.file": "x",
    }
    amend(bf16, kept | untrue)
    target = converted(bf16, tmp_path / "q8.gguf", mixture=Mixture.Q8_0)
    with GGUFReader.open(bf16) as old, GGUFReader.open(target) as new:
        left_out = old.metadata.keys() - new.metadata.keys()
        assert left_out == untrue.keys()
        assert new.metadata.keys() <= old.metadata.keys()
        changed = {key for key, encoded in new.encoded_keys().items() if encoded != old.encoded_keys()[key]}
        assert changed == {"general.file_type"}


def test_a_split_file_becomes_one(bf16: Path, tmp_path: Path) -> None:
    parts = split_file(bf16, tmp_path / "parts", 3)
    target = converted(parts[1], tmp_path / "q8.gguf", mixture=Mixture.Q8_0)
    assert target.read_bytes() == converted(bf16, tmp_path / "direct.gguf", mixture=Mixture.Q8_0).read_bytes()


def test_a_file_may_replace_itself(bf16: Path, tmp_path: Path) -> None:
    expected = converted(bf16, tmp_path / "q8.gguf", mixture=Mixture.Q8_0).read_bytes()
    assert converted(bf16, bf16, mixture=Mixture.Q8_0).read_bytes() == expected


def test_options_are_followed_or_refused_by_name(bf16: Path, tmp_path: Path) -> None:
    target = converted(bf16, tmp_path / "other.gguf", top_k=2, name="Mine", expert_count=8, type=TensorType.F16)
    with GGUFReader.open(target) as reader:
        assert reader.metadata["qwen3moe.expert_used_count"] == 2
        assert reader.metadata["general.name"] == "Mine"
    for options, words in (({"expert_count": 64}, "64 experts"), ({"top_k": 9}, "found 9")):
        with pytest.raises(ModelFormatError, match=words), planned(bf16, ConversionOptions(**options)):  # type: ignore[arg-type]
            pass
    with pytest.raises(InvalidRequestError, match="router-pattern"):
        converted(bf16, tmp_path / "never.gguf", router_pattern="model.{layer}.gate")


def test_the_router_s_type_is_the_one_asked_for(bf16: Path, tmp_path: Path) -> None:
    target = converted(bf16, tmp_path / "q8.gguf", mixture=Mixture.Q8_0, router_type=TensorType.BF16)
    with GGUFReader.open(target) as reader:
        assert reader.tensors["blk.0.ffn_gate_inp.weight"].type is TensorType.BF16


def test_what_cannot_be_read_is_refused_by_name(tmp_path: Path) -> None:
    for architecture, type, words in (("gemma3", TensorType.F32, "gemma3"), ("llama", TensorType.NVFP4, "NVFP4")):
        writer = GGUFWriter(tmp_path / f"{architecture}.gguf")
        writer.add("general.architecture", architecture)
        writer.add("llama.block_count", 1, ValueType.UINT32)
        writer.add_tensor("blk.0.attn_q.weight", type, (2, 256), bytes(type.n_bytes((2, 256))))
        with pytest.raises(UnsupportedModelError, match=words):
            converted(writer.write(), tmp_path / "never.gguf", mixture=Mixture.Q8_0)
    (tmp_path / "text.gguf").write_text('{"not": "a model"}')
    with pytest.raises(ModelFormatError, match="JSON"):
        converted(tmp_path / "text.gguf", tmp_path / "never.gguf")
