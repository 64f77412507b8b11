"""Digests of what compiled code depends on, so that a change compiles anew only the kernels that it touches."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from engine.kernels.library import build_facts
from engine.kernels.tiers import Tier

_PROJECT = Path(__file__).parent.parent.parent


def sources_digest(module: str, tier: Tier) -> str:
    """Of a module's own source, of all modules of the project that it imports, of the compilers and of the tier."""
    digest = hashlib.sha256()
    for name in sorted(_dependencies(module)):
        digest.update(name.encode() + b"\0" + _path(name).read_bytes())
    digest.update(build_facts(tier))
    return digest.hexdigest()[:32]


@cache
def _dependencies(module: str) -> frozenset[str]:
    found, waiting = set[str](), [module]
    while waiting:
        name = waiting.pop()
        if name not in found and _path(name).exists():
            found.add(name)
            waiting += _imports(name)
    return frozenset(found)


@cache
def _imports(module: str) -> tuple[str, ...]:
    return tuple(name for name in _named(ast.parse(_path(module).read_bytes())) if name.startswith("engine."))


def _named(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)  # a name may be a module


def _path(module: str) -> Path:
    path = _PROJECT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
