"""One finding: a line with its status and value, which opens to the reason, the advice, the command and the fix."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QFont, QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLineEdit, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.diagnostics import Finding, Status
from ui.diagnostics.wording import ICONS, status_word, translated
from ui.theme import current_theme, themed_pixmap
from ui.widgets.elided_label import ElidedLabel
from ui.widgets.icon_button import IconButton

_TITLE_WIDTH = 210
_INDENT = 44


class FindingLine(QPushButton):
    """The line that is always there; a press opens and closes what is below it."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("kind", "finding")
        self.setCheckable(True)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)  # the value gives way
        self.icon_label, self.title, self.chevron = QLabel(self), QLabel(self), QLabel(self)
        self.value = ElidedLabel(self)
        self.value.setProperty("tone", "muted")
        layout = QHBoxLayout(self)
        layout.setContentsMargins(14, 9, 14, 9)
        layout.setSpacing(12)
        layout.addWidget(self.icon_label)
        layout.addWidget(self.title)
        layout.addWidget(self.value, 1)
        layout.addWidget(self.chevron)
        for label in (self.icon_label, self.title, self.value, self.chevron):
            label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)

    def sizeHint(self) -> QSize:
        layout = self.layout()
        return layout.sizeHint() if layout is not None else super().sizeHint()

    def minimumSizeHint(self) -> QSize:
        return QSize(current_theme().px(_TITLE_WIDTH + 120), self.sizeHint().height())


class FindingBody(QWidget):
    """What an open row shows below its line."""

    copied = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.value, self.why, self.advice = QLabel(self), QLabel(self), QLabel(self)
        self.why.setProperty("tone", "muted")
        self.command = QLineEdit(self)
        self.command.setReadOnly(True)
        self.command.setProperty("kind", "command")
        self.command.setAccessibleName(self.tr("Command"))
        self.copy = IconButton("copy", self.tr("Copy the command"), self)
        self.copy.clicked.connect(self._on_copy)
        self.fix = QPushButton(self.tr("Fix…"), self)
        self.fix.setProperty("kind", "primary")
        self.undo = QPushButton(self.tr("Undo the change…"), self)
        commands, buttons = QHBoxLayout(), QHBoxLayout()
        commands.setSpacing(6)
        commands.addWidget(self.command, 1)
        commands.addWidget(self.copy)
        buttons.setSpacing(8)
        buttons.addWidget(self.fix)
        buttons.addWidget(self.undo)
        buttons.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(_INDENT, 0, 16, 14)
        column.setSpacing(8)
        for label in (self.value, self.why, self.advice):
            label.setWordWrap(True)
            policy = QSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
            policy.setHeightForWidth(True)  # it is as high as its lines
            label.setSizePolicy(policy)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            column.addWidget(label)
        column.addLayout(commands)
        column.addLayout(buttons)
        self._restyle()
        current_theme().changed.connect(self._restyle)

    def show_finding(self, finding: Finding, *, can_fix: bool, can_undo: bool) -> None:
        """Show one finding's texts, and the buttons for what can be done about it."""
        title = translated(finding.title)
        self.value.setText(translated(finding.value))
        self.why.setText(translated(finding.why))
        self.advice.setText("" if finding.advice is None else translated(finding.advice))
        self.advice.setVisible(finding.advice is not None)
        self.command.setText(finding.command or "")
        self.command.setCursorPosition(0)
        self.command.setVisible(bool(finding.command))
        self.copy.setVisible(bool(finding.command))
        self.fix.setVisible(can_fix and finding.fix is not None)
        self.fix.setAccessibleName(self.tr("Fix: {title}").format(title=title))
        self.undo.setVisible(can_undo)
        self.undo.setAccessibleName(self.tr("Undo: {title}").format(title=title))

    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(self.command.text())
        self.copied.emit()

    def _restyle(self) -> None:
        self.command.setFont(current_theme().code_font(12))


class FindingRow(QFrame):
    """Shows one finding; emits ``fix_requested`` and ``undo_requested``, and changes nothing itself."""

    fix_requested = Signal(object)  # a Finding
    undo_requested = Signal(object)
    copied = Signal()

    def __init__(self, finding: Finding, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("FindingRow")
        self.finding = finding
        self.line = FindingLine(self)
        self.line.toggled.connect(self._on_toggled)
        self.body: FindingBody | None = None  # made when the row is first opened
        self._can_fix = self._can_undo = False
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.line)
        self.set_finding(finding, can_fix=False, can_undo=False)
        current_theme().changed.connect(self._restyle)

    @property
    def is_open(self) -> bool:
        return self.line.isChecked()

    def open(self, is_open: bool = True) -> None:
        self.line.setChecked(is_open)

    def set_finding(self, finding: Finding, *, can_fix: bool, can_undo: bool) -> None:
        """Show what was found now; the row stays open or closed as it was."""
        self.finding, self._can_fix, self._can_undo = finding, can_fix, can_undo
        title, value = translated(finding.title), translated(finding.value)
        self.line.title.setText(title)
        self.line.value.setText("" if self.is_open else value)  # the whole of it stands below then
        self.line.setAccessibleName(f"{title}: {status_word(finding.status)}, {value}")
        if self.body is not None:
            self.body.show_finding(finding, can_fix=can_fix, can_undo=can_undo)
        self._restyle()

    def _on_toggled(self, is_open: bool) -> None:
        if is_open and self.body is None:
            self.body = FindingBody(self)
            self.body.show_finding(self.finding, can_fix=self._can_fix, can_undo=self._can_undo)
            self.body.fix.clicked.connect(lambda: self.fix_requested.emit(self.finding))
            self.body.undo.clicked.connect(lambda: self.undo_requested.emit(self.finding))
            self.body.copied.connect(self.copied)
            layout = self.layout()
            assert layout is not None
            layout.addWidget(self.body)
        if self.body is not None:
            self.body.setVisible(is_open)
        self.line.value.setText("" if is_open else translated(self.finding.value))
        self._restyle()

    def _restyle(self) -> None:
        theme, scale = current_theme(), self.devicePixelRatioF()
        icon, token = ICONS[self.finding.status]
        self.line.icon_label.setPixmap(themed_pixmap(icon, token, theme.px(17), scale))
        self.line.icon_label.setFixedWidth(theme.px(18))
        chevron = "chevron-down" if self.is_open else "chevron-right"
        self.line.chevron.setPixmap(themed_pixmap(chevron, "text_faint", theme.px(14), scale))
        self.line.chevron.setFixedWidth(theme.px(16))
        self.line.title.setMinimumWidth(theme.px(_TITLE_WIDTH))
        self.line.title.setFont(theme.font(weight=QFont.Weight.DemiBold if self.is_open else QFont.Weight.Normal))
        tone = "faint" if self.finding.status is Status.UNAVAILABLE else "muted"
        if self.line.value.property("tone") != tone:
            self.line.value.setProperty("tone", tone)
            self.line.value.style().unpolish(self.line.value)
            self.line.value.style().polish(self.line.value)
