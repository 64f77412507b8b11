"""Small GGUF models as float32 transformers models: configuration from the file's keys, weights from its tensors.

Independent of Colibri's engine, and of transformers' own GGUF loader, which does not know all of these architectures.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import (
    LlamaConfig,
    MixtralConfig,
    OlmoeConfig,
    PreTrainedConfig,
    PreTrainedModel,
    Qwen2Config,
    Qwen2MoeConfig,
    Qwen3MoeConfig,
)
from transformers.models.auto.modeling_auto import AutoModelForCausalLM

from tests.reference.evaluation import Routes, make_routes
from tests.reference.starter_model import half_split_rows
from tests.support.gguf_copy import SourceFile

LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "ffn_gate_inp": "mlp.gate",
    "ffn_gate_inp_shexp": "mlp.shared_expert_gate",
    "ffn_gate_shexp": "mlp.shared_expert.gate_proj",
    "ffn_up_shexp": "mlp.shared_expert.up_proj",
    "ffn_down_shexp": "mlp.shared_expert.down_proj",
}
TOP_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


def load_gguf(path: Path) -> PreTrainedModel:
    """A float32 model with eager attention whose every parameter is the file's tensor expanded."""
    torch.set_grad_enabled(False)
    source = SourceFile.open(path)
    model = AutoModelForCausalLM.from_config(
        configuration(source), dtype=torch.float32, attn_implementation="eager"
    ).eval()
    parameters = {name: torch.from_numpy(value.copy()) for name, value in hf_weights(source).items()}
    missing, unexpected = model.load_state_dict(parameters, strict=False)
    tied = {"lm_head.weight"} if model.config.tie_word_embeddings else set()
    assert set(missing) == tied and not unexpected, (missing, unexpected)
    if "rope_freqs.weight" in source.tensors():
        factors = torch.from_numpy(source.weight("rope_freqs.weight").copy())
        model.model.rotary_emb.inv_freq = model.model.rotary_emb.inv_freq / factors
    return model


def forward(model: PreTrainedModel, ids: list[int]) -> tuple[np.ndarray, Routes | None]:
    """Logits (n_tokens, n_vocab) float32 of one pass without cache, and the routes if the model has routers."""
    seen: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []
    hooks = [
        module.register_forward_hook(lambda _module, _inputs, output: seen.append(output))
        for name, module in model.named_modules()
        if type(module).__name__.endswith("TopKRouter")
    ]
    logits = model(torch.tensor([ids]), use_cache=False).logits[0].numpy()
    for hook in hooks:
        hook.remove()
    if not seen:
        return logits, None
    raw, weights, chosen = (np.stack([layer[part].numpy() for layer in seen]) for part in range(3))
    return logits, make_routes(raw, weights, chosen)


def configuration(source: SourceFile) -> PreTrainedConfig:
    """The configuration that the file's keys describe."""
    n_heads = int(source.key("attention.head_count"))
    n_hidden = int(source.key("embedding_length"))
    common: dict[str, Any] = {
        "hidden_size": n_hidden,
        "intermediate_size": int(source.key("feed_forward_length")),
        "num_hidden_layers": int(source.key("block_count")),
        "num_attention_heads": n_heads,
        "num_key_value_heads": int(source.key("attention.head_count_kv")),
        "rms_norm_eps": float(source.key("attention.layer_norm_rms_epsilon")),
        "rope_parameters": {"rope_type": "default", "rope_theta": float(source.key("rope.freq_base"))},
        "max_position_embeddings": int(source.key("context_length")),
        "vocab_size": source.weight("token_embd.weight").shape[0],
        "tie_word_embeddings": "output.weight" not in source.tensors(),
    }
    head_dim = int(source.key("attention.key_length", n_hidden // n_heads))
    n_experts = int(source.key("expert_count", 0))
    experts = {"num_experts": n_experts, "num_experts_per_tok": int(source.key("expert_used_count", 0))}
    match source.architecture:
        case "llama" if n_experts:
            top_k = experts["num_experts_per_tok"]
            return MixtralConfig(num_local_experts=n_experts, num_experts_per_tok=top_k, head_dim=head_dim, **common)
        case "llama":
            return LlamaConfig(head_dim=head_dim, **common)
        case "qwen2":
            return Qwen2Config(**common)
        case "qwen2moe":
            return Qwen2MoeConfig(
                moe_intermediate_size=int(source.key("expert_feed_forward_length")),
                shared_expert_intermediate_size=int(source.key("expert_shared_feed_forward_length")),
                norm_topk_prob=False,
                **experts,
                **common,
            )
        case "qwen3moe":
            n_ff = int(source.key("expert_feed_forward_length"))
            return Qwen3MoeConfig(
                moe_intermediate_size=n_ff, head_dim=head_dim, norm_topk_prob=True, **experts, **common
            )
        case "olmoe":
            return OlmoeConfig(norm_topk_prob=False, **experts, **common)
    raise SystemExit(f"No reference for the architecture {source.architecture!r}.")


def hf_weights(source: SourceFile) -> dict[str, np.ndarray]:
    """Parameter name -> float32 array, in the layout of transformers' classes (gate and up of all experts in one)."""
    n_heads = {"attn_q": int(source.key("attention.head_count")), "attn_k": int(source.key("attention.head_count_kv"))}
    weights: dict[str, np.ndarray] = {}
    for name in source.tensors():
        stem, _, ending = name.rpartition(".")
        if stem in TOP_NAMES:
            weights[f"{TOP_NAMES[stem]}.{ending}"] = source.weight(name)
        if not name.startswith("blk."):
            continue
        _, layer, kind = stem.split(".")
        prefix, value = f"model.layers.{layer}", source.weight(name)
        if source.architecture == "llama" and kind in n_heads:
            value = half_split_rows(value, n_heads[kind])
        if kind == "ffn_gate_exps":
            up = source.weight(name.replace("gate", "up"))
            weights[f"{prefix}.mlp.experts.gate_up_proj"] = np.concatenate([value, up], axis=1)
        elif kind == "ffn_down_exps":
            weights[f"{prefix}.mlp.experts.down_proj"] = value
        elif kind == "ffn_gate_inp_shexp":
            weights[f"{prefix}.{LAYER_NAMES[kind]}.weight"] = value.reshape(1, -1)
        elif kind != "ffn_up_exps":
            weights[f"{prefix}.{LAYER_NAMES[kind]}.{ending}"] = value
    return weights
