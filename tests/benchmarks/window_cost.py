"""What the window costs an answer: computed with nobody looking, streamed into the window, and with live panels shown.

    python -m tests.benchmarks.window_cost MODEL [--answers 8] [--tokens 900] [--threads 2] [--only time ...] [--json]

Runs the real window on the display that there is (`xvfb-run -a -s "-screen 0 2000x1600x24"` gives a virtual one), else
off screen, with all that the program keeps running beside it. Each answer is divided into spells of a third of a
second, in turns: nobody takes what the engine writes and the panels stand still; the text is streamed; the text is
streamed and the panels follow. Neighbours are compared, so that it matters little how the machine's speed drifts.
Speed is taken over the wall, from token to token. What comes while nobody takes it is not shown later either.

Then come answers during which the window is to move at 60 frames a second: the answer is followed, and it is scrolled.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
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
from engine import Delta, EngineConfig, SamplingParams
from tests.benchmarks.frames import Frames, FrameTimes
from tests.benchmarks.pairs import Cost
from ui.app import SWITCH_INTERVAL_S
from ui.chat.drafts import Drafts
from ui.collector import MainThreadCollector
from ui.main_window import MainWindow, Services
from ui.stall_watch import SELDOM_MS, StallWatch
from ui.theme import current_theme

QUESTION = "Tell me all about hummingbirds: how they fly, what they eat, and where they live."
LONG_QUESTION = "\n".join([QUESTION, *(f"Hummingbird {number} of 70 drinks nectar." for number in range(1, 71))])
CONTEXT = 2048
SPELL_S = 0.34
EDGE_S = 0.02  # of a spell's beginning that does not count: what the last one left is being drawn
BEGIN_S = 0.5  # of each answer's beginning: the widgets are being made
SETTLE_S = 0.4
WIDTH, HEIGHT = 1900, 1500
HEADLESS, WINDOW, PANELS = MODES = ("headless", "window", "panels")
FRAMES_TOKENS = 600


@dataclass
class Spell:
    """A part of an answer in one mode."""

    mode: str
    began_s: float
    ended_s: float = 0.0
    used_s: float = 0.0  # of the processor, by the window's thread


class Spells(Generation):
    """A generation that hands nothing out while it is withheld; what comes then is dropped, but for the end."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.shown = asyncio.Event()
        self.shown.set()

    async def batches(self, pause_s: float) -> AsyncIterator[list[tuple[float, Delta]]]:
        async for batch in super().batches(pause_s):
            was_withheld = not self.shown.is_set()
            await self.shown.wait()
            kept = [item for item in batch if item[1].finish_reason is not None] if was_withheld else batch
            if kept:
                yield kept


class LongAnswers(EngineService):
    """Answers of a fixed length, the same ones each time."""

    params = SamplingParams()
    newest: Spells

    def generate(self, messages: Any, params: Any = None, **more: Any) -> Generation:
        del params
        return super().generate(messages, self.params, **more)

    def _new_generation(self) -> Generation:
        self.newest = Spells(asyncio.get_running_loop(), self._cancel)
        return self.newest


