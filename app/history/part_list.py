"""What can be seen of an iteration, as a list: its own parts, and the nodes of its body with their states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QAbstractItemView, QListWidget, QListWidgetItem, QWidget

from app.history.detail_parts import Tab
from app.history.table import ROW_HEIGHT
from app.inspector.result_page import STATE_COLOURS
from app.inspector.result_text import STATE_ICONS, state_words
from app.runs.executions import NodePicture, NodeState
from app.theme.style import icon, style
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel, plain_tool_tip

_WIDTHS: Final = (96, 164)
"""The least and the most that the list takes, in pixels at the usual size of texts."""
HEADING: Final = "Nodes"
_KEY_ROLE: Final = Qt.ItemDataRole.UserRole
_STATE_ROLE: Final = Qt.ItemDataRole.UserRole + 1
_ICONS: Final = {
    "result": "mdi6.text-box-outline",
    "feedback": "mdi6.keyboard-return",
    "start": "mdi6.ray-start-arrow",
    "verdict": "mdi6.scale-balance",
}


class PartList(QListWidget):
    """The list.

    Signals:
        chosen: A person chose a part; its key.
    """

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._tabs: list[Tab] = []
        self._shown: tuple[str, Callable[[str], NodePicture]] | None = None
        self._is_showing = False
        self.setAccessibleName("Parts of the iteration")
        self.setProperty("bare", True)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.setTabKeyNavigation(False)
        self.setMinimumHeight(10 * UNIT)
        self.currentItemChanged.connect(self._note_current)
        style().changed.connect(self._restyle)

    @property
    def titles(self) -> list[str]:
        """What the list says, headings included."""
        return [self.item(row).text() or HEADING for row in range(self.count())]

    def show_parts(self, tabs: list[Tab], chosen: str, execution: Callable[[str], NodePicture]) -> None:
        """Show what there is.

        Args:
            tabs: The parts, those of the iteration first.
            chosen: The key of the part that is seen.
            execution: Gives what a node did, by its id.
        """
        self._shown = (chosen, execution)
        self._is_showing = True
        try:
            if tabs != self._tabs:
                self._tabs = tabs
                self._write()
            for row in range(self.count()):
                item = self.item(row)
                key = item.data(_KEY_ROLE)
                if isinstance(key, str) and key.startswith("node:"):
                    _show_state(item, execution(key.removeprefix("node:")))
                if key == chosen and row != self.currentRow():
                    self.setCurrentRow(row)
        finally:
            self._is_showing = False

    def _write(self) -> None:
        self.clear()
        has_heading = False
        for tab in self._tabs:
            if tab.node_id and not has_heading:
                has_heading = True
                self._add_heading()
            item = QListWidgetItem(tab.title)
            item.setData(_KEY_ROLE, tab.key)
            item.setToolTip(plain_tool_tip(tab.title))
            if not tab.node_id:
                item.setIcon(icon(_ICONS[tab.key], style().theme.dim))
            self.addItem(item)
        for row in range(self.count()):
            self.item(row).setSizeHint(QSize(0, round(ROW_HEIGHT * style().scale)))
        side = round(14 * style().scale)
        self.setIconSize(QSize(side, side))
        least, most = (round(width * style().scale) for width in _WIDTHS)
        wanted = max((self.fontMetrics().horizontalAdvance(tab.title) for tab in self._tabs), default=0)
        self.setFixedWidth(min(max(wanted + side + 13 * UNIT, least), most))

    def _add_heading(self) -> None:
        """Add a line that can be read and not chosen. Its text is a label: what is off in a list is hard to read."""
        item = QListWidgetItem()
        item.setFlags(Qt.ItemFlag.NoItemFlags)
        item.setData(Qt.ItemDataRole.AccessibleTextRole, HEADING)
        self.addItem(item)
        label = PlainLabel(HEADING, look="section")
        label.setContentsMargins(2 * UNIT, 0, 0, 0)
        self.setItemWidget(item, label)

    def _note_current(self, item: QListWidgetItem | None) -> None:
        if not self._is_showing and item is not None and isinstance(item.data(_KEY_ROLE), str):
            self.chosen.emit(item.data(_KEY_ROLE))

    def _restyle(self) -> None:
        """Have all icons in the colours of another theme."""
        tabs, self._tabs = self._tabs, []
        if self._shown is not None:
            self.show_parts(tabs, *self._shown)


def _show_state(item: QListWidgetItem, execution: NodePicture) -> None:
    """Show what a node is doing; nothing is drawn anew where that is the same as before."""
    state: NodeState | None = item.data(_STATE_ROLE)
    if state == execution.state:
        return
    item.setData(_STATE_ROLE, execution.state)
    item.setIcon(icon(STATE_ICONS[execution.state], STATE_COLOURS[execution.state](style().theme)))
    item.setData(Qt.ItemDataRole.AccessibleTextRole, f"{item.text()}: {state_words(execution)}")
