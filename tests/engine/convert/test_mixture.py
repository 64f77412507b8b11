"""Each kind of file gives each tensor the type that people expect of a file of that name."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest

from engine.convert import Checkpoint, ConversionOptions, Mixture, plan_conversion, write_gguf
from engine.convert.mixture import Model, type_of
from engine.gguf import GGUFReader, TensorType, dequantise
from tests.support.checkpoints import checkpoint_case

MODEL = Model(n_layers=16, n_experts=64, heads_per_kv_head=4, is_tied=False)
# Relative to their variance, the squared errors of matrices in a file of the kind; its tensors of more bits have less.
LARGEST_ERRORS = {
    Mixture.Q8_0: 1e-4,
    Mixture.Q6_K: 1e-3,
    Mixture.Q5_K_M: 3e-3,
    Mixture.Q4_K_M: 1.2e-2,
    Mixture.Q4_K_S: 1.2e-2,
    Mixture.IQ4_XS: 1.2e-2,
    Mixture.Q4_0: 2e-2,
    Mixture.MXFP4: 3e-2,
}


@pytest.mark.parametrize(
    ("mixture", "part", "layers"),
    [  # the layers that have the higher type, as llama.cpp's quantiser chose them for a model of 16 layers
        (
            Mixture.Q4_K_M,
            "ffn_down_exps",
            {0: "Q6_K", 1: "Q6_K", 2: "Q4_K", 4: "Q6_K", 7: "Q6_K", 14: "Q6_K"},
        ),
        (Mixture.Q4_K_M, "attn_v", {1: "Q6_K", 5: "Q4_K", 10: "Q6_K", 15: "Q6_K"}),
        (Mixture.Q5_K_M, "attn_v", {1: "Q6_K", 5: "Q5_K", 10: "Q6_K", 15: "Q6_K"}),
        (Mixture.Q4_K_S, "attn_v", {0: "Q5_K", 3: "Q5_K", 4: "Q4_K", 15: "Q4_K"}),
        (Mixture.Q4_K_S, "ffn_down", {0: "Q5_K", 1: "Q5_K", 2: "Q4_K", 15: "Q4_K"}),
        (Mixture.IQ4_XS, "attn_v", {0: "Q5_K", 15: "Q5_K"}),
        (Mixture.Q4_K_M, "attn_q", {0: "Q4_K", 15: "Q4_K"}),
        (Mixture.MXFP4, "ffn_up_exps", {0: "MXFP4", 15: "MXFP4"}),
        (Mixture.MXFP4, "attn_q", {0: "Q8_0", 15: "Q8_0"}),
        (Mixture.Q6_K, "ffn_down", {0: "Q6_K", 15: "Q6_K"}),
    ],
)
def test_layers_get_the_usual_types(mixture: Mixture, part: str, layers: dict[int, str]) -> None:
    found = {layer: type_of(mixture, f"blk.{layer}.{part}.weight", 512, MODEL).name for layer in layers}
    assert found == layers


@pytest.mark.parametrize("mixture", [m for m in Mixture if m not in (Mixture.Q8_0, Mixture.MXFP4)])
def test_the_output_has_six_bits_and_so_has_an_embedding_that_is_the_output(mixture: Mixture) -> None:
    tied = Model(16, 0, 1, is_tied=True)
    assert type_of(mixture, "output.weight", 512, MODEL) is TensorType.Q6_K
    assert type_of(mixture, "token_embd.weight", 512, tied) is TensorType.Q6_K
    assert type_of(mixture, "token_embd.weight", 512, MODEL) is mixture.type


@pytest.mark.parametrize(
    ("mixture", "n_columns", "expected"),
    [
        (Mixture.Q4_K_M, 896, TensorType.Q5_0),
        (Mixture.Q5_K_M, 896, TensorType.Q5_1),
        (Mixture.Q6_K, 896, TensorType.Q8_0),
        (Mixture.IQ4_XS, 896, TensorType.IQ4_NL),
        (Mixture.Q4_0, 896, TensorType.Q4_0),
        (Mixture.Q4_K_M, 24, TensorType.F16),
        (Mixture.Q8_0, 24, TensorType.F16),
    ],
)
def test_rows_that_blocks_do_not_divide_get_another_type(
    mixture: Mixture, n_columns: int, expected: TensorType
) -> None:
    assert type_of(mixture, "blk.5.attn_q.weight", n_columns, MODEL) is expected


def test_attention_beside_eight_experts_gets_more_bits() -> None:
    mixtral = Model(32, 8, 4, is_tied=False)
    assert type_of(Mixture.Q4_K_M, "blk.9.attn_v.weight", 512, mixtral) is TensorType.Q8_0
    assert type_of(Mixture.Q4_K_M, "blk.9.attn_k.weight", 512, mixtral) is TensorType.Q8_0
    assert type_of(Mixture.Q4_K_M, "blk.9.attn_output.weight", 512, mixtral) is TensorType.Q5_K


@pytest.mark.parametrize("mixture", Mixture)
def test_a_file_of_each_kind_holds_the_checkpoint_s_values(mixture: Mixture, tmp_path: Path) -> None:
    folder = checkpoint_case("qwen3_moe").write(tmp_path)
    with Checkpoint.open(folder) as checkpoint:
        plain = {tensor.name: tensor for tensor in plan_conversion(checkpoint).tensors}
        plan = plan_conversion(checkpoint, ConversionOptions(mixture=mixture, router_type=TensorType.BF16))
        path = write_gguf(plan, tmp_path / "model.gguf")
        theirs = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
        with GGUFReader.open(path) as reader:
            assert reader.metadata["general.file_type"] == mixture.number
            assert reader.tensors.keys() == plain.keys() == theirs.keys()
            for name, tensor in reader.tensors.items():
                values = dequantise(reader.data(name), tensor.type, tensor.shape)
                source = plain[name].rows(0, plain[name].n_rows).reshape(tensor.shape)
                error = np.square(values - source).mean() / np.square(source).mean()
                assert error <= (LARGEST_ERRORS[mixture] if tensor.type.is_quantised else 1e-5), name
                again = gguf.quants.dequantize(theirs[name].data, theirs[name].tensor_type).reshape(tensor.shape)
                np.testing.assert_allclose(values, again, rtol=1e-6, atol=1e-9)
            assert reader.tensors["blk.0.ffn_gate_inp.weight"].type is TensorType.BF16
            assert reader.tensors["blk.0.attn_norm.weight"].type is TensorType.F32
            assert reader.tensors["blk.0.ffn_gate_exps.weight"].type is mixture.type


def test_each_expert_is_quantised_by_its_own_importance(tmp_path: Path) -> None:
    folder = checkpoint_case("qwen3_moe").write(tmp_path)
    with Checkpoint.open(folder) as checkpoint:
        plan = plan_conversion(checkpoint, ConversionOptions(mixture=Mixture.Q4_K_S))
        plain = next(tensor for tensor in plan.tensors if tensor.name == "blk.0.ffn_up_exps.weight")
        importance = np.ones((8, 256), np.float32)
        importance[3, ::2] = 100
        weighted = plain.with_importance(importance)
        before, after = plain.read(), weighted.read()
        assert [np.array_equal(before[i], after[i]) for i in range(8)] == [i != 3 for i in range(8)]
        whole = b"".join(chunk.tobytes() for chunk in weighted.chunks(max_bytes=50_000))
        assert whole == after.tobytes()


@pytest.mark.parametrize("mixture", [None, Mixture.Q4_K_M])
def test_threads_change_nothing(mixture: Mixture | None, tmp_path: Path) -> None:
    folder = checkpoint_case("mixtral").write(tmp_path)
    with Checkpoint.open(folder) as checkpoint:
        plan = plan_conversion(checkpoint, ConversionOptions(mixture=mixture))
        one = write_gguf(plan, tmp_path / "one.gguf", n_threads=1)
        four = write_gguf(plan, tmp_path / "four.gguf", n_threads=4)
    assert one.read_bytes() == four.read_bytes()


def test_calibrated_files_have_other_types_in_the_first_layers() -> None:
    calibrated, plain = (Model(32, 0, 4, is_tied=True, is_calibrated=is_calibrated) for is_calibrated in (True, False))
    for mixture, layer, model, expected in (
        (Mixture.Q4_0, 3, calibrated, TensorType.Q4_1),
        (Mixture.Q4_0, 4, calibrated, TensorType.Q4_0),
        (Mixture.Q4_0, 3, plain, TensorType.Q4_0),
        (Mixture.IQ4_XS, 3, plain, TensorType.Q5_K),
        (Mixture.IQ4_XS, 3, calibrated, TensorType.IQ4_XS),
        (Mixture.Q4_K_S, 3, calibrated, TensorType.Q5_K),
    ):
        assert type_of(mixture, f"blk.{layer}.ffn_down.weight", 512, model) is expected
