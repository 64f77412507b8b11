"""What compiled kernels may call outside of themselves."""

from __future__ import annotations

from pathlib import Path

import llvmlite.binding as llvm
import pytest

from engine.errors import KernelBuildError
from engine.kernels.layout import C_SYMBOLS
from engine.kernels.object_code import require_known_symbols, undefined_symbols


def object_that_calls(*symbols: str) -> bytes:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    declarations = "\n".join(f"declare void @{symbol}()" for symbol in symbols)
    calls = "\n".join(f"call void @{symbol}()" for symbol in symbols)
    module = llvm.parse_assembly(f"{declarations}\ndefine void @kernel() {{\n{calls}\nret void\n}}")
    return bytes(llvm.Target.from_default_triple().create_target_machine().emit_object(module))


def test_calls_are_found_in_an_object() -> None:
    assert undefined_symbols(object_that_calls("memset", "puts")) == {"memset", "puts"}
    assert undefined_symbols(object_that_calls()) == set()


def test_an_object_that_calls_an_unknown_function_is_refused_by_name() -> None:
    with pytest.raises(KernelBuildError, match=r"matmul_X calls __truncsfhf2, puts; expected only memcpy"):
        require_known_symbols("matmul_X", object_that_calls("puts", "__truncsfhf2", "memcpy"))


def test_an_object_that_calls_what_the_loader_offers_is_accepted() -> None:
    require_known_symbols("kernel", object_that_calls(*C_SYMBOLS))


def test_bytes_that_are_no_elf_object_are_not_judged() -> None:
    assert undefined_symbols(Path(__file__).read_bytes()) == set()
