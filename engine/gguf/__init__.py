"""GGUF files: reading, writing, and the meaning of their tensor types."""

from engine.gguf.dequantise import dequantise
from engine.gguf.header import TensorInfo
from engine.gguf.reader import GGUFReader
from engine.gguf.strings import StringArray
from engine.gguf.tensor_types import TensorType
from engine.gguf.value_types import ValueType
from engine.gguf.writer import GGUFWriter

__all__ = ["GGUFReader", "GGUFWriter", "StringArray", "TensorInfo", "TensorType", "ValueType", "dequantise"]
