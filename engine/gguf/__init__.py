"""GGUF files: reading, writing, and the meaning of their tensor types."""

from engine.gguf.header import TensorInfo
from engine.gguf.reader import GGUFReader
from engine.gguf.strings import StringArray
from engine.gguf.tensor_types import TensorType
from engine.gguf.value_types import ValueType

__all__ = ["GGUFReader", "StringArray", "TensorInfo", "TensorType", "ValueType"]