class Bench:
    """The window, and answers in it."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.service = LongAnswers()
        self.config = EngineConfig(context_length=CONTEXT, threads=arguments.threads)
        settings = SettingsFile(paths.settings_file())
        settings.change(context_length=CONTEXT, threads=arguments.threads)
        self.store = ChatStore(paths.chats_db())
        drafts = Drafts(paths.data_dir() / "drafts.json")
        self.window = MainWindow(Services(self.store, self.service, settings, drafts, 2))
        self.window.resize(WIDTH, HEIGHT)
        self.window.show()
        self.keys = arguments.only or list(self.window.docks.docks)
        self._watch, self._collector = StallWatch(beat_ms=SELDOM_MS), MainThreadCollector()

    async def load(self, model: Path) -> None:
        await self.service.load(model, self.config)
        for key, dock in self.window.docks.docks.items():
            dock.setVisible(key in self.keys)
        self._collector.settle()

    def set_length(self, n_tokens: int) -> None:
        self.service.params = SamplingParams(temperature=0.7, seed=5, max_tokens=n_tokens, ignore_eos=True)

    def follow(self, *, follows: bool) -> None:
        """Have the panels go on, or stand still as if they were hidden."""
        panel = self.window.docks.experts.panel
        timers = [self.window.docks.feed.timer, *([panel.timer] if panel is not None and panel.isVisible() else [])]
        for timer in timers:
            timer.start() if follows else timer.stop()

    async def begin(self, question: str = QUESTION) -> asyncio.Event:
        """Ask; returns what is set when the answer has ended."""
        self.window.new_chat()
        await asyncio.sleep(SETTLE_S)
        self.window.page.composer.submitted.emit(question)
        conversation = self.window.page.conversation
        assert conversation is not None
        finished = asyncio.Event()
        conversation.on_event(lambda event: finished.set() if isinstance(event, MessageFinished) else None)
        await asyncio.sleep(BEGIN_S)
        return finished

    def end(self) -> None:
        chat_id = self.window.current_chat_id()
        if chat_id is not None:
            self.store.delete(chat_id)

    async def spells(self) -> list[Spell]:
        """One answer in spells, in the order of MODES and back again, as many as there is time for."""
        finished = await self.begin()
        found: list[Spell] = []
        while not finished.is_set():
            for mode in (*MODES, *reversed(MODES)):
                spell = await self._spell(mode)
                if self.service.newest.has_ended or finished.is_set():
                    break
                found.append(spell)
            else:
                continue
            break
        self.service.newest.shown.set()
        self.follow(follows=True)
        await finished.wait()
        self.end()
        return found

    async def _spell(self, mode: str) -> Spell:
        if mode == HEADLESS:
            self.service.newest.shown.clear()
        else:
            self.service.newest.shown.set()
        self.follow(follows=mode == PANELS)
        await asyncio.sleep(EDGE_S)
        spell, used_s = Spell(mode, time.perf_counter()), time.thread_time()
        await asyncio.sleep(SPELL_S - EDGE_S)
        spell.ended_s, spell.used_s = time.perf_counter(), time.thread_time() - used_s
        return spell

    def rate(self, spell: Spell) -> float:
        """Tokens a second from the first to the last that began in a spell."""
        telemetry: Any = self.service.telemetry
        steps = telemetry.steps(max(0, telemetry.n_steps - CONTEXT))
        at_s = steps.began_s[steps.is_decode & (steps.began_s >= spell.began_s) & (steps.began_s < spell.ended_s)]
        return (len(at_s) - 1) / float(at_s[-1] - at_s[0])

    async def frames(self, *, scrolls: bool) -> FrameTimes:
        """One answer with all panels, while the window is to move at 60 frames a second."""
        finished = await self.begin(LONG_QUESTION)  # there must be something to scroll through
        frames = Frames(self.window.page.view, scrolls=scrolls)
        await finished.wait()
        self.end()
        return frames.end()


@dataclass
class Found:
    """What was measured."""

    rates: list[dict[str, float]] = field(default_factory=list)  # of neighbouring spells
    used: dict[str, list[float]] = field(default_factory=lambda: {mode: [] for mode in MODES})  # shares of a core
    frames: dict[str, list[FrameTimes]] = field(default_factory=lambda: {"followed": [], "scrolled": []})

    def take(self, spells: list[Spell], rates: list[float]) -> None:
        for spell in spells:
            self.used[spell.mode].append(spell.used_s / (spell.ended_s - spell.began_s))
        for first in range(0, len(spells) - 2, 3):
            self.rates.append({spells[first + n].mode: rates[first + n] for n in range(3)})


async def run(arguments: argparse.Namespace) -> dict[str, Any]:
    bench, found = Bench(arguments), Found()
    await bench.load(arguments.model)
    bench.set_length(arguments.tokens)
    for number in range(arguments.answers + 1):
        spells = await bench.spells()
        if number:  # the first one finds things not yet made
            found.take(spells, [bench.rate(spell) for spell in spells])
    bench.set_length(FRAMES_TOKENS)
    for _ in range(arguments.frames):
        found.frames["followed"].append(await bench.frames(scrolls=False))
        found.frames["scrolled"].append(await bench.frames(scrolls=True))
    size = [bench.window.width(), bench.window.height()]
    frames = {name: FrameTimes.joined(times).ms for name, times in found.frames.items() if times}
    return {"rates": found.rates, "used": found.used, "frames": frames, "panels": bench.keys, "size": size}


def report(found: dict[str, Any]) -> None:
    """Say it in a few lines."""
    rates: list[dict[str, float]] = found["rates"]
    if rates:
        mean = sum(rate[HEADLESS] for rate in rates) / len(rates)
        streaming = Cost.of([(rate[HEADLESS], rate[WINDOW]) for rate in rates])
        panels = Cost.of([(rate[WINDOW], rate[PANELS]) for rate in rates])
        both = Cost.of([(rate[HEADLESS], rate[PANELS]) for rate in rates])
        shares = ", ".join(f"{mode} {sum(used) / len(used):.1%}" for mode, used in found["used"].items())
        print(f"headless {mean:.0f} tok/s; streaming costs {streaming}, {len(found['panels'])} panels {panels} more")
        print(f"both {both}, {len(rates)} pairs; the window's thread took of a core: {shares}")
    for name, ms in found["frames"].items():
        print(f"frames, {name}: {FrameTimes(ms)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--answers", type=int, default=8, help="in spells")
    parser.add_argument("--tokens", type=int, default=900, help="of each answer")
    parser.add_argument("--frames", type=int, default=2, help="answers followed, and as many scrolled, at 60 frames/s")
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
        report(found)
    sys.stdout.flush()
    os._exit(0)  # what Qt and the engine would tidy up was measured already


if __name__ == "__main__":
    main()
