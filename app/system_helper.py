"""The only part of Colibri that ever runs as root: makes one of four changes to the system, and says how to undo it.

    set-governor GOVERNOR[@CPUS] ...       cpufreq governors, of all CPUs or of a list such as 0-3,8
    set-nr-hugepages N                     the number of reserved pages of 2 MiB
    set-thp always|madvise|never           the mode of transparent huge pages
    set-memlock unlimited|KILOBYTES|remove a drop-in for pam_limits, for the user who asked

Started by pkexec, which asks the user first. Standard library alone, no options, no environment but pkexec's own.
Prints {"verb": ..., "before": [...], "after": [...]}; the verb with `before` undoes the change.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import sys
from collections.abc import Sequence
from pathlib import Path

GOVERNORS = ("performance", "powersave", "ondemand", "conservative", "schedutil")
MODES = ("always", "madvise", "never")
MOST_SHARE = 0.9  # of all memory that may be reserved
PAGE_KB = 2048
LIMITS_FILE = "etc/security/limits.d/90-colibri-memlock.conf"
_CPUS = "sys/devices/system/cpu"
_POOL = "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
_MODE = "sys/kernel/mm/transparent_hugepage/enabled"
_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}")


class RefusedError(Exception):
    """A request that is none of the four, or that this system cannot carry out; nothing was changed."""


def apply(verb: str, values: Sequence[str], root: Path = Path("/"), user: str = "") -> dict[str, object]:
    """Make the change below `root`; `user` is whose limit set-memlock changes. Raises RefusedError, OSError."""
    if verb == "set-governor":
        before, after = _set_governors(values, root)
    elif verb == "set-nr-hugepages":
        before, after = _set_pool(_only(values), root)
    elif verb == "set-thp":
        before, after = _set_mode(_only(values), root)
    elif verb == "set-memlock":
        before, after = _set_memlock(_only(values), root, user)
    else:
        raise RefusedError(f"expected set-governor, set-nr-hugepages, set-thp or set-memlock, found {verb[:40]!r}")
    return {"verb": verb, "before": before, "after": after}


def _only(values: Sequence[str]) -> str:
    if len(values) != 1:
        raise RefusedError(f"expected one value, found {len(values)}")
    return values[0]


def _set_governors(values: Sequence[str], root: Path) -> tuple[list[str], list[str]]:
    files = {}
    for path in (root / _CPUS).glob("cpu[0-9]*/cpufreq/scaling_governor"):
        number = path.parent.parent.name[3:]
        if number.isdigit():
            files[int(number)] = path
    if not files:
        raise RefusedError(f"expected {_CPUS}/cpu*/cpufreq/scaling_governor, found none: the kernel has no governors")
    wanted: dict[int, str] = {}
    for value in values:
        governor, has_list, listed = value.partition("@")
        if governor not in GOVERNORS:
            raise RefusedError(f"expected a governor of {', '.join(GOVERNORS)}, found {governor[:40]!r}")
        for cpu in _cpus(listed) if has_list else sorted(files):
            if cpu not in files:
                raise RefusedError(f"CPU {cpu} has no governor")
            available = (files[cpu].parent / "scaling_available_governors").read_text().split()
            if governor not in available:
                raise RefusedError(f"CPU {cpu} knows the governors {', '.join(available)}, not {governor}")
            wanted[cpu] = governor
    if not wanted:
        raise RefusedError("expected at least one governor")
    before = {cpu: files[cpu].read_text().strip() for cpu in wanted}
    for cpu, governor in wanted.items():
        files[cpu].write_text(governor)
    return _grouped(before), _grouped({cpu: files[cpu].read_text().strip() for cpu in wanted})


def _cpus(text: str) -> list[int]:
    cpus: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", part)
        if not found:
            raise RefusedError(f"expected CPUs such as 0-3,8, found {text[:40]!r}")
        cpus += range(int(found.group(1)), int(found.group(2) or found.group(1)) + 1)
    return cpus


def _grouped(governors: dict[int, str]) -> list[str]:
    """One value for each governor, as set-governor takes them."""
    return [
        f"{governor}@{','.join(str(cpu) for cpu in sorted(governors) if governors[cpu] == governor)}"
        for governor in sorted(set(governors.values()))
    ]


def _set_pool(value: str, root: Path) -> tuple[list[str], list[str]]:
    if not re.fullmatch(r"\d{1,9}", value):
        raise RefusedError(f"expected a number of pages, found {value[:40]!r}")
    found = re.search(r"^MemTotal:\s+(\d+) kB", (root / "proc/meminfo").read_text(), re.MULTILINE)
    most = int(int(found.group(1)) * MOST_SHARE) // PAGE_KB if found else 0
    if int(value) > most:
        raise RefusedError(f"expected at most {most} pages, nine tenths of the memory, found {value}")
    return _replace(root / _POOL, value)


def _set_mode(value: str, root: Path) -> tuple[list[str], list[str]]:
    if value not in MODES:
        raise RefusedError(f"expected {', '.join(MODES)}, found {value[:40]!r}")
    path = root / _MODE
    before = _chosen(path.read_text())
    path.write_text(value)
    return [before], [_chosen(path.read_text())]


def _chosen(text: str) -> str:
    found = re.search(r"\[(\w+)\]", text)
    return found.group(1) if found else text.strip()


def _replace(path: Path, value: str) -> tuple[list[str], list[str]]:
    before = path.read_text().strip()
    path.write_text(value)
    return [before], [path.read_text().strip()]


def _set_memlock(value: str, root: Path, user: str) -> tuple[list[str], list[str]]:
    if not re.fullmatch(r"unlimited|remove|\d{1,12}", value):
        raise RefusedError(f"expected unlimited, a number of kilobytes or remove, found {value[:40]!r}")
    if not _USER.fullmatch(user) or user == "root":
        raise RefusedError(f"expected a user's name, found {user[:40]!r}")
    path = root / LIMITS_FILE
    if not path.parent.is_dir():
        raise RefusedError(f"expected the folder {path.parent}, which pam_limits reads, found none")
    others, before = [], "remove"
    for line in path.read_text().splitlines() if path.is_file() else []:
        words = line.split()
        if len(words) == 4 and words[0] == user and words[2] == "memlock":
            before = words[3]
        elif words and not line.startswith("#"):
            others.append(line)
    lines = others if value == "remove" else [*others, f"{user} - memlock {value}"]
    if lines:
        _write_new(path, "# Written by Colibri's system check; may be deleted.\n" + "\n".join(lines) + "\n")
    else:
        path.unlink(missing_ok=True)
    return [before], [value]


def _write_new(path: Path, text: str) -> None:
    """Put a whole file in the place of the old one; a link there is replaced, never followed."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    temporary.replace(path)


def main(arguments: Sequence[str]) -> int:
    """Run one request on the real system: 0 done, 1 refused or failed, 2 called wrongly or not as root."""
    if not arguments:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    if os.geteuid() != 0:
        sys.stderr.write("expected to be root: start it with pkexec\n")
        return 2
    uid = os.environ.get("PKEXEC_UID", "")
    try:
        user = pwd.getpwuid(int(uid)).pw_name if uid.isdigit() else ""
        result = apply(arguments[0], arguments[1:], user=user)
    except (RefusedError, OSError, KeyError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(json.dumps(result) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
