"""What the window costs: the same answer computed without it, streamed into it, and streamed with live panels shown.

    python -m tests.benchmarks.window_cost MODEL [--rounds 10] [--tokens 300] [--threads 2] [--only time ...] [--json]

Runs the real window on the display that there is (`xvfb-run -a -s "-screen 0 2000x1600x24"` gives a virtual one), else
off screen. Each round has six answers: headless, window, panels, panels, window, headless. Headless means that the
engine's thread steps the engine and nobody is told. Speed is taken over the wall, from token to token, so that it holds
what happens between the engine's steps. Besides it prints how much of a core the window's thread took.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ["COLIBRI_HOME"] = tempfile.mkdtemp(prefix="colibri-window-cost-")

from PySide6.QtWidgets import QApplication
from qasync import QEventLoop

from app import paths
from app.chats import ChatStore
from app.conversation import MessageFinished
from app.engine_service import EngineService
from app.generation import Generation
from app.settings import SettingsFile
from engine import EngineConfig, SamplingParams
from tests.benchmarks.pairs import Cost
from ui.app import SWITCH_INTERVAL_S
from ui.chat.drafts import Drafts
from ui.main_window import MainWindow, Services
from ui.theme import current_theme

QUESTION = "Tell me all about hummingbirds: how they fly, what they eat, and where they live."
SKIPPED_TOKENS = 24  # of each answer's beginning: the widgets are being made
SETTLE_S = 0.4
WIDTH, HEIGHT = 1900, 1500
MODES = ("headless", "window", "panels")


class LongAnswers(EngineService):
    """Answers of a fixed length, the same ones each time."""

    params = SamplingParams()

    def generate(self, messages: Any, params: Any = None, **more: Any) -> Generation:
        del params
        return super().generate(messages, self.params, **more)

    async def answer_headless(self, messages: Any) -> None:
        """The same without telling anybody."""

        def work() -> None:
            engine = self._engine
            assert engine is not None
            made = engine.chat_prompts.prompt(messages)
            engine.add(made.ids, self.params, made.parser)
            while engine.has_work:
                engine.step()

        await self._call(work)


async def answer(service: LongAnswers, window: MainWindow, mode: str, keys: list[str]) -> tuple[float, float]:
    """(tokens per second, share of a core that this thread took) of one answer."""
    for key in keys:
        window.docks.docks[key].setVisible(mode == "panels")
    window.new_chat()
    await asyncio.sleep(SETTLE_S)
    telemetry: Any = service.telemetry
    first, began_s, cpu_s = telemetry.n_steps, time.perf_counter(), time.thread_time()
    if mode == "headless":
        await service.answer_headless([{"role": "user", "content": QUESTION}])
    else:
        window.page.composer.submitted.emit(QUESTION)
        conversation = window.page.conversation
        assert conversation is not None
        finished = asyncio.Event()
        forget = conversation.on_event(lambda event: finished.set() if isinstance(event, MessageFinished) else None)
        await finished.wait()
        forget()
    elapsed_s, used_s = time.perf_counter() - began_s, time.thread_time() - cpu_s
    steps = telemetry.steps(first)
    tokens = steps.chosen(steps.is_decode)
    at_s = tokens.began_s[SKIPPED_TOKENS:]
    chat_id = window.current_chat_id()
    if chat_id is not None:
        window.services.store.delete(chat_id)
    return (len(at_s) - 1) / float(at_s[-1] - at_s[0]), used_s / elapsed_s


async def run(arguments: argparse.Namespace) -> dict[str, Any]:
    service = LongAnswers()
    service.params = SamplingParams(temperature=0.0, max_tokens=arguments.tokens, ignore_eos=True)
    settings = SettingsFile(paths.settings_file())
    settings.change(context_length=2048, threads=arguments.threads)
    store = ChatStore(paths.chats_db())
    window = MainWindow(Services(store, service, settings, Drafts(paths.data_dir() / "drafts.json"), 2))
    window.resize(WIDTH, HEIGHT)
    window.show()
    await service.load(arguments.model, EngineConfig(context_length=2048, threads=arguments.threads))
    keys = arguments.only or list(window.docks.docks)
    window.docks.experts.hide()
    for mode in MODES:
        await answer(service, window, mode, keys)
    rates: list[dict[str, float]] = []
    loads: dict[str, list[float]] = {mode: [] for mode in MODES}
    for _ in range(arguments.rounds):
        found: dict[str, list[float]] = {mode: [] for mode in MODES}
        for mode in (*MODES, *reversed(MODES)):
            rate, load = await answer(service, window, mode, keys)
            found[mode].append(rate)
            loads[mode].append(load)
        rates.append({mode: sum(values) / len(values) for mode, values in found.items()})
    cores = {mode: sum(values) / len(values) for mode, values in loads.items()}
    return {"rates": rates, "cores": cores, "panels": keys, "size": [window.width(), window.height()]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--tokens", type=int, default=300, help="of each answer")
    parser.add_argument("--threads", type=int, default=None, help="default: one for each physical core")
    parser.add_argument("--only", nargs="+", help="these panels, by their keys: experts latency time cache ...")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
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
        rates, cores = found["rates"], found["cores"]
        mean = sum(rate["headless"] for rate in rates) / len(rates)
        streaming = Cost.of([(rate["headless"], rate["window"]) for rate in rates])
        panels = Cost.of([(rate["window"], rate["panels"]) for rate in rates])
        both = Cost.of([(rate["headless"], rate["panels"]) for rate in rates])
        print(f"headless {mean:.0f} tok/s; streaming costs {streaming}, {len(found['panels'])} panels {panels} more")
        print(f"both {both}; the window's thread: {', '.join(f'{mode} {core:.1%}' for mode, core in cores.items())}")
    os._exit(0)  # what Qt and the engine would tidy up was measured already


if __name__ == "__main__":
    main()
