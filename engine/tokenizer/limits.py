"""Guards against values that would take huge memory or time; each raises LimitError before the value is made."""

from __future__ import annotations

import mmap
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from jinja2.exceptions import SecurityError
from jinja2.utils import Namespace

MAX_CHARACTERS = 10_000_000
MAX_ITEMS = 200_000
MAX_NUMBER = 10_000  # of a width, a count, an indentation
MAX_BITS = 4096
MAX_SECONDS = 2.0  # of processor time
MAX_GROWTH_BYTES = 1 << 30  # of the process, while a template runs
LOOK_EVERY_SECONDS = 0.02  # of the clock on the wall

_HUGE_WIDTH = re.compile(r"\d{5,}|\*|\{[^{}]*\{")

_STATM = Path("/proc/self/statm")
_PAGE_BYTES = mmap.PAGESIZE

T = TypeVar("T")


class LimitError(SecurityError):
    """A template wanted more time or memory than any conversation needs."""


def run_bounded(function: Callable[[], T], *, filename: str) -> T:
    """Call `function`; its code in `filename` is stopped with LimitError after MAX_SECONDS.

    The interpreter's trace hook looks at the clock at each line there and at each call, and every 20 ms at the
    processor time and the memory of the process: in a usual template, which takes a few milliseconds, not once.
    Single operations written in C are not interrupted: the other guards keep them short.
    """
    started = time.thread_time()
    next_look = time.monotonic() + LOOK_EVERY_SECONDS
    resident_bytes = _resident_bytes()

    def watch(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal next_look
        del event, argument
        if time.monotonic() > next_look:
            next_look = time.monotonic() + LOOK_EVERY_SECONDS
            if time.thread_time() > started + MAX_SECONDS:
                raise LimitError(f"it ran for more than {MAX_SECONDS:g} s")
            if _resident_bytes() > resident_bytes + MAX_GROWTH_BYTES:
                raise LimitError(f"it took more than {MAX_GROWTH_BYTES >> 20:,} MiB of memory")
        return watch if frame.f_code.co_filename == filename else None

    outer = sys.gettrace()
    sys.settrace(watch)
    try:
        return function()
    finally:
        sys.settrace(outer)


def _resident_bytes() -> int:
    """The memory that the process holds; 0 where the system does not say."""
    try:
        return int(_STATM.read_text().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError, ValueError):
        return 0


def check_characters(n_characters: int) -> None:
    """Refuse a text of that length."""
    if n_characters > MAX_CHARACTERS:
        raise LimitError(f"it makes a text of {n_characters:,} characters; the limit is {MAX_CHARACTERS:,}")


def joined(parts: Iterable[Any], separator: str = "") -> str:
    """The parts as one text, if that is not too long."""
    texts = []
    n_characters = 0
    for part in parts:
        texts.append(text_of(part))
        n_characters += len(texts[-1]) + len(separator)
        check_characters(n_characters)
    return separator.join(texts)


def text_of(value: Any) -> str:
    """`str(value)`, if that is not too long."""
    return value if isinstance(value, str) else str(checked(value))


def checked(value: Any) -> Any:
    """The value itself, if its nested lists and mappings hold a sane number of items and characters."""
    if isinstance(value, (list, tuple, dict, set, Namespace)):
        n_items = n_characters = 0
        pending = [value]
        while pending:
            item = pending.pop()
            n_items += 1
            if isinstance(item, str):
                n_characters += len(item)
            elif isinstance(item, Mapping):
                pending.extend(item)
                pending.extend(item.values())
            elif isinstance(item, (list, tuple, set)):
                pending.extend(item)
            elif isinstance(item, Namespace):
                raise LimitError("it uses a namespace as a value, which has no text")
            if n_items + len(pending) > MAX_ITEMS:
                raise LimitError(f"it makes nested lists of more than {MAX_ITEMS:,} items")
            check_characters(n_characters)
    return value


def check_binary(operator: str, left: Any, right: Any) -> None:
    """Refuse `left operator right` if the result would be huge."""
    if operator == "%":
        if isinstance(left, str):
            check_format(left, right if isinstance(right, tuple) else (right,))
    elif _is_number(left) and _is_number(right):
        if operator == "*" and _bits(left) + _bits(right) > MAX_BITS:
            raise LimitError("it multiplies huge numbers")
        if operator == "**" and _bits(left) * abs(right) > MAX_BITS:
            raise LimitError("it raises a number to a huge power")
    elif operator in ("*", "+"):
        sizes = [value if isinstance(value, int) else _length(value) for value in (left, right)]
        result = sizes[0] * sizes[1] if operator == "*" else sum(sizes)
        if result > (MAX_CHARACTERS if isinstance(left, str) or isinstance(right, str) else MAX_ITEMS):
            raise LimitError(f"it makes a text or list of {result:,} elements")


def check_format(form: str, values: Iterable[Any]) -> None:
    """Refuse formatting (either kind) with widths of five digits or widths that are values, or huge results."""
    if _HUGE_WIDTH.search(form):
        raise LimitError(f"it formats with a width of five digits or more, or one that is not written out: {form!r}")
    longest = max((len(text_of(value)) for value in values), default=0)
    check_characters(len(form) + (form.count("%") + form.count("{")) * (longest + MAX_NUMBER))


def check_replace(text: str, old: str, new: str) -> None:
    """Refuse a replacement whose result would be huge."""
    times = text.count(old) if old else len(text) + 1
    check_characters(len(text) + times * len(new))


def check_method(owner: object, name: str, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> None:
    """Refuse a call of a text's or number's method whose result would be huge."""
    values = (*arguments, *keywords.values())
    if name in ("format", "format_map") and isinstance(owner, str):
        check_format(owner, values)
        return
    if any(isinstance(value, int) and value > MAX_NUMBER for value in values):
        raise LimitError(f"it calls {name} with a number beyond {MAX_NUMBER:,}")
    if name == "expandtabs" and isinstance(owner, str):
        check_characters(len(owner) + owner.count("\t") * MAX_NUMBER)
    if name == "translate":
        raise LimitError("it calls translate")
    if name == "replace" and isinstance(owner, str) and len(values) >= 2:
        check_replace(owner, *(text_of(value) for value in values[:2]))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def _bits(value: int | float) -> int:
    return value.bit_length() if isinstance(value, int) else 64


def _length(value: Any) -> int:
    return len(value) if hasattr(value, "__len__") else 0
