"""Regenerate tests/data/checkpoints.json.gz: what llama.cpp's converter makes of checkpoints with made-up weights.

    python -m tests.reference.make_conversions --fixtures FOLDER --converter LLAMA_CPP

FOLDER has published-style checkpoints with a `gguf_manifest.json` each; their configurations, tokenizers, tensor names
and shapes are taken over. Further cases are changed from them. Needs what the converter needs (torch, transformers).

The converter knows tokenizers by a digest that made-up ones do not have, so it is told the pre-tokenizer's name.
"""

from __future__ import annotations

import argparse
import base64
import copy
import gzip
import hashlib
import json
import re
import runpy
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.checkpoints import DATA, TensorSpec, write_files, write_weights

DTYPES = {"bfloat16": "BF16", "float16": "F16", "float32": "F32", "uint8": "U8"}
FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "tokenizer.model")
FP8_BLOCK = 128


@dataclass
class Draft:
    """A case before it is converted."""

    config: dict[str, Any]
    files: dict[str, str]
    tensors: list[TensorSpec]
    pre: str
    type: str
    manifest: dict[str, Any] = field(default_factory=dict)

    def changed(self, config: dict[str, Any], change: Callable[[TensorSpec], list[TensorSpec]] | None = None) -> Draft:
        """Another case, with values of the configuration and tensors replaced."""
        tensors = [new for old in self.tensors for new in change(old)] if change else list(self.tensors)
        return Draft({**copy.deepcopy(self.config), **config}, self.files, tensors, self.pre, self.type)


def read_fixture(folder: Path) -> Draft:
    """What a folder of the fixtures has but its weights."""
    manifest = json.loads((folder / "gguf_manifest.json").read_text())
    kind = next(kind for kind, entry in manifest.items() if "kv" in entry)
    files = {}
    for name in FILES:
        if (folder / name).is_file():
            raw = (folder / name).read_bytes()
            files[name] = base64.b64encode(raw).decode() if name.endswith(".model") else raw.decode()
    lines = [line.split("\t") for line in (folder / "tensors.txt").read_text().splitlines()]
    tensors = [(name, DTYPES[dtype], json.loads(shape)) for name, dtype, shape in lines]
    pre = manifest[kind]["kv"]["tokenizer.ggml.pre"]["value"]
    return Draft(json.loads(files.pop("config.json")), files, tensors, pre, kind)


def variants(known: dict[str, Draft]) -> dict[str, Draft]:
    """Checkpoints of kinds that the fixtures do not have."""
    return {
        "qwen3": known["qwen3_moe"].changed(
            {
                "architectures": ["Qwen3ForCausalLM"],
                "model_type": "qwen3",
                "num_local_experts": None,
                "num_experts_per_tok": None,
            },
            dense_mlp,
        ),
        "qwen3_moe_fused": known["qwen3_moe"].changed({}, fuse_experts),
        "qwen2_moe_normalised": known["qwen2_moe"].changed({"norm_topk_prob": True}),
        "deepseek": deepseek_v1(known["deepseek_v2"]),
        "deepseek_v3_fp8": known["deepseek_v3"].changed(
            {
                "num_nextn_predict_layers": 1,
                "quantization_config": {"quant_method": "fp8", "weight_block_size": [FP8_BLOCK, FP8_BLOCK]},
            },
            fp8_with_mtp,
        ),
        "granitemoe_shared": known["granitemoe"].changed(
            {"architectures": ["GraniteMoeSharedForCausalLM"], "shared_intermediate_size": 96}, shared_mlp
        ),
        "gpt_oss_bf16": known["gpt_oss"].changed({"quantization_config": None}, unpacked_experts),
        "glm4_moe_norms": known["glm4_moe"].changed({"use_qk_norm": True, "num_nextn_predict_layers": 0}, head_norms),
        "llama_yarn": known["llama"].changed(
            {
                "tie_word_embeddings": False,
                "attention_bias": True,
                "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 256},
            },
            biases_and_head,
        ),
        # The converter stumbles over a Qwen3.5 without a layer that predicts a further token.
        "qwen3_5_moe_text": known["qwen3_5_moe_text"].changed({"mtp_num_hidden_layers": 1}, with_mtp_layer),
        "phi3_longrope": known["phi3"].changed(
            {
                "partial_rotary_factor": 0.75,
                "max_position_embeddings": 4096,
                "rope_scaling": {
                    "type": "longrope",
                    "long_factor": [1 + n / 8 for n in range(24)],
                    "short_factor": [1 + n / 64 for n in range(24)],
                },
            }
        ),
    }


