"""A published model, Qwen2.5-Coder-0.5B-Instruct in Q4_K_M. Runs where COLIBRI_QWEN names its file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import Engine, EngineConfig, SamplingParams
from tests.support.perplexity import perplexity

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        "COLIBRI_QWEN" not in os.environ, reason="COLIBRI_QWEN does not name qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
    ),
]

TEXT = Path(__file__).parents[2] / "resources" / "texts" / "us-constitution.txt"
# llama-perplexity -c 512 (commit 0c1e570, CPU, default options) on the same file and text: 13 windows
PEER_PERPLEXITY = 20.3900
TASK = (
    "Write a Python function is_prime(n) and a function primes(n) that returns the list of the first n primes. "
    "Answer with one code block."
)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine.open(os.environ["COLIBRI_QWEN"], EngineConfig(context_length=2048)) as engine:
        yield engine


def test_code_that_it_writes_works(engine: Engine, tmp_path: Path) -> None:
    deltas = list(engine.chat([{"role": "user", "content": TASK}], SamplingParams(temperature=0.0, max_tokens=600)))

    code = re.search(r"```python\n(.*?)```", "".join(delta.text for delta in deltas), re.DOTALL)
    assert deltas[-1].finish_reason == "stop" and code
    program = tmp_path / "primes.py"
    program.write_text(code[1] + "\nprint(primes(10), is_prime(91), is_prime(97))\n", encoding="utf-8")
    answer = subprocess.run([sys.executable, "-I", program], capture_output=True, text=True, timeout=180, check=True)
    assert answer.stdout.splitlines()[-1] == "[2, 3, 5, 7, 11, 13, 17, 19, 23, 29] False True"


def test_perplexity_equals_llama_cpps_within_half_a_percent(engine: Engine) -> None:
    ids = engine.tokenizer.encode(TEXT.read_text(encoding="utf-8"))
    assert len(ids) // 512 == 13

    assert perplexity(engine, ids) == pytest.approx(PEER_PERPLEXITY, rel=0.005)
