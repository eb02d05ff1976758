"""The dialog that lists all keyboard shortcuts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QDialog, QGridLayout, QHBoxLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from app.theme.style import style
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel

COLUMNS: Final = 2
KEYS_WIDTH: Final = 200


class ShortcutsDialog(QDialog):
    """Lists all actions with shortcuts, by group.

    Args:
        groups: Titles and actions.
    """

    def __init__(self, groups: Sequence[tuple[str, Sequence[QAction]]], parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("Keyboard shortcuts")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        inside = QWidget()
        columns = QHBoxLayout(inside)
        columns.setContentsMargins(0, 0, 4 * UNIT, 0)
        columns.setSpacing(10 * UNIT)
        stacks = [QVBoxLayout() for _ in range(COLUMNS)]
        heights = [0] * COLUMNS
        for stack in stacks:
            stack.setSpacing(6 * UNIT)
            columns.addLayout(stack, 1)
        # Longest group first, which balances the columns.
        for title, actions in sorted(groups, key=lambda group: -len(group[1])):
            shown = [action for action in actions if action.shortcuts()]
            if shown:
                shortest = heights.index(min(heights))
                stacks[shortest].addLayout(_group(title, shown, inside))
                heights[shortest] += len(shown) + 2
        for stack in stacks:
            stack.addStretch(1)
        area = QScrollArea(self)
        area.setWidgetResizable(True)
        area.setWidget(inside)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setAccessibleName("Keyboard shortcuts")
        close = QPushButton("Close", self)
        close.clicked.connect(self.accept)
        foot = QHBoxLayout()
        foot.addStretch(1)
        foot.addWidget(close)
        column = QVBoxLayout(self)
        column.setContentsMargins(6 * UNIT, 6 * UNIT, 6 * UNIT, 4 * UNIT)
        column.setSpacing(4 * UNIT)
        column.addWidget(area, 1)
        column.addLayout(foot)
        scale = style().scale
        self.resize(min(round(960 * scale), parent.width()), min(round(720 * scale), parent.height()))


def _group(title: str, actions: Sequence[QAction], parent: QWidget) -> QGridLayout:
    grid = QGridLayout()
    grid.setHorizontalSpacing(4 * UNIT)
    grid.setVerticalSpacing(2 * UNIT)
    grid.setColumnStretch(0, 1)
    grid.setColumnMinimumWidth(1, round(KEYS_WIDTH * style().scale))
    grid.addWidget(PlainLabel(title, parent, look="title"), 0, 0, 1, 2)
    for row, action in enumerate(actions, 1):
        keys = " or ".join(key.toString(QKeySequence.SequenceFormat.NativeText) for key in action.shortcuts())
        grid.addWidget(PlainLabel(action.text().replace("&", ""), parent), row, 0)
        grid.addWidget(PlainLabel(keys, parent, look="dim"), row, 1)
    return grid
