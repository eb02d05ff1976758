"""Numbers: typed freely, stepped with the arrow keys, the wheel or two buttons, empty where that means something."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any, Final

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QValidator
from PySide6.QtWidgets import QAbstractSpinBox, QHBoxLayout, QToolButton, QWidget

from app.inspector.editors.base import Editor, name_widget
from app.inspector.fields import Field, Kind
from app.inspector.target import Target
from app.theme.style import icon, style
from engine.values import to_text

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,18}")
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]{1,18}\.?[0-9]{0,18}|\.[0-9]{1,18})(?:[eE][+-]?[0-9]{1,3})?")


def read_number(text: str) -> int | float | str:
    """A typed number; a text that is none stays a text, for the document's check to name."""
    text = text.strip()
    if _WHOLE.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text.replace(",", ".")) and math.isfinite(number := float(text.replace(",", "."))):
        return number
    return text


def write_number(value: Any) -> str:
    """A number as a person writes it; any other value as it is."""
    return f"{value:.12g}" if isinstance(value, float) else to_text(value)


class NumberBox(QAbstractSpinBox):
    """A spin box that takes any text and keeps no value of its own.

    Signals:
        typed: A person changed the text, or stepped.
    """

    typed = Signal(str)

    def __init__(self, field: Field, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._field = field
        self.setButtonSymbols(QAbstractSpinBox.ButtonSymbols.NoButtons)
        self.lineEdit().textEdited.connect(self.typed)

    def validate(self, text: str, position: int) -> object:
        """Everything may be typed; what is wrong with it is said beside the field."""
        return QValidator.State.Acceptable, text, position

    def stepBy(self, steps: int) -> None:  # noqa: N802 # Qt's name
        """Go up or down, and not out of the limits."""
        present = read_number(self.text())
        if isinstance(present, str):
            start = self._field.default if self._field.default is not None else self._field.minimum
            stepped = Decimal(str(start or 0))
        else:
            stepped = Decimal(str(present)) + steps * self._step()
        if self._field.minimum is not None:
            stepped = max(stepped, Decimal(str(self._field.minimum)))
        if self._field.maximum is not None:
            stepped = min(stepped, Decimal(str(self._field.maximum)))
        whole = self._field.kind is Kind.INTEGER or stepped == stepped.to_integral_value()
        self.lineEdit().setText(str(int(stepped)) if whole else write_number(float(stepped)))
        self.typed.emit(self.text())

    def stepEnabled(self) -> QAbstractSpinBox.StepEnabledFlag:  # noqa: N802 # Qt's name
        """Both ways; the limits hold where they are reached."""
        return QAbstractSpinBox.StepEnabledFlag.StepUpEnabled | QAbstractSpinBox.StepEnabledFlag.StepDownEnabled

    def _step(self) -> Decimal:
        if self._field.kind is Kind.INTEGER:
            return Decimal(1)
        span = self._field.maximum
        if span is not None and span <= 1:
            return Decimal("0.01")
        return Decimal("0.1") if span is not None and span <= 10 else Decimal(1)


class NumberEditor(Editor):
    """A whole or decimal number, with buttons for the mouse; the arrow keys do the same."""

    def __init__(self, field: Field, target: Target, parent: QWidget | None = None) -> None:
        super().__init__(field, target, parent)
        self.number = NumberBox(field)
        self.adopt(self.number, text=f"{field.help} ↑ and ↓ change it.".strip())
        self.adopt(self.number.lineEdit())
        if field.nullable:
            self.number.lineEdit().setPlaceholderText("empty")
        row = QHBoxLayout()
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        row.addWidget(self.number, 1)
        self.buttons = [
            self._button("mdi6.minus", f"Lower {field.title}", -1),
            self._button("mdi6.plus", f"Raise {field.title}", 1),
        ]
        for button in self.buttons:
            row.addWidget(button)
        self.box.addLayout(row)
        self.setFocusProxy(self.number)
        self.number.typed.connect(self._typed)
        self.number.editingFinished.connect(self._tidy)
        style().changed.connect(self._draw)
        self._draw()

    def _button(self, picture: str, name: str, steps: int) -> QToolButton:
        button = QToolButton()
        button.setProperty("picture", picture)
        button.setAutoRepeat(True)
        button.setFocusPolicy(self.number.focusPolicy().NoFocus)  # the arrow keys do the same without two more stops
        button.setIconSize(QSize(16, 16))
        name_widget(button, name)
        button.clicked.connect(lambda: self.number.stepBy(steps))
        return button

    def _draw(self) -> None:
        for button in self.buttons:
            button.setIcon(icon(button.property("picture"), style().theme.dim))

    def _put(self, value: Any) -> None:
        line = self.number.lineEdit()
        position = line.cursorPosition()
        line.setText(write_number(value))
        line.setCursorPosition(position)

    def _typed(self, text: str) -> None:
        if text.strip():
            self._tell(read_number(text))
        else:
            self._tell(None if self.field.nullable else self.field.default)

    def _tidy(self) -> None:
        """On leaving, show what counts: `5` for an empty field whose default is 5."""
        self._put(self._value)
