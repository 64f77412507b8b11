"""Copies of GGUF files with some tensors changed, written by the gguf package (not by the code under test)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, dequantize

# A tensor as stored: name, type, and the array whose last axis is a row's values (F32, F16) or its bytes.
StoredTensor = tuple[str, GGMLQuantizationType, np.ndarray]


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A GGUF's keys and stored tensors."""

    reader: GGUFReader

    @classmethod
    def open(cls, path: Path) -> SourceFile:
        return cls(GGUFReader(path))

    @property
    def architecture(self) -> str:
        return str(self.reader.fields["general.architecture"].contents())

    def key(self, name: str, default: Any = None) -> Any:
        """Value of a key of the architecture ("block_count") or, where it has none, of a whole name."""
        field = self.reader.fields.get(f"{self.architecture}.{name}") or self.reader.fields.get(name)
        return default if field is None else field.contents()

    def tensors(self) -> dict[str, StoredTensor]:
        return {t.name: (t.name, t.tensor_type, t.data) for t in self.reader.tensors}

    def weight(self, name: str) -> np.ndarray:
        """A tensor expanded to float32, NumPy order (rows, inputs)."""
        _, kind, data = self.tensors()[name]
        return dequantize(data, kind)

    def type_names(self) -> frozenset[str]:
        return frozenset(t.tensor_type.name for t in self.reader.tensors)


def write_copy(
    source: SourceFile,
    target: Path,
    change: Callable[[StoredTensor], Iterable[StoredTensor]],
    new_keys: Mapping[str, Any] | None = None,
) -> None:
    """Write `source` to `target`, each tensor replaced by what `change` gives; `new_keys` replace existing keys."""
    writer = GGUFWriter(target, source.architecture)
    for name, field in source.reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.alignment"):
            continue  # the package writes these itself, and aligns to 32 bytes
        value = (new_keys or {}).get(name, field.contents())
        sub_type = field.types[-1] if field.types[0] == GGUFValueType.ARRAY else None
        writer.add_key_value(name, value, field.types[0], sub_type=sub_type)
    for tensor in source.tensors().values():
        for name, kind, data in change(tensor):
            if kind in (GGMLQuantizationType.F32, GGMLQuantizationType.F16):
                writer.add_tensor(name, np.ascontiguousarray(data))
            else:
                writer.add_tensor(name, np.ascontiguousarray(data), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def split_experts(tensor: StoredTensor) -> Iterable[StoredTensor]:
    """Mixtral's older spelling: `blk.N.ffn_up_exps.weight` becomes `blk.N.ffn_up.E.weight`, one tensor per expert."""
    name, kind, data = tensor
    if "_exps." not in name:
        return [tensor]
    stem = name.replace("_exps.weight", "")
    return [(f"{stem}.{expert}.weight", kind, data[expert]) for expert in range(data.shape[0])]
