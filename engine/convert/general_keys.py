"""The `general.*` keys: what the model is called, how large it is, what its licence is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from engine.convert.json_files import read_text
from engine.convert.model_card import read_card
from engine.convert.model_map import MetadataValue
from engine.convert.size_label import size_label
from engine.convert.tensor_plan import TensorPlan
from engine.gguf.tensor_types import TensorType
from engine.gguf.value_types import ValueType

QUANTIZATION_VERSION = 2
FILE_TYPES = {TensorType.F32: 0, TensorType.F16: 1, TensorType.BF16: 32}
_MXFP4_FILE = 38
_VERSION_WORD = re.compile(r"v?\d")


def general_keys(
    folder: Path, architecture: str, name: str | None, type: TensorType, tensors: Sequence[TensorPlan]
) -> dict[str, MetadataValue]:
    """`name`: instead of the one that the folder's name gives. `type`: of the matrices."""
    packed = any(tensor.type is TensorType.MXFP4 for tensor in tensors)
    texts = {
        "general.architecture": architecture,
        "general.type": "model",
        "general.name": name or title_of(folder.resolve().name),
        "general.size_label": size_label(tensors),
    }
    keys = {key: MetadataValue(value, ValueType.STRING) for key, value in texts.items()}
    keys |= _card_keys(folder)
    keys["general.file_type"] = MetadataValue(_MXFP4_FILE if packed else FILE_TYPES.get(type, 0), ValueType.UINT32)
    keys["general.quantization_version"] = MetadataValue(QUANTIZATION_VERSION, ValueType.UINT32)
    return keys


def title_of(folder_name: str) -> str:
    """`Qwen3-30B-A3B` -> `Qwen3 30B A3B`; words in small letters get a capital one, versions do not."""
    words = folder_name.replace("-", " ").split()
    return " ".join(word.title() if word.islower() and not _VERSION_WORD.match(word) else word for word in words)


def _card_keys(folder: Path) -> dict[str, MetadataValue]:
    text = read_text(folder / "README.md")
    card = read_card(text) if text else {}
    keys: dict[str, MetadataValue] = {}
    for key, entry in (("license", "license"), ("license.name", "license_name"), ("license.link", "license_link")):
        if isinstance(value := card.get(entry), str):
            keys[f"general.{key}"] = MetadataValue(value, ValueType.STRING)
    for key, entry in (("tags", "tags"), ("languages", "language")):
        value = card.get(entry)
        if items := [value] if isinstance(value, str) else value:
            keys[f"general.{key}"] = MetadataValue(items, ValueType.STRING)
    bases = card.get("base_model")
    if bases := [bases] if isinstance(bases, str) else bases:
        keys["general.base_model.count"] = MetadataValue(len(bases), ValueType.UINT32)
        for index, base in enumerate(bases):
            organisation, _, model = base.rpartition("/")
            keys[f"general.base_model.{index}.name"] = MetadataValue(title_of(model), ValueType.STRING)
            if organisation:
                keys[f"general.base_model.{index}.organization"] = MetadataValue(
                    title_of(organisation), ValueType.STRING
                )
    return keys
