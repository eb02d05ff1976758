"""The field for what all rows of a batch together may spend."""

from __future__ import annotations

from typing import Final

from PySide6.QtWidgets import QDoubleSpinBox, QWidget

from app.theme.widgets import inset_number

_MOST_USD: Final = 100_000.0


class BudgetField(QDoubleSpinBox):
    """An amount of US dollars; nothing for no limit."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setRange(0.0, _MOST_USD)
        self.setDecimals(2)
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