def dense_mlp(tensor: TensorSpec) -> list[TensorSpec]:
    name, dtype, _ = tensor
    if match := re.match(r"(.*\.mlp)\.experts\.0\.(gate|up|down)_proj\.weight", name):
        return [(f"{match[1]}.{match[2]}_proj.weight", dtype, [256, 512] if match[2] == "down" else [512, 256])]
    return [] if ".experts." in name or name.endswith("mlp.gate.weight") else [tensor]


def fuse_experts(tensor: TensorSpec) -> list[TensorSpec]:
    name, dtype, shape = tensor
    if match := re.match(r"(.*\.mlp\.experts)\.(\d+)\.(gate|up|down)_proj\.weight", name):
        if match[2] != "0" or match[3] == "up":
            return []
        if match[3] == "gate":
            return [(f"{match[1]}.gate_up_proj", dtype, [8, 2 * shape[0], shape[1]])]
        return [(f"{match[1]}.down_proj", dtype, [8, *shape])]
    return [tensor]


def deepseek_v1(v2: Draft) -> Draft:
    def change(tensor: TensorSpec) -> list[TensorSpec]:
        name, dtype, _ = tensor
        if name.endswith("o_proj.weight"):
            prefix = name.removesuffix("o_proj.weight")
            return [(f"{prefix}{part}_proj.weight", dtype, [256, 256]) for part in "qkvo"]
        return [] if ".self_attn." in name else [tensor]

    config = {"architectures": ["DeepseekForCausalLM"], "model_type": "deepseek", "rope_scaling": None}
    draft = v2.changed(config, change)
    for key in ("n_group", "topk_group", "topk_method", "kv_lora_rank", "q_lora_rank", "qk_nope_head_dim"):
        del draft.config[key]
    for key in ("qk_rope_head_dim", "v_head_dim", "routed_scaling_factor"):
        del draft.config[key]
    return draft


