"""Texts recorded with published vocabularies have the recorded ids.

Runs over the folder that COLIBRI_VOCABS names: `ggml-vocab-NAME.gguf` with `.inp` (texts) and `.out` (ids) beside it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.gguf import GGUFReader
from engine.tokenizer import Tokenizer

SEPARATOR = "\n__ggml_vocab_test__\n"


def recorded() -> list[Path]:
    """The vocabularies of the kinds that Colibri knows."""
    folder = os.environ.get("COLIBRI_VOCABS")
    paths = sorted(Path(folder).glob("ggml-vocab-*.gguf")) if folder else []
    return [path for path in paths if Path(f"{path}.out").exists() and _is_known(path)]


def _is_known(path: Path) -> bool:
    with GGUFReader.open(path) as reader:
        return reader.metadata["tokenizer.ggml.model"] in ("gpt2", "llama")


if PATHS := recorded():

    @pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem.removeprefix("ggml-vocab-"))
    def test_published_vocabularies_give_the_recorded_ids(path: Path) -> None:
        texts = Path(f"{path}.inp").read_bytes().decode().removesuffix(SEPARATOR).split(SEPARATOR)
        lines = Path(f"{path}.out").read_text().removesuffix("\n").split("\n")
        expected = [[int(token_id) for token_id in line.split()] for line in lines]
        with GGUFReader.open(path) as reader:
            tokenizer = Tokenizer.from_metadata(reader.metadata)
        assert len(texts) == len(expected)
        for text, ids in zip(texts, expected, strict=True):
            assert tokenizer.encode(text, add_special=False) == ids
            assert tokenizer.decode(ids) == text
