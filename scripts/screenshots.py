"""Takes the pictures of docs/images from the real program on a virtual screen.

python scripts/screenshots.py [NAME ...]     only these, e.g. window-dark
python scripts/screenshots.py --out FOLDER   somewhere else than docs/images
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from app import paths, starter  # noqa: E402
from app.chats import ChatStore  # noqa: E402
from tests.end_to_end.virtual_desktop import Program, VirtualDesktop, wait_until  # noqa: E402
from tests.support.checkpoints import checkpoint_case  # noqa: E402

ANSWER = """The shortest form follows the definition. It is also the slowest, because it computes the same
numbers again and again:

```python
from functools import cache

@cache
def fibonacci(n: int) -> int:
    \"\"\"The n-th Fibonacci number.\"\"\"
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

print([fibonacci(n) for n in range(10)])
```

With `@cache` each number is computed **once**. Compare the three ways:

| Method | Time | Memory |
|:--|--:|--:|
| Plain recursion | O(φⁿ) | O(n) |
| With a cache | O(n) | O(n) |
| A loop | O(n) | O(1) |
"""
CHINESE = """蜂鸟能够悬停，是因为它的翅膀在前后两个方向上都产生升力：

1. 翅膀每秒拍动约 **50 次**
2. 拍动轨迹近似水平的“8”字形
3. 肩关节可以旋转近 180 度

> 它也是唯一能够倒着飞的鸟。
"""
THOUGHT = """The word is *strawberry*. I go through its letters:

1. s, t, **r** makes one
2. a, w, b, e, **r**, **r** makes two more
3. y

So there are three. Twice in a row, and once at the beginning, which is easily missed.
"""


@dataclass
class Scene:
    """One picture: settings, what is open, and what is done before the shutter."""

    settings: dict[str, Any] = field(default_factory=dict)
    chat: str | None = "Fibonacci, three ways"
    act: Callable[[VirtualDesktop], None] = lambda _desktop: None
    scale: int = 1
    moe: bool = False  # with a small mixture of experts, whose random weights write nonsense
    has_starter: bool = True
    is_first_start: bool = False  # with nothing compiled yet


def long_text() -> str:
    parts = [
        f"## Part {number}\n\n" + "Hovering costs a hummingbird more than anything. " * 9 for number in range(1, 30)
    ]
    return "\n\n".join(parts)


def press(*keys: str) -> Callable[[VirtualDesktop], None]:
    def act(desktop: VirtualDesktop) -> None:
        desktop.key(*keys)
        time.sleep(0.7)

    return act


def scroll_up(desktop: VirtualDesktop) -> None:
    desktop.run("xdotool", "mousemove", "600", "400", "click", "--repeat", "30", "--delay", "15", "4")
    time.sleep(0.7)


def draft(desktop: VirtualDesktop) -> None:
    for number in range(4):
        desktop.type(f"Line {number + 1} of a longer question, written while nothing is sent yet")
        desktop.key("shift+Return")
    time.sleep(0.4)


def converse(desktop: VirtualDesktop) -> None:
    """A conversation that the model really holds, so that the picture promises nothing else."""
    for question in ("What is the capital of France?", "Write a Python function that adds two numbers."):
        desktop.type(question)
        desktop.key("Return")
        wait_until(lambda: not is_answering(), 120, "answer")
        time.sleep(1.0)


def is_answering() -> bool:
    with closing(sqlite3.connect(f"file:{paths.chats_db()}?mode=ro", uri=True)) as connection:
        (state,) = connection.execute("SELECT state FROM messages ORDER BY id DESC LIMIT 1").fetchone()
    return bool(state == "streaming")


def delete_chat(desktop: VirtualDesktop) -> None:
    desktop.click(120, 393)
    desktop.key("Delete")
    time.sleep(0.5)


def open_chat_menu(desktop: VirtualDesktop) -> None:
    desktop.run("xdotool", "mousemove", "120", "321", "click", "3")
    time.sleep(0.5)


def unfold(desktop: VirtualDesktop) -> None:
    """Open the reasoning of the last answer; that of the first one stays folded."""
    desktop.click(340, 384)
    desktop.run("xdotool", "mousemove", "1000", "700")
    time.sleep(0.7)


def ask(desktop: VirtualDesktop) -> None:
    desktop.type("Write a long story about a hummingbird that learns to code.")
    desktop.key("Return")
    time.sleep(3)


def ask_with_panels(*keys: str) -> Callable[[VirtualDesktop], None]:
    """Open or close panels by their shortcuts, then have something answered."""

    def act(desktop: VirtualDesktop) -> None:
        for key in keys:
            desktop.key(key)
        ask(desktop)

    return act


PANEL_KEYS = ("ctrl+1", "ctrl+2", "ctrl+3", "ctrl+4", "ctrl+5", "ctrl+6")


def tear_off(desktop: VirtualDesktop) -> None:
    """Experts in a window of their own, while an answer is written."""
    ask(desktop)
    desktop.click(1224, 51)
    time.sleep(2.0)


def open_performance(desktop: VirtualDesktop) -> None:
    desktop.click(86, 683)
    time.sleep(2.0)


def record(desktop: VirtualDesktop) -> None:
    """One recording of a whole answer."""
    open_performance(desktop)
    desktop.click(468, 57)
    desktop.key("ctrl+l")
    desktop.type("Tell me a story.")
    desktop.key("Return")
    time.sleep(1.0)
    wait_until(lambda: not is_answering(), 120, "answer")
    open_performance(desktop)
    desktop.click(440, 57)
    time.sleep(3.0)


def measure(desktop: VirtualDesktop) -> None:
    open_performance(desktop)
    desktop.click(578, 57)
    folder = paths.data_dir() / "measurements"
    wait_until(lambda: any(folder.glob("*.json")), 300, "measurement")
    time.sleep(1.0)


def ask_why(desktop: VirtualDesktop) -> None:
    """After an answer, why it is slow."""
    converse(desktop)
    desktop.key("ctrl+shift+d")
    time.sleep(3.0)
    desktop.click(880, 153)
    time.sleep(3.0)


def open_convert(desktop: VirtualDesktop) -> None:
    desktop.key("ctrl+shift+k")
    time.sleep(1.0)


def plan_conversion(desktop: VirtualDesktop) -> None:
    """Choose a checkpoint in the dialog, by its path."""
    folder = checkpoint_case("qwen3_moe").write(Path(os.environ["COLIBRI_HOME"]) / "downloads")
    choose_checkpoint(desktop, folder)


def refuse_conversion(desktop: VirtualDesktop) -> None:
    """The same with a configuration that contradicts the weights."""
    folder = checkpoint_case("qwen3_moe").write(Path(os.environ["COLIBRI_HOME"]) / "downloads")
    config = folder / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "num_experts": 16}))
    choose_checkpoint(desktop, folder)


def choose_checkpoint(desktop: VirtualDesktop, folder: Path) -> None:
    open_convert(desktop)
    desktop.key("space")
    time.sleep(1.0)
    desktop.type(str(folder))
    desktop.key("Return")
    time.sleep(4.0)


def convert(desktop: VirtualDesktop) -> None:
    plan_conversion(desktop)
    desktop.key("space")
    time.sleep(3.0)


def open_carving(desktop: VirtualDesktop) -> None:
    """The way from the page Convert to carving, by keyboard; the starter is the first of the models offered."""
    open_convert(desktop)
    desktop.key("Tab", "Tab", "space")
    time.sleep(3.0)


def plan_carving(desktop: VirtualDesktop) -> None:
    open_carving(desktop)
    desktop.key("space")
    time.sleep(3.0)


def carve(desktop: VirtualDesktop) -> None:
    plan_carving(desktop)
    desktop.key("space")
    time.sleep(8.0)


def carve_and_measure(desktop: VirtualDesktop) -> None:
    """Until every number of experts is measured: minutes."""
    carve(desktop)
    wait_until(lambda: n_measured() == _ROUTED, 1800, "a decision to take")
    time.sleep(3.0)


def carve_and_keep(desktop: VirtualDesktop) -> None:
    carve_and_measure(desktop)
    desktop.key("space")
    wait_until(lambda: any(paths.models_dir().glob("*-carved.gguf")), 120, "the carved model")
    time.sleep(3.0)


def n_measured() -> int:
    """For how many numbers of experts the loss is known."""
    tables = list(paths.models_dir().glob(".*.carving/losses.json"))
    try:
        return len(json.loads(tables[0].read_text(encoding="utf-8"))) if tables else 0
    except (OSError, ValueError):  # being written
        return 0


_ROUTED = 12  # of sixteen experts, four of them shared
GREEDY = {"sampling": {"temperature": 0.0, "max_tokens": 300}}
SCENES = {
    "window-light": Scene({"theme": "light", **GREEDY}, chat=None, act=converse),
    "window-dark": Scene({"theme": "dark", **GREEDY}, chat=None, act=converse),
    "stored": Scene({"theme": "light"}),
    "empty-light": Scene({"theme": "light"}, chat=None),
    "empty-dark": Scene({"theme": "dark"}, chat=None),
    "first-start": Scene({"theme": "light"}, chat=None, is_first_start=True),
    "error": Scene({"theme": "light", "model_path": ""}, chat=None, has_starter=False),
    "error-in-message": Scene({"theme": "light"}, chat="A question too long"),
    "long-text": Scene({"theme": "light"}, chat="Everything about hovering", act=scroll_up),
    "chinese": Scene({"theme": "light", "language": "zh_CN"}, chat="蜂鸟为什么能悬停？"),
    "retina": Scene({"theme": "dark"}, scale=2),
    "settings": Scene({"theme": "light"}, act=press("ctrl+comma")),
    "help": Scene({"theme": "dark"}, act=press("F1")),
    "models": Scene({"theme": "light"}, act=press("ctrl+m")),
    "model-manager": Scene({"theme": "light"}, act=press("ctrl+shift+m")),
    "model-manager-dark": Scene({"theme": "dark"}, act=press("ctrl+shift+m"), scale=2),
    "convert": Scene({"theme": "light"}, act=open_convert),
    "convert-plan": Scene({"theme": "light"}, act=plan_conversion),
    "convert-plan-chinese": Scene({"theme": "dark", "language": "zh_CN"}, act=plan_conversion),
    "convert-error": Scene({"theme": "light"}, act=refuse_conversion),
    "convert-done": Scene({"theme": "light"}, act=convert),
    "carve": Scene({"theme": "light"}, act=open_carving),
    "carve-plan": Scene({"theme": "light"}, act=plan_carving),
    "carve-plan-chinese": Scene({"theme": "dark", "language": "zh_CN"}, act=plan_carving),
    "carve-running": Scene({"theme": "dark"}, act=carve),
    "carve-decide": Scene({"theme": "light"}, act=carve_and_measure),
    "carve-done": Scene({"theme": "dark", "language": "zh_CN"}, act=carve_and_keep),
    "draft": Scene({"theme": "light"}, act=draft),
    "editing": Scene({"theme": "light"}, act=press("Up")),
    "undo": Scene({"theme": "dark"}, act=delete_chat),
    "chat-menu": Scene({"theme": "light"}, act=open_chat_menu),
    "large-text": Scene({"theme": "light", "font_size": 18}),
    "search": Scene(
        {"theme": "light"}, act=lambda desktop: (desktop.key("ctrl+f"), desktop.type("hover"), time.sleep(1))[0]
    ),
    "experts-light": Scene({"theme": "light"}, chat=None, act=ask, moe=True),
    "experts-dark": Scene({"theme": "dark"}, chat=None, act=ask, moe=True),
    "panels-light": Scene({"theme": "light"}, chat=None, act=ask_with_panels("ctrl+e", "ctrl+1", "ctrl+2")),
    "panels-dark": Scene({"theme": "dark"}, chat=None, act=ask_with_panels("ctrl+e", "ctrl+1", "ctrl+2")),
    "machine-light": Scene({"theme": "light"}, chat=None, act=ask_with_panels("ctrl+e", "ctrl+4", "ctrl+5", "ctrl+6")),
    "machine-dark": Scene({"theme": "dark"}, chat=None, act=ask_with_panels("ctrl+e", "ctrl+4", "ctrl+5", "ctrl+6")),
    "cache-light": Scene({"theme": "light"}, chat=None, act=ask_with_panels("ctrl+3"), moe=True),
    "panels-all": Scene({"theme": "light"}, chat=None, act=ask_with_panels(*PANEL_KEYS), moe=True),
    "panels-floating": Scene({"theme": "dark"}, chat=None, act=tear_off, moe=True),
    "panels-chinese": Scene(
        {"theme": "dark", "language": "zh_CN"}, chat=None, act=ask_with_panels("ctrl+1", "ctrl+2"), moe=True
    ),
    "performance": Scene({"theme": "light"}, act=open_performance),
    "performance-light": Scene({"theme": "light", **GREEDY}, chat=None, act=record, moe=True),
    "performance-measured": Scene({"theme": "dark"}, chat=None, act=measure),
    "system-check-light": Scene({"theme": "light"}, act=press("ctrl+shift+d")),
    "system-check-chinese": Scene({"theme": "dark", "language": "zh_CN"}, act=press("ctrl+shift+d")),
    "why-slow": Scene({"theme": "light", **GREEDY}, chat=None, act=ask_why, moe=True),
    "preparing": Scene({"theme": "light"}, chat=None, act=ask, is_first_start=True),
    "reasoning-light": Scene({"theme": "light"}, chat="Letters of a fruit", act=unfold),
    "reasoning-dark": Scene({"theme": "dark"}, chat="Letters of a fruit", act=unfold),
    "reasoning-chinese": Scene({"theme": "light", "language": "zh_CN"}, chat="Letters of a fruit", act=unfold),
    "thinking-light": Scene({"theme": "light"}, chat="Letters of a fruit", moe=True),
    "thinking-dark": Scene({"theme": "dark", "thinking": "off"}, chat="Letters of a fruit", moe=True),
    "thinking-chinese": Scene({"theme": "light", "language": "zh_CN"}, chat="Letters of a fruit", moe=True),
    "streaming": Scene({"theme": "light"}, chat=None, act=ask),
}


def add_chat(store: ChatStore, title: str, turns: list[str], *, error: str = "", age_days: float = 0) -> int:
    chat = store.create_chat(title)
    parent: int | None = None
    for number, text in enumerate(turns):
        if number % 2 == 0:
            parent = store.add_message(chat.id, parent, "user", text).id
            continue
        message = store.add_message(chat.id, parent, "assistant", text, state="streaming")
        if title == "Letters of a fruit":
            store.append_text(message.id, "", reasoning=THOUGHT)
        is_failed = bool(error) and number == len(turns) - 1
        state, metrics = ("error", {"error": error}) if is_failed else ("complete", {"thinking_ms": 8400})
        parent = store.finish_message(message.id, state, metrics=metrics).id
    return chat.id


def fill(home: Path, scene: Scene) -> None:
    """Put chats and settings into a home folder for one run."""
    os.environ["COLIBRI_HOME"] = str(home)
    store = ChatStore(paths.chats_db())
    ids = {}
    for title, turns, error in (
        (
            "Letters of a fruit",
            [
                "How many times is the letter r in strawberry?",
                "Three times.",
                "Sure?",
                "Yes: st**r**awbe**rr**y has **three**.",
            ],
            "",
        ),
        ("Letter to the landlord", ["Help me write to my landlord.", "Gladly."], ""),
        ("Everything about hovering", ["Tell me everything about hovering.", long_text()], ""),
        (
            "A question too long",
            ["Summarise this book.", ""],
            "The prompt has 9,214 tokens, but the context holds 4,096. "
            "Shorten the message, or set a longer context in the settings and load the model again.",
        ),
        ("蜂鸟为什么能悬停？", ["蜂鸟为什么能悬停？", CHINESE], ""),
        ("Names for a boat", ["Names for a small boat?", "*Colibri*, of course."], ""),
        (
            "Fibonacci, three ways",
            [
                "Write Fibonacci in Python, and compare the ways to do it.",
                ANSWER,
                "Which one would you pick?",
                "The one **with a cache**: as short as the definition, as fast as the loop.",
            ],
            "",
        ),
    ):
        ids[title] = add_chat(store, title, turns, error=error)
    store.update(ids["Names for a boat"], pinned=True)
    store.close()
    chosen = ids[scene.chat] if scene.chat is not None else None
    settings = {"language": "en", "last_chat_id": chosen, **scene.settings}
    paths.settings_file().write_text(json.dumps(settings), encoding="utf-8")


def take(name: str, scene: Scene, out: Path, starter_file: Path, moe_file: Path | None) -> None:
    with tempfile.TemporaryDirectory(prefix="colibri-picture-") as folder:
        home = Path(folder)
        fill(home, scene)
        if scene.has_starter:
            link_starter(starter_file)
        else:
            broken = home / "broken.gguf"
            broken.write_bytes(b'{"this": "is JSON"}')
            settings = json.loads(paths.settings_file().read_text(encoding="utf-8"))
            paths.settings_file().write_text(json.dumps({**settings, "model_path": str(broken)}), encoding="utf-8")
        environment = {"QT_SCALE_FACTOR": str(scene.scale)} if scene.scale != 1 else {}
        if scene.is_first_start:
            environment["XDG_CACHE_HOME"] = str(home / "empty-cache")
        with VirtualDesktop(1280 * scene.scale, 820 * scene.scale) as desktop:
            arguments = ["--model", str(moe_file)] if scene.moe and moe_file is not None else []
            with Program(desktop, home, *arguments, **environment) as program:
                program.wait_for("window shown", 30)
                if scene.is_first_start:
                    time.sleep(6)
                elif scene.has_starter:
                    program.wait_for("model ready", 180)
                program.focus()
                time.sleep(1.5)
                scene.act(desktop)
                desktop.picture(out / f"{name}.png")
                print(f"{out / name}.png")


def link_starter(starter_file: Path) -> None:
    """Use the starter model that is already on this machine, with its licence and its proof."""
    for path in starter_file.parent.glob(f"{starter_file.name}*"):
        (paths.models_dir() / path.name).symlink_to(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *SCENES], metavar="NAME")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images")
    parser.add_argument(
        "--moe", type=Path, help="a GGUF with experts, for the expert panel; its template knows thinking"
    )
    arguments = parser.parse_args()
    starter_file = starter.starter_path()
    for name in arguments.names or SCENES:
        if SCENES[name].moe and arguments.moe is None:
            print(f"{name} is left out: it needs --moe FILE")
            continue
        take(name, SCENES[name], arguments.out, starter_file, arguments.moe)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
