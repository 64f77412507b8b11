"""What configuration, tensors, tokenizer and options contradict is refused by name before anything is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.convert import Checkpoint, ConversionOptions, ConversionPlan, plan_conversion
from engine.convert.mappings import TABLES
from engine.errors import ColibriError, InvalidRequestError, ModelFormatError, UnsupportedModelError
from engine.gguf import TensorType
from tests.support.checkpoints import CheckpointCase, TensorSpec, checkpoint_case, checkpoint_cases

Change = Callable[[TensorSpec], list[TensorSpec]]


def with_config(case: CheckpointCase, changes: dict[str, Any]) -> CheckpointCase:
    config = case.config
    target = config["text_config"] if "text_config" in config and "architectures" not in changes else config
    target.update(changes)
    return replace(case, files={**case.files, "config.json": json.dumps(config)})


def with_tensors(case: CheckpointCase, change: Change) -> CheckpointCase:
    return replace(case, tensors=tuple(new for old in case.tensors for new in change(old)))


def plan_of(case: CheckpointCase, folder: Path, options: ConversionOptions | None = None) -> ConversionPlan:
    with Checkpoint.open(case.write(folder, weights=False)) as checkpoint:
        return plan_conversion(checkpoint, options)


def refusal(case: CheckpointCase, folder: Path, kind: type[ColibriError] | None = None, **options: Any) -> str:
    with pytest.raises(kind or (ModelFormatError, UnsupportedModelError)) as caught:
        plan_of(case, folder, ConversionOptions(**options))
    assert " found " in str(caught.value) or options
    return str(caught.value)


SIZES = ("hidden_size", "vocab_size", "num_hidden_layers", "moe_intermediate_size", "intermediate_size")
UNUSED = {("qwen3", "moe_intermediate_size"), ("qwen3", "num_experts")}
COUNTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")


@pytest.mark.parametrize("factor", [2, 0.5])
@pytest.mark.parametrize("case", checkpoint_cases(), ids=lambda case: case.name)
def test_each_size_that_does_not_fit_the_tensors_is_named(case: CheckpointCase, factor: float, tmp_path: Path) -> None:
    config = case.config.get("text_config", case.config)
    n_refused = 0
    for name in (*SIZES, *COUNTS, "head_dim", "kv_lora_rank", "q_lora_rank", "shared_expert_intermediate_size"):
        if type(config.get(name)) is not int:
            continue
        if (name == "intermediate_size" and unused_intermediate_size(case)) or (case.name, name) in UNUSED:
            continue
        wrong = max(1, int(config[name] * factor))
        if wrong == config[name]:
            continue
        layers = {} if name != "num_hidden_layers" else {"layer_types": None, "no_rope_layers": None}
        changed = with_config(case, {name: wrong, **layers})
        text = refusal(changed, tmp_path / name)
        assert name in text or "layer" in text or "experts" in text, (name, text)
        n_refused += 1
    assert n_refused >= 3


def unused_intermediate_size(case: CheckpointCase) -> bool:
    """Published although every layer has experts of another size: nothing in the tensors says whether it is true."""
    architecture = TABLES[case.config["architectures"][0]][0]
    return architecture in {"qwen2moe", "qwen3moe", "qwen3next", "qwen35moe"}


@pytest.mark.parametrize("case", checkpoint_cases(), ids=lambda case: case.name)
def test_each_missing_tensor_is_named(case: CheckpointCase, tmp_path: Path) -> None:
    unused = ("model.visual.", "lm_head") if case.config.get("tie_word_embeddings") else ("model.visual.",)
    if case.name == "deepseek_v3_fp8":
        unused += ("model.layers.3.",)  # it predicts further tokens
    optional = (".shared_head.head.weight", ".2.embed_tokens.weight")
    needed = [spec[0] for spec in case.tensors if not spec[0].startswith(unused) and not spec[0].endswith(optional)]
    for index, missing in enumerate(needed[:: max(1, len(needed) // 12)]):

        def without(spec: TensorSpec, missing: str = missing) -> list[TensorSpec]:
            return [] if spec[0] == missing else [spec]

        text = refusal(with_tensors(case, without), tmp_path / str(index))
        named = missing.replace("model.language_model.", "model.").removesuffix("_scale_inv")
        assert named in text or "mtp" in missing, text


def test_a_router_of_another_name_can_be_named(tmp_path: Path) -> None:
    def renamed(spec: TensorSpec) -> list[TensorSpec]:
        return [(spec[0].replace(".mlp.gate.", ".mlp.dispatch."), *spec[1:])]

    case = with_tensors(checkpoint_case("qwen3_moe"), renamed)
    text = refusal(case, tmp_path / "unknown", ModelFormatError)
    assert "the router of layer 0" in text
    assert "model.layers.0.mlp.dispatch.weight. If one is the router" in text

    options = ConversionOptions(router_pattern="model.layers.{layer}.mlp.dispatch.weight")
    names = {tensor.name for tensor in plan_of(case, tmp_path / "known", options).tensors}
    assert {"blk.0.ffn_gate_inp.weight", "blk.1.ffn_gate_inp.weight"} <= names


def test_a_pattern_for_routers_needs_the_layer() -> None:
    with pytest.raises(InvalidRequestError, match=r"\{layer\}"):
        ConversionOptions(router_pattern="model.router.weight")


def test_tensors_that_no_line_of_the_table_takes_are_named(tmp_path: Path) -> None:
    def more(spec: TensorSpec) -> list[TensorSpec]:
        return [spec, ("model.layers.1.adapter.weight", "BF16", [4, 4])] if spec[0] == "model.norm.weight" else [spec]

    text = refusal(with_tensors(checkpoint_case("qwen3_moe"), more), tmp_path, ModelFormatError)
    assert "model.layers.1.adapter.weight" in text


def test_towers_and_old_buffers_are_passed_over(tmp_path: Path) -> None:
    case = checkpoint_case("llama")

    def more(spec: TensorSpec) -> list[TensorSpec]:
        extra = ("model.layers.0.self_attn.rotary_emb.inv_freq", "vision_tower.blocks.0.weight", "lm_head.weight")
        return [spec, *((name, "F32", [32]) for name in extra)] if spec[0] == "model.norm.weight" else [spec]

    plan = plan_of(with_tensors(case, more), tmp_path)
    assert {tensor.name for tensor in plan.tensors} == case.manifest["tensors"].keys()


def test_an_unknown_architecture_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    case = with_config(checkpoint_case("llama"), {"architectures": ["Grok1ForCausalLM"]})
    text = refusal(case, tmp_path, UnsupportedModelError)
    assert "Grok1ForCausalLM" in text
    assert "MixtralForCausalLM" in text


@pytest.mark.parametrize("value", [None, [], "LlamaForCausalLM", [3]])
def test_a_configuration_without_architecture_is_refused(value: Any, tmp_path: Path) -> None:
    assert "architectures" in refusal(with_config(checkpoint_case("llama"), {"architectures": value}), tmp_path)


@pytest.mark.parametrize("value", ["256", 256.0, -1, 0, True, None, [256], 2**40])
def test_a_size_that_is_no_size_is_refused(value: Any, tmp_path: Path) -> None:
    case = with_config(checkpoint_case("qwen3_moe"), {"hidden_size": value})
    assert "hidden_size" in refusal(case, tmp_path, ModelFormatError)


@pytest.mark.parametrize("top_k", [0, 9, -1])
def test_more_experts_for_a_token_than_there_are_are_refused(top_k: int, tmp_path: Path) -> None:
    case = with_config(checkpoint_case("qwen3_moe"), {"num_experts_per_tok": top_k})
    assert "num_local_experts = 8" in refusal(case, tmp_path) or top_k < 1


def test_options_that_contradict_the_checkpoint_are_refused(tmp_path: Path) -> None:
    for index, (options, words) in enumerate(
        (({"expert_count": 16}, "16 experts were asked for"), ({"top_k": 9}, "found 9"))
    ):
        assert words in refusal(checkpoint_case("qwen3_moe"), tmp_path / str(index), ModelFormatError, **options)


def test_options_are_followed(tmp_path: Path) -> None:
    options = ConversionOptions(
        type=TensorType.F16, router_type=TensorType.BF16, expert_count=8, top_k=2, name="A model of mine"
    )
    plan = plan_of(checkpoint_case("qwen3_moe"), tmp_path, options)

    assert plan.metadata["qwen3moe.expert_used_count"].value == 2
    assert plan.metadata["general.name"].value == "A model of mine"
    types = {tensor.name: tensor.type for tensor in plan.tensors}
    assert types["blk.0.ffn_gate_inp.weight"] is TensorType.BF16
    assert types["blk.0.attn_q.weight"] is TensorType.F16


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("smollm3", {"no_rope_layers": [1, 0, 1, 0]}, "no_rope_layers"),
        ("gpt_oss", {"layer_types": ["full_attention", "sliding_attention"]}, "layer_types"),
        ("llama", {"rope_scaling": {"rope_type": "dynamic2"}}, "dynamic2"),
        ("llama", {"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}, "dynamic"),
        ("deepseek_v2", {"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, "llama3"),
        ("qwen2", {"rope_scaling": {"type": "longrope", "short_factor": [], "long_factor": []}}, "longrope"),
        ("llama", {"quantization_config": {"quant_method": "gptq", "bits": 4}}, "gptq"),
        ("deepseek_v2", {"moe_layer_freq": 2}, "moe_layer_freq"),
        ("deepseek_v2", {"scoring_func": "tanh"}, "tanh"),
        ("lfm2_moe", {"conv_bias": True}, "conv_bias"),
        ("llama", {"hidden_act": "gelu"}, "gelu"),
        ("phi3", {"hidden_act": "relu"}, "relu"),
        ("gpt_oss", {"swiglu_limit": 9.0}, "swiglu_limit"),
        ("phi3", {"rope_scaling": {"type": "yarn"}}, "yarn"),
    ],
)
def test_variants_that_gguf_cannot_say_are_refused(
    name: str, changes: dict[str, Any], words: str, tmp_path: Path
) -> None:
    assert words in refusal(with_config(checkpoint_case(name), changes), tmp_path, UnsupportedModelError)


@pytest.mark.parametrize(
    ("name", "left_out", "expected"),
    [
        ("deepseek_v3", ("norm_topk_prob", "routed_scaling_factor", "scoring_func"), {}),
        ("qwen3_moe", ("norm_topk_prob",), {"qwen3moe.expert_weights_norm": False}),
        ("qwen3_next", ("norm_topk_prob", "full_attention_interval", "partial_rotary_factor"), {}),
        ("glm4_moe", ("norm_topk_prob", "first_k_dense_replace", "n_shared_experts", "partial_rotary_factor"), {}),
        ("smollm3", ("tie_word_embeddings", "no_rope_layers"), {}),
        ("qwen3_5_moe_text", ("tie_word_embeddings", "layer_types"), None),
        ("ernie4_5_moe", ("moe_layer_end_index", "moe_layer_interval"), {}),
    ],
)
def test_what_a_configuration_leaves_out_is_what_the_reference_takes(
    name: str, left_out: tuple[str, ...], expected: dict[str, Any] | None, tmp_path: Path
) -> None:
    """`expected`: keys that are other than with the value said; None if the table itself needs it."""
    case = checkpoint_case(name)
    changed = with_config(case, dict.fromkeys(left_out))
    if expected is None:
        assert "layer 1 needs" in refusal(changed, tmp_path / "changed")
        return
    said, found = plan_of(case, tmp_path / "said"), plan_of(changed, tmp_path / "found")
    assert {tensor.name for tensor in found.tensors} == {tensor.name for tensor in said.tensors}
    differing = {key: entry.value for key, entry in found.metadata.items() if said.metadata.get(key) != entry}
    assert differing == expected
    assert said.metadata.keys() <= found.metadata.keys()


def test_experts_may_be_in_every_other_layer_only(tmp_path: Path) -> None:
    case = checkpoint_case("ernie4_5_moe")  # its first layer is dense, its second and last is not
    changed = with_config(case, {"moe_layer_interval": 2, "moe_layer_start_index": 0})
    said, found = plan_of(case, tmp_path / "said"), plan_of(changed, tmp_path / "found")
    assert [tensor.name for tensor in found.tensors] == [tensor.name for tensor in said.tensors]
    assert found.metadata["ernie4_5-moe.interleave_moe_layer_step"].value == 2
    none_last = with_config(case, {"moe_layer_end_index": 0})
    assert "moe_layer_end_index = 0" in refusal(none_last, tmp_path / "none last", UnsupportedModelError)


def test_layers_that_only_guess_tokens_may_be_left_out(tmp_path: Path) -> None:
    case = checkpoint_case("glm4_moe")
    n_layers = case.config["num_hidden_layers"]
    fine_tuned = with_tensors(case, lambda spec: [] if spec[0].startswith(f"model.layers.{n_layers}.") else [spec])
    found = plan_of(fine_tuned, tmp_path).metadata
    assert (found["glm4moe.block_count"].value, found["glm4moe.nextn_predict_layers"].value) == (n_layers, 0)


def test_norms_of_heads_that_are_there_are_used(tmp_path: Path) -> None:
    case = with_config(checkpoint_case("hunyuan_v1_moe"), {"use_qk_norm": False})
    names = {tensor.name for tensor in plan_of(case, tmp_path).tensors}
    assert {"blk.0.attn_q_norm.weight", "blk.1.attn_k_norm.weight"} <= names


def test_the_second_deepseek_never_divides_the_weights_of_its_experts(tmp_path: Path) -> None:
    found = plan_of(with_config(checkpoint_case("deepseek_v2"), {"norm_topk_prob": True}), tmp_path).metadata
    assert "deepseek2.expert_weights_norm" not in found


def test_a_last_layer_of_minus_one_is_the_last(tmp_path: Path) -> None:
    case = with_config(checkpoint_case("ernie4_5_moe"), {"moe_layer_end_index": -1})
    assert plan_of(case, tmp_path).metadata["ernie4_5-moe.leading_dense_block_count"].value == 1


@pytest.mark.parametrize(("truncate", "key"), [(False, None), (True, True), (None, True)])
def test_an_unusual_rounding_of_yarn_is_said(truncate: bool | None, key: bool | None, tmp_path: Path) -> None:
    case = checkpoint_case("gpt_oss")
    scaling = {name: value for name, value in case.config["rope_scaling"].items() if name != "truncate"}
    if truncate is not None:
        scaling["truncate"] = truncate
    entry = plan_of(with_config(case, {"rope_scaling": scaling}), tmp_path).metadata.get(
        "gpt-oss.rope.scaling.yarn_truncate"
    )
    assert (entry.value if entry else None) is key


def test_halves_of_a_rotation_are_brought_together(tmp_path: Path) -> None:
    """DeepSeek-V3 without `rope_interleave`: the rotated rows of each head move as Llama's do, the others stay."""
    case = checkpoint_case("deepseek_v3")
    halves = with_config(case, {"rope_interleave": False})
    found = {}
    for name, variant in (("pairs", case), ("halves", halves)):
        with Checkpoint.open(variant.write(tmp_path / name)) as checkpoint:
            plan = plan_conversion(checkpoint, ConversionOptions(type=TensorType.F32))
            found[name] = {tensor.name: tensor.read() for tensor in plan.tensors}

    order = [index for pair in range(8) for index in (pair, pair + 8)]
    before = found["pairs"]["blk.0.attn_q_b.weight"].reshape(4, 48, 64)
    after = found["halves"]["blk.0.attn_q_b.weight"].reshape(4, 48, 64)
    assert np.array_equal(after[:, :32], before[:, :32])
    assert np.array_equal(after[:, 32:], before[:, 32:][:, order])
    before, after = (found[name]["blk.0.attn_kv_a_mqa.weight"] for name in ("pairs", "halves"))
    assert np.array_equal(after[:64], before[:64])
    assert np.array_equal(after[64:], before[64:][order])


