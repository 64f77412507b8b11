"""llama.cpp opens what we write, and continues texts as the checkpoints' reference does.

Runs where COLIBRI_LLAMA_CPP names the folder of its programs, and COLIBRI_FIXTURES that of the shared fixtures.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from engine import Engine
from engine.convert import ConversionOptions, Mixture, planned, write_gguf
from engine.gguf import TensorType

FIXTURES, PROGRAMS = os.environ.get("COLIBRI_FIXTURES"), os.environ.get("COLIBRI_LLAMA_CPP")
FOLDERS = sorted(path.parent for path in Path(FIXTURES).glob("*/config.json")) if FIXTURES and PROGRAMS else []
# What llama.cpp computes differently, or does not open (see the fixtures' README).
OTHERWISE = {"gpt_oss", "phimoe", "deepseek_v2_lite"}
SOME = {"llama", "qwen3_moe", "gpt_oss", "mixtral"}
N_TOKENS = 24


def continued(model: Path, prompt: str) -> str:
    """What llama.cpp writes after `prompt`, greedily."""
    command = [Path(PROGRAMS or "") / "llama-completion", "-m", model, "-p", prompt, "-n", str(N_TOKENS), "--temp", "0"]
    options = ["-no-cnv", "-c", "256", "-t", "1", "--ignore-eos", "--no-display-prompt", "--no-warmup", "-fa", "off"]
    done = subprocess.run(
        [*command, *options, "-ctk", "f32", "-ctv", "f32"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={**os.environ, "LD_LIBRARY_PATH": PROGRAMS or ""},
        check=True,
    )
    return readable(done.stdout.decode(errors="replace"))


def readable(text: str) -> str:
    """A text without what the program does not print, and without what may be the first bytes of a character."""
    return text.replace("\0", "").lstrip(" ").rstrip("\n\ufffd")


@pytest.mark.parametrize("folder", [f for f in FOLDERS if f.name not in OTHERWISE], ids=lambda folder: folder.name)
def test_llama_cpp_continues_as_the_reference_does(folder: Path, tmp_path: Path) -> None:
    expected = json.loads((folder / "expected.json").read_text())
    with np.load(folder / "expected.npz") as arrays:
        ids = arrays["p0_greedy_ids"][:N_TOKENS].tolist()
    with planned(folder, ConversionOptions(type=TensorType.F32)) as plan:
        path = write_gguf(plan, tmp_path / "model.gguf")
    with Engine.open(path) as engine:
        wanted = readable(engine.tokenizer.decode(ids))
    found = continued(path, expected["prompts"][0]["text"])
    assert wanted.startswith(found)  # the program keeps the last tokens back
    assert len(found) >= len(wanted) / 3


@pytest.mark.parametrize("mixture", Mixture, ids=lambda mixture: mixture.name)
@pytest.mark.parametrize("folder", [f for f in FOLDERS if f.name in SOME], ids=lambda folder: folder.name)
def test_llama_cpp_opens_every_kind_of_file(folder: Path, mixture: Mixture, tmp_path: Path) -> None:
    with planned(folder, ConversionOptions(mixture=mixture)) as plan:
        path = write_gguf(plan, tmp_path / "model.gguf")
    assert continued(path, "The bird")
