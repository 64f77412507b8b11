"""A config.json that lies beside a GGUF file, held against it: each contradiction by name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeGuard

from engine.convert.common_keys import EXPERT_COUNT, TOP_K
from engine.convert.configuration import Configuration
from engine.convert.json_files import read_json
from engine.convert.mappings import TABLES
from engine.message import Message, text

CONFIG = "config.json"
_OTHER_VALUE = text("ModelChecks", "{name} is {said} in config.json, but {key} is {kept} in the file")
_OTHER_VOCABULARY = text("ModelChecks", "vocab_size is {said} in config.json, but the file has {kept} tokens")
_OTHER_CLASS = text("ModelChecks", "architectures is {name} in config.json, which is {said}, but the file is {kept}")
_SAME_SHARE = 1e-6  # of numbers that one side keeps as float32

# The configuration's names (those that mean the same together) and GGUF's key.
_NUMBERS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("hidden_size",), "embedding_length"),
    (("num_attention_heads",), "attention.head_count"),
    (("num_key_value_heads",), "attention.head_count_kv"),
    (("max_position_embeddings",), "context_length"),
    (("rms_norm_eps", "norm_eps"), "attention.layer_norm_rms_epsilon"),
    (EXPERT_COUNT, "expert_count"),
    (TOP_K, "expert_used_count"),
    (("moe_intermediate_size",), "expert_feed_forward_length"),
    (("kv_lora_rank",), "attention.kv_lora_rank"),
    (("q_lora_rank",), "attention.q_lora_rank"),
)

# What these architectures' files keep another number for: one latent for all heads, the length that alpha stretches to.
_OTHERWISE = {("deepseek2", "attention.head_count_kv"), ("hunyuan-moe", "context_length")}


def contradictions(path: Path, metadata: Mapping[str, Any]) -> list[Message]:
    """What config.json in the folder of the GGUF file at `path` says that its keys do not; [] where there is none.

    Raises ModelFormatError for a config.json that cannot be read.
    """
    beside = path.absolute().parent / CONFIG
    values = read_json(beside)
    if values is None:
        return []
    config, architecture = Configuration(values, beside), metadata.get("general.architecture")
    found = list(_other_class(config, architecture))
    for names, key in _NUMBERS:
        said, kept = config.get(names), metadata.get(f"{architecture}.{key}")
        if (architecture, key) in _OTHERWISE or not _is_number(said) or not _is_number(kept):
            continue
        if not _same(said, kept):
            name = next(name for name in names if config.get(name) is not None)
            found.append(_OTHER_VALUE.format(name=name, said=said, key=f"{architecture}.{key}", kept=kept))
    layers, kept = config.get("num_hidden_layers"), metadata.get(f"{architecture}.block_count")
    further = metadata.get(f"{architecture}.nextn_predict_layers", 0)
    if _is_number(layers) and _is_number(kept) and layers not in (kept, kept - further):
        key = f"{architecture}.block_count"
        found.append(_OTHER_VALUE.format(name="num_hidden_layers", said=layers, key=key, kept=kept))
    tokens, n_rows = metadata.get("tokenizer.ggml.tokens"), config.get("vocab_size")
    if tokens is not None and _is_number(n_rows) and n_rows != len(tokens):
        found.append(_OTHER_VOCABULARY.format(said=n_rows, kept=len(tokens)))
    return found


def _other_class(config: Configuration, architecture: Any) -> list[Message]:
    names = config.get("architectures")
    name = names[0] if isinstance(names, list) and names else None
    known = TABLES.get(name) if isinstance(name, str) else None
    if known is None or known[0] == architecture:
        return []
    return [_OTHER_CLASS.format(name=name, said=known[0], kept=architecture)]


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_SAME_SHARE)
