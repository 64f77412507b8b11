"""Numbers as people read them: grouped digits, sizes, seconds."""

from __future__ import annotations

import math

from PySide6.QtCore import QCoreApplication, QLocale


def count(number: int) -> str:
    """1024 -> "1,024", grouped as the language does."""
    return QLocale().toString(number)


def size(n_bytes: int) -> str:
    """98362432 -> "98 MB"; decimal units, as file managers show them."""
    value = float(n_bytes)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 1000 or unit == "TB":
            digits = 1 if value < 10 and unit in {"GB", "TB"} else 0
            return f"{QLocale().toString(value, 'f', digits)} {unit}"
        value /= 1000
    return ""


def rate(tokens_per_second: float) -> str:
    """38.24 -> "38.2 tok/s"."""
    digits = 1 if tokens_per_second < 100 else 0
    return QCoreApplication.translate("Format", "{rate} tok/s").format(
        rate=QLocale().toString(tokens_per_second, "f", digits)
    )


def rough_rate(tokens_per_second: float) -> str:
    """A forecast: "240 tok/s", "3.1 tok/s"."""
    digits = 1 if tokens_per_second < 10 else 0
    return QCoreApplication.translate("Format", "{rate} tok/s").format(
        rate=QLocale().toString(tokens_per_second, "f", digits)
    )


def duration(ms: float) -> str:
    """A short time: "84 ms" or "1.2 s"."""
    if ms < 1000:
        return QCoreApplication.translate("Format", "{ms} ms").format(ms=QLocale().toString(round(ms)))
    return QCoreApplication.translate("Format", "{s} s").format(s=QLocale().toString(ms / 1000, "f", 1))


def rough_duration(ms: float) -> str:
    """A time that was long enough to be noticed, in whole units: "8 s" or "2 min 5 s"."""
    minutes, seconds = divmod(round(ms / 1000), 60)
    if minutes:
        return QCoreApplication.translate("Format", "{m} min {s} s").format(m=minutes, s=seconds)
    return QCoreApplication.translate("Format", "{s} s").format(s=seconds)


def brief(text: str, n_characters: int = 320, n_lines: int = 4) -> str:
    """The beginning of a long text, with an ellipsis where something is left out."""
    lines = text.strip().split("\n")
    start = "\n".join(lines[:n_lines])
    if len(start) > n_characters:
        start = start[:n_characters].rsplit(" ", 1)[0]
    return start if len(start) == len(text.strip()) else start.rstrip() + " …"


def time_left(seconds: float) -> str:
    """A rough remaining time: "20 s left", "3 min left"."""
    if seconds < 90:
        return QCoreApplication.translate("Format", "{n} s left").format(n=max(1, round(seconds)))
    return QCoreApplication.translate("Format", "{n} min left").format(n=round(seconds / 60))


def decimal(number: float, digits: int = 1) -> str:
    """4.53 -> "4.5", with the language's decimal sign."""
    return QLocale().toString(number, "f", digits)


def plain(number: float) -> str:
    """0.2 -> "0.2", 20.0 -> "20": as short as it can be said."""
    return QLocale().toString(number, "g", 6)


def percent(share: float, digits: int = 1) -> str:
    """0.953 -> "95.3 %"."""
    return f"{QLocale().toString(100 * share, 'f', digits)} %"


def significant(number: float, digits: int = 2) -> str:
    """0.01234 -> "0.012"; small numbers keep their first digits, without an exponent where that is readable."""
    if number == 0:
        return "0"
    if number < 1e-5:
        return f"{number:.0e}"
    places = max(0, digits - 1 - math.floor(math.log10(number)))
    return QLocale().toString(number, "f", places)


def speed(bytes_per_second: float) -> str:
    """A rate of data: "320 MB/s"."""
    return QCoreApplication.translate("Format", "{size}/s").format(size=size(round(bytes_per_second)))
