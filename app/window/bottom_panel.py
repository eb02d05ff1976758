"""The panels under the documents: Iterations, Log, Problems, Runs. Folded away until one is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from PySide6.QtCore import QObject, QSize, Qt, Signal
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QSplitter, QStackedWidget, QToolButton, QVBoxLayout, QWidget

from app.theme.style import ThemedIcon, style
from app.theme.tokens import UNIT

_ANY_HEIGHT: Final = 16_777_215

PANELS: Final = ("iterations", "log", "problems", "runs")
OF_THE_WINDOW: Final = frozenset({"runs"})
"""The panels that are the same whatever document is shown, and are there also where none is."""


class PanelStack(QStackedWidget):
    """Panels of which one is seen: it alone says how much room is needed, not those behind it."""

    def minimumSizeHint(self) -> QSize:  # noqa: D102 - Qt's own
        panel = self.currentWidget()
        return panel.minimumSizeHint() if panel is not None else QSize(0, 0)


class BottomPanel(QWidget):
    """A row of buttons, and below it the panel of the document that is shown.

    Args:
        late: What makes a panel of the window when it is first opened, by the panel's name.

    Signals:
        unfolded: The panel of that name is open now; empty where all are folded away.
    """

    unfolded = Signal(str)

    def __init__(self, late: Mapping[str, Callable[[], QWidget]], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._late = dict(late)
        self.setProperty("panel", True)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.open_panel = ""
        self._there = OF_THE_WINDOW
        self._pages: dict[str, PanelStack] = {name: PanelStack(self) for name in PANELS}
        self.stack = PanelStack(self)
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

    def add(self, panels: Mapping[str, QWidget]) -> None:
        """Take in the panels of a document, or of the window."""
        for name, panel in panels.items():
            self._pages[name].addWidget(panel)

    def show_panels(self, panels: Mapping[str, QWidget]) -> None:
        """Show the panels of another document; none where none is shown."""
        for name, panel in panels.items():
            self._pages[name].setCurrentWidget(panel)
        self._there = OF_THE_WINDOW | panels.keys()
        self._arrange()

    def unfold(self, name: str) -> None:
        """Open a panel."""
        make = self._late.pop(name, None)
        if make is not None:
            self.add({name: make()})
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
        is_open = self.open_panel in self._there
        self.stack.setVisible(is_open)
        self._fold.setVisible(is_open)
        for name, button in self.buttons.items():
            button.setChecked(name == self.open_panel)
            button.setVisible(name in self._there)
        # The row's own height: the layout as a whole learns only later that the panel below it is hidden.
        self.setMaximumHeight(_ANY_HEIGHT if is_open else self._row.sizeHint().height())
        self.unfolded.emit(self.open_panel if is_open else "")


USUAL_HEIGHT: Final = 220
HEIGHTS: Final = {"iterations": 360, "runs": 300}
"""How high panels are opened first that need another than the usual height, in pixels at the usual size of texts."""


class BottomPanelHeight(QObject):
    """Shares the room between the documents and the drawer below them.

    Args:
        splitter: Has both.
        drawer: The drawer.

    Attributes:
        chosen: The heights that a person gave to panels, by name.
    """

    def __init__(self, splitter: QSplitter, drawer: BottomPanel) -> None:
        super().__init__(splitter)
        self._splitter, self._drawer = splitter, drawer
        self.chosen: dict[str, int] = {}
        splitter.splitterMoved.connect(self._note)
        drawer.unfolded.connect(self._give)

    def restore(self, chosen: object) -> None:
        """Take heights of an earlier time; what cannot be understood is left out."""
        if isinstance(chosen, dict):
            self.chosen = {str(name): height for name, height in chosen.items() if type(height) is int}

    def _note(self) -> None:
        if self._drawer.open_panel:
            self.chosen[self._drawer.open_panel] = self._splitter.sizes()[1]

    def _give(self, name: str) -> None:
        total = sum(self._splitter.sizes())
        if not name:  # a splitter does not give the room back by itself
            row = self._drawer.maximumHeight()
            self._splitter.setSizes([total - row, row])
            return
        first = min(round(HEIGHTS.get(name, USUAL_HEIGHT) * style().scale), total // 2)
        wanted = min(self.chosen.get(name, first), total)
        self._splitter.setSizes([total - wanted, wanted])
