"""What telemetry costs: decoding with it built in and compiled out, taking turns.

    python -m tests.benchmarks.telemetry_cost MODEL [--rounds 12] [--threads 2] [--generate 128] [--json]

The program without telemetry is a copy whose team books no times and whose engine notes no steps; its kernels of the
team are compiled once, beside the others in the cache. Each round runs both in processes of their own, in turns.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.pairs import Cost

ROOT = Path(__file__).resolve().parents[2]
BOOK = "    store_i64(cell, load_i64(cell) + ticks)\n"
NOTHING_NOTED = '''

class _Silent(StepNotes):
    """Notes nothing."""

    def begin(self) -> None: ...
    def run_ended(self) -> None: ...
    def chose(self, began_ns: int) -> None: ...
    def first_token(self, added_ns: int) -> None: ...
    def end(self, n_prompt: int, n_answered: int, n_sequences: int, kv_tokens: int) -> None: ...


StepNotes = _Silent
'''


def write_silent_copy(folder: Path) -> None:
    """Copy what engine_speed needs, without telemetry. Fails where the sources are not what is expected."""
    for part in ("engine", "app", "tests/benchmarks"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    walk = folder / "engine" / "kernels" / "walk.py"
    text = walk.read_text(encoding="utf-8")
    if text.count(BOOK) != 1 or text.count("cycle_counter()") < 5:
        raise SystemExit("engine/kernels/walk.py books times in another way than this benchmark knows: amend it")
    walk.write_text(text.replace(BOOK, "    pass\n").replace("cycle_counter()", "0"), encoding="utf-8")
    with (folder / "engine" / "step_notes.py").open("a", encoding="utf-8") as notes:
        notes.write(NOTHING_NOTED)


def tokens_per_second(folder: Path, arguments: argparse.Namespace) -> float:
    """The median generation of the program in `folder`."""
    command = [sys.executable, "-m", "tests.benchmarks.engine_speed", str(arguments.model.resolve())]
    command += ["--threads", str(arguments.threads), "--generate", str(arguments.generate), "--prompt", "32"]
    done = subprocess.run([*command, "--repetitions", "3"], cwd=folder, check=True, capture_output=True, text=True)
    return statistics.median(json.loads(done.stdout)["generate"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--generate", type=int, default=128)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        silent = Path(name)
        write_silent_copy(silent)
        tokens_per_second(silent, arguments)  # compiles what it has of its own
        pairs = []
        for number in range(arguments.rounds):
            folders = (silent, ROOT) if number % 2 == 0 else (ROOT, silent)
            rates = {folder: tokens_per_second(folder, arguments) for folder in folders}
            pairs.append((rates[silent], rates[ROOT]))
            print(f"without {rates[silent]:.1f}, with {rates[ROOT]:.1f} tok/s", file=sys.stderr, flush=True)
    cost = Cost.of(pairs)
    if arguments.json:
        print(json.dumps({"pairs": pairs, "cost": cost.median, "low": cost.low, "high": cost.high}))
    else:
        print(f"telemetry costs {cost} of decode speed, {len(pairs)} pairs")


if __name__ == "__main__":
    main()
