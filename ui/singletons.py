"""Keeps None, True and False alive under a PySide6 that was built for newer Pythons.

Since Python 3.12 these objects are immortal, and code built for it returns them without counting a reference.
The wheels of PySide6 6.12 do so although they install on Python 3.11, where each call that returns None takes one
reference away: after a few thousand the interpreter aborts ("deallocating None"; 6.11.3 is free of this). Nobody
may free these objects anyway, so holding very many references of our own changes nothing else.
"""

from __future__ import annotations

import ctypes
import sys

_REFERENCES = 1 << 60


def hold_singletons() -> bool:
    """Make the singletons immortal where Python does not do so itself; returns whether it was needed."""
    if sys.version_info >= (3, 12) or sys.implementation.name != "cpython":
        return False
    for singleton in (None, True, False, NotImplemented):
        count = ctypes.c_ssize_t.from_address(id(singleton))
        if count.value < _REFERENCES:
            count.value += _REFERENCES
    return True
