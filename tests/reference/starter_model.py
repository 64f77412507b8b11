"""The starter model as float32 weights in transformers, with its tokenizer and template read from the same GGUF."""

from __future__ import annotations

import os
from pathlib import Path

import jinja2
import numpy as np
import torch
from gguf import GGUFReader, dequantize
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, PreTrainedModel

HF_NAMES = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
HF_TOP_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}


def load_model(path: Path) -> PreTrainedModel:
    """Load the GGUF through transformers' own loader, all weights expanded to float32, and prove the expansion."""
    torch.set_grad_enabled(False)
    model = AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32, attn_implementation="eager"
    )
    check_weights(model, path)
    return model.eval()


def check_weights(model: PreTrainedModel, path: Path) -> None:
    """Hold every tensor to the gguf package's expansion, Q and K rows put back into half-split rope order.

    Raises AssertionError where one value differs, where a tensor is missing or where the output is not tied.
    """
    state = model.state_dict()
    tensors = GGUFReader(path).tensors
    n_heads = {"attn_q": model.config.num_attention_heads, "attn_k": model.config.num_key_value_heads}
    for tensor in tensors:
        weight = dequantize(tensor.data, tensor.tensor_type)
        stem = tensor.name.removesuffix(".weight")
        if stem in HF_TOP_NAMES:
            name = HF_TOP_NAMES[stem]
        else:
            _, layer, kind = stem.split(".")
            name = f"model.layers.{layer}.{HF_NAMES[kind]}"
            if kind in n_heads:
                weight = half_split_rows(weight, n_heads[kind])
        assert np.array_equal(state[f"{name}.weight"].numpy(), weight), f"{tensor.name} was expanded differently"
    assert len(tensors) + 1 == len(state), "the output matrix is tied to the embedding"
    assert torch.equal(state["lm_head.weight"], state["model.embed_tokens.weight"])


def half_split_rows(weight: np.ndarray, n_heads: int) -> np.ndarray:
    """Undo llama's interleaving: GGUF keeps a rotation's two rows side by side, checkpoints half a head apart."""
    n_rows = weight.shape[0]
    return weight.reshape(n_heads, n_rows // n_heads // 2, 2, -1).swapaxes(1, 2).reshape(weight.shape)


def load_tokenizer(path: Path) -> Tokenizer:
    """Byte-level BPE with single digits (pre-tokenizer "smollm"); special tokens in a text become their ids."""
    fields = GGUFReader(path).fields
    assert fields["tokenizer.ggml.model"].contents() == "gpt2"
    assert fields["tokenizer.ggml.pre"].contents() == "smollm"
    tokens = fields["tokenizer.ggml.tokens"].contents()
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"].contents()]
    types = fields["tokenizer.ggml.token_type"].contents()
    tokenizer = Tokenizer(models.BPE({token: index for index, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([token for token, kind in zip(tokens, types, strict=True) if kind == 3])
    return tokenizer


def render(path: Path, messages: list[dict[str, str]]) -> str:
    """Render a conversation with the template in the file, ready for the assistant's turn."""
    source = GGUFReader(path).fields["tokenizer.chat_template"].contents()
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(source).render(messages=messages, add_generation_prompt=True)


def starter_path() -> Path:
    """Where the starter model's file is: the environment variable COLIBRI_STARTER."""
    value = os.environ.get("COLIBRI_STARTER", "")
    if not Path(value).is_file():
        raise SystemExit("Set COLIBRI_STARTER to the starter model's file (`colibri starter --path` prints it).")
    return Path(value)
