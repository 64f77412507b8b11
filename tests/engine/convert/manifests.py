"""Compares a planned conversion with what an independent converter made, key by key and tensor by tensor."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from engine.convert import ConversionPlan, MetadataValue, TensorPlan
from engine.gguf import ValueType

# Where ours differs and is right: by case, then by key or tensor.
KNOWN_DIFFERENCES: Mapping[str, Mapping[str, str]] = {
    "llama": {
        "rope_freqs.weight": "computed in float64 and rounded once; the other in float32, up to 4 units of 2^-23 off"
    },
    "qwen3_next": {f"blk.{n}.ssm_a": "-exp(A_log) rounded once; the other's exp is one unit off" for n in range(4)},
    "qwen3_5_moe": {f"blk.{n}.ssm_a": "as for qwen3_next" for n in range(4)},
    "qwen3_5_moe_text": {"blk.0.ssm_a": "as for qwen3_next"},
    "qwen2_moe_normalised": {
        "qwen2moe.expert_weights_norm": "norm_topk_prob is true, which is not usual for qwen2moe: the reference then "
        "divides the weights by their sum, llama.cpp never does, and its converter does not say so"
    },
}


def shared_manifest(entry: Mapping[str, Any]) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """A manifest of the shared folder as (key: [type, value], tensor: [shape, type, digest])."""
    keys = {name: [found["type"], found["value"]] for name, found in entry["kv"].items()}
    tensors = {t["name"]: [t["ne"][::-1], t["type"], t["sha256"]] for t in entry["tensors"]}
    return keys, tensors


def differences(plan: ConversionPlan, keys: Mapping[str, Any], tensors: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(name, what differs) for each key and tensor that is missing, too much or other."""
    for name in plan.metadata.keys() | keys.keys():
        if name not in keys or name not in plan.metadata:
            yield name, "only ours" if name in plan.metadata else "only theirs"
        elif not same_value(plan.metadata[name], *keys[name]):
            yield name, f"ours {plan.metadata[name]!r:.200}, theirs {keys[name]!r:.200}"
    ours = {tensor.name: tensor for tensor in plan.tensors}
    assert len(ours) == len(plan.tensors)
    for name in ours.keys() | tensors.keys():
        if name not in ours or name not in tensors:
            yield name, "only ours" if name in ours else "only theirs"
        elif described(ours[name]) != tensors[name]:
            yield name, f"ours {described(ours[name])}, theirs {tensors[name]}"


def described(tensor: TensorPlan) -> list[Any]:
    """Shape, type and the digest of the bytes, in pieces so small that they cut experts."""
    digest = hashlib.sha256()
    for chunk in tensor.chunks(max_bytes=50_000):
        digest.update(chunk.tobytes())
    return [list(tensor.shape), tensor.type.name, digest.hexdigest()]


def same_value(ours: MetadataValue, type_name: str, theirs: Any) -> bool:
    """Equal in type and value, where long lists and texts are recorded by their digest."""
    value = ours.value
    if type_name != ("ARRAY/" if isinstance(value, list) else "") + ours.type.name:
        return False
    if isinstance(theirs, dict):  # the shared folder's form
        if "string_length" in theirs:
            return hashlib.sha256(value.encode()).hexdigest() == theirs["sha256"]
        return len(value) == theirs["array_length"] and theirs["sha256"] in digests(value, ours.type)
    if ours.type is ValueType.FLOAT32 and not isinstance(value, list):
        return bool(np.float32(value) == np.float32(theirs))
    if isinstance(value, list) and isinstance(theirs, str):
        return theirs in digests(value, ours.type)
    return bool(value == theirs)


def digests(values: list[Any], type: ValueType) -> set[str]:
    """Of a list as JSON (our records), as texts joined or as bytes (the shared folder's)."""
    forms = [json.dumps(values).encode()]
    if type is ValueType.STRING:
        forms += [
            "\n".join(values).encode(),
            "\0".join(values).encode(),
            json.dumps(values, ensure_ascii=False).encode(),
        ]
    else:
        forms.append(np.array(values, "<f4" if type is ValueType.FLOAT32 else "<i4").tobytes())
    return {hashlib.sha256(form).hexdigest() for form in forms}
