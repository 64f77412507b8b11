"""Compiled objects as files have them (ELF-64, little endian): sections, symbols, places that want addresses."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.errors import KernelBuildError
from engine.kernels.layout import C_SYMBOLS

Array = np.ndarray[Any, Any]

UNDEFINED, LAST_NUMBER = 0, 0xFF00  # section numbers: of a symbol that is defined elsewhere; from here on no section
PROGRAM, SYMBOLS, STRINGS, ADDENDS = 1, 2, 3, 4  # types of sections
WRITABLE, IN_MEMORY = 1, 2  # flags of sections
X86_64, ADDRESS_64 = 62, 1  # a machine, and its relocation that is the plain address of a symbol

_ELF64 = b"\x7fELF\x02\x01"
_HEADER = np.dtype(
    {
        "names": ["machine", "sections", "section_bytes", "n_sections"],
        "formats": ["<u2", "<u8", "<u2", "<u2"],
        "offsets": [18, 40, 58, 60],
        "itemsize": 64,
    }
)
_SECTION = np.dtype(
    [
        ("name", "<u4"),
        ("type", "<u4"),
        ("flags", "<u8"),
        ("address", "<u8"),
        ("offset", "<u8"),
        ("n_bytes", "<u8"),
        ("link", "<u4"),
        ("target", "<u4"),
        ("alignment", "<u8"),
        ("entry_bytes", "<u8"),
    ]
)
_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("n_bytes", "<u8")]
)
_ADDEND = np.dtype([("offset", "<u8"), ("type", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])


class ObjectCode:
    """An object: `machine`, `sections`, `symbols` (arrays of records) and their `names`."""

    def __init__(self, code: bytes) -> None:
        """Raises ValueError for what is no whole object of this form."""
        if not code.startswith(_ELF64):
            raise ValueError("no ELF-64 object")
        self._code = code
        header = np.frombuffer(code, _HEADER, 1)[0]
        if header["section_bytes"] != _SECTION.itemsize:
            raise ValueError("sections of another form")
        self.machine = int(header["machine"])
        self.sections: Array = np.frombuffer(code, _SECTION, int(header["n_sections"]), int(header["sections"]))
        tables = self.sections[self.sections["type"] == SYMBOLS]
        if len(tables) != 1:
            raise ValueError(f"{len(tables)} tables of symbols")
        self.symbols: Array = np.frombuffer(self.content(tables[0]), _SYMBOL)
        strings = self.content(self.sections[tables[0]["link"]])
        self.names = [strings[start : strings.index(b"\0", start)].decode() for start in self.symbols["name"].tolist()]

    def content(self, section: Any) -> bytes:
        """A section's bytes."""
        offset, n_bytes = int(section["offset"]), int(section["n_bytes"])
        if offset + n_bytes > len(self._code):
            raise ValueError("a section behind the end")
        return self._code[offset : offset + n_bytes]

    def addends(self, section: Any) -> Array:
        """The records of a section of the type ADDENDS: places in its target, and what belongs there."""
        return np.frombuffer(self.content(section), _ADDEND)

    def undefined(self) -> set[str]:
        """Names that are taken from elsewhere."""
        sections = self.symbols["section"].tolist()
        return {name for name, section in zip(self.names, sections, strict=True) if name and section == UNDEFINED}


def undefined_symbols(code: bytes) -> set[str]:
    """Names that an object takes from elsewhere; nothing is known of other formats."""
    return ObjectCode(code).undefined() if code.startswith(_ELF64) else set()


def require_known_symbols(kernel: str, code: bytes) -> None:
    """Raise KernelBuildError if the object calls anything but the C functions that the loader offers."""
    unknown = undefined_symbols(code) - set(C_SYMBOLS)
    if unknown:
        raise KernelBuildError(
            f"The compiled kernel {kernel} calls {', '.join(sorted(unknown))}; expected only {', '.join(C_SYMBOLS)}. "
            "The tier has no instruction for something that the kernel does: write it out, or offer the function to "
            "the loader in C_SYMBOLS (engine/kernels/layout.py)."
        )
