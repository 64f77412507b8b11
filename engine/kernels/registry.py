"""The decorators that turn a Python function into a kernel or into a helper inlined into kernels.

A kernel's signature is its operation's schema: `chunk` (which piece of the work) and `scratch` (memory of the calling
worker) come first, then the operands, annotated `int` (a count or an address) or `float`. A plan stores operands in
records of 8-byte cells in that order; the entry generated here unpacks a record and calls the function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numba import njit, types

from engine.kernels.compiler import KernelCompiler, PartCompiler
from engine.kernels.layout import MAX_OPERANDS, OPERANDS_OFFSET
from engine.kernels.memory import load_f64, load_i64

_OPTIONS = {
    "nogil": True,
    "error_model": "numpy",
    "boundscheck": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
_LOADERS = {"int": "load_i64", "float": "load_f64"}

ENTRY_ARGUMENTS = (types.int64, types.int64, types.int64)  # record address, chunk, scratch address

Operands = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Kernel:
    """One compiled operation: its body, and the names and kinds of its operands in record order."""

    name: str
    function: Callable[..., Any]
    operands: Operands


KERNELS: dict[str, Kernel] = {}


def device(function: Callable[..., Any]) -> Any:
    """Compile `function` for use inside kernels; LLVM inlines it there."""
    return njit(forceinline=True, pipeline_class=PartCompiler, **_OPTIONS)(function)


def helper(function: Callable[..., Any]) -> Any:
    """Compile `function` for use inside kernels, where it stays a function of its own: called seldom, or long."""
    return njit(forceinline=False, pipeline_class=PartCompiler, **_OPTIONS)(function)


def kernel(function: Callable[..., Any], name: str | None = None) -> Callable[..., Any]:
    """Register `function` as a kernel under `name`, by default its own."""
    name = name or function.__name__
    first, second, *operands = inspect.signature(function).parameters.values()
    if (first.name, second.name) != ("chunk", "scratch"):
        raise TypeError(f"kernel {name}: its parameters must start with chunk, scratch")
    if len(operands) > MAX_OPERANDS:
        raise TypeError(f"kernel {name}: a record holds {MAX_OPERANDS} operands, not {len(operands)}")
    KERNELS[name] = Kernel(name, function, tuple((p.name, str(p.annotation)) for p in operands))
    return function


def compile_entry(kernel: Kernel) -> Any:
    """The Numba dispatcher of `entry(record, chunk, scratch)` for `kernel`, compiled."""
    arguments = "".join(
        f", {_LOADERS[kind]}(record + {OPERANDS_OFFSET + 8 * i})" for i, (_, kind) in enumerate(kernel.operands)
    )
    scope = {"body": device(kernel.function), "load_i64": load_i64, "load_f64": load_f64}
    exec(f"def entry(record, chunk, scratch):\n    body(chunk, scratch{arguments})", scope)
    dispatcher = njit(pipeline_class=KernelCompiler, **_OPTIONS)(scope["entry"])
    dispatcher.compile(ENTRY_ARGUMENTS)
    return dispatcher
