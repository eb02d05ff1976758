"""The panels under the documents: Iterations, Log, Problems. Folded away until one is asked for."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QStackedWidget, QToolButton, QVBoxLayout, QWidget

from app.theme.icons import ThemedIcon
from app.theme.tokens import UNIT

_ANY_HEIGHT: Final = 16_777_215

PANELS: Final = ("iterations", "log", "problems")


class Drawer(QWidget):
    """A row of buttons, and below it the panel of the document that is shown.

    Signals:
        unfolded: The panel of that name is open now; empty where all are folded away.
    """

    unfolded = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("panel", True)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.open_panel = ""
        self._pages: dict[str, QStackedWidget] = {name: QStackedWidget(self) for name in PANELS}
        self.stack = QStackedWidget(self)
        for page in self._pages.values():
            self.stack.addWidget(page)
        self.buttons: dict[str, QToolButton] = {}
        group = QButtonGroup(self)
        group.setExclusive(False)
        row = QHBoxLayout()
        row.setContentsMargins(2 * UNIT, UNIT, 2 * UNIT, UNIT)
        row.setSpacing(UNIT)
        for name in PANELS:
            button = QToolButton(self)
            button.setText(name.capitalize())
            button.setAccessibleName(name.capitalize())
            button.setCheckable(True)
            button.clicked.connect(lambda _checked=False, name=name: self.toggle(name))
            row.addWidget(button)
            self.buttons[name] = button
        row.addStretch(1)
        self._fold = QToolButton(self)
        self._fold.setToolTip("Fold away")
        self._fold.setAccessibleName("Fold the panel away")
        ThemedIcon(self._fold, "mdi6.chevron-down", "dim")
        self._fold.clicked.connect(lambda _checked=False: self.fold())
        row.addWidget(self._fold)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        self._row = row
        column.addLayout(row)
        column.addWidget(self.stack, 1)
        self.fold()

    def add(self, panels: dict[str, QWidget]) -> None:
        """Take in the panels of a document."""
        for name, panel in panels.items():
            self._pages[name].addWidget(panel)

    def show_panels(self, panels: dict[str, QWidget]) -> None:
        """Show the panels of another document."""
        for name, panel in panels.items():
            self._pages[name].setCurrentWidget(panel)

    def unfold(self, name: str) -> None:
        """Open a panel."""
        self.open_panel = name
        self.stack.setCurrentWidget(self._pages[name])
        self._arrange()

    def toggle(self, name: str) -> None:
        """Open a panel, or fold it away where it is open."""
        if self.open_panel == name:
            self.fold()
        else:
            self.unfold(name)

    def fold(self) -> None:
        """Fold all panels away."""
        self.open_panel = ""
        self._arrange()

    def count(self, errors: int, warnings: int) -> None:
        """Say on its button how many problems there are."""
        number = errors + warnings
        self.buttons["problems"].setText(f"Problems ({number})" if number else "Problems")
        self.buttons["problems"].setAccessibleName(f"Problems: {errors} errors, {warnings} warnings")

    def mark_log(self, questions: int) -> None:
        """Say on its button how many questions of the run are open in the log."""
        self.buttons["log"].setText(f"Log ({questions})" if questions else "Log")
        self.buttons["log"].setAccessibleName(f"Log: {questions} waiting for you" if questions else "Log")

    def _arrange(self) -> None:
        self.stack.setVisible(bool(self.open_panel))
        self._fold.setVisible(bool(self.open_panel))
        for name, button in self.buttons.items():
            button.setChecked(name == self.open_panel)
        # The row's own height: the layout as a whole learns only later that the panel below it is hidden.
        self.setMaximumHeight(_ANY_HEIGHT if self.open_panel else self._row.sizeHint().height())
        self.unfolded.emit(self.open_panel)
