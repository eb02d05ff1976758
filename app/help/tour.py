"""A tour of the window: a few steps, each shown on a card beside the widget that it explains.

The tour blocks nothing: the user may work on meanwhile, and leave it with Esc or a button at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QFrame, QPushButton, QWidget

from app.theme.style import style
from app.theme.tokens import UNIT
from app.theme.widgets import STRETCH, PlainLabel, hbox, push_button, vbox

CARD_WIDTH: Final = 320
"""Width of the card in pixels at a text size of 100 %."""
GAP: Final = 3 * UNIT
RING: Final = UNIT
"""Distance of the ring from the widget that it marks, in pixels."""


@dataclass(frozen=True, slots=True)
class TourStep:
    """One step.

    Attributes:
        title: What is explained.
        text: The explanation, two or three sentences.
        prepare: Makes the widget visible, and returns it; None if it cannot be shown.
    """

    title: str
    text: str
    prepare: Callable[[], QWidget | None]


class TourCard(QFrame):
    """The card with the text of a step.

    Signals:
        stepped: The user wants to go on (1) or back (-1).
        left: The user wants to leave the tour.
    """

    stepped = Signal(int)
    left = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("tour")
        self.title = PlainLabel("", look="title", wrap=True)
        self.text = PlainLabel("", wrap=True)
        self.number = PlainLabel("", look="dim small")
        self.leave = push_button("Leave tour", self.left.emit, self, look="quiet")
        self.back = push_button("Back", lambda: self.stepped.emit(-1), self)
        self.next = push_button("Next", lambda: self.stepped.emit(1), self, look="primary")
        buttons = hbox(self.number, STRETCH, self.leave, self.back, self.next, spacing=2)
        vbox(self.title, self.text, 2, buttons, spacing=2, margins=4, parent=self)

    def show_step(self, step: TourStep, number: int, total: int) -> None:
        """Show the text of a step."""
        self.title.setText(step.title)
        self.text.setText(step.text)
        self.number.setText(f"{number} of {total}")
        self.back.setEnabled(number > 1)
        self.next.setText("Next" if number < total else "Done")
        self.leave.setVisible(number < total)
        self.setAccessibleName(f"Tour, step {number} of {total}: {step.title}. {step.text}")
        width = round(CARD_WIDTH * style().scale)
        self.resize(width, max(self.heightForWidth(width), self.sizeHint().height()))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Leave with Esc, and press the focused button with Enter."""
        if event.key() == Qt.Key.Key_Escape:
            self.left.emit()
        elif event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and (focused := self._focused()) is not None:
            focused.click()
        else:
            super().keyPressEvent(event)

    def focusNextPrevChild(self, next: bool) -> bool:  # noqa: A002 - Qt's own
        """Move the focus between the buttons of the card."""
        buttons = [button for button in (self.leave, self.back, self.next) if button.isVisible() and button.isEnabled()]
        focused = self._focused()
        at = buttons.index(focused) if focused is not None else 0
        buttons[(at + (1 if next else -1)) % len(buttons)].setFocus(Qt.FocusReason.TabFocusReason)
        return True

    def _focused(self) -> QPushButton | None:
        return next((button for button in (self.leave, self.back, self.next) if button.hasFocus()), None)


class TargetRing(QWidget):
    """Ring around the widget that a step explains."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the ring."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(style().theme.accent), 2))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 8, 8)
        painter.end()


class Tour(QObject):
    """Shows the steps.

    Args:
        window: The window; the parent of card and ring.
        steps: The steps.

    Signals:
        ended: The tour has ended, or was left.
    """

    ended = Signal()

    def __init__(self, window: QWidget, steps: Sequence[TourStep]) -> None:
        super().__init__(window)
        self._window = window
        self._steps = steps
        self._at = 0
        self.target: QWidget | None = None
        self.ring = TargetRing(window)
        self.card = TourCard(window)
        self.card.stepped.connect(lambda distance: self.show_step(self._at + distance))
        self.card.left.connect(self.end)
        window.installEventFilter(self)
        style().changed.connect(self._place)

    @property
    def number(self) -> int:
        """The number of the step that is shown, from 1."""
        return self._at + 1

    def show_step(self, at: int) -> None:
        """Show a step; past the last one, or if its widget cannot be shown, end the tour."""
        self._release()
        if at >= len(self._steps):
            self.end()
            return
        self._at = at
        self.target = self._steps[at].prepare()
        if self.target is None:
            self.end()
            return
        for widget in self._followed():
            widget.installEventFilter(self)
        for widget in (self.ring, self.card):
            widget.show()
            widget.raise_()
        self._place()
        self.card.next.setFocus()

    def end(self) -> None:
        """End the tour."""
        self._release()
        self._window.removeEventFilter(self)
        self._window.setFocus()  # before the card goes, or Qt would look for another widget in it
        for widget in (self.ring, self.card):
            widget.hide()
            widget.deleteLater()
        self.ended.emit()
        self.deleteLater()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the widget; if the user hides it, such as by opening a template, go on."""
        if event.type() in {QEvent.Type.Resize, QEvent.Type.Move}:
            self._place()
        elif event.type() == QEvent.Type.Hide and watched is self.target and self._window.isVisible():
            self.show_step(self._at + 1)
        return super().eventFilter(watched, event)

    def _followed(self) -> Iterator[QWidget]:
        """Yield the target and what it lies in: scrolling and layouts move those."""
        widget = self.target
        while widget is not None and widget is not self._window:
            yield widget
            widget = widget.parentWidget()

    def _release(self) -> None:
        if self.target is not None:
            for widget in self._followed():
                widget.removeEventFilter(self)
            self.target = None

    def _place(self) -> None:
        if self.target is None:
            return
        self.card.show_step(self._steps[self._at], self.number, len(self._steps))
        target = visible_rect(self.target, self._window)
        self.ring.setGeometry(target.adjusted(-RING, -RING, RING, RING).intersected(self._window.rect()))
        self.card.move(card_position(target, self.card.size(), self._window.size()))


def visible_rect(widget: QWidget, window: QWidget) -> QRect:
    """Return the part of a widget, in coordinates of its window, that no scroll area hides."""
    rect, ancestor = window.rect(), widget
    while ancestor is not None and ancestor is not window:
        rect &= QRect(ancestor.mapTo(window, QPoint(0, 0)), ancestor.size())
        ancestor = ancestor.parentWidget()
    return rect


def card_position(target: QRect, card: QSize, window: QSize) -> QPoint:
    """Return where a card fits beside a target in a window: right, left, below, above, or else inside at the bottom."""
    room = QRect(QPoint(0, 0), window).adjusted(GAP, GAP, -GAP, -GAP)
    across = min(max(target.center().x() - card.width() // 2, room.left()), room.right() - card.width())
    down = min(max(target.top(), room.top()), room.bottom() - card.height())
    candidates = (
        QPoint(target.right() + GAP, down),
        QPoint(target.left() - GAP - card.width(), down),
        QPoint(across, target.bottom() + GAP),
        QPoint(across, target.top() - GAP - card.height()),
    )
    inside = QPoint(across, min(target.bottom(), room.bottom()) - GAP - card.height())
    return next((corner for corner in candidates if room.contains(QRect(corner, card))), inside)
