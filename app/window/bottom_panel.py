"""The bottom panel: Iterations, Log, Problems and Runs, collapsed until one is opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from PySide6.QtCore import QObject, QSize, Qt, Signal
from PySide6.QtWidgets import QSizePolicy, QSplitter, QStackedWidget, QToolButton, QWidget

from app.theme.style import style
from app.theme.widgets import QWIDGETSIZE_MAX, hbox, icon_button, vbox

PANELS: Final = ("iterations", "log", "problems", "runs")


class PanelStack(QStackedWidget):
    """A stack whose minimum size is that of the visible panel only."""

    def minimumSizeHint(self) -> QSize:  # noqa: D102 - Qt's own
        panel = self.currentWidget()
        return panel.minimumSizeHint() if panel is not None else QSize(0, 0)


class BottomPanel(QWidget):
    """A row of buttons, and below it the open panel.

    Args:
        panels: Returns each panel of the window, by name, creating it when it is first opened.

    Signals:
        unfolded: A panel was opened; its name, or empty if all are collapsed.
    """

    unfolded = Signal(str)

    def __init__(self, panels: Mapping[str, Callable[[], QWidget]]) -> None:
        super().__init__()
        self._window_panels = self._panels = dict(panels)
        self.setProperty("panel", True)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.open_panel = ""
        self._pages: dict[str, PanelStack] = {name: PanelStack(self) for name in PANELS}
        self.stack = PanelStack(self)
        for page in self._pages.values():
            self.stack.addWidget(page)
        self.buttons: dict[str, QToolButton] = {}
        strip = QWidget(self)
        strip.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        row = hbox(spacing=1, margins=(2, 1, 2, 1), parent=strip)
        for name in PANELS:
            button = QToolButton(self)
            button.setText(name.capitalize())
            button.setAccessibleName(name.capitalize())
            button.setCheckable(True)
            button.clicked.connect(lambda _checked=False, name=name: self.toggle(name))
            row.addWidget(button)
            self.buttons[name] = button
        row.addStretch(1)
        self._fold = icon_button(
            "mdi6.chevron-down", "Collapse the panel", self.fold, self, tip="Collapse", color="dim"
        )
        row.addWidget(self._fold)
        self._row = row
        vbox(strip, (self.stack, 1), spacing=0, parent=self)
        self.fold()

    def show_panels(self, panels: Mapping[str, Callable[[], QWidget]]) -> None:
        """Show the panels of another document; an empty mapping for none.

        Args:
            panels: Returns each panel, by name, creating it when it is first opened.
        """
        self._panels = {**self._window_panels, **panels}
        self.arrange()

    def unfold(self, name: str) -> None:
        """Open a panel."""
        self.open_panel = name
        self.stack.setCurrentWidget(self._pages[name])
        self.arrange()

    def toggle(self, name: str) -> None:
        """Open a panel, or collapse it if it is open."""
        if self.open_panel == name:
            self.fold()
        else:
            self.unfold(name)

    def fold(self) -> None:
        """Collapse all panels."""
        self.open_panel = ""
        self.arrange()

    def count(self, errors: int, warnings: int) -> None:
        """Show the number of problems on the button."""
        number = errors + warnings
        self.buttons["problems"].setText(f"Problems ({number})" if number else "Problems")
        self.buttons["problems"].setAccessibleName(f"Problems: {errors} errors, {warnings} warnings")

    def arrange(self) -> None:
        """Show the open panel, or only the row of buttons."""
        is_open = self.open_panel in self._panels
        if is_open:
            page, panel = self._pages[self.open_panel], self._panels[self.open_panel]()
            if page.indexOf(panel) < 0:
                page.addWidget(panel)
            page.setCurrentWidget(panel)
        self.stack.setVisible(is_open)
        self._fold.setVisible(is_open)
        for name, button in self.buttons.items():
            button.setChecked(name == self.open_panel)
            button.setVisible(name in self._panels)
        # The height of the row: the layout has not yet noticed that the panel is hidden, or that the text size changed.
        self._row.invalidate()
        self.setMaximumHeight(QWIDGETSIZE_MAX if is_open else self._row.sizeHint().height())
        self.unfolded.emit(self.open_panel if is_open else "")


DEFAULT_HEIGHT: Final = 220
HEIGHTS: Final = {"iterations": 360, "runs": 300}
"""Initial heights that differ from the default, in pixels at a text scale of 1."""


class BottomPanelHeight(QObject):
    """Sets the height of the bottom panel: each panel as the user left it, at first its default.

    Args:
        splitter: The splitter between documents and bottom panel.

    Attributes:
        chosen: The heights that the user chose, by panel name.
    """

    def __init__(self, splitter: QSplitter, panel: BottomPanel) -> None:
        super().__init__(splitter)
        self._splitter, self._panel, self._scale = splitter, panel, style().scale
        self.chosen: dict[str, int] = {}
        splitter.splitterMoved.connect(self._note)
        panel.unfolded.connect(self._resize)
        style().changed.connect(self._rescale)

    def restore(self, chosen: object) -> None:
        """Restore stored heights; invalid ones are ignored."""
        if isinstance(chosen, dict):
            self.chosen = {str(name): height for name, height in chosen.items() if type(height) is int}

    def _note(self) -> None:
        if self._panel.open_panel:
            self.chosen[self._panel.open_panel] = self._splitter.sizes()[1]

    def _rescale(self) -> None:
        grown, self._scale = style().scale / self._scale, style().scale
        if grown != 1:
            self.chosen = {name: round(height * grown) for name, height in self.chosen.items()}
            self._panel.arrange()

    def _resize(self, name: str) -> None:
        total = sum(self._splitter.sizes())
        if not name:  # the splitter does not shrink it by itself
            row = self._panel.maximumHeight()
            self._splitter.setSizes([total - row, row])
            return
        first = min(round(HEIGHTS.get(name, DEFAULT_HEIGHT) * style().scale), total // 2)
        wanted = min(self.chosen.get(name, first), total)
        self._splitter.setSizes([total - wanted, wanted])
