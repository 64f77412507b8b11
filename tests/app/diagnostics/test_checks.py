"""The system check judges recorded machines: what is in order, what is not, and what is not there."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest

from app.diagnostics import Finding, Host, Inspection, ModelNeeds, Status, Verb, run_checks
from app.diagnostics.check import CHECKS
from app.diagnostics.message import CONTEXT, Message, size, text, verbatim
from engine.hardware.system_files import SystemFiles
from tests.support.recorded_machines import NAMES, write_machine

GB = 1_000_000_000
ROOT = Path(__file__).resolve().parents[3]
A_MODEL = ModelNeeds("Mixtral", 6 * GB)


def inspection(name: str, folder: Path, model: ModelNeeds | None = None) -> Inspection:
    recorded = write_machine(name, folder / name)
    facts = recorded.facts
    host = Host("Linux", facts["machine"], facts["libc"], {"yes": True, "no": False}.get(facts.get("amx", "")))
    return Inspection(SystemFiles(recorded.root), host, folder / "models", folder / "kernels", model)


def check(name: str, folder: Path, model: ModelNeeds | None = None) -> dict[str, Finding]:
    return {finding.id: finding for finding in run_checks(inspection(name, folder, model))}


@pytest.mark.parametrize(
    ("name", "problems", "advice"),
    [
        ("intel-hybrid-laptop", set(), {"energy-preference", "throttling", "power", "swap", "kernel-log"}),
        ("amd-desktop", {"governor", "frequency", "transparent-pages"}, {"turbo", "load", "kernel-log", "huge-pages"}),
        ("xeon-two-sockets", {"security"}, {"numa"}),
        ("epyc-zen4", set(), set()),
        ("kvm-guest", {"memory"}, {"transparent-pages", "swap", "kernel-log"}),
        ("wsl2", set(), {"virtualisation"}),
        ("container", set(), {"control-group", "kernel-log"}),
        ("arm-board", set(), {"instructions"}),
    ],
)
def test_each_machine_is_judged_as_it_is(tmp_path: Path, name: str, problems: set[str], advice: set[str]) -> None:
    findings = {
        id_: finding for id_, finding in check(name, tmp_path).items() if id_ != "disk"
    }  # that one is this disk's
    assert {id_ for id_, finding in findings.items() if finding.status is Status.PROBLEM} == problems
    assert {id_ for id_, finding in findings.items() if finding.status is Status.ADVICE} == advice


@pytest.mark.parametrize(
    ("name", "id_", "words"),
    [
        ("intel-hybrid-laptop", "cores", "10 physical cores for 12 CPUs; fast cores on CPUs 0-3, small ones on 4-11"),
        ("intel-hybrid-laptop", "instructions", "12th Gen Intel(R) Core(TM) i5-1235U: tier avx2 (avx2 avx_vnni)"),
        ("intel-hybrid-laptop", "frequency", "0.40 GHz to 4.40 GHz, now 1.10 GHz"),
        ("amd-desktop", "governor", "powersave (driver acpi-cpufreq)"),
        ("xeon-two-sockets", "instructions", "tier amx"),
        ("xeon-two-sockets", "caches", "L2 8 x 2 MiB, L3 2 x 105 MiB"),
        ("xeon-two-sockets", "huge-pages", "2048 pages of 2 MiB (4.3 GB), 2048 free"),
        ("epyc-zen4", "instructions", "tier avx512"),
        ("kvm-guest", "governor", "not available here, because the host of this virtual machine sets the frequencies"),
        ("container", "control-group", "memory 6.4 GB, processor time of 1.5 CPUs"),
        ("container", "memory", "5.4 GB available of 6.4 GB"),
        ("arm-board", "throttling", "not available here, because the kernel counts no such events on this machine"),
        ("wsl2", "virtualisation", "WSL2"),
        ("intel-hybrid-laptop", "kernel-log", "1 programs ended for want of memory, ? failures of huge pages"),
    ],
)
def test_findings_say_what_was_found(tmp_path: Path, name: str, id_: str, words: str) -> None:
    value = str(check(name, tmp_path)[id_].value)
    assert words in value


def test_what_is_no_problem_asks_for_nothing_and_what_is_one_says_what_to_do(tmp_path: Path) -> None:
    for name in NAMES:
        for finding in check(name, tmp_path).values():
            assert str(finding.why).endswith(".") and str(finding.title)
            if finding.status in (Status.PROBLEM, Status.ADVICE):
                assert finding.advice is not None, (name, finding.id)
            if finding.status is Status.UNAVAILABLE:
                assert str(finding.value).startswith("not available here, because ")
                assert finding.fix is None and finding.command is None


def test_fixes_are_offered_where_the_helper_can_make_them(tmp_path: Path) -> None:
    desktop = check("amd-desktop", tmp_path)
    assert desktop["governor"].fix is not None and desktop["governor"].fix.values == ("performance",)
    pages = desktop["transparent-pages"].fix
    assert pages is not None and (pages.verb, pages.values) == (Verb.TRANSPARENT_PAGES, ("madvise",))
    assert all(finding.fix is None for finding in check("container", tmp_path).values())


def test_the_pool_that_a_model_wants_is_told_and_offered_where_memory_allows(tmp_path: Path) -> None:
    desktop = check("amd-desktop", tmp_path / "a", A_MODEL)["huge-pages"]
    assert desktop.fix is not None and desktop.fix.values == ("3005",)
    assert "Mixtral would fill 3005" in str(desktop.advice)
    assert desktop.command == "sudo sysctl vm.nr_hugepages=3005"
    guest = check("kvm-guest", tmp_path / "b", A_MODEL)["huge-pages"]
    assert guest.fix is None
    small = check("xeon-two-sockets", tmp_path / "c", A_MODEL)["huge-pages"]
    assert small.status is Status.ADVICE
    enough = check("epyc-zen4", tmp_path / "d", A_MODEL)["huge-pages"]
    assert enough.status is Status.OK and enough.fix is None


def test_pages_that_the_model_itself_holds_count_as_there(tmp_path: Path) -> None:
    model = ModelNeeds("OLMoE", 4 * GB, hugetlb_bytes=4 * GB)
    inspected = inspection("xeon-two-sockets", tmp_path, model)
    (inspected.files.root / "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages").write_text("140\n")
    finding = {finding.id: finding for finding in run_checks(inspected)}["huge-pages"]
    assert finding.status is Status.OK


def test_two_nodes_are_told_what_crosses_the_link_and_where_a_model_that_fits_should_stay(tmp_path: Path) -> None:
    large = check("xeon-two-sockets", tmp_path / "a", ModelNeeds("Kimi", 10**15))["numa"]
    assert "Colibri places nothing by node" in str(large.why) and "About 50 % of all reads" in str(large.advice)
    assert large.command == "numactl --interleave=all ./colibri"
    small = check("xeon-two-sockets", tmp_path / "b", A_MODEL)["numa"]
    assert small.command == "numactl --cpunodebind=0 --membind=0 ./colibri" and "fits into one" in str(small.advice)


def test_a_model_larger_than_the_memory_is_a_problem(tmp_path: Path) -> None:
    finding = check("kvm-guest", tmp_path, ModelNeeds("Kimi", 600 * GB))["memory"]
    assert finding.status is Status.PROBLEM
    assert "Kimi takes 600 GB" in str(finding.advice)


def test_a_forced_tier_is_pointed_out(tmp_path: Path) -> None:
    inspected = inspection("xeon-two-sockets", tmp_path)
    forced = replace(inspected, host=replace(inspected.host, forced_tier="avx2"))
    finding = {finding.id: finding for finding in run_checks(forced)}["instructions"]
    assert finding.status is Status.ADVICE
    assert "tier avx2" in str(finding.value) and "amx would be used" in str(finding.advice)


def test_refused_tile_registers_are_advice(tmp_path: Path) -> None:
    inspected = inspection("xeon-two-sockets", tmp_path)
    refused = replace(inspected, host=replace(inspected.host, has_tiles=False))
    found = {finding.id: finding for finding in run_checks(refused)}
    assert found["amx"].status is Status.ADVICE and found["kernel"].status is Status.ADVICE
    assert "tier avx512" in str(found["instructions"].value)


@pytest.mark.parametrize("system", ["Linux", "Darwin", "Windows"])
def test_a_machine_without_any_of_the_files_has_findings_and_no_error(tmp_path: Path, system: str) -> None:
    host = Host(system, "arm64", "", None)
    empty = Inspection(SystemFiles(tmp_path), host, tmp_path / "none" / "models", tmp_path / "kernels")
    findings = run_checks(empty)
    assert len(findings) == len(CHECKS)
    assert sum(finding.status is Status.UNAVAILABLE for finding in findings) >= 18
    assert all(finding.status is not Status.PROBLEM for finding in findings)
    assert empty.can_fix == (system == "Linux")


def test_checks_have_names_of_their_own(tmp_path: Path) -> None:
    findings = run_checks(inspection("epyc-zen4", tmp_path))
    assert len({finding.id for finding in findings}) == len(findings) == len(CHECKS)


def test_a_message_is_translated_before_its_values_are_put_in() -> None:
    inner = text("SystemCheck", "none")
    message = text("SystemCheck", "{a} of {b}").format(a=3, b=inner)
    german = {"{a} of {b}": "{a} von {b}", "none": "keine"}
    assert str(message) == "3 of none"
    assert message.render(german.__getitem__) == "3 von keine"
    assert str(verbatim("{not a place}")) == "{not a place}"


def test_every_message_is_a_literal_that_translators_find() -> None:
    for path in (ROOT / "app" / "diagnostics").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "text":
                context, template = node.args
                assert isinstance(context, ast.Constant) and context.value == CONTEXT, path
                assert isinstance(template, ast.Constant) and isinstance(template.value, str), path
                assert not re.search(r"\{\d*\}", template.value), path
                Message(template.value)


@pytest.mark.parametrize(
    ("n_bytes", "words"), [(0, "0 bytes"), (8_388_608, "8.4 MB"), (6e9, "6.0 GB"), (2e12, "2.0 TB")]
)
def test_sizes_are_decimal(n_bytes: float, words: str) -> None:
    assert size(n_bytes) == words
