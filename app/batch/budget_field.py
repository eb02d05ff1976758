"""The field for what all rows of a batch together may spend."""

from __future__ import annotations

from typing import Final

from PySide6.QtWidgets import QDoubleSpinBox, QWidget

from app.theme.widgets import inset_number

_MOST_USD: Final = 100_000.0
_DECIMALS: Final = 6
"""With two of them, half a cent would be nothing, and so no limit."""
_SHOWN_DECIMALS: Final = 2
_CENT: Final = 0.01


class BudgetField(QDoubleSpinBox):
    """An amount of US dollars; nothing for no limit."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setRange(0.0, _MOST_USD)
        self.setDecimals(_DECIMALS)
        self.setPrefix("$ ")
        self.setStepType(QDoubleSpinBox.StepType.AdaptiveDecimalStepType)
        self.setSpecialValueText("No limit")
        self.setAccessibleName("Budget of all rows in US dollars")
        self.setToolTip("Once all rows together have spent this, no more are begun. Those under way come to their end.")
        inset_number(self)

    @property
    def usd(self) -> float | None:
        """The amount; None for no limit."""
        return self.value() or None

    def textFromValue(self, value: float) -> str:  # Qt's name
        """Dollars and cents, and more places where it has them."""
        point = self.locale().decimalPoint()
        whole, _, places = super().textFromValue(value).partition(point)
        return f"{whole}{point}{places.rstrip('0').ljust(_SHOWN_DECIMALS, '0')}"

    def validate(self, text: str, position: int) -> object:  # Qt's name
        """A digit that is typed into the words for no limit takes their place."""
        if text != self.specialValueText() and any(sign.isalpha() for sign in text):
            typed = "".join(sign for sign in text if not sign.isalpha() and not sign.isspace())
            text = self.prefix() + typed.removeprefix(self.prefix().strip())
            position = len(text)
        return super().validate(text, position)

    def stepBy(self, steps: int) -> None:  # Qt's name
        """Never to a part of a cent."""
        super().stepBy(steps)
        if 0 < self.value() < _CENT:
            self.setValue(_CENT if steps > 0 else 0.0)
