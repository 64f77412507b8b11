"""The real window makes a model file of a folder that is dropped on it, and chats with it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from app import paths
from engine.convert.proof import proof_of
from engine.gguf import GGUFReader
from tests.end_to_end import drag_source
from tests.end_to_end.test_first_conversation import ANSWER_S, FIRST_START_S, STALL_MS, answers, stalls
from tests.end_to_end.virtual_desktop import Program, VirtualDesktop, wait_until
from tests.support.checkpoints import checkpoint_case

CONVERSION_S = 400
DROP_S = 60  # until the drop is tried again
WIDTH, HEIGHT = 1420, 820
SOURCE_AT = (WIDTH - drag_source.SIZE - 10, HEIGHT - drag_source.SIZE - 10)
ZONE_AT = (600, 260)  # the field that takes a folder


@pytest.fixture
def desktop() -> Iterator[VirtualDesktop]:
    with VirtualDesktop(WIDTH, HEIGHT) as desktop:
        yield desktop


@contextmanager
def file_manager(desktop: VirtualDesktop, path: Path) -> Iterator[None]:
    """A window beside Colibri's from which `path` can be dragged."""
    command = [sys.executable, "-m", "tests.end_to_end.drag_source", *map(str, SOURCE_AT), str(path)]
    with subprocess.Popen(command, env=desktop.environment(), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.5)
        yield
        process.terminate()


def drag(desktop: VirtualDesktop, picture: Path) -> None:
    """Drag what the file manager shows onto the window; the picture is taken just before it is dropped."""
    x, y = SOURCE_AT[0] + drag_source.SIZE // 2, SOURCE_AT[1] + drag_source.SIZE // 2
    desktop.run("xdotool", "mousemove", str(x), str(y), "mousedown", "1")
    steps = 12
    for step in range(1, steps + 1):
        at = [start + (end - start) * step // steps for start, end in zip((x, y), ZONE_AT, strict=True)]
        desktop.run("xdotool", "mousemove", *map(str, at))
        time.sleep(0.05)
    time.sleep(0.3)
    desktop.picture(picture)
    desktop.run("xdotool", "mouseup", "1")


def drop_until(condition: Callable[[], bool], desktop: VirtualDesktop, picture: Path, program: Program) -> None:
    """Drag, and once more if nothing came of it: a busy machine may not have shown the field in time."""
    for _ in range(CONVERSION_S // DROP_S):
        drag(desktop, picture)
        with suppress(AssertionError):
            return wait_until(condition, DROP_S, "plan", program)
    raise AssertionError("what was dropped was never taken")


@pytest.mark.slow
@pytest.mark.starter
def test_from_a_dropped_folder_to_a_chat(desktop: VirtualDesktop, home_with_starter: Path) -> None:
    home, pictures = home_with_starter, Path(tempfile.mkdtemp(prefix="colibri-wizard-"))
    print(f"pictures: {pictures}")
    paths.settings_file().write_text(json.dumps({"language": "en", "sampling": {"max_tokens": 60}}), encoding="utf-8")
    checkpoint = checkpoint_case("qwen3_moe").write(home / "downloads")
    target = paths.models_dir() / "qwen3_moe-Q4_K_M.gguf"
    log = home / "log" / "colibri.log"

    def logged(text: str) -> bool:
        return text in log.read_text(encoding="utf-8")

    with Program(desktop, home) as program:
        program.wait_for("model ready", FIRST_START_S)
        program.focus()
        before = len(stalls(program.text()))
        desktop.key("ctrl+shift+k")
        time.sleep(1.0)
        desktop.picture(pictures / "1-choose.png")
        with file_manager(desktop, checkpoint):
            drop_until(lambda: logged(f"the plan for {checkpoint} is ready"), desktop, pictures / "2-drag.png", program)
        time.sleep(0.5)
        program.focus()
        desktop.picture(pictures / "3-plan.png")
        desktop.key("space")  # one key accepts what is recommended
        time.sleep(1.0)
        desktop.picture(pictures / "4-running.png")
        wait_until(lambda: logged(f"converted: {target}"), CONVERSION_S, "conversion", program)
        time.sleep(0.5)
        desktop.picture(pictures / "5-done.png")
        with GGUFReader.open(target) as reader:
            proof = proof_of(reader.metadata)
        assert proof is not None and proof.divergence < 0.1 and len(proof.route_agreement) == 2
        assert [path.name for path in paths.models_dir().glob(".*")] == []
        desktop.key("space")  # "Chat with it"
        wait_until(lambda: program.text().count("model ready") == 2, FIRST_START_S, "converted model", program)
        desktop.type("Hello.")
        desktop.key("Return")
        wait_until(lambda: [state for state, _ in answers()] == ["complete"], ANSWER_S, "answer", program)
        assert answers()[0][1]
        desktop.picture(pictures / "6-chat.png")
        computing = [used for _late, used in stalls(program.text())[before:]]
        print(f"longest stall computing: {max(computing, default=0):.0f} ms of {len(computing)}")
        assert max(computing, default=0) < STALL_MS
        program.close()
        assert program.process.returncode == 0
