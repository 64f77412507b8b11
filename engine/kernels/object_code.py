"""What a compiled object needs from outside of itself, so that it is refused before anything could call it."""

from __future__ import annotations

import llvmlite.binding as llvm
import numpy as np

from engine.errors import KernelBuildError
from engine.kernels.layout import C_SYMBOLS

_ELF64 = b"\x7fELF\x02"
_SYMBOL = np.dtype([("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8", 2)])
_UNDEFINED = 0  # the section number of a symbol that is defined elsewhere


def undefined_symbols(code: bytes) -> set[str]:
    """Names that an ELF-64 object (little endian) takes from elsewhere; nothing is known of other formats."""
    if not code.startswith(_ELF64):
        return set()
    sections = {section.name(): section.data() for section in llvm.ObjectFileRef.from_data(code).sections()}
    symbols, names = np.frombuffer(sections[b".symtab"], _SYMBOL), sections[b".strtab"]
    outside = symbols["name"][(symbols["section"] == _UNDEFINED) & (symbols["name"] != 0)]
    return {names[start : names.index(b"\0", start)].decode() for start in outside.tolist()}


def require_known_symbols(kernel: str, code: bytes) -> None:
    """Raise KernelBuildError if the object calls anything but the C functions that the loader offers."""
    unknown = undefined_symbols(code) - set(C_SYMBOLS)
    if unknown:
        raise KernelBuildError(
            f"The compiled kernel {kernel} calls {', '.join(sorted(unknown))}; expected only {', '.join(C_SYMBOLS)}. "
            "The tier has no instruction for something that the kernel does: write it out, or offer the function to "
            "the loader in C_SYMBOLS (engine/kernels/layout.py)."
        )
