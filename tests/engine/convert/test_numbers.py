"""Numbers of published checkpoints mean what their formats say, and are rounded as the gguf package rounds them."""

from __future__ import annotations

import math
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.convert import Checkpoint, ConversionOptions, plan_conversion
from engine.convert.stored import expand
from engine.errors import UnsupportedModelError
from engine.gguf import TensorType
from engine.gguf.dequantise import dequantise
from engine.gguf.encode import encode
from tests.support.checkpoints import checkpoint_case

floats = st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=64)


@given(values=floats)
def test_bf16_is_rounded_as_the_gguf_package_rounds_it(values: list[float]) -> None:
    array = np.array(values, np.float32)
    expected = gguf.quants.quantize(array, gguf.GGMLQuantizationType.BF16)
    assert encode(array, TensorType.BF16).tobytes() == expected.tobytes()


def test_what_is_no_number_stays_none_in_bf16() -> None:
    bits = np.array([0x7F800001, 0xFFFFFFFF, 0x7FC00000, 0xFF800001], np.uint32)
    found = encode(bits.view(np.float32), TensorType.BF16).view("<u2")
    assert np.isnan((found.astype(np.uint32) << 16).view(np.float32)).all()


@given(codes=st.binary(min_size=2, max_size=64).filter(lambda raw: len(raw) % 2 == 0))
def test_each_code_of_16_bits_comes_back(codes: bytes) -> None:
    for type, dtype in ((TensorType.BF16, "BF16"), (TensorType.F16, "F16")):
        values = expand(np.frombuffer(codes, np.uint8), dtype)
        if np.isfinite(values).all():
            assert encode(values, type).tobytes() == codes


def fp8(sign: int, exponent: int, mantissa: int, mantissa_bits: int, bias: int) -> float:
    fraction = mantissa / 2**mantissa_bits
    value = fraction * 2.0 ** (1 - bias) if exponent == 0 else (1 + fraction) * 2.0 ** (exponent - bias)
    return -value if sign else value


def test_every_code_of_8_bits_means_what_the_paper_says() -> None:
    codes = np.arange(256, dtype=np.uint8)
    e4m3, e5m2 = expand(codes, "F8_E4M3"), expand(codes, "F8_E5M2")
    for code in range(256):
        sign = code >> 7
        if code & 0x7F == 0x7F:
            assert math.isnan(e4m3[code])
        else:
            assert e4m3[code] == fp8(sign, code >> 3 & 15, code & 7, 3, 7)
        if code >> 2 & 31 != 31:
            assert e5m2[code] == fp8(sign, code >> 2 & 31, code & 3, 2, 15)
        else:
            assert math.isinf(e5m2[code]) if code & 3 == 0 else math.isnan(e5m2[code])
    assert np.nanmax(e4m3) == 448
    assert e5m2[np.isfinite(e5m2)].max() == 57344


def test_packed_experts_mean_the_same_as_numbers_and_as_bytes(tmp_path: Path) -> None:
    with Checkpoint.open(checkpoint_case("gpt_oss").write(tmp_path)) as checkpoint:
        tensors = [t for t in plan_conversion(checkpoint).tensors if t.type is TensorType.MXFP4]
        assert len(tensors) == 6
        for tensor in tensors:
            raw = tensor.read()
            values = tensor.rows(0, tensor.n_rows)
            expected = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType.MXFP4)
            assert np.array_equal(values, expected.reshape(values.shape))


def test_fp8_weights_are_multiplied_with_the_scale_of_their_block(tmp_path: Path) -> None:
    with Checkpoint.open(checkpoint_case("deepseek_v3_fp8").write(tmp_path)) as checkpoint:
        plan = plan_conversion(checkpoint, ConversionOptions(type=TensorType.F32))
        found = next(tensor for tensor in plan.tensors if tensor.name == "blk.0.ffn_gate.weight").read()
        name = "model.layers.0.mlp.gate_proj.weight"
        weight, scale = checkpoint.tensors[name], checkpoint.tensors[f"{name}_scale_inv"]
        values = expand(checkpoint.read(weight, 0, weight.n_bytes), weight.dtype).reshape(384, 256)
        scales = checkpoint.read(scale, 0, scale.n_bytes).view("<f4").reshape(3, 2)
    assert np.array_equal(found, values * np.kron(scales, np.ones((128, 128), np.float32)))


@pytest.mark.parametrize("name", ["qwen3_next", "qwen3_5_moe"])
def test_decays_are_the_nearest_float32(name: str, tmp_path: Path) -> None:
    with Checkpoint.open(checkpoint_case(name).write(tmp_path)) as checkpoint:
        plan = plan_conversion(checkpoint)
        logs = []
        for n in range(3):
            stored = checkpoint.tensors[f"model.layers.{n}.linear_attn.A_log"]
            logs.append(np.sort(expand(checkpoint.read(stored, 0, stored.n_bytes), stored.dtype)))
        found = [np.sort(t.read())[::-1] for t in plan.tensors if t.name.endswith("ssm_a")]
    expected = [np.float32([-math.exp(value) for value in values]) for values in logs]
    assert np.array_equal(found, expected)


def test_llama3_factors_are_the_nearest_float32(tmp_path: Path) -> None:
    with Checkpoint.open(checkpoint_case("llama").write(tmp_path)) as checkpoint:
        found = next(t for t in plan_conversion(checkpoint).tensors if t.name == "rope_freqs.weight").read()
    factor, low, high, original, base = 8.0, 1.0, 4.0, 64, 10000.0
    expected = []
    for n in range(32):
        wave = 2 * math.pi * base ** (n / 32)
        if wave < original / high:
            expected.append(1.0)
        elif wave > original / low:
            expected.append(factor)
        else:
            smooth = (original / wave - low) / (high - low)
            expected.append(1 / ((1 - smooth) / factor + smooth))
    np.testing.assert_allclose(found, expected, rtol=2**-24)


def test_a_value_beyond_f16_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with Checkpoint.open(checkpoint_case("llama_yarn").write(tmp_path)) as checkpoint:
        stored = checkpoint.tensors["model.layers.0.mlp.up_proj.weight"]
        with stored.path.open("r+b") as file:
            file.seek(stored.offset)
            file.write(np.float32(1e6).tobytes())
        plan = plan_conversion(checkpoint, ConversionOptions(type=TensorType.F16))
        with pytest.raises(UnsupportedModelError, match=r"blk\.0\.ffn_up\.weight.* 1,000,000.* BF16"):
            next(tensor for tensor in plan.tensors if tensor.name == "blk.0.ffn_up.weight").read()


@pytest.mark.parametrize("type", [TensorType.F32, TensorType.F16, TensorType.BF16])
def test_our_own_reader_gives_the_values_back(type: TensorType) -> None:
    values = np.random.default_rng(7).standard_normal((3, 64)).astype(np.float32)
    found = dequantise(encode(values, type), type, (3, 64))
    np.testing.assert_allclose(found, values, rtol=2**-8 if type is TensorType.BF16 else 2**-11)
