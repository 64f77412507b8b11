"""What the tests of the pages that make models share: the page as it is opened, and the view that it shows."""

from __future__ import annotations

from typing import Any, TypeVar

from PySide6.QtWidgets import QWidget

from ui.wizard.wizard_page import WizardPage

Page = TypeVar("Page", bound=WizardPage)


def opened(page: Page, qtbot: Any) -> Page:
    """The page, shown as narrow as the window may be."""
    qtbot.addWidget(page)
    page.resize(700, 800)
    with qtbot.waitExposed(page):
        page.show()
    return page


def shown(page: WizardPage) -> QWidget:
    """The one view that is to be seen."""
    views = [view for view in page.views if view.isVisible()]
    assert len(views) == 1
    return views[0]
