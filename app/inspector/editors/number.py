"""Numbers: typed freely, stepped with the arrow keys, the wheel or the mouse, empty where that means something."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any, Final

from PySide6.QtCore import Signal
from PySide6.QtGui import QValidator
from PySide6.QtWidgets import QAbstractSpinBox, QWidget

from app.inspector.editors.base import Editor
from app.inspector.fields import Field, Kind
from app.inspector.target import Target
from app.theme.widgets import inset_number
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
        self.lineEdit().textEdited.connect(self.typed)

    def validate(self, text: str, position: int) -> object:
        """Everything may be typed; what is wrong with it is said beside the field."""
        return QValidator.State.Acceptable, text, position

    def stepBy(self, steps: int) -> None:  # Qt's name
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

    def stepEnabled(self) -> QAbstractSpinBox.StepEnabledFlag:  # Qt's name
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
    """A whole or decimal number."""

    def __init__(self, field: Field, target: Target, parent: QWidget | None = None) -> None:
        super().__init__(field, target, parent)
        self.number = NumberBox(field, self)
        self.adopt(self.number, text=f"{field.help} ↑ and ↓ change it.".strip())
        self.adopt(self.number.lineEdit())
        if field.nullable:
            self.number.lineEdit().setPlaceholderText("empty")
        inset_number(self.number)
        self.box.addWidget(self.number)
        self.main_widget = self.number
        self.number.typed.connect(self._typed)
        self.number.editingFinished.connect(self._tidy)

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
