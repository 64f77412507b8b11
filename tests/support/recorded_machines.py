"""Machines recorded as text, one file each, that are written out as /proc and /sys below a folder.

`== PATH` begins a file; {0-3,8} or {a,b} in a path stand for several, and `$n` in the text for the number in the path.
`== environ PATH` takes one variable a line, `== dimms PATH` one module a line (an SMBIOS table is made of them), and
`== forbidden PATH` becomes a folder: like a file that may not be read, it is there and gives nothing, to root as well.
"""

from __future__ import annotations

import itertools
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "data" / "machines"
NAMES = tuple(sorted(path.stem for path in FOLDER.glob("*.txt")))
_DDR = {"DDR4": 0x1A, "DDR5": 0x22}


@dataclass(frozen=True, slots=True)
class Recorded:
    """A machine that was written out; `facts` are the lines "@name value" of the file's head."""

    root: Path
    facts: dict[str, str]


def write_machine(name: str, root: Path) -> Recorded:
    """Write the machine `name` out below `root`."""
    head, *sections = re.split(r"^== ", (FOLDER / f"{name}.txt").read_text(encoding="utf-8"), flags=re.MULTILINE)
    for section in sections:
        title, _, text = section.partition("\n")
        kind, _, pattern = title.rpartition(" ")
        for path, number in expand(pattern):
            _write(root / path, kind, text.replace("$n", number))
    return Recorded(root, dict(re.findall(r"^@(\w+) (.+)$", head, re.MULTILINE)))


def expand(pattern: str) -> Iterator[tuple[str, str]]:
    """(path, what the last braces were replaced by) for each combination."""
    parts = re.split(r"\{([^}]*)\}", pattern)
    choices = [list(_alternatives(part)) if place % 2 else [part] for place, part in enumerate(parts)]
    for chosen in itertools.product(*choices):
        yield "".join(chosen), chosen[-2] if len(chosen) > 1 else ""


def _alternatives(text: str) -> Iterator[str]:
    for part in text.split(","):
        found = re.fullmatch(r"(\d+)-(\d+)", part)
        if found:
            yield from map(str, range(int(found.group(1)), int(found.group(2)) + 1))
        else:
            yield part


def _write(path: Path, kind: str, text: str) -> None:
    if kind == "forbidden":
        path.mkdir(parents=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "environ":
        path.write_text(text.strip().replace("\n", "\0") + "\0", encoding="utf-8")
    elif kind == "dimms":
        path.write_bytes(smbios_table(text))
    else:
        path.write_text(text, encoding="utf-8")


def smbios_table(text: str) -> bytes:
    """An SMBIOS table (DSP0134, 7.18): a memory device for each line of MB, bits, type, MT/s, configured MT/s, slot."""
    table = b""
    for line in text.strip().splitlines():
        megabytes, width, kind, rate, configured, place = line.split(" ", 5)
        slot, _, bank = place.rpartition(" ") if "CHANNEL" not in place else place.partition(" P0")
        bank = f"P0{bank}" if "CHANNEL" in place else bank
        record = bytearray(0x28)
        record[0], record[1] = 17, len(record)
        struct.pack_into("<HHH", record, 0x08, 72, int(width), int(megabytes))
        record[0x10], record[0x11], record[0x12] = 1, 2, _DDR[kind]
        struct.pack_into("<H", record, 0x15, int(rate))
        struct.pack_into("<H", record, 0x20, int(configured))
        table += bytes(record) + slot.encode() + b"\0" + bank.encode() + b"\0\0"
    return table + bytes([127, 4, 0, 0, 0, 0])
