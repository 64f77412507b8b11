"""Takes pictures of the views of "seeing inside", from made-up runs and recorded machines, without a display.

python scripts/gallery.py --out FOLDER [NAME ...]   only these, e.g. experts-large
python scripts/gallery.py --out FOLDER --theme dark --language zh_CN --size 21
QT_SCALE_FACTOR=2 python scripts/gallery.py --out FOLDER

For what a model of hundreds of experts, two recordings or an Intel laptop's system check look like, where
scripts/screenshots.py would need that model and that machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QPoint  # noqa: E402
from PySide6.QtWidgets import QApplication, QMainWindow, QWidget  # noqa: E402

from app.diagnostics import Host, Inspection  # noqa: E402
from app.diagnostics.fixes import Fixer  # noqa: E402
from app.engine_service import EngineService  # noqa: E402
from app.routing import RouteBook  # noqa: E402
from app.settings import Settings  # noqa: E402
from app.system_helper import apply  # noqa: E402
from engine import MemoryPlan  # noqa: E402
from engine.hardware.system_files import SystemFiles  # noqa: E402
from tests.app.test_recording import made as made_recording  # noqa: E402
from tests.app.test_routing import made as made_routes  # noqa: E402
from tests.support.made_up_run import MadeUpRun, let_run  # noqa: E402
from tests.support.made_up_steps import MadeUpTelemetry  # noqa: E402
from tests.support.qt_loop import Run, qt_loop  # noqa: E402
from tests.support.recorded_machines import write_machine  # noqa: E402
from ui.diagnostics.system_check import SystemCheck  # noqa: E402
from ui.diagnostics.system_page import SystemPage  # noqa: E402
from ui.diagnostics.why import WhyQuestion  # noqa: E402
from ui.live_docks import LiveDocks  # noqa: E402
from ui.performance.heat_map import HeatMap  # noqa: E402
from ui.performance.performance_page import PerformancePage  # noqa: E402
from ui.performance.recordings import Recordings, recordings_dir  # noqa: E402
from ui.performance.routing_window import RoutingWindow  # noqa: E402
from ui.theme import current_theme  # noqa: E402
from ui.translation import install_translation  # noqa: E402

GIB = 1 << 30
PLAN = MemoryPlan(
    int(3.1 * GIB),
    int(14.2 * GIB),
    int(1.5 * GIB),
    int(0.2 * GIB),
    {"hugetlb": 12 * GIB, "transparent huge pages": int(6.4 * GIB), "4 KiB pages": int(0.6 * GIB)},
)
LONG_NAME = "Qwen3-Coder-480B-A35B-Instruct-UD-Q4_K_XL-00001-of-00006, converted on Sunday evening"


class Gallery:
    """Makes a view, lets the event loop turn until it is at rest, and takes its picture."""

    def __init__(self, run: Run, folder: Path) -> None:
        self._run, self.folder = run, folder
        self.service: Any = EngineService()
        self.kept: list[object] = []

    def rest(self, seconds: float = 0.4) -> None:
        self._run(asyncio.sleep(seconds))

    def call(self, act: Callable[[], object]) -> None:
        """Call what needs a running event loop."""

        async def called() -> None:
            act()

        self._run(called())

    def show(self, widget: QWidget, width: int, height: int) -> QWidget:
        self.kept.append(widget)
        theme = current_theme()
        widget.resize(theme.px(width), theme.px(height))
        self.call(widget.show)
        self.rest()
        return widget

    def picture(self, name: str, widget: QWidget) -> None:
        picture = widget.grab()
        picture.save(str(self.folder / f"{name}.png"))
        print(self.folder / f"{name}.png")


def telemetry(is_large: bool, n_steps: int = 300) -> MadeUpTelemetry:
    made = MadeUpTelemetry() if is_large else MadeUpTelemetry(30, 16, 4, 2)
    made.advance(n_steps)
    return made


def docks(gallery: Gallery, source: object, keys: tuple[str, ...], *, plan: MemoryPlan | None = PLAN) -> QMainWindow:

    window = QMainWindow()
    made = LiveDocks(window, lambda: source, lambda: plan, 8)
    middle = QWidget(window)
    middle.setFixedWidth(1)
    window.setCentralWidget(middle)
    for key, dock in made.docks.items():
        dock.setVisible(key in keys)
    gallery.kept.append(made)
    return window


def show_docks(source: Callable[[], object], *keys: str, height: int = 520, width: int = 400, then: Any = None) -> Any:
    def make(gallery: Gallery) -> QWidget:
        made_source = source()
        window = docks(gallery, made_source, keys, plan=PLAN if made_source is not None else None)
        gallery.show(window, width, height)
        for _ in range(12):  # an answer while it is being written
            if isinstance(made_source, MadeUpTelemetry) and made_source.n_steps:
                made_source.advance(4)
            gallery.rest(0.12)
        if then is not None:
            then(gallery, window)
        return window

    return make


def pin(gallery: Gallery, window: QMainWindow) -> None:

    heat_map = window.findChild(HeatMap)
    assert heat_map is not None
    heat_map.pin((5, 3))
    gallery.rest()


def routing(*, words: str = "", other: bool = False, lost: bool = False) -> Callable[[Gallery], QWidget]:
    def make(gallery: Gallery) -> QWidget:

        book = RouteBook()
        book.keep(
            made_routes(["The ", "hum", "ming", "bird", " hovers", " because", " its", " wings", " beat."] * 3, 1)
        )
        book.keep(made_routes(["def ", "main", "(", ")", ":", "\n    ", "print", "(", "1", ")"] * 3, 2))
        window = RoutingWindow(book)
        if other:
            window.show_answer(2)
        window.show_answer(9 if lost else 1, words)
        return gallery.show(window, 900, 620)

    return make


def performance(act: Callable[[Gallery, Any], None], *, filled: bool = True) -> Callable[[Gallery], QWidget]:
    def make(gallery: Gallery) -> QWidget:

        for path in recordings_dir().glob("*"):
            path.unlink()
        if filled:
            fill_recordings(recordings_dir())
        question = WhyQuestion(machine("amd-desktop", gallery.folder).look, gallery.service)
        page = PerformancePage(Recordings(gallery.service, Settings), gallery.service, question=question)
        gallery.show(page, 1000, 740)
        act(gallery, page)
        gallery.rest(1.0)
        return page

    return make


def fill_recordings(folder: Path) -> None:
    one = made_recording(telemetry(is_large=True))
    slower = replace(one.steps, wall_us=one.steps.wall_us * 1.12)
    one.save(folder / "2026-11-30 08.12.44.colibri-recording")
    replace(one, label="2026-11-30 08.31.09", steps=slower).save(folder / "2026-11-30 08.31.09.colibri-recording")
    replace(one, label=LONG_NAME, model=LONG_NAME).save(folder / f"{LONG_NAME}.colibri-recording")
    (folder / "damaged.colibri-recording").write_bytes(b"no recording at all")


def choose(*names: str) -> Callable[[Gallery, Any], None]:
    def act(_gallery: Gallery, page: Any) -> None:
        page.list.clearSelection()
        for row in range(page.list.count()):
            if page.list.item(row).text() in names:
                page.list.item(row).setSelected(True)

    return act


def open_export_menu(gallery: Gallery, page: Any) -> None:
    choose("2026-11-30 08.12.44")(gallery, page)
    menu = page.export.menu()
    menu.popup(page.export.mapToGlobal(QPoint(0, page.export.height())))
    gallery.rest()


def ask_why(gallery: Gallery, page: Any) -> None:
    gallery.call(page.why._question.ask)
    gallery.rest(2)


class Machine:
    """A recorded machine, with a helper that has made what it was asked for."""

    def __init__(self, name: str, folder: Path) -> None:
        self.folder = folder / "machines"
        recorded = write_machine(name, self.folder / name)
        self.root, facts = recorded.root, recorded.facts
        self.host = Host("Linux", facts.get("machine", "x86_64"), "glibc 2.36", None, has_polkit=True)
        self.changes = self.folder / f"{name}.json"

    def look(self, model: Any) -> Inspection:
        return Inspection(SystemFiles(self.root), self.host, self.folder, self.folder / "kernels", model)


def machine(name: str, folder: Path) -> Machine:
    return Machine(name, folder)


def system(
    name: str,
    act: Callable[[Gallery, Any], None] = lambda _gallery, _page: None,
    *,
    height: int = 900,
    width: int = 1000,
) -> Callable[[Gallery], QWidget]:
    def make(gallery: Gallery) -> QWidget:

        this = machine(name, gallery.folder)

        def pkexec(command: Any) -> subprocess.CompletedProcess[str]:
            return subprocess.CompletedProcess(command, 0, json.dumps(apply(command[4], command[5:], this.root)), "")

        check = SystemCheck(this.look, Fixer(this.changes, SystemFiles(this.root), pkexec), lambda: None, True)
        page = SystemPage(check, question=WhyQuestion(this.look, gallery.service))
        gallery.kept.append(check)
        gallery.show(page, width, height)
        gallery.rest(2)
        act(gallery, page)
        gallery.rest(0.6)
        return page

    return make


def open_rows(*ids: str) -> Callable[[Gallery, Any], None]:
    def act(_gallery: Gallery, page: Any) -> None:
        for row in page.rows.values():
            row.open(row.finding.id in ids)

    return act


def open_all(_gallery: Gallery, page: Any) -> None:
    for row in page.rows.values():
        row.open()


def consent(gallery: Gallery, page: Any) -> None:
    page.ask(page.rows["governor"].finding)
    gallery.rest()
    gallery.picture("system-consent-box", page.confirmation)
    page.confirmation.reject()


def fix_and_open(gallery: Gallery, page: Any) -> None:
    fix = page.rows["governor"].finding.fix
    gallery.call(lambda: page.check.make(fix))
    gallery.rest(2)
    open_rows("governor")(gallery, page)


def why(name: str, run: MadeUpRun | None) -> Callable[[Gallery], QWidget]:
    def make(gallery: Gallery) -> QWidget:
        if run is not None:
            let_run(gallery.service, run)
        return system(name, ask_why, height=620)(gallery)

    return make


VIEWS: dict[str, Callable[[Gallery], QWidget]] = {
    "experts-small": show_docks(lambda: telemetry(False), "experts", height=640),
    "experts-pinned": show_docks(lambda: telemetry(False), "experts", height=640, then=pin),
    "experts-large": show_docks(lambda: telemetry(True), "experts", height=640),
    "experts-large-wide": show_docks(lambda: telemetry(True), "experts", height=700, width=1100, then=pin),
    "latency": show_docks(lambda: telemetry(True), "latency"),
    "time": show_docks(lambda: telemetry(True), "time"),
    "cache": show_docks(lambda: telemetry(True), "cache"),
    "memory": show_docks(lambda: telemetry(True), "memory"),
    "bandwidth": show_docks(lambda: telemetry(True), "bandwidth"),
    "cores": show_docks(lambda: telemetry(True), "cores"),
    "docks-all": show_docks(
        lambda: telemetry(True), "experts", "latency", "time", "cache", "memory", "bandwidth", "cores", height=1500
    ),
    "docks-narrow": show_docks(lambda: telemetry(True), "latency", "time", "memory", "cores", height=900, width=240),
    "docks-low": show_docks(
        lambda: telemetry(True), "experts", "latency", "time", "cache", "memory", "bandwidth", "cores", height=780
    ),
    "no-model": show_docks(lambda: None, "experts", "latency", "time", "cache", height=900),
    "nothing-yet": show_docks(lambda: telemetry(True, 0), "experts", "latency", "time", "memory", height=1000),
    "routing-answer": routing(),
    "routing-word": routing(words="hummingbird"),
    "routing-two": routing(other=True),
    "routing-not-found": routing(words="owl", other=True),
    "routing-lost": routing(lost=True),
    "recordings-empty": performance(lambda _gallery, _page: None, filled=False),
    "recordings-one": performance(choose("2026-11-30 08.12.44")),
    "recordings-long": performance(choose(LONG_NAME)),
    "recordings-two": performance(choose("2026-11-30 08.12.44", "2026-11-30 08.31.09")),
    "recordings-damaged": performance(choose("damaged")),
    "recordings-export": performance(open_export_menu),
    "recordings-why": performance(ask_why),
    "system-desktop": system("amd-desktop"),
    "system-all": system("amd-desktop", open_all, height=4200),
    "system-laptop": system("intel-hybrid-laptop", height=1500),
    "system-container": system("container", open_all, height=4200),
    "system-wsl": system("wsl2", height=1500),
    "system-narrow": system("wsl2", height=700, width=680),
    "system-consent": system("amd-desktop", consent),
    "system-undo": system("amd-desktop", fix_and_open),
    "why-none": why("amd-desktop", None),
    "why-three": why("amd-desktop", MadeUpRun(n_workers=8)),
    "why-disk": why("amd-desktop", MadeUpRun(shares={"disk": 0.6, "experts": 0.4}, loads=4, evictions=4)),
    "why-prompt": why("arm-board", MadeUpRun(prompt_tokens=9000, prompt_s=100.0)),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *VIEWS], metavar="NAME")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--theme", choices=("light", "dark"), default="light")
    parser.add_argument("--language", choices=("en", "zh_CN"), default="en")
    parser.add_argument("--size", type=int, default=14, help="height of normal text in pixels; 21 is 16 pt")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="colibri-gallery-") as home:
        os.environ["COLIBRI_HOME"] = home
        app = QApplication(["colibri"])
        app.setStyle("Fusion")
        install_translation(app, arguments.language)
        theme = current_theme()
        theme.set_font_size(arguments.size)
        theme.set_mode(arguments.theme)
        theme.apply()
        with qt_loop(app) as run:
            for name in arguments.names or VIEWS:
                gallery = Gallery(run, arguments.out)
                widget = VIEWS[name](gallery)
                menu = QApplication.activePopupWidget()
                gallery.picture(name, widget)
                if menu is not None:
                    gallery.picture(f"{name}-menu", menu)
                    menu.close()
                widget.close()
                gallery.service.close()
                gallery.rest(0.1)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
