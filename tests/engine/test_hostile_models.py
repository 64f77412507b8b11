"""Model files that contradict themselves: refused by name when opened, with no crash and no large allocation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from gguf import GGMLQuantizationType
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import Engine, SamplingParams
from engine.errors import ColibriError, ModelFormatError, UnsupportedModelError
from engine.gguf import GGUFReader, GGUFWriter
from tests.engine.compact import LLAMA, MIXTRAL, NAMES, QWEN3_MOE, model_path, small_config
from tests.support.gguf_copy import SourceFile, StoredTensor, write_copy

HUGE = 1 << 31


def rewritten(
    target: Path,
    name: str,
    keys: dict[str, Any] | None = None,
    drop: tuple[str, ...] = (),
    missing: tuple[str, ...] = (),
    data: dict[str, np.ndarray] | None = None,
) -> Path:
    """A copy of a small model with keys replaced or added (`arch.` stands for its architecture), others dropped.

    Likewise the bytes of tensors: `data` replaces those of some, those in `missing` are left out.
    """
    with GGUFReader.open(model_path(name)) as reader:
        writer = GGUFWriter(target)
        architecture = reader.metadata["general.architecture"]
        changes = {key.replace("arch.", f"{architecture}."): value for key, value in (keys or {}).items()}
        dropped = {key.replace("arch.", f"{architecture}.") for key in drop}
        for key, value in {**reader.metadata, **changes}.items():
            if key not in dropped and key != "general.alignment":  # the writer has its own
                writer.add(key, list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value)
        for tensor in reader.tensors.values():
            if tensor.name not in missing:
                content = (data or {}).get(tensor.name, reader.data(tensor.name))
                writer.add_tensor(tensor.name, tensor.type, tensor.shape, content)
        writer.write()
    return target


def assert_refused(path: Path, error: type[ColibriError] = ModelFormatError, match: str = "") -> None:
    before = psutil.Process().memory_info().rss
    with pytest.raises(error, match=match):
        Engine.open(path, small_config()).close()
    assert psutil.Process().memory_info().rss - before < 200e6


KEYS: list[tuple[str, dict[str, Any], type[ColibriError], str]] = [
    (LLAMA, {"arch.attention.head_count": 0}, ModelFormatError, "head_count"),
    (LLAMA, {"arch.attention.head_count": 1 << 24}, ModelFormatError, "shape"),
    (LLAMA, {"arch.attention.head_count": 3}, ModelFormatError, "head_count"),
    (LLAMA, {"arch.attention.head_count": -4}, ModelFormatError, "head_count"),
    (LLAMA, {"arch.attention.head_count": "four"}, ModelFormatError, "head_count"),
    (LLAMA, {"arch.attention.head_count": np.array([4, 4], np.int32)}, ModelFormatError, "head_count"),
    (LLAMA, {"arch.attention.head_count_kv": 0}, ModelFormatError, "head_count_kv"),
    (LLAMA, {"arch.attention.head_count_kv": 3}, ModelFormatError, "multiple"),
    (LLAMA, {"arch.attention.key_length": 1 << 24}, ModelFormatError, "shape"),
    (LLAMA, {"arch.attention.value_length": 96}, ModelFormatError, "shape"),
    (LLAMA, {"arch.block_count": 0}, ModelFormatError, "block_count"),
    (LLAMA, {"arch.block_count": 3}, ModelFormatError, "blk.2.*missing"),
    (LLAMA, {"arch.block_count": 1 << 24}, ModelFormatError, "missing"),
    (LLAMA, {"arch.block_count": HUGE}, ModelFormatError, "block_count"),
    (LLAMA, {"arch.embedding_length": 512}, ModelFormatError, "token_embd"),
    (LLAMA, {"arch.embedding_length": 1 << 24}, ModelFormatError, "token_embd"),
    (LLAMA, {"arch.embedding_length": 33}, UnsupportedModelError, "embedding length"),
    (LLAMA, {"arch.feed_forward_length": 0}, ModelFormatError, "ffn_gate"),
    (LLAMA, {"arch.feed_forward_length": 1 << 24}, ModelFormatError, "ffn_gate"),
    (LLAMA, {"arch.context_length": 0}, ModelFormatError, "context_length"),
    (LLAMA, {"arch.context_length": 1}, ModelFormatError, "context_length"),
    (LLAMA, {"arch.context_length": HUGE}, ModelFormatError, "context_length"),
    (LLAMA, {"arch.rope.dimension_count": 7}, ModelFormatError, "rope.dimension_count"),
    (LLAMA, {"arch.rope.dimension_count": 1 << 20}, ModelFormatError, "rope.dimension_count"),
    (LLAMA, {"arch.rope.freq_base": 0.0}, ModelFormatError, "rope.freq_base"),
    (LLAMA, {"arch.rope.freq_base": -1.0}, ModelFormatError, "rope.freq_base"),
    (LLAMA, {"arch.rope.freq_base": float("nan")}, ModelFormatError, "rope.freq_base"),
    (LLAMA, {"arch.rope.scaling.type": "dynamic"}, UnsupportedModelError, "dynamic"),
    (LLAMA, {"arch.attention.layer_norm_rms_epsilon": float("inf")}, ModelFormatError, "epsilon"),
    (LLAMA, {"arch.attention.layer_norm_rms_epsilon": -1.0}, ModelFormatError, "epsilon"),
    (LLAMA, {"arch.expert_count": 8, "arch.expert_used_count": 2}, ModelFormatError, "missing"),
    (MIXTRAL, {"arch.expert_count": 0, "arch.expert_used_count": 0}, ModelFormatError, "missing"),
    (MIXTRAL, {"arch.expert_count": 7}, ModelFormatError, "ffn_gate_inp"),
    (MIXTRAL, {"arch.expert_count": 1_000_000}, ModelFormatError, "ffn_gate_inp"),
    (MIXTRAL, {"arch.expert_used_count": 9}, ModelFormatError, "expert_used_count"),
    (MIXTRAL, {"arch.expert_used_count": 0}, ModelFormatError, "expert_used_count"),
    (QWEN3_MOE, {"arch.expert_feed_forward_length": 1 << 24}, ModelFormatError, "shape"),
    (QWEN3_MOE, {"arch.expert_feed_forward_length": 0}, ModelFormatError, "shape"),
    (QWEN3_MOE, {"arch.expert_weights_norm": 3}, ModelFormatError, "expert_weights_norm"),
    ("deepseek-mixed", {"arch.expert_shared_count": 100_000}, ModelFormatError, "shape"),
    ("deepseek-mixed", {"arch.leading_dense_block_count": 100}, ModelFormatError, "missing"),
    ("deepseek-mixed", {"arch.leading_dense_block_count": 0}, ModelFormatError, "missing"),
    (LLAMA, {"general.architecture": "mamba"}, UnsupportedModelError, "mamba"),
    (LLAMA, {"general.architecture": 7}, ModelFormatError, "general.architecture"),
    (LLAMA, {"general.architecture": "olmoe"}, ModelFormatError, "missing"),
    (LLAMA, {"tokenizer.ggml.model": "unheard of"}, UnsupportedModelError, "unheard of"),
]


@pytest.mark.parametrize(
    ("name", "keys", "error", "match"), KEYS, ids=lambda v: str(v)[:60] if isinstance(v, dict) else "-"
)
def test_a_key_that_contradicts_the_tensors_is_refused_by_name(
    tmp_path: Path, name: str, keys: dict[str, Any], error: type[ColibriError], match: str
) -> None:
    assert_refused(rewritten(tmp_path / "model.gguf", name, keys), error, match)


@pytest.mark.parametrize(
    "key",
    [
        "general.architecture",
        *("arch.block_count", "arch.embedding_length", "arch.attention.head_count", "arch.context_length"),
        "arch.attention.layer_norm_rms_epsilon",
    ],
)
def test_a_missing_key_is_named(tmp_path: Path, key: str) -> None:
    path = rewritten(tmp_path / "model.gguf", LLAMA, drop=(key,))
    assert_refused(path, match=key.replace("arch.", "llama.") + ".*missing")


@pytest.mark.parametrize("name", NAMES)
def test_any_missing_tensor_is_named_or_not_needed(tmp_path: Path, name: str) -> None:
    with GGUFReader.open(model_path(name)) as reader:
        tensors = [tensor for tensor in reader.tensors if not tensor.startswith("blk.1.")]
    for tensor in tensors:
        path = rewritten(tmp_path / "model.gguf", name, missing=(tensor,))
        if tensor in ("output.weight", "rope_freqs.weight") or tensor.endswith(".bias"):
            Engine.open(path, small_config()).close()  # the embedding serves, nothing is scaled or added
        else:
            assert_refused(path, match=f"{tensor.replace('_exps', '.*')}.*missing")


def test_a_tensor_of_another_shape_is_named_with_both_shapes(tmp_path: Path) -> None:
    def transpose(stored: StoredTensor) -> list[StoredTensor]:
        name, kind, data = stored
        return [(name, kind, data[: len(data) // 2] if name == "blk.1.attn_k.weight" else data)]

    write_copy(SourceFile.open(model_path(LLAMA)), tmp_path / "model.gguf", transpose)
    assert_refused(
        tmp_path / "model.gguf", match=r"blk\.1\.attn_k\.weight has the shape \(\d+, \d+\).*ask for \(\d+, \d+\)"
    )


@pytest.mark.parametrize("tensor", ["token_embd.weight", "blk.0.attn_q.weight", "blk.0.attn_norm.weight"])
def test_a_tensor_type_without_kernels_is_named(tmp_path: Path, tensor: str) -> None:
    def as_nvfp4(stored: StoredTensor) -> list[StoredTensor]:
        name, _, data = stored
        if name != tensor:
            return [stored]
        n_inputs = 256
        n_rows = 1 if data.ndim == 1 else len(data)
        blocks = np.zeros((n_rows, n_inputs // 64 * 36), np.uint8)
        return [(name, GGMLQuantizationType.NVFP4, blocks[0] if data.ndim == 1 else blocks)]

    write_copy(SourceFile.open(model_path(LLAMA)), tmp_path / "model.gguf", as_nvfp4)
    assert_refused(tmp_path / "model.gguf", UnsupportedModelError, "NVFP4")


def vocabulary_cut(n: int) -> Callable[[Path], Path]:
    def write(target: Path) -> Path:
        with GGUFReader.open(model_path(MIXTRAL)) as reader:
            metadata = reader.metadata
            n_tokens = len(metadata["tokenizer.ggml.tokens"])
            keys = {
                "tokenizer.ggml.tokens": list(metadata["tokenizer.ggml.tokens"])[: n_tokens + n]
                + [f"extra {i}" for i in range(n)],
                **{
                    key: np.resize(metadata[key], n_tokens + n)
                    for key in ("tokenizer.ggml.scores", "tokenizer.ggml.token_type")
                    if key in metadata
                },
            }
        return rewritten(target, MIXTRAL, keys)

    return write


@pytest.mark.parametrize("n", [-100, 100])
def test_a_vocabulary_of_another_length_than_the_embedding_is_refused_with_both_lengths(tmp_path: Path, n: int) -> None:
    with GGUFReader.open(model_path(MIXTRAL)) as reader:
        n_rows = reader.tensors["token_embd.weight"].shape[0]
    assert_refused(vocabulary_cut(n)(tmp_path / "model.gguf"), match=f"{n_rows + n} tokens.*{n_rows} rows")


@pytest.mark.parametrize("key", ["tokenizer.ggml.eos_token_id", "tokenizer.ggml.bos_token_id"])
@pytest.mark.parametrize("value", [10**9, 1 << 31])
def test_special_tokens_outside_of_the_vocabulary_are_never_used(tmp_path: Path, key: str, value: int) -> None:
    with Engine.open(rewritten(tmp_path / "model.gguf", LLAMA, {key: value}), small_config()) as engine:
        assert all(token < engine.info.n_vocab for token in engine.tokenizer.end_ids)
        ids = engine.tokenizer.encode("Hello")
        assert max(ids) < engine.info.n_vocab
        assert list(engine.generate(ids, SamplingParams(max_tokens=4)))[-1].finish_reason is not None


def test_names_that_are_no_text_do_not_matter(tmp_path: Path) -> None:
    odd = {"general.name": np.array([1.5, 2.5], np.float32), "general.license": 7}
    with Engine.open(rewritten(tmp_path / "model.gguf", LLAMA, odd), small_config()) as engine:
        assert engine.info.name == "model"
        assert engine.info.licence is None


def test_a_context_beyond_the_models_own_is_cut_to_it(tmp_path: Path) -> None:
    path = rewritten(tmp_path / "model.gguf", LLAMA, {"arch.context_length": 64})
    with Engine.open(path, small_config(context_length=4096)) as engine:
        assert engine.config.context_length == 64
        deltas = list(engine.generate([1] * 60, SamplingParams(ignore_eos=True)))
        assert deltas[-1].finish_reason == "context"


INTEGERS = (
    *("block_count", "embedding_length", "feed_forward_length", "attention.head_count", "attention.head_count_kv"),
    *("attention.key_length", "attention.value_length", "rope.dimension_count", "expert_count", "expert_used_count"),
    *("expert_feed_forward_length", "context_length", "leading_dense_block_count", "expert_shared_count"),
)


@settings(max_examples=80)
@given(
    name=st.sampled_from(NAMES),
    changes=st.dictionaries(
        st.sampled_from(INTEGERS),
        st.one_of(st.integers(0, 70), st.sampled_from([96, 128, 256, 512]), st.integers(0, 1 << 31)),
        min_size=1,
        max_size=4,
    ),
)
def test_any_numbers_are_refused_by_name_or_run(tmp_path: Path, name: str, changes: dict[str, int]) -> None:
    path = rewritten(tmp_path / "model.gguf", name, {f"arch.{key}": value for key, value in changes.items()})
    try:
        engine = Engine.open(path, small_config(context_length=64))
    except ColibriError:
        return
    with engine:
        assert list(engine.generate([1, 2, 3], SamplingParams(max_tokens=4)))[-1].finish_reason is not None
