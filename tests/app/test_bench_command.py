"""`colibri bench` with a small model: every format, wrong options, files, Ctrl-C."""

from __future__ import annotations

import csv
import io
import json
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from app.benchmark import BenchmarkResult, Kind, Speed, SpeedTest
from app.commands.bench_formats import as_csv, as_json, as_markdown, as_text
from app.machine import Machine
from engine import ModelInfo
from tests.support.program import ROOT, colibri
from tests.support.waiting import PATIENCE_S

MODEL = ROOT / "tests" / "data" / "fixtures" / "mixtral-mixed.gguf"
SMALL = ("bench", "-m", str(MODEL), "--prompt", "16,8", "--generate", "4", "--repetitions", "3", "--threads", "1")
TESTS = [("prompt", 16), ("prompt", 8), ("generate", 4)]


@pytest.fixture(autouse=True)
def home(colibri_home: Path) -> Path:
    return colibri_home


def bench(*arguments: str) -> str:
    done = colibri(*SMALL, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def check_figures(figures: dict[str, Any]) -> None:
    lowest, median, highest = (float(figures[name]) for name in ("min", "median", "max"))
    assert 0 < lowest <= median <= highest
    assert 0 <= float(figures["standard_deviation"]) <= highest - lowest
    assert float(figures["ms_per_token"]) == pytest.approx(1e3 / median, abs=1e-3)


def test_json_has_the_machine_the_model_and_every_sample() -> None:
    result = json.loads(bench("--format", "json", "--depth", "5"))

    assert [(test["test"], test["n_tokens"]) for test in result["tests"]] == TESTS
    assert [test["depth"] for test in result["tests"]] == [0, 0, 5]
    for test in result["tests"]:
        check_figures(test)
        assert len(test["samples"]) == test["repetitions"] == 3
        assert (min(test["samples"]), max(test["samples"])) == (test["min"], test["max"])
    assert (result["model"], result["type"], result["file_bytes"]) == ("Mixtral", "Q4_0", MODEL.stat().st_size)
    assert (result["threads"], result["complete"]) == (1, True)
    assert result["cpu"] == Machine.read().cpu
    assert result["tier"]
    assert result["load_average"] >= 0
    assert datetime.fromisoformat(result["started_at"]).tzinfo is not None


def test_csv_has_a_line_for_each_test() -> None:
    lines = list(csv.DictReader(io.StringIO(bench("--format", "csv"))))
    assert [(line["test"], int(line["n_tokens"])) for line in lines] == TESTS
    for line in lines:
        check_figures(line)
        assert (line["model"], line["threads"], line["repetitions"]) == ("Mixtral", "1", "3")


def test_text_and_markdown_show_a_row_for_each_test_and_the_facts() -> None:
    text, markdown = bench(), bench("--format", "markdown")
    cells = [[cell.strip() for cell in line.strip("| ").split("|")] for line in markdown.splitlines()[2:5]]
    columns = [line.rsplit(maxsplit=6) for line in text.splitlines()[-3:]]
    for rows in (cells, columns):
        assert [row[0].strip() for row in rows] == ["prompt 16", "prompt 8", "generate 4"]
        for _, median, lowest, highest, deviation, ms, runs in rows:
            assert 0 < float(lowest) <= float(median) <= float(highest)
            assert float(deviation) >= 0
            assert float(ms) > 0
            assert runs == "3"
    assert f"Mixtral, Q4_0, {MODEL.stat().st_size:,} bytes" in text
    assert "threads 1" in text
    assert r"Mixtral, Q4\_0" in markdown


def test_results_can_go_to_a_file(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    assert bench("--format", "json", "--output", str(path)) == ""
    assert len(json.loads(path.read_text())["tests"]) == 3


def test_one_kind_can_be_left_out() -> None:
    call = ("bench", "-m", str(MODEL), "--prompt", "0", "--generate", "4,4", "--repetitions", "1", "--format", "json")
    (test,) = json.loads(colibri(*call).stdout)["tests"]
    assert (test["test"], test["standard_deviation"]) == ("generate", None)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--prompt", "12,x"], "argument --prompt: expected whole numbers such as 128,512, found '12,x'"),
        (["--generate", "-4"], "argument --generate: expected"),
        (["--generate=8,-4"], "argument --generate: expected 0 or more, found -4"),
        (["--prompt", "0", "--generate", "0"], "--prompt and --generate are both 0"),
        (["--generate", "0", "--depth", "8"], "--depth is about generations"),
        (["--depth", "two"], "argument --depth: invalid"),
        (["--repetitions", "0"], "argument --repetitions: expected 1 or more, found 0"),
        (["--threads", "0"], "argument --threads: expected 1 or more, found 0"),
        (["--context", "64"], "argument --context: expected 513 or more, which the test 'prompt 512' needs, found 64"),
        (["--format", "xml"], "argument --format: invalid choice: 'xml'"),
        (["--output", "/"], "argument --output: expected a file, found the folder /"),
        (["--output", "/no/such/folder/x"], "argument --output: there is no folder /no/such/folder"),
    ],
)
def test_a_bad_option_is_refused_by_name(arguments: list[str], complaint: str) -> None:
    done = colibri("bench", "-m", str(MODEL), *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr


def test_a_model_that_is_not_there_is_one_clear_line() -> None:
    done = colibri("bench", "-m", "missing.gguf")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("colibri bench: missing.gguf")


def test_ctrl_c_prints_what_was_measured_and_ends_with_130() -> None:
    call = [*SMALL, "--repetitions", "1000000", "--format", "json"]
    with subprocess.Popen(
        [sys.executable, "-m", "app", *call], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        while "Measuring" not in (line := process.stderr.readline()):
            assert line, "the program ended before it measured anything"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 130
    assert errors.endswith("Stopped.\n")
    result = json.loads(output)
    assert result["complete"] is False
    for test in result["tests"]:
        check_figures(test)
        assert 0 < test["repetitions"] < 1_000_000


def test_a_name_from_a_file_cannot_break_a_format() -> None:
    name = 'One, "two" | *three*\n\x1b[31mfour'
    info = ModelInfo(Path("x.gguf"), name, "llama", "Q4_K", None, 1000, 1, 1, 1, 1, 1, 0, 0, 0, "avx2")
    speeds = (Speed(SpeedTest(Kind.PROMPT, 8), (1.0, 2.0)),)
    now = datetime.now().astimezone()
    result = BenchmarkResult(Machine("A CPU", None), info, 2, now, 3, speeds, is_complete=False)

    assert json.loads(as_json(result))["model"] == name
    (line,) = csv.DictReader(io.StringIO(as_csv(result)))
    assert (line["model"], line["load_average"], line["complete"]) == (name, "", "False")
    text, markdown = as_text(result), as_markdown(result)
    assert 'One, "two" | *three* [31mfour, Q4_K, 1,000 bytes\n' in text
    assert 'One, "two" \\| \\*three\\* \\[31mfour' in markdown
    for shown in (text, markdown):
        assert "stopped before 3 repetitions of every test were made" in shown
        assert "\x1b" not in shown


@pytest.mark.parametrize("prefetch", ["auto", "always", "never"])
def test_a_model_of_which_few_experts_stay_in_memory_is_measured(prefetch: str) -> None:
    result = json.loads(bench("--format", "json", "--cache-size", "4", "--prefetch", prefetch))
    assert [(test["test"], test["n_tokens"]) for test in result["tests"]] == TESTS


def test_a_cache_too_small_for_a_token_is_refused_with_both_numbers() -> None:
    failed = colibri("bench", "-m", str(MODEL), "--cache-size", "1")
    assert failed.returncode != 0
    assert "would hold 1 experts, but each token needs 2 at once" in failed.stderr
