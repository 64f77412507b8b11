"""The files in which Linux describes a machine, below a root folder: a recorded machine reads like a live one."""

from __future__ import annotations

import os
import re
from pathlib import Path

_MOST_BYTES = 4 << 20  # no file that is read here is longer; what is, is cut


class SystemFiles:
    """Reads files such as "proc/meminfo" below `root`. What cannot be read is None, never an error."""

    def __init__(self, root: Path = Path("/")) -> None:
        self.root = root

    def data(self, path: str) -> bytes | None:
        """The file's bytes; None where it is absent, forbidden, or the kernel refuses to answer."""
        try:
            descriptor = os.open(self.root / path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        pieces, n_bytes = [], 0
        try:
            while n_bytes < _MOST_BYTES and (piece := os.read(descriptor, 1 << 16)):
                pieces.append(piece)
                n_bytes += len(piece)
        except BlockingIOError:  # the end of a log that grows
            pass
        except OSError:
            return None
        finally:
            os.close(descriptor)
        return b"".join(pieces)

    def text(self, path: str) -> str | None:
        """The file's text without surrounding white space."""
        data = self.data(path)
        return None if data is None else data.decode("utf-8", "replace").strip()

    def number(self, path: str) -> int | None:
        """The file's only content as an integer; None also where it is none ("max", say)."""
        text = self.text(path)
        return int(text) if text and re.fullmatch(r"-?\d+", text) else None

    def exists(self, path: str) -> bool:
        """Whether there is something at `path`."""
        return (self.root / path).exists()

    def is_forbidden(self, path: str) -> bool:
        """Whether there is a file that this user may not read."""
        return self.exists(path) and self.data(path) is None

    def names(self, folder: str, pattern: str) -> list[str]:
        """Paths below the root of those entries of `folder` whose whole name matches `pattern`, in natural order."""
        try:
            found = [path.name for path in (self.root / folder).iterdir() if re.fullmatch(pattern, path.name)]
        except OSError:
            return []
        return [f"{folder}/{name}" for name in sorted(found, key=_natural_key)]

    def table(self, path: str, separator: str = ":") -> dict[str, str]:
        """Lines of "key: value"; empty where the file cannot be read. The first of equal keys counts."""
        result: dict[str, str] = {}
        for line in (self.text(path) or "").splitlines():
            key, found, value = line.partition(separator)
            if found:
                result.setdefault(key.strip(), value.strip())
        return result


def choice(text: str | None) -> str | None:
    """The chosen word of a list such as "always [madvise] never"; None where none is marked."""
    found = re.search(r"\[([\w+-]+)\]", text or "")
    return found.group(1) if found else None


def cpu_list(text: str | None) -> tuple[int, ...]:
    """The CPUs of a list such as "0-3,8": (0, 1, 2, 3, 8); empty for what is no such list (cpuset.cpus, "0-3")."""
    cpus: list[int] = []
    for part in (text or "").strip().split(","):
        found = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", part.strip())
        if found:
            first, last = int(found.group(1)), int(found.group(2) or found.group(1))
            cpus.extend(range(first, min(last, first + 65535) + 1))
    return tuple(cpus)


def cpu_list_text(cpus: tuple[int, ...]) -> str:
    """The inverse of `cpu_list`: "0-3,8"."""
    runs: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if runs and runs[-1][1] == cpu - 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def _natural_key(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name) if part]
