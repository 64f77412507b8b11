"""Tiny random GGUF models of architectures that the repository keeps no file of: made in a moment, always the same.

    path = tiny_model("glm4moe")

They say nothing about whether an architecture is computed rightly (the shared fixtures do), but everything about what
must hold whatever the weights are: bits that do not depend on pieces and threads, and plans that can be proved safe.
"""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from engine.gguf import GGUFReader, GGUFWriter, TensorType
from tests.support.gguf_files import random_tensor

Shapes = dict[str, tuple[int, ...]]
Spec = tuple[dict[str, Any], Shapes]

N_VOCAB, HIDDEN, HEADS, KV_HEADS, HEAD_DIM = 600, 64, 4, 2, 32
FEED_FORWARD, EXPERT_COLUMNS, EXPERTS, TOP_K = 96, 32, 8, 3
_TOKENIZER_OF = Path(__file__).parents[1] / "data" / "fixtures" / "llama-Q4_K_M.gguf"


@functools.cache
def tiny_model(architecture: str) -> Path:
    """The path of a model of `architecture`, in a folder that goes when Python ends."""
    keys, shapes = TINY_MODELS[architecture]()
    path = _folder() / f"{architecture}.gguf"
    writer = GGUFWriter(path)
    writer.add("general.architecture", architecture)
    for key, value in keys.items():
        writer.add(f"{architecture}.{key}", value)
    with GGUFReader.open(_TOKENIZER_OF) as reader:
        for key, value in reader.metadata.items():
            if key.startswith("tokenizer."):
                writer.add(key, list(value) if isinstance(value, list | tuple) else value)
    for name, shape in shapes.items():
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        writer.add_tensor(name, *_tensor(rng, name, shape))
    writer.write()
    return path


@functools.cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="colibri-tiny-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _tensor(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> tuple[TensorType, tuple[int, ...], Any]:
    kind = name.split(".")[-2]
    if len(shape) > 1 and kind not in ("ffn_gate_inp", "ssm_conv1d", "conv") and not name.endswith(".bias"):
        return TensorType.Q8_0, shape, random_tensor(rng, TensorType.Q8_0, shape, 0.1)
    if name.endswith("ssm_a"):
        return TensorType.F32, shape, -rng.uniform(0.01, 2, shape).astype(np.float32).view(np.uint8)
    values = rng.standard_normal(shape, np.float32) * np.float32(0.5 if len(shape) > 1 else 0.1)
    if ("norm" in kind and not name.endswith(".bias")) or name.startswith("rope_"):
        values = values + 1
    return TensorType.F32, shape, values.astype(np.float32).view(np.uint8).reshape(-1)


# What the architectures have in common ------------------------------------------------------------------------------


def keys(**more: Any) -> dict[str, Any]:
    """Keys of every model, with `more` added or in their place."""
    return {
        "block_count": 2,
        "context_length": 512,
        "embedding_length": HIDDEN,
        "feed_forward_length": FEED_FORWARD,
        "attention.head_count": HEADS,
        "attention.head_count_kv": KV_HEADS,
        "attention.key_length": HEAD_DIM,
        "attention.value_length": HEAD_DIM,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.freq_base": 10000.0,
        "rope.dimension_count": HEAD_DIM,
        **more,
    }


MIXTURE = {"expert_count": EXPERTS, "expert_used_count": TOP_K, "expert_feed_forward_length": EXPERT_COLUMNS}


def frame(*, output: bool = False) -> Shapes:
    """Embedding and final norm, and an output matrix where it is not the embedding."""
    shapes: Shapes = {"token_embd.weight": (N_VOCAB, HIDDEN), "output_norm.weight": (HIDDEN,)}
    return shapes | ({"output.weight": (N_VOCAB, HIDDEN)} if output else {})


def attention(prefix: str, *, biases: str = "", head_norms: bool = False) -> Shapes:
    """Norm and projections; `biases`: of which of q, k, v, o there are biases."""
    rows = {"q": HEADS * HEAD_DIM, "k": KV_HEADS * HEAD_DIM, "v": KV_HEADS * HEAD_DIM}
    shapes: Shapes = {f"{prefix}attn_norm.weight": (HIDDEN,)}
    for part, n in rows.items():
        shapes[f"{prefix}attn_{part}.weight"] = (n, HIDDEN)
        if part in biases:
            shapes[f"{prefix}attn_{part}.bias"] = (n,)
        if head_norms and part != "v":
            shapes[f"{prefix}attn_{part}_norm.weight"] = (HEAD_DIM,)
    shapes[f"{prefix}attn_output.weight"] = (HIDDEN, HEADS * HEAD_DIM)
    if "o" in biases:
        shapes[f"{prefix}attn_output.bias"] = (HIDDEN,)
    return shapes


