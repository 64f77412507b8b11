"""The floors: imports run downward only (ui -> app -> engine), in no circle, and Qt stays on the top floor."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FLOORS = ("engine", "app", "ui")  # from the ground up
QT = {"PySide6", "shiboken6", "pyqtgraph", "qasync"}


def sources() -> dict[str, Path]:
    """Every module of the three floors, by its dotted name."""
    found = {}
    for floor in FLOORS:
        for path in (ROOT / floor).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path, module: str, *, lazy: bool) -> Iterator[tuple[str, list[str]]]:
    """(module, imported names) of a file's imports; with `lazy` also those within functions. Typing-only ones not."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    pending: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            yield from ((alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            yield ".".join([*above, *([node.module] if node.module else [])]), [alias.name for alias in node.names]
        elif isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            pending += node.orelse
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or lazy:
            pending += ast.iter_child_nodes(node)


def test_there_are_modules_on_every_floor() -> None:
    floors = {name.split(".")[0] for name in sources()}
    assert floors == set(FLOORS)


@pytest.mark.parametrize("floor", FLOORS)
def test_imports_run_downward_only(floor: str) -> None:
    above = set(FLOORS[FLOORS.index(floor) + 1 :])
    wrong = [
        f"{module} imports {imported}"
        for module, path in sources().items()
        if module.split(".")[0] == floor and module != "app.commands.window"  # the one door to the window
        for imported, _ in imports(path, module, lazy=True)
        if imported.split(".")[0] in above
    ]
    assert wrong == []


def test_the_window_is_imported_by_its_command_when_it_runs_and_no_sooner() -> None:
    path = ROOT / "app" / "commands" / "window.py"
    eager = [imported for imported, _ in imports(path, "app.commands.window", lazy=False)]
    lazy = [imported for imported, _ in imports(path, "app.commands.window", lazy=True)]
    assert not [imported for imported in eager if imported.split(".")[0] == "ui"]
    assert [imported for imported in lazy if imported.split(".")[0] == "ui"]


@pytest.mark.parametrize("floor", ["engine", "app"])
def test_qt_stays_on_the_top_floor(floor: str) -> None:
    wrong = [
        f"{module} imports {imported}"
        for module, path in sources().items()
        if module.split(".")[0] == floor
        for imported, _ in imports(path, module, lazy=True)
        if imported.split(".")[0] in QT
    ]
    assert wrong == []


def test_no_module_imports_itself_through_others() -> None:
    modules = sources()
    graph: dict[str, set[str]] = {}
    for module, path in modules.items():
        graph[module] = set()
        for imported, names in imports(path, module, lazy=False):
            for target in [f"{imported}.{name}" for name in names] or [imported]:
                graph[module].add(target if target in modules else imported)
        graph[module] = {target for target in graph[module] if target in modules and target != module}
    assert circles(graph) == []


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Each circle found, as the path that closes it."""
    found, done = [], set()

    def walk(module: str, path: list[str]) -> None:
        if module in path:
            found.append([*path[path.index(module) :], module])
        elif module not in done:
            for target in sorted(graph[module]):
                walk(target, [*path, module])
            done.add(module)

    for module in sorted(graph):
        walk(module, [])
    return found


def test_the_search_for_circles_finds_one() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == [["b", "c", "b"]]
