"""Brings object code into memory, ready to be called.

Numba's objects for x86-64 want nothing but 64-bit addresses in places of their own, so they are placed here: that takes
a twentieth of the time and none of the 40 MB that LLVM's linker takes. LLVM is loaded for everything else: other
machines, and objects that want something else.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import mmap
import platform
from typing import Any

import numpy as np

from engine.kernels.layout import C_SYMBOLS
from engine.kernels.object_code import (
    ADDENDS,
    ADDRESS_64,
    IN_MEMORY,
    LAST_NUMBER,
    PROGRAM,
    UNDEFINED,
    WRITABLE,
    X86_64,
    ObjectCode,
)

_PLACES_ITSELF = platform.system() == "Linux" and platform.machine() == "x86_64"
_SECTION_ALIGNMENT = 64
_libc = ctypes.CDLL(ctypes.util.find_library("m") or None)  # libm, and through it libc
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class NotPlaceableError(Exception):
    """An object wants more than addresses in places of its own."""


class Linker:
    """Keeps the code of all objects that it has linked."""

    def __init__(self) -> None:
        self._kept: list[Any] = []
        self._outside = {name: ctypes.cast(getattr(_libc, name), ctypes.c_void_p).value or 0 for name in C_SYMBOLS}
        self._knows_llvm = False

    def link(self, symbol: str, code: bytes) -> int:
        """The address of `symbol` in the object; 0 if it is not there. Raises OSError where code may not be run."""
        if _PLACES_ITSELF:
            try:
                return self.place(symbol, code)
            except (NotPlaceableError, ValueError):
                pass
        return self.link_by_llvm(symbol, code)

    def place(self, symbol: str, code: bytes) -> int:
        """`link` without LLVM. Raises NotPlaceableError for what is not for this, ValueError for what is damaged."""
        parts = ObjectCode(code)
        if parts.machine != X86_64:
            raise NotPlaceableError("another machine's object")
        wanted = (parts.sections["flags"] & IN_MEMORY != 0) & (parts.sections["n_bytes"] != 0)
        wanted &= parts.sections["type"] == PROGRAM  # not what unwinding would need: kernels raise nothing
        if (parts.sections["flags"][wanted] & WRITABLE).any():
            raise NotPlaceableError("an object with variables")
        if (parts.sections["alignment"][wanted] > _SECTION_ALIGNMENT).any():
            raise NotPlaceableError("an object with wider data than registers")
        places, n_bytes = dict[int, int](), 0
        for number in np.flatnonzero(wanted).tolist():
            places[number] = n_bytes
            n_bytes += -(-int(parts.sections["n_bytes"][number]) // _SECTION_ALIGNMENT) * _SECTION_ALIGNMENT
        memory = mmap.mmap(-1, max(n_bytes, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        array = np.frombuffer(memory, np.uint8)
        start = int(array.ctypes.data)
        for number, place in places.items():
            content = parts.content(parts.sections[number])
            memory[place : place + len(content)] = content
        addresses = [self._address_of(parts, i, start, places) for i in range(len(parts.names))]
        for section in parts.sections[parts.sections["type"] == ADDENDS]:
            if int(section["target"]) in places:
                _write_addresses(memory, places[int(section["target"])], parts.addends(section), addresses)
        if _libc.mprotect(start, len(memory), mmap.PROT_READ | mmap.PROT_EXEC):
            raise OSError("this system does not let a program run code that it has put into memory")
        self._kept.append(array)
        return addresses[parts.names.index(symbol)] or 0 if symbol in parts.names else 0

    def _address_of(self, parts: ObjectCode, number: int, start: int, places: dict[int, int]) -> int | None:
        section, value = int(parts.symbols["section"][number]), int(parts.symbols["value"][number])
        if section == UNDEFINED:
            return self._outside.get(parts.names[number])
        return start + places[section] + value if section < LAST_NUMBER and section in places else None

    def link_by_llvm(self, symbol: str, code: bytes) -> int:
        """`link`, as LLVM does it."""
        import llvmlite.binding as llvm  # noqa: PLC0415  (takes long to load, and much memory)

        if not self._knows_llvm:
            llvm.initialize_native_target()
            llvm.initialize_native_asmprinter()
            for name, address in self._outside.items():
                llvm.add_symbol(name, address)
            self._knows_llvm = True
        # one engine an object: objects from different build processes may use the same inner names
        engine = llvm.create_mcjit_compiler(
            llvm.parse_assembly(""), llvm.Target.from_default_triple().create_target_machine()
        )
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        self._kept.append(engine)
        return int(engine.get_function_address(symbol))


def _write_addresses(memory: mmap.mmap, place: int, addends: Any, addresses: list[int | None]) -> None:
    if (addends["type"] != ADDRESS_64).any():
        raise NotPlaceableError("an object that wants other numbers than addresses")
    for offset, symbol, addend in zip(
        addends["offset"].tolist(), addends["symbol"].tolist(), addends["addend"].tolist(), strict=True
    ):
        address = addresses[symbol]
        if address is None:
            raise NotPlaceableError("an object that wants what is not placed")
        memory[place + offset : place + offset + 8] = (address + addend).to_bytes(8, "little")
