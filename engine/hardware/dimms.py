"""Memory modules as the firmware describes them (SMBIOS, structure type 17), and the bandwidth they should give."""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass

from engine.hardware.system_files import SystemFiles

TABLE = "sys/firmware/dmi/tables/DMI"
_MEMORY_DEVICE, _END = 17, 127
_TYPES = {0x18: "DDR3", 0x1A: "DDR4", 0x1D: "LPDDR3", 0x1E: "LPDDR4", 0x22: "DDR5", 0x23: "LPDDR5"}
_UNKNOWN, _IN_MEGABYTES, _EXTENDED = 0xFFFF, 0x8000, 0x7FFF


@dataclass(frozen=True, slots=True)
class Module:
    """One module that is present. Rates are in mega-transfers per second; width without the bits for errors."""

    size_bytes: int
    width_bits: int
    kind: str
    rate_mts: int
    place: str  # the firmware's name of the slot, which tells the channel: "DIMM_A1", "P0 CHANNEL A"
    bank: str


def read_modules(files: SystemFiles) -> tuple[Module, ...] | None:
    """The modules (DMTF DSP0134, 7.18); None where the table is absent or only root may read it."""
    table = files.data(TABLE)
    return None if not table else parse_modules(table)


def parse_modules(table: bytes) -> tuple[Module, ...]:
    """Modules of an SMBIOS table; a damaged rest of it is left out."""
    modules = []
    place = 0
    while place + 4 <= len(table):
        kind, length = table[place], table[place + 1]
        end = table.find(b"\0\0", place + length)
        if length < 4 or end < 0 or kind == _END:
            break
        if kind == _MEMORY_DEVICE and length >= 0x17:
            module = _module(table[place : place + length], table[place + length : end].split(b"\0"))
            if module is not None:
                modules.append(module)
        place = end + 2
    return tuple(modules)


def _module(record: bytes, strings: list[bytes]) -> Module | None:
    width, size = struct.unpack_from("<HH", record, 0x0A)
    if size in (0, _UNKNOWN):
        return None
    size_bytes = (size & ~_IN_MEGABYTES) << (10 if size & _IN_MEGABYTES else 20)
    if size == _EXTENDED and len(record) >= 0x20:
        size_bytes = (struct.unpack_from("<I", record, 0x1C)[0] & 0x7FFFFFFF) << 20
    rate = struct.unpack_from("<H", record, 0x15)[0]
    if len(record) >= 0x22:  # the configured rate is what the memory runs at
        rate = struct.unpack_from("<H", record, 0x20)[0] or rate

    def string(number: int) -> str:
        return strings[number - 1].decode("ascii", "replace").strip() if 0 < number <= len(strings) else ""

    return Module(
        size_bytes,
        width if width != _UNKNOWN else 64,
        _TYPES.get(record[0x12], "memory"),
        0 if rate == _UNKNOWN else rate,
        string(record[0x10]),
        string(record[0x11]),
    )


def n_channels(modules: tuple[Module, ...]) -> int:
    """Channels in use, told by the slots' names; two modules of a channel differ only in the last digit."""
    names = Counter(
        (module.bank, module.place[:-1] if module.place[-1:].isdigit() else module.place) for module in modules
    )
    return len(names)


def theoretical_bytes_per_second(modules: tuple[Module, ...]) -> float | None:
    """What the channels in use can carry: transfers x width, each channel at its slowest module; None if not told."""
    if not modules or any(not module.rate_mts or not module.width_bits for module in modules):
        return None
    slowest = min(module.rate_mts for module in modules)
    return n_channels(modules) * slowest * 1e6 * modules[0].width_bits / 8
