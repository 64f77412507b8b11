"""What the live panels cost: decoding with all of them shown and hidden, taking turns in one window.

    python -m tests.benchmarks.panel_cost MODEL [--rounds 20] [--seconds 2] [--threads 2] [--only time latency] [--json]

Runs on the display that there is (`xvfb-run -a` gives a virtual one), else off screen. Each round has four stretches:
hidden, shown, shown, hidden. Besides the speed it prints how much of a core the window's thread took in both.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ["COLIBRI_HOME"] = tempfile.mkdtemp(prefix="colibri-panel-cost-")

from PySide6.QtWidgets import QApplication, QMainWindow
from qasync import QEventLoop

from app.engine_service import EngineService
from engine import EngineConfig, SamplingParams
from tests.benchmarks.pairs import Cost
from ui.live_docks import LiveDocks
from ui.theme import current_theme

SETTLE_S = 0.3
WIDTH, HEIGHT = 460, 1400


async def generate(service: EngineService) -> None:
    """Answer without an end."""
    params = SamplingParams(temperature=0.0, max_tokens=900, ignore_eos=True)
    while True:
        async with service.complete("The hummingbird", params) as answer:
            async for _ in answer:
                pass


async def stretch(service: EngineService, docks: LiveDocks, keys: list[str], seconds: float, *, shown: bool) -> Any:
    """(tokens per second, share of a core that this thread took)."""
    for key in keys:
        docks.docks[key].setVisible(shown)
    await asyncio.sleep(SETTLE_S)
    telemetry: Any = service.telemetry
    first, began_s, cpu_s = telemetry.n_steps, time.perf_counter(), time.thread_time()
    await asyncio.sleep(seconds)
    elapsed_s, used_s = time.perf_counter() - began_s, time.thread_time() - cpu_s
    steps = telemetry.steps(first)
    tokens = steps.chosen(steps.is_decode)
    return len(tokens) / float(tokens.wall_us.sum()) * 1e6, used_s / elapsed_s


async def run(arguments: argparse.Namespace) -> dict[str, Any]:
    service = EngineService()
    await service.load(arguments.model, EngineConfig(context_length=1024, threads=arguments.threads))
    window = QMainWindow()
    docks = LiveDocks(window, lambda: service.telemetry, lambda: service.memory, os.cpu_count() or 1)
    keys = arguments.only or list(docks.docks)
    docks.docks["experts"].hide()
    window.resize(WIDTH, HEIGHT)
    window.show()
    answering = asyncio.get_running_loop().create_task(generate(service))
    await asyncio.sleep(1)
    pairs: list[tuple[float, float]] = []
    loads: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(arguments.rounds):
        rates: dict[bool, list[float]] = {False: [], True: []}
        for shown in (False, True, True, False):
            rate, load = await stretch(service, docks, keys, arguments.seconds, shown=shown)
            rates[shown].append(rate)
            loads[shown].append(load)
        pairs.append((sum(rates[False]) / 2, sum(rates[True]) / 2))
    answering.cancel()
    await asyncio.gather(answering, return_exceptions=True)
    await asyncio.get_running_loop().run_in_executor(None, service.close)
    core = {str(shown).lower(): sum(values) / len(values) for shown, values in loads.items()}
    return {"pairs": pairs, "core_hidden": core["false"], "core_shown": core["true"], "panels": keys}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each stretch")
    parser.add_argument("--threads", type=int, default=None, help="default: one for each physical core")
    parser.add_argument("--only", nargs="+", help="these panels, by their keys: experts latency time cache ...")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    app = QApplication(["colibri"])
    app.setStyle("Fusion")
    current_theme().apply()
    loop = QEventLoop(app)
    asyncio.set_event_loop(loop)
    with loop:
        found = loop.run_until_complete(run(arguments))
    if arguments.json:
        print(json.dumps(found))
    else:
        rate = sum(first for first, _ in found["pairs"]) / len(found["pairs"])
        print(
            f"{len(found['panels'])} panels cost {Cost.of(found['pairs'])} of {rate:.0f} tok/s; the window's thread "
            f"takes {found['core_hidden']:.1%} of a core without them, {found['core_shown']:.1%} with them"
        )
    os._exit(0)  # what Qt and the engine would tidy up was measured already


if __name__ == "__main__":
    main()
