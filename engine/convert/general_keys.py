"""The `general.*` keys: what the model is called, how large it is, what its licence is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.convert.json_files import read_text
from engine.convert.model_card import read_card
from engine.convert.model_map import MetadataValue
from engine.convert.size_label import size_label
from engine.convert.tensor_plan import TensorPlan
from engine.gguf.tensor_types import TensorType
from engine.gguf.value_types import ValueType

if TYPE_CHECKING:
    from engine.convert.calibrate.importance import ImportanceMatrix

QUANTIZATION_VERSION = 2
FILE_TYPES = {TensorType.F32: 0, TensorType.F16: 1, TensorType.BF16: 32}
_MXFP4_FILE = 38
_FEW_INPUTS = 32
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


def calibration_keys(importance: ImportanceMatrix | None, tensors: Sequence[TensorPlan]) -> dict[str, MetadataValue]:
    """What the file's tensors were calibrated with, by the usual keys and Colibri's own; none if none was.

    `colibri.calibration.rare_experts`: matrices of experts that had fewer inputs than `least_inputs`, and lean on
    their layer's mean.
    """
    weighted = [tensor.name for tensor in tensors if tensor.importance is not None]
    if importance is None or not weighted:
        return {}
    few = importance.rare(_FEW_INPUTS)
    text, numbers = ", ".join(importance.datasets) or "unknown", ValueType.UINT32
    return {
        "quantize.imatrix.dataset": MetadataValue(text, ValueType.STRING),
        "quantize.imatrix.entries_count": MetadataValue(len(weighted), numbers),
        "quantize.imatrix.chunks_count": MetadataValue(importance.n_chunks, numbers),
        "colibri.calibration.tokens": MetadataValue(importance.n_chunks * importance.chunk_tokens, numbers),
        "colibri.calibration.least_inputs": MetadataValue(_FEW_INPUTS, numbers),
        "colibri.calibration.rare_experts": MetadataValue(sum(few.get(name, 0) for name in weighted), numbers),
    }


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
