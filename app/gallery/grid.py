"""Puts cards into as many columns as there is room for."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QWidget

from app.theme.style import style
from app.theme.tokens import UNIT

GAP = 4 * UNIT
CARD_WIDTH = 340
"""The narrowest that a card may be at the usual size of texts."""


class CardGrid(QWidget):
    """Widgets of equal width in rows; those of a row are equally high. Arrow keys go from one to the next.

    Signals:
        reached: An arrow key led to this card.
    """

    reached = Signal(QWidget)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._cards: list[QWidget] = []
        self.columns = 1

    @property
    def cards(self) -> tuple[QWidget, ...]:
        """The cards in order."""
        return tuple(self._cards)

    def add(self, card: QWidget) -> None:
        """Add a card at the end."""
        card.setParent(self)
        self._cards.append(card)
        self._arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Arrange the cards anew."""
        super().resizeEvent(event)
        self._arrange()

    def event(self, event: QEvent) -> bool:
        """Arrange the cards anew when what is in them changes its size."""
        if event.type() == QEvent.Type.LayoutRequest:
            self._arrange()
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Go to the neighbour in the arrow's direction."""
        steps = {
            Qt.Key.Key_Left: -1,
            Qt.Key.Key_Right: 1,
            Qt.Key.Key_Up: -self.columns,
            Qt.Key.Key_Down: self.columns,
        }
        step = steps.get(Qt.Key(event.key()))
        here = next((at for at, card in enumerate(self._cards) if card.isAncestorOf(self._focused())), None)
        if step is None or here is None or not 0 <= here + step < len(self._cards):
            super().keyPressEvent(event)
            return
        card = self._cards[here + step]
        card.setFocus(Qt.FocusReason.TabFocusReason)
        self.reached.emit(card)

    def _focused(self) -> QWidget:
        return self.focusWidget() or self

    def _arrange(self) -> None:
        least = round(CARD_WIDTH * style().scale)
        self.columns = max((self.width() + GAP) // (least + GAP), 1)
        width = (self.width() - (self.columns - 1) * GAP) // self.columns
        top = 0
        for start in range(0, len(self._cards), self.columns):
            row = self._cards[start : start + self.columns]
            height = max(max(card.heightForWidth(width), card.minimumSizeHint().height()) for card in row)
            for column, card in enumerate(row):
                card.setGeometry(column * (width + GAP), top, width, height)
            top += height + GAP
        self.setFixedHeight(max(top - GAP, 0))