def test_packed_integers_are_refused_as_weights(tmp_path: Path) -> None:
    def packed(spec: TensorSpec) -> list[TensorSpec]:
        return [(spec[0], "U8", spec[2])] if spec[0].endswith("q_proj.weight") else [spec]

    text = refusal(with_tensors(checkpoint_case("llama"), packed), tmp_path, UnsupportedModelError)
    assert "q_proj.weight" in text
    assert "U8" in text


def test_fp8_without_scales_is_refused(tmp_path: Path) -> None:
    def bare(spec: TensorSpec) -> list[TensorSpec]:
        return [] if spec[0].endswith("q_a_proj.weight_scale_inv") else [spec]

    text = refusal(with_tensors(checkpoint_case("deepseek_v3_fp8"), bare), tmp_path, UnsupportedModelError)
    assert "q_a_proj.weight_scale_inv" in text


def test_a_tokenizer_of_a_larger_vocabulary_is_refused(tmp_path: Path) -> None:
    case = checkpoint_case("qwen3_moe")
    tokenizer = json.loads(case.files["tokenizer.json"])
    tokenizer["added_tokens"].append({"id": 608, "content": "<|more|>", "special": True})
    files = {**case.files, "tokenizer.json": json.dumps(tokenizer)}
    text = refusal(replace(case, files=files), tmp_path, ModelFormatError)
    assert "vocab_size = 608" in text
    assert "<|more|>" in text
