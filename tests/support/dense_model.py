"""The repository's small llama without factors for its rotary positions, which carving does not take."""

from __future__ import annotations

from pathlib import Path

from engine.gguf import GGUFReader, GGUFWriter
from tests.support.fixtures import COMPACT


def write_dense_model(folder: Path) -> Path:
    """A dense model of two layers and 512 neurons each, in Q4_K and Q6_K."""
    with GGUFReader.open(COMPACT / "llama-Q4_K_M.gguf") as reader:
        writer = GGUFWriter(folder / "dense.gguf")
        for key, encoded in reader.encoded_keys().items():
            if key != "general.alignment" and ".rope.scaling" not in key:
                writer.add_encoded(key, encoded)
        for name, tensor in reader.tensors.items():
            if name != "rope_freqs.weight":
                writer.add_tensor(name, tensor.type, tensor.shape, reader.data(name))
        return writer.write()
