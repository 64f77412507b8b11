"""Object code brought into memory without LLVM does what LLVM's linker makes of it; what it cannot do, LLVM does."""

from __future__ import annotations

import ctypes
import platform
import subprocess
import sys

import llvmlite.binding as llvm
import numpy as np
import pytest

from engine.kernels import library as library_module
from engine.kernels import linking
from engine.kernels.library import KernelLibrary, read_index
from engine.kernels.linking import Linker, NotPlaceableError
from tests.engine.kernels.operands import Array, at, quantise
from tests.support.program import ROOT

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.system() != "Linux", reason="elsewhere LLVM links everything"
)


def object_of(assembly: str) -> bytes:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(codemodel="small")  # as compilers of C take it
    return bytes(machine.emit_object(llvm.parse_assembly(assembly)))


def objects(library: KernelLibrary, names: list[str]) -> dict[str, tuple[str, bytes]]:
    library.require(names)
    folder = library_module.cache_root() / library_module._folder_name(library.tier)
    index = read_index(folder)
    return {name: (index[name]["symbol"], (folder / f"{name}.o").read_bytes()) for name in names}


def linked_by(library: KernelLibrary, name: str, method: str) -> KernelLibrary:
    """A library in which one kernel's code comes from the linker's `method`."""
    linker, other = Linker(), KernelLibrary(library.tier)
    symbol, code = objects(library, [name])[name]
    other.require([name])
    other._addresses[name] = getattr(linker, method)(symbol, code)
    other._linker = linker  # which keeps the code
    return other


def rounded(library: KernelLibrary, x: Array) -> Array:
    return np.array(quantise(library, x))


def test_placed_code_gives_the_same_bits_as_linked_code(library: KernelLibrary) -> None:
    x = np.random.default_rng(1).standard_normal((3, 512)).astype(np.float32)
    results = [rounded(linked_by(library, "quantise", method), x) for method in ("place", "link_by_llvm")]
    np.testing.assert_array_equal(*results)
    assert results[0].any()


def test_code_that_calls_c_functions_and_reads_constants_is_placed(library: KernelLibrary) -> None:
    gate, up = (np.random.default_rng(seed).standard_normal((1, 64)).astype(np.float32) for seed in (1, 2))
    results = []
    for method in ("place", "link_by_llvm"):
        out, other = gate.copy(), linked_by(library, "open_gate", method)
        other.run("open_gate", 0, x=at(out), x_stride=256, gate=at(up), gate_stride=256, n=64, is_silu=1)
        results.append(out)
    np.testing.assert_array_equal(*results)
    np.testing.assert_allclose(results[0], gate * up / (1 + np.exp(-up)), rtol=2e-5)


def test_every_kernel_that_is_built_can_be_placed(library: KernelLibrary) -> None:
    folder = library_module.cache_root() / library_module._folder_name(library.tier)
    library.require(["add", "walk", "sample"])
    linker, index = Linker(), read_index(folder)
    for name, entry in index.items():
        assert linker.place(entry["symbol"], (folder / f"{name}.o").read_bytes()), name


def test_code_that_wants_more_than_addresses_is_left_to_llvm() -> None:
    code = object_of("declare i32 @sched_yield()\ndefine i32 @f() {\n%x = call i32 @sched_yield()\nret i32 %x\n}")
    linker = Linker()
    with pytest.raises(NotPlaceableError):
        linker.place("f", code)
    address = linker.link("f", code)
    assert ctypes.CFUNCTYPE(ctypes.c_int32)(address)() == 0


def test_code_with_variables_is_left_to_llvm() -> None:
    code = object_of("@n = global i32 7\ndefine i32* @f() {\nret i32* @n\n}")
    with pytest.raises(NotPlaceableError):
        Linker().place("f", code)


def test_a_symbol_that_is_not_there_has_no_address(library: KernelLibrary) -> None:
    _, code = objects(library, ["add"])["add"]
    assert Linker().place("nowhere", code) == 0


@pytest.mark.parametrize("n_bytes", [0, 16, 64, 500])
def test_a_cut_off_object_is_refused(library: KernelLibrary, n_bytes: int) -> None:
    symbol, code = objects(library, ["add"])["add"]
    with pytest.raises(ValueError):
        Linker().place(symbol, code[:n_bytes])


def test_a_system_that_forbids_running_written_code_is_told(
    library: KernelLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    symbol, code = objects(library, ["add"])["add"]
    monkeypatch.setattr(linking._libc, "mprotect", lambda *_: -1)
    with pytest.raises(OSError, match="does not let a program run code"):
        Linker().link(symbol, code)


ANSWERS = """
import sys
from tests.engine.compact import LLAMA, open_small
from engine import SamplingParams
with open_small(LLAMA) as engine:
    tokens = [delta.token_id for delta in engine.generate([5, 17], SamplingParams(max_tokens=3, ignore_eos=True))]
assert len(tokens) >= 3
print(sorted({name.split(".")[0] for name in sys.modules} & {"llvmlite", "numba", "scipy", "PySide6", "pyqtgraph"}))
"""


def test_an_answer_needs_neither_the_compiler_nor_libraries_of_the_window() -> None:
    done = subprocess.run([sys.executable, "-c", ANSWERS], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr
