"""Small widgets that all parts of the window use. They know the theme and nothing of workflows.

All texts are plain: what a model or a document says is never read as markup.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Final

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.theme.icons import ThemedIcon
from app.theme.style import mark
from app.theme.switch import Switch
from app.theme.tokens import UNIT

__all__ = ["Badge", "ElidedLabel", "Fold", "HintBar", "PlainLabel", "Switch", "inset_number", "plain_tool_tip"]

HINT_ICONS: Final = {
    "info": ("mdi6.information-outline", "accent"),
    "warning": ("mdi6.alert-outline", "warning"),
    "bad": ("mdi6.alert-circle-outline", "bad"),
}


LONGEST_TIP: Final = 2_000
"""The most characters of a tool tip: nobody reads more in passing, and Qt takes seconds for a hundred thousand."""

LONGEST_LINE: Final = 2_000
"""The most characters of a label's line that are measured; no screen has room for them."""


def inset_number(box: QAbstractSpinBox) -> None:
    """Give the number in a spin box its distance from the edge: style sheets do not reach it."""
    box.lineEdit().setTextMargins(2 * UNIT - 2, 0, 0, 0)


def plain_tool_tip(text: str) -> str:
    """A text as a tool tip that shows it as it stands, whatever is in it; of a long one, the beginning."""
    text = text if len(text) <= LONGEST_TIP else f"{text[:LONGEST_TIP].rstrip()}…"
    return f'<p style="white-space: pre-wrap">{escape(text)}</p>' if text else ""


class PlainLabel(QLabel):
    """A label that shows its text as it stands."""

    def __init__(
        self,
        text: str = "",
        parent: QWidget | None = None,
        *,
        look: str = "",
        wrap: bool = False,
        selectable: bool = False,
    ) -> None:
        """Make the label.

        Args:
            text: What it says.
            parent: Its parent.
            look: Properties of the style sheet, such as `dim small`.
            wrap: Whether long texts take several lines.
            selectable: Whether the text can be marked and copied, by mouse and keyboard.
        """
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setText(text)
        self.setWordWrap(wrap)
        for name in look.split():
            self.setProperty(name, True)
        if selectable:
            self.setTextInteractionFlags(
                Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
            )


class ElidedLabel(PlainLabel):
    """A label of one line that ends in `…` where there is no room; all of the text is in its tool tip then."""

    def __init__(self, text: str = "", parent: QWidget | None = None, *, look: str = "") -> None:
        self._full = ""
        super().__init__("", parent, look=look)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.set_full_text(text)

    @property
    def full_text(self) -> str:
        """The text without a cut."""
        return self._full

    def set_full_text(self, text: str) -> None:
        """Say something else."""
        self._full = text
        self.setAccessibleName(text)
        self._cut()

    def minimumSizeHint(self) -> QSize:
        """As narrow as three letters and the dots."""
        return QSize(self.fontMetrics().horizontalAdvance("abc…"), super().minimumSizeHint().height())

    def sizeHint(self) -> QSize:
        """Wide enough for all of the text."""
        return QSize(
            self.fontMetrics().horizontalAdvance(self._full[:LONGEST_LINE]) + UNIT, super().sizeHint().height()
        )

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Cut anew."""
        super().resizeEvent(event)
        self._cut()

    def changeEvent(self, event: QEvent) -> None:
        """Cut anew when letters become larger."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._cut()

    def _cut(self) -> None:
        line = self._full[:LONGEST_LINE].replace("\n", " ")
        width = max(self.contentsRect().width(), 0)
        shown = self.fontMetrics().elidedText(line, Qt.TextElideMode.ElideRight, width)
        if shown != self.text():
            self.setText(shown)
        self.setToolTip(plain_tool_tip(self._full) if shown != self._full else "")


class Badge(PlainLabel):
    """A few words in a pill: a state, a count. The words tell it, the colour only helps."""

    def __init__(self, text: str = "", kind: str = "plain", parent: QWidget | None = None) -> None:
        """Make the badge; kinds are `plain`, `accent`, `good`, `warning` and `bad`."""
        super().__init__(text, parent)
        self.setProperty("badge", kind)
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Maximum)

    def show_state(self, text: str, kind: str) -> None:
        """Say something else, in another colour."""
        self.setText(text)
        mark(self, badge=kind)


class Fold(QWidget):
    """A section with a title that opens and closes, by mouse and by keyboard.

    Signals:
        toggled: It was opened or closed.
    """

    toggled = Signal(bool)

    def __init__(self, title: str, body: QWidget, parent: QWidget | None = None, *, is_open: bool = False) -> None:
        super().__init__(parent)
        self.body = body
        self.button = QToolButton()
        self.button.setText(title)
        self.button.setAccessibleName(title)
        self.button.setCheckable(True)
        self.button.setChecked(is_open)
        self.button.setAutoRaise(True)
        self.button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.button.setProperty("fold", True)
        self._icon = ThemedIcon(self.button, "mdi6.chevron-right", "dim")
        self.button.toggled.connect(self._show)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2 * UNIT)
        layout.addWidget(self.button, 0, Qt.AlignmentFlag.AlignLeft)
        layout.addWidget(body)
        self._arrange(is_open)

    @property
    def is_open(self) -> bool:
        """Whether its body is shown."""
        return self.button.isChecked()

    def set_open(self, is_open: bool) -> None:
        """Open or close it."""
        self.button.setChecked(is_open)

    def _show(self, is_open: bool) -> None:
        self._arrange(is_open)
        self.toggled.emit(is_open)

    def _arrange(self, is_open: bool) -> None:
        self.body.setVisible(is_open)
        self._icon.show("mdi6.chevron-down" if is_open else "mdi6.chevron-right")
        self.button.setAccessibleDescription("Open" if is_open else "Closed")


class HintBar(QFrame):
    """A message over a page, with buttons for what can be done about it.

    Signals:
        closed: A person put it away.
    """

    closed = Signal()

    def __init__(self, text: str = "", kind: str = "info", parent: QWidget | None = None) -> None:
        """Make the bar; kinds are `info`, `warning` and `bad`."""
        super().__init__(parent)
        self._label = PlainLabel(text, wrap=True)
        self._sign = QToolButton()
        self._sign.setEnabled(True)
        self._sign.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._sign.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._icon = ThemedIcon(self._sign, *HINT_ICONS[kind])
        self._buttons = QHBoxLayout()
        self._buttons.setSpacing(2 * UNIT)
        close = QToolButton()
        close.setAccessibleName("Close this message")
        close.setToolTip("Close")
        ThemedIcon(close, "mdi6.close")
        close.clicked.connect(self._close)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(2 * UNIT, UNIT, 2 * UNIT, UNIT)
        layout.setSpacing(2 * UNIT)
        layout.addWidget(self._sign)
        layout.addWidget(self._label, 1)
        layout.addLayout(self._buttons)
        layout.addWidget(close)
        self.say(text, kind)

    @property
    def text(self) -> str:
        """What it says."""
        return self._label.text()

    def say(self, text: str, kind: str = "info") -> None:
        """Say something else."""
        self._label.setText(text)
        self.setAccessibleName(text)
        self._sign.setAccessibleName({"info": "Note", "warning": "Warning", "bad": "Error"}[kind])
        self._icon.show(*HINT_ICONS[kind])
        mark(self, hint=kind)

    def add_button(self, text: str, pressed: Callable[[], object], *, primary: bool = False) -> QPushButton:
        """Add a button for something that can be done."""
        button = QPushButton(text)
        if primary:
            button.setProperty("primary", True)
        button.clicked.connect(lambda _checked=False: pressed())
        self._buttons.addWidget(button)
        return button

    def _close(self) -> None:
        self.hide()
        self.closed.emit()
