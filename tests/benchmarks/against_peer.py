"""Measures our engine and llama.cpp's llama-bench in turns on the same models and prints one Markdown table.

    python -m tests.benchmarks.against_peer --peer PATH/llama-bench MODEL [MODEL ...] [--rounds 3] [--threads 2]

A round runs each contender once, in a process of its own: ours, the peer with its defaults, the peer without its
run-time repacking, ours again, and so on, so that a noisy minute hits all alike. The peer's figure is the best of its
settings, test by test. Before each run the share of idle CPU is taken for 0.3 s; the table's last line tells how calm
the machine was.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import psutil

TESTS = ("prompt", "generate")
OURS = "Colibri"
PEER_SETTINGS: dict[str, list[str]] = {"llama.cpp": [], "llama.cpp --repack 0": ["--repack", "0"]}


@dataclass(frozen=True, slots=True)
class Sizes:
    threads: int
    n_prompt: int
    n_generate: int


def measure_ours(model: Path, sizes: Sizes) -> dict[str, float]:
    """Tokens per second by test, of our engine in a new process."""
    command = [sys.executable, "-m", "tests.benchmarks.engine_speed", str(model)]
    options = [f"--threads={sizes.threads}", f"--prompt={sizes.n_prompt}", f"--generate={sizes.n_generate}"]
    result = json.loads(run([*command, *options]))
    return {test: result[test][0] for test in TESTS}


def measure_peer(binary: Path, settings: list[str], model: Path, sizes: Sizes) -> dict[str, float]:
    """Tokens per second by test, of the peer in a new process (it warms up by itself)."""
    command = [str(binary), "-m", str(model), "-t", str(sizes.threads), "-r", "1", "-o", "json", *settings]
    entries = json.loads(run([*command, "-p", str(sizes.n_prompt), "-n", str(sizes.n_generate)]))
    return {"prompt" if entry["n_prompt"] else "generate": float(entry["avg_ts"]) for entry in entries}


def run(command: list[str]) -> str:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {result.returncode}:\n{result.stderr[-2000:]}")
    return result.stdout


def measure(
    model: Path, peer: Path | None, sizes: Sizes, rounds: int, ours: bool
) -> tuple[dict[str, dict[str, list[float]]], list[float]]:
    """Samples by contender and test, and the idle share of the CPU before each run."""
    samples: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    idle = []
    contenders = ([OURS] if ours else []) + (list(PEER_SETTINGS) if peer else [])
    for number in range(rounds):
        for name in contenders:
            idle.append(psutil.cpu_times_percent(0.3).idle)
            start = time.perf_counter()
            if name == OURS or peer is None:
                speeds = measure_ours(model, sizes)
            else:
                speeds = measure_peer(peer, PEER_SETTINGS[name], model, sizes)
            for test in TESTS:
                samples[name][test].append(speeds[test])
            line = ", ".join(f"{test} {speeds[test]:.1f}" for test in TESTS)
            seconds = time.perf_counter() - start
            print(f"{model.name}, round {number + 1}: {name}: {line} ({seconds:.0f} s)", file=sys.stderr)
    return samples, idle


def table_rows(model: Path, samples: dict[str, dict[str, list[float]]], sizes: Sizes) -> list[str]:
    """One line for each test: median (lowest to highest) of each contender, and ours over the peer's best median."""
    rows = []
    for test in TESTS:
        title = f"pp{sizes.n_prompt}" if test == "prompt" else f"tg{sizes.n_generate}"
        cells = []
        for name in (OURS, *PEER_SETTINGS):
            values = samples[name][test] if name in samples else []
            text = f"{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})" if values else "-"
            cells.append(text)
        peers = [statistics.median(samples[name][test]) for name in PEER_SETTINGS if name in samples]
        ratio = f"{statistics.median(samples[OURS][test]) / max(peers):.2f}" if OURS in samples and peers else "-"
        rows.append(f"| {model.stem} | {title} | {' | '.join(cells)} | {ratio} |")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="+", metavar="MODEL")
    parser.add_argument("--peer", type=Path, help="the llama-bench binary; without it only our engine runs")
    parser.add_argument("--peer-only", action="store_true", help="leave our engine out")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--generate", type=int, default=128)
    arguments = parser.parse_args()
    if arguments.peer_only and not arguments.peer:
        parser.error("--peer-only needs --peer")
    sizes = Sizes(arguments.threads, arguments.prompt, arguments.generate)
    rows, idle = [], []
    for model in arguments.models:
        samples, idle_before = measure(model, arguments.peer, sizes, arguments.rounds, not arguments.peer_only)
        rows += table_rows(model, samples, sizes)
        idle += idle_before
    print(f"| model | test | {OURS} | {' | '.join(PEER_SETTINGS)} | ratio to the faster |")
    print("| --- | --- | --- " + "| --- " * len(PEER_SETTINGS) + "| --- |")
    print("\n".join(rows))
    print(f"\nTokens per second, median (lowest to highest) of {arguments.rounds} interleaved rounds, ", end="")
    print(f"{sizes.threads} threads. CPU idle before a run: {min(idle):.0f} to {max(idle):.0f} %.")


if __name__ == "__main__":
    main()
