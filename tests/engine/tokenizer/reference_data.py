"""Vocabularies and expected ids of small reference models, as tests read them and as they were collected.

`python -m tests.engine.tokenizer.reference_data FOLDER` writes tests/data/tokenizer/models.json.gz from a folder of
reference models (each with expected.json, a GGUF file or its manifest, and the checkpoint's tokenizer files).
"""

from __future__ import annotations

import gzip
import hashlib
import json
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np

from engine.gguf import GGUFReader

DATA = Path(__file__).parents[2] / "data" / "tokenizer" / "models.json.gz"
ARRAYS = ("tokens", "scores", "token_type", "merges")


def compact_models() -> dict[str, dict[str, Any]]:
    """What the project keeps: for each model its `metadata`, `prompts` and `chats`."""
    models: dict[str, dict[str, Any]] = json.loads(gzip.decompress(DATA.read_bytes()))
    return models


def model_in(folder: Path) -> dict[str, Any]:
    """The same for a reference model's folder."""
    expected = json.loads((folder / "expected.json").read_text())
    files = sorted(folder.glob("gguf/*.gguf"))
    metadata = metadata_of_gguf(files[0]) if files else metadata_of_checkpoint(folder)
    fields = ("text", "input_ids", "greedy_ids", "greedy_text")
    return {
        "metadata": metadata,
        "prompts": [{field: prompt[field] for field in fields} for prompt in expected["prompts"]],
        "chats": expected["chat"],
    }


def metadata_of_gguf(path: Path) -> dict[str, Any]:
    """The keys of a GGUF file that a tokenizer reads, as plain values."""
    with GGUFReader.open(path) as reader:
        kept = {
            key: value
            for key, value in reader.metadata.items()
            if key.startswith("tokenizer.") or key == "general.architecture"
        }
        return {key: value.tolist() if hasattr(value, "tolist") else value for key, value in kept.items()}


def metadata_of_checkpoint(folder: Path) -> dict[str, Any]:
    """The keys that the GGUF file of this checkpoint has, from its manifest; arrays, which the manifest only has the
    hashes of, from the checkpoint's own files."""
    manifest = json.loads((folder / "gguf_manifest.json").read_text())
    keys = next(iter(manifest.values()))["kv"]
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    config = json.loads((folder / "tokenizer_config.json").read_text())
    arrays = _arrays(folder, tokenizer, keys["tokenizer.ggml.tokens"]["value"]["array_length"])
    metadata: dict[str, Any] = {}
    for key, entry in keys.items():
        value, name = entry["value"], key.rsplit(".", 1)[-1]
        if not (key.startswith("tokenizer.") or key == "general.architecture"):
            continue
        if not isinstance(value, dict):
            metadata[key] = value
        elif name in ARRAYS:
            digest = hashlib.sha256(json.dumps(arrays[name], ensure_ascii=False).encode()).hexdigest()
            assert digest == value["sha256"], f"{folder.name}: {name} is not what the converter wrote"
            metadata[key] = arrays[name]
        else:
            template = folder / "chat_template.jinja"
            metadata[key] = template.read_text() if template.exists() else config["chat_template"]
            assert hashlib.sha256(metadata[key].encode()).hexdigest() == value["sha256"], folder.name
    return metadata


def _arrays(folder: Path, tokenizer: dict[str, Any], n_tokens: int) -> dict[str, list[Any]]:
    is_scored = (folder / "tokenizer.model").exists()
    tokens = [f"[PAD{token_id}]" for token_id in range(n_tokens)]
    kinds = [5] * n_tokens
    scores = [-10000.0] * n_tokens
    for text, token_id in tokenizer["model"]["vocab"].items():
        tokens[token_id] = text
        kinds[token_id] = 6 if is_scored and len(text) == 6 and text.startswith("<0x") else 1
    if is_scored:
        for token_id, score in enumerate(_scores(folder / "tokenizer.model")):
            scores[token_id] = score
    for added in tokenizer["added_tokens"]:
        tokens[added["id"]] = added["content"]
        kinds[added["id"]] = 3 if added["special"] else 4
        scores[added["id"]] = -1000.0
    merges = tokenizer["model"].get("merges", [])
    return {
        "tokens": tokens,
        "token_type": kinds,
        "scores": scores,
        "merges": [merge if isinstance(merge, str) else " ".join(merge) for merge in merges],
    }


def _scores(path: Path) -> list[float]:
    """The scores in a SentencePiece model: field 2 of each message in field 1."""
    data, position, scores = path.read_bytes(), 0, []
    while position < len(data):
        tag, position = _varint(data, position)
        if tag & 7 == 0:
            _, position = _varint(data, position)
            continue
        length, position = _varint(data, position)
        if tag == (1 << 3 | 2):
            scores.append(_score(data[position : position + length]))
        position += length
    return scores


def _score(piece: bytes) -> float:
    position = 0
    while position < len(piece):
        tag, position = _varint(piece, position)
        if tag == (2 << 3 | 5):
            return float(struct.unpack_from("<f", piece, position)[0])
        length, position = _varint(piece, position)
        position += length if tag & 7 == 2 else 0
    return 0.0


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position


def as_reader_gives(metadata: dict[str, Any]) -> dict[str, Any]:
    """The metadata with numeric arrays as NumPy arrays, as the GGUF reader has them."""
    return {
        key: np.array(value) if isinstance(value, list) and not isinstance(value[0], str) else value
        for key, value in metadata.items()
    }


if __name__ == "__main__":
    folders = sorted(path.parent for path in Path(sys.argv[1]).glob("*/expected.json"))
    content = json.dumps({folder.name: model_in(folder) for folder in folders}, ensure_ascii=False, sort_keys=True)
    DATA.parent.mkdir(parents=True, exist_ok=True)
    DATA.write_bytes(gzip.compress(content.encode(), 9, mtime=0))
