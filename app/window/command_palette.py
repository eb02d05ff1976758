"""The command palette, which searches actions, nodes, node types and files, and the list of keyboard shortcuts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QPoint, QSize, Qt
from PySide6.QtGui import QAction, QKeySequence, QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QDialog,
    QGridLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.search import ListKeys, match_score
from app.theme.style import style
from app.theme.tokens import UNIT
from app.theme.widgets import (
    STRETCH,
    HintDelegate,
    PlainLabel,
    disabled_item,
    hbox,
    push_button,
    resize_on_screen,
    vbox,
)

MOST_SHOWN: Final = 50


@dataclass(frozen=True, slots=True)
class PaletteEntry:
    """One entry.

    Attributes:
        text: Its text.
        hint: Shown at the right: its shortcut, or its kind.
        act: Called when it is chosen.
        synonyms: Other words that find it.
    """

    text: str
    hint: str
    act: Callable[[], object]
    synonyms: tuple[str, ...] = ()


def matching(entries: Iterable[PaletteEntry], typed: str) -> list[PaletteEntry]:
    """Return the entries that match what was typed, best first."""
    found = [(match_score(typed, (entry.text, entry.hint), synonyms=entry.synonyms), entry) for entry in entries]
    found = [scored for scored in found if scored[0]]
    found.sort(key=lambda scored: -scored[0])  # stable: entries of a score keep their order
    return [entry for _, entry in found]


class CommandPalette(QDialog):
    """A search field with a list of results."""

    def __init__(self, entries: Sequence[PaletteEntry], prompt: str, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setProperty("finder", True)
        self.setAccessibleName(prompt)
        self._entries = entries
        self.field = QLineEdit(self, placeholderText=prompt)
        self.field.setAccessibleName(prompt)
        self.list = QListWidget(self)
        self.list.setAccessibleName("Results")
        self.list.setProperty("bare", True)
        self.list.setItemDelegate(HintDelegate(self.list))
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        vbox(self.field, self.list, spacing=2, margins=2, parent=self)
        self.field.textChanged.connect(self._show)
        ListKeys(self.field, self.list, self._choose)
        self.list.itemClicked.connect(self._choose)
        self._show("")
        width = min(round(520 * style().scale), parent.width() - 8 * UNIT)
        self.resize(width, min(round(420 * style().scale), parent.height() - 16 * UNIT))
        self.move(parent.mapToGlobal(QPoint((parent.width() - width) // 2, 16 * UNIT)))
        self.field.setFocus()

    def _show(self, typed: str) -> None:
        self.list.clear()
        for entry in matching(self._entries, typed)[:MOST_SHOWN]:
            item = QListWidgetItem(entry.text)
            item.setData(Qt.ItemDataRole.AccessibleDescriptionRole, entry.hint)
            item.setData(Qt.ItemDataRole.UserRole, entry)
            self.list.addItem(item)
        if not self.list.count():
            self.list.addItem(disabled_item("No results"))
        self.list.setCurrentRow(0)

    def _choose(self, item: QListWidgetItem) -> None:
        entry: PaletteEntry | None = item.data(Qt.ItemDataRole.UserRole)
        if entry is None:
            return
        self.close()
        entry.act()


COLUMNS: Final = 2
SHORTCUTS_SIZE: Final = QSize(960, 720)


class ShortcutsDialog(QDialog):
    """Lists all actions with shortcuts, by group."""

    def __init__(self, groups: Sequence[tuple[str, Sequence[QAction]]], parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("Keyboard shortcuts")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        inside = QWidget()
        self._columns = hbox(spacing=10, margins=(0, 0, 4, 0), parent=inside)
        self._stacks = stacks = [QVBoxLayout() for _ in range(COLUMNS)]
        heights = [0] * COLUMNS
        for stack in stacks:
            stack.setSpacing(6 * UNIT)
            self._columns.addLayout(stack, 1)
        # Longest group first, which balances the columns.
        for title, actions in sorted(groups, key=lambda group: -len(group[1])):
            shown = [action for action in actions if action.shortcuts()]
            if shown:
                shortest = heights.index(min(heights))
                stacks[shortest].addLayout(_group(title, shown, inside))
                heights[shortest] += len(shown) + 2
        for stack in stacks:
            stack.addStretch(1)
        # It takes the focus, so that keys scroll it.
        self._area = QScrollArea(self, widgetResizable=True)
        self._area.setAccessibleName("Keyboard shortcuts")
        self._area.setWidget(inside)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        close = push_button("Close", self.accept, self, auto_default=True)
        vbox((self._area, 1), hbox(STRETCH, close), spacing=4, margins=(6, 6, 6, 4), parent=self)
        resize_on_screen(self, SHORTCUTS_SIZE)
        style().changed.connect(self._fit_keys)
        self._fit_keys()

    def _fit_keys(self) -> None:
        """Fit the columns of the keys, equally wide in all groups, to the text size."""
        grids = self.findChildren(QGridLayout)
        keys = [grid.itemAtPosition(row, 1) for grid in grids for row in range(1, grid.rowCount())]
        widest = max((item.sizeHint().width() for item in keys if item is not None), default=0)
        for grid in grids:
            grid.setColumnMinimumWidth(1, widest)
        self._stack_columns()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the columns below each other where they do not fit side by side."""
        super().resizeEvent(event)
        self._stack_columns()

    def _stack_columns(self) -> None:
        margins = self._columns.contentsMargins()
        needed = sum(stack.minimumSize().width() for stack in self._stacks) + self._columns.spacing() * (COLUMNS - 1)
        room = self._area.maximumViewportSize().width() - self._area.verticalScrollBar().sizeHint().width()
        is_narrow = room < needed + margins.left() + margins.right()
        directions = QBoxLayout.Direction
        self._columns.setDirection(directions.TopToBottom if is_narrow else directions.LeftToRight)


def _group(title: str, actions: Sequence[QAction], parent: QWidget) -> QGridLayout:
    grid = QGridLayout()
    grid.setHorizontalSpacing(4 * UNIT)
    grid.setVerticalSpacing(2 * UNIT)
    grid.setColumnStretch(0, 1)
    grid.addWidget(PlainLabel(title, parent, look="title"), 0, 0, 1, 2)
    for row, action in enumerate(actions, 1):
        keys = " or ".join(key.toString(QKeySequence.SequenceFormat.NativeText) for key in action.shortcuts())
        grid.addWidget(PlainLabel(action.text().replace("&", ""), parent), row, 0)
        grid.addWidget(PlainLabel(keys, parent, look="dim"), row, 1)
    return grid