def dense(prefix: str, norm: str = "ffn_norm") -> Shapes:
    return {f"{prefix}{norm}.weight": (HIDDEN,), **gated(prefix, "", FEED_FORWARD)}


def gated(prefix: str, suffix: str, n: int) -> Shapes:
    return {
        f"{prefix}ffn_gate{suffix}.weight": (n, HIDDEN),
        f"{prefix}ffn_up{suffix}.weight": (n, HIDDEN),
        f"{prefix}ffn_down{suffix}.weight": (HIDDEN, n),
    }


def experts(prefix: str, norm: str = "ffn_norm", *, shared: int = 0, has_bias: bool = False) -> Shapes:
    shapes: Shapes = {f"{prefix}{norm}.weight": (HIDDEN,), f"{prefix}ffn_gate_inp.weight": (EXPERTS, HIDDEN)}
    for name, shape in gated(prefix, "_exps", EXPERT_COLUMNS).items():
        shapes[name] = (EXPERTS, *shape)
    if shared:
        shapes |= gated(prefix, "_shexp", shared)
    if has_bias:
        shapes[f"{prefix}exp_probs_b.bias"] = (EXPERTS,)
    return shapes


# The architectures --------------------------------------------------------------------------------------------------


def _qwen3() -> Spec:
    shapes = frame()
    for prefix in ("blk.0.", "blk.1."):
        shapes |= attention(prefix, head_norms=True) | dense(prefix)
    return keys(**{"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0}), shapes


def _smollm3() -> Spec:
    shapes = frame()
    for layer in range(4):
        shapes |= attention(f"blk.{layer}.") | dense(f"blk.{layer}.")
    return keys(block_count=4), shapes


def _olmoe() -> Spec:
    """With the clamp that no published model has."""
    shapes = frame(output=True)
    for prefix in ("blk.0.", "blk.1."):
        shapes |= attention(prefix, head_norms=True) | experts(prefix)
        shapes |= {
            f"{prefix}attn_q_norm.weight": (HEADS * HEAD_DIM,),
            f"{prefix}attn_k_norm.weight": (KV_HEADS * HEAD_DIM,),
        }
    return keys(**MIXTURE, **{"attention.clamp_kqv": 0.8}), shapes


def _phi3() -> Spec:
    """With longrope and a window that is shorter than a prompt."""
    shapes = frame(output=True)
    factors = (HEAD_DIM // 2,)
    shapes |= {"rope_factors_short.weight": factors, "rope_factors_long.weight": factors}
    for prefix in ("blk.0.", "blk.1."):
        shapes |= attention(prefix) | dense(prefix)
        for part in ("attn_q", "attn_k", "attn_v", "ffn_gate"):
            del shapes[f"{prefix}{part}.weight"]
        shapes[f"{prefix}attn_qkv.weight"] = ((HEADS + 2 * KV_HEADS) * HEAD_DIM, HIDDEN)
        shapes[f"{prefix}ffn_up.weight"] = (2 * FEED_FORWARD, HIDDEN)
    scaling = {"rope.scaling.attn_factor": 1.1, "rope.scaling.original_context_length": 96}
    return keys(**scaling, **{"attention.sliding_window": 50}), shapes


def _phimoe() -> Spec:
    shapes = frame(output=True) | {"output.bias": (N_VOCAB,), "output_norm.bias": (HIDDEN,)}
    for prefix in ("blk.0.", "blk.1."):
        shapes |= attention(prefix, biases="qkvo") | experts(prefix)
        shapes |= {f"{prefix}attn_norm.bias": (HIDDEN,), f"{prefix}ffn_norm.bias": (HIDDEN,)}
    return keys(**MIXTURE | {"expert_used_count": 2}), shapes


def _glm4moe() -> Spec:
    norm = "post_attention_norm"
    shapes = frame(output=True) | attention("blk.0.", biases="qkv") | dense("blk.0.", norm)
    for prefix in ("blk.1.", "blk.2."):
        shapes |= attention(prefix, biases="qkv") | experts(prefix, norm, shared=EXPERT_COLUMNS, has_bias=True)
    groups = {"expert_group_count": 4, "expert_group_used_count": 2}
    more = {"expert_shared_count": 1, "leading_dense_block_count": 1, "nextn_predict_layers": 1}
    return keys(**MIXTURE | groups | more | {"block_count": 3, "rope.dimension_count": HEAD_DIM // 2}), shapes


def _hunyuan() -> Spec:
    shapes = frame()
    for prefix in ("blk.0.", "blk.1."):
        shapes |= attention(prefix, head_norms=True) | experts(prefix, shared=EXPERT_COLUMNS)
    return keys(**MIXTURE, expert_shared_feed_forward_length=EXPERT_COLUMNS), shapes


def _ernie() -> Spec:
    shapes = frame() | attention("blk.0.") | dense("blk.0.")
    shapes |= attention("blk.1.") | experts("blk.1.", shared=2 * EXPERT_COLUMNS, has_bias=True)
    more = {"leading_dense_block_count": 1, "expert_shared_feed_forward_length": 2 * EXPERT_COLUMNS}
    return keys(**MIXTURE | more), shapes


def _granitemoe() -> Spec:
    shapes = frame()
    for prefix in ("blk.0.", "blk.1."):
        shapes |= attention(prefix) | experts(prefix)
    scales = {"attention.scale": 0.1, "embedding_scale": 6.0, "residual_scale": 0.4, "logit_scale": 2.0}
    return keys(**MIXTURE | scales), shapes


def _lfm2moe() -> Spec:
    shapes = frame() | {"token_embd_norm.weight": (HIDDEN,)}
    del shapes["output_norm.weight"]
    for layer in range(4):
        prefix = f"blk.{layer}."
        if layer % 2:
            shapes |= attention(prefix, head_norms=True)
        else:
            shapes[f"{prefix}attn_norm.weight"] = (HIDDEN,)
            shapes[f"{prefix}shortconv.conv.weight"] = (HIDDEN, 3)
            shapes[f"{prefix}shortconv.in_proj.weight"] = (3 * HIDDEN, HIDDEN)
            shapes[f"{prefix}shortconv.out_proj.weight"] = (HIDDEN, HIDDEN)
        shapes |= experts(prefix, has_bias=True) if layer else dense(prefix)
    more = {"attention.head_count_kv": [0, KV_HEADS, 0, KV_HEADS], "shortconv.l_cache": 3}
    return keys(**MIXTURE | more | {"block_count": 4, "leading_dense_block_count": 1}), shapes


DELTA_KEY_HEADS, DELTA_VALUE_HEADS, DELTA_DIM = 2, 4, 32


def _qwen3next(*, is_split: bool = False) -> Spec:
    shapes, norm = frame(output=True), "post_attention_norm"
    n_values = DELTA_VALUE_HEADS * DELTA_DIM
    n_mixed = 2 * DELTA_KEY_HEADS * DELTA_DIM + n_values
    for layer in range(4):
        prefix = f"blk.{layer}."
        if layer == 2:
            shapes |= attention(prefix, head_norms=True)
            shapes[f"{prefix}attn_q.weight"] = (2 * HEADS * HEAD_DIM, HIDDEN)
        else:
            shapes[f"{prefix}attn_norm.weight"] = (HIDDEN,)
            shapes[f"{prefix}attn_qkv.weight"] = (n_mixed, HIDDEN)
            shapes[f"{prefix}attn_gate.weight"] = (n_values, HIDDEN)
            shapes[f"{prefix}ssm_conv1d.weight"] = (n_mixed, 4)
            shapes[f"{prefix}ssm_out.weight"] = (HIDDEN, n_values)
            shapes[f"{prefix}ssm_norm.weight"] = (DELTA_DIM,)
            shapes |= dict.fromkeys((f"{prefix}ssm_a", f"{prefix}ssm_dt.bias"), (DELTA_VALUE_HEADS,))
            if is_split:
                parts = (f"{prefix}ssm_alpha.weight", f"{prefix}ssm_beta.weight")
                shapes |= dict.fromkeys(parts, (DELTA_VALUE_HEADS, HIDDEN))
            else:
                shapes[f"{prefix}ssm_ba.weight"] = (2 * DELTA_VALUE_HEADS, HIDDEN)
        shapes |= experts(prefix, norm, shared=EXPERT_COLUMNS)
        shapes[f"{prefix}ffn_gate_inp_shexp.weight"] = (HIDDEN,)
    more = {
        "block_count": 4,
        "rope.dimension_count": HEAD_DIM // 2,
        "attention.recurrent_layers": [True, True, False, True],
        "ssm.conv_kernel": 4,
        "ssm.state_size": DELTA_DIM,
        "ssm.group_count": DELTA_KEY_HEADS,
        "ssm.time_step_rank": DELTA_VALUE_HEADS,
        "ssm.inner_size": n_values,
    }
    return keys(**MIXTURE | more), shapes


N_LATENT, N_ROPE, N_PLAIN, N_VALUE, QUERY_RANK = 64, 16, 32, 32, 32


def _deepseek2() -> Spec:
    """As V3: compressed queries, groups of experts, sigmoids; with keys and values to be absorbed."""
    shapes = frame(output=True) | _latent("blk.0.", QUERY_RANK) | dense("blk.0.")
    shapes |= _latent("blk.1.", QUERY_RANK) | experts("blk.1.", shared=EXPERT_COLUMNS, has_bias=True)
    more = {
        "attention.head_count_kv": 1,
        "attention.key_length": N_LATENT + N_ROPE,
        "attention.value_length": N_LATENT,
        "attention.key_length_mla": N_PLAIN + N_ROPE,
        "attention.value_length_mla": N_VALUE,
        "attention.kv_lora_rank": N_LATENT,
        "attention.q_lora_rank": QUERY_RANK,
        "rope.dimension_count": N_ROPE,
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": 8.0,
        "rope.scaling.original_context_length": 64,
        "rope.scaling.yarn_log_multiplier": 0.1,
        "leading_dense_block_count": 1,
        "expert_shared_count": 1,
        "expert_group_count": 4,
        "expert_group_used_count": 2,
        "expert_gating_func": 2,
        "expert_weights_scale": 2.5,
        "expert_weights_norm": True,
    }
    return keys(**MIXTURE | more), shapes


def _latent(prefix: str, rank: int) -> Shapes:
    return {
        f"{prefix}attn_norm.weight": (HIDDEN,),
        f"{prefix}attn_q_a.weight": (rank, HIDDEN),
        f"{prefix}attn_q_a_norm.weight": (rank,),
        f"{prefix}attn_q_b.weight": (HEADS * (N_PLAIN + N_ROPE), rank),
        f"{prefix}attn_kv_a_mqa.weight": (N_LATENT + N_ROPE, HIDDEN),
        f"{prefix}attn_kv_a_norm.weight": (N_LATENT,),
        f"{prefix}attn_k_b.weight": (HEADS, N_LATENT, N_PLAIN),
        f"{prefix}attn_v_b.weight": (HEADS, N_VALUE, N_LATENT),
        f"{prefix}attn_output.weight": (HIDDEN, HEADS * N_VALUE),
    }


def _gpt_oss() -> Spec:
    norm, shapes = "post_attention_norm", frame(output=True)
    for prefix in ("blk.0.", "blk.1."):
        shapes |= attention(prefix, biases="qkvo") | experts(prefix, norm)
        shapes |= {f"{prefix}attn_sinks.weight": (HEADS,), f"{prefix}ffn_gate_inp.bias": (EXPERTS,)}
        for part, n in (("gate", EXPERT_COLUMNS), ("up", EXPERT_COLUMNS), ("down", HIDDEN)):
            shapes[f"{prefix}ffn_{part}_exps.bias"] = (EXPERTS, n)
    scaling = {"rope.scaling.type": "yarn", "rope.scaling.factor": 8.0, "rope.scaling.original_context_length": 64}
    return keys(**MIXTURE | scaling | {"attention.sliding_window": 40}), shapes


TINY_MODELS: dict[str, Callable[[], Spec]] = {
    "deepseek2": _deepseek2,
    "ernie4_5-moe": _ernie,
    "glm4moe": _glm4moe,
    "gpt-oss": _gpt_oss,
    "granitemoe": _granitemoe,
    "hunyuan-moe": _hunyuan,
    "lfm2moe": _lfm2moe,
    "olmoe": _olmoe,
    "phi3": _phi3,
    "phimoe": _phimoe,
    "qwen3": _qwen3,
    "qwen35moe": functools.partial(_qwen3next, is_split=True),
    "qwen3next": _qwen3next,
    "smollm3": _smollm3,
}
