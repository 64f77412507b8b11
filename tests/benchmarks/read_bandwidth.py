"""Measures how fast this machine's memory can be read, by Colibri's own probe and by a C program, taking turns.

python -m tests.benchmarks.read_bandwidth [--threads 1 2] [--size-mb 2000] [--rounds 3] [--json]
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

from engine.hardware.memory_speed import N_ROUNDS, measure_memory

SOURCE = Path(__file__).with_name("stream.c")


def compiled(folder: Path) -> Path | None:
    """The C program; None where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    program = folder / "stream"
    command = [compiler, "-O3", "-march=native", "-pthread", str(SOURCE), "-o", str(program)]
    subprocess.run(command, check=True)
    return program


def in_c(program: Path, size_mb: int, n_threads: int) -> float:
    """The median of as many passes as the probe makes, in GB/s."""
    command = [str(program), str(size_mb), str(n_threads), str(N_ROUNDS)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return statistics.median(float(line) for line in output.split())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--size-mb", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3, help="of both, taking turns")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rates: dict[int, dict[str, list[float]]] = {n: {"probe": [], "C": []} for n in arguments.threads}
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(Path(folder))
        for _ in range(arguments.rounds):
            for n_threads, found in rates.items():
                found["probe"].append(measure_memory(n_threads, arguments.size_mb * 1_000_000).median / 1e9)
                if program is not None:
                    found["C"].append(in_c(program, arguments.size_mb, n_threads))
    if arguments.json:
        print(json.dumps({"unit": "GB/s", "size_mb": arguments.size_mb, "rates": rates}))
        return
    for n_threads, found in rates.items():
        for name, values in found.items():
            if values:
                median, low, high = statistics.median(values), min(values), max(values)
                print(f"{n_threads} threads, {name}: median {median:.1f} GB/s ({low:.1f} to {high:.1f})")


if __name__ == "__main__":
    main()
