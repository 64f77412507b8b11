from __future__ import annotations

import sys

import pytest
from PySide6.QtWidgets import QWidget

import ui


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python itself keeps None alive")
def test_calls_that_return_none_cannot_use_none_up(qapp: object) -> None:
    assert ui.hold_singletons()
    widget = QWidget()
    for _ in range(20_000):
        widget.setToolTip("x")
    assert sys.getrefcount(None) > 1 << 59