def fp8_with_mtp(tensor: TensorSpec) -> list[TensorSpec]:
    name, _, shape = tensor
    result = [tensor]
    if "_proj" in name and "layernorm" not in name:
        blocks = [-(-size // FP8_BLOCK) for size in shape]
        result = [(name, "F8_E4M3", shape), (f"{name}_scale_inv", "F32", blocks)]
    if name.startswith("model.layers.2."):
        result += [(new.replace(".2.", ".3.", 1), dtype, size) for new, dtype, size in result]
    if name == "model.norm.weight":
        result.append(("model.layers.3.eh_proj.weight", "BF16", [256, 512]))
    return result


def shared_mlp(tensor: TensorSpec) -> list[TensorSpec]:
    name, dtype, _ = tensor
    if not name.endswith("input_layernorm.weight"):
        return [tensor]
    prefix = name.removesuffix("input_layernorm.weight") + "shared_mlp."
    more = [(f"{prefix}input_linear.weight", dtype, [192, 256]), (f"{prefix}output_linear.weight", dtype, [256, 96])]
    return [tensor, *more]


def unpacked_experts(tensor: TensorSpec) -> list[TensorSpec]:
    name, _, shape = tensor
    if name.endswith("_blocks"):
        n_experts, n_rows, n_blocks, _ = shape
        return [(name.removesuffix("_blocks"), "BF16", [n_experts, n_blocks * 32, n_rows])]
    return [] if name.endswith("_scales") else [tensor]


def head_norms(tensor: TensorSpec) -> list[TensorSpec]:
    name, dtype, _ = tensor
    if name.startswith("model.layers.2."):
        return []
    if name.endswith("o_proj.weight"):
        return [tensor, *((name.replace("o_proj", f"{part}_norm"), dtype, [64]) for part in "qk")]
    return [tensor]


def biases_and_head(tensor: TensorSpec) -> list[TensorSpec]:
    name, _, shape = tensor
    result = [(name, "F32", shape)]
    if ".self_attn." in name:
        result.append((name.replace(".weight", ".bias"), "F32", shape[:1]))
    if name == "model.norm.weight":
        result.append(("lm_head.weight", "F32", [600, 256]))
    return result


def with_mtp_layer(tensor: TensorSpec) -> list[TensorSpec]:
    name, dtype, shape = tensor
    if name.startswith("model.layers.1."):
        return [tensor, (name.replace("model.layers.1.", "mtp.layers.0."), dtype, shape)]
    if name != "model.norm.weight":
        return [tensor]
    norms = ("mtp.norm", "mtp.pre_fc_norm_embedding", "mtp.pre_fc_norm_hidden")
    return [tensor, ("mtp.fc.weight", dtype, [256, 512]), *((f"{norm}.weight", dtype, [256]) for norm in norms)]


def convert(name: str, draft: Draft, converter: Path, folder: Path) -> dict[str, Any]:
    """Run the converter in this process and describe the file that it writes."""
    checkpoint, target = folder / name, folder / f"{name}.gguf"
    checkpoint.mkdir()
    write_files(checkpoint, {**draft.files, "config.json": json.dumps(draft.config)})
    write_weights(checkpoint / "model.safetensors", tuple(draft.tensors))

    from conversion.base import TextModel  # the converter's own package
    from conversion.hunyuan import HunYuanMoEModel

    TextModel.get_vocab_base_pre = lambda self, tokenizer: draft.pre
    HunYuanMoEModel.set_vocab = lambda self: self._set_vocab_gpt2()
    sys.argv = ["convert", str(checkpoint), "--outfile", str(target), "--outtype", draft.type.lower()]
    runpy.run_path(str(converter / "convert_hf_to_gguf.py"), run_name="__main__")
    return describe(target)


def describe(path: Path) -> dict[str, Any]:
    """Keys with types and values, tensors with shapes, types and digests. Lists of tokens are digests too."""
    from gguf import GGUFReader, GGUFValueType

    reader = GGUFReader(path)
    keys = {}
    for name, entry in reader.fields.items():
        if name.startswith("GGUF."):
            continue
        value = entry.contents()
        if isinstance(value, list) and len(value) > 64:
            value = digest_of_list(value)
        is_list = entry.types[0] == GGUFValueType.ARRAY
        keys[name] = ["ARRAY/" * is_list + entry.types[-1].name, value]
    tensors = {
        tensor.name: [[int(size) for size in reversed(tensor.shape)], tensor.tensor_type.name, sha256(tensor.data)]
        for tensor in reader.tensors
    }
    return {"keys": keys, "tensors": tensors}


def digest_of_list(values: list[Any]) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()


def sha256(data: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(data).tobytes()).hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fixtures", type=Path, required=True)
    parser.add_argument("--converter", type=Path, required=True, help="the folder of llama.cpp's sources")
    parser.add_argument("--only", nargs="*", help="try these cases, write nothing")
    options = parser.parse_args()
    sys.path[:0] = [str(options.converter), str(options.converter / "gguf-py")]

    drafts = {path.name: read_fixture(path) for path in sorted(options.fixtures.iterdir()) if path.is_dir()}
    drafts |= variants(drafts)
    files: dict[str, str] = {}
    cases = {}
    for name, draft in drafts.items():
        if options.only and name not in options.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            manifest = convert(name, draft, options.converter, Path(folder))
        names = {}
        for file, content in {**draft.files, "config.json": json.dumps(draft.config)}.items():
            names[file] = hashlib.sha256(content.encode()).hexdigest()[:16]
            files[names[file]] = content
        cases[name] = {"files": names, "tensors": draft.tensors, "type": draft.type, "manifest": manifest}
        print(name, len(manifest["keys"]), "keys,", len(manifest["tensors"]), "tensors")
    if not options.only:
        text = json.dumps({"files": files, "cases": cases}, separators=(",", ":"))
        DATA.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
