"""Pick list with a filter: node types to add and ports to connect to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from PySide6.QtCore import QEvent, QObject, QPoint, QSize, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QLineEdit, QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from app.canvas.node_card import PortViewModel
from app.canvas.operation_builders import display_title
from app.palette.entries import tool_entries
from app.theme.style import icon, style
from app.theme.tokens import UNIT
from app.theme.widgets import plain_tool_tip
from engine.nodes.convert import can_ever_fit
from engine.nodes.pairs import PAIR_BY_START
from engine.nodes.registry import Registry
from engine.nodes.spec import AnySpec, NodeConfig

WIDTH: Final = 280
HEIGHT: Final = 320
MAX_ROWS: Final = 200
"""Maximum number of listed entries; more are found faster by typing."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Entry of a pick list.

    Attributes:
        title: Its title.
        help: One-line description.
        icon: Name of its icon.
        colour: Colour of the icon.
        value: Passed on when the entry is picked.
    """

    title: str
    help: str
    icon: str
    colour: str
    value: Any

    def fits(self, words: Iterable[str]) -> bool:
        """Whether title or description contain all words."""
        text = f"{self.title} {self.help}".casefold()
        return all(word in text for word in words)


@dataclass(frozen=True, slots=True)
class TypeAndPort:
    """A node type (or `tool:NAME`) and its port that the edge connects to."""

    type: str
    port: str


def matching_node_types(
    registry: Registry, port: PortViewModel | None, *, is_input: bool, in_body: bool = False
) -> list[Entry]:
    """Return the node types and tools that can be added: all, or those with a matching port.

    Args:
        registry: The node types.
        port: The port at the other end of the edge; None for all types.
        is_input: Whether that port is an input.
        in_body: Whether the new node is inside a loop body, which cannot contain inputs and outputs.
    """
    theme, entries = style().theme, list[Entry]()
    for spec in registry:
        if in_body and spec.type in {"input", "output"}:
            continue
        joined = _fitting(spec, spec.config(), port, is_input=is_input) if port is not None else ""
        if joined is not None:
            choice = TypeAndPort(spec.type, joined)
            entries.append(Entry(display_title(spec), spec.help, spec.icon, theme.category[spec.category], choice))
    caller = registry.find("tool")
    assert caller is not None, "a type of the program's own"
    for row in tool_entries():
        config = caller.config(tool=row.key.removeprefix("tool:"))
        joined = _fitting(caller, config, port, is_input=is_input) if port is not None else ""
        if joined is not None:
            colour = theme.category[caller.category]
            entries.append(Entry(row.title, row.help, row.icon, colour, TypeAndPort(row.key, joined)))
    return entries


def _fitting(spec: AnySpec, config: NodeConfig, port: PortViewModel, *, is_input: bool) -> str | None:
    if not is_input:
        found = next((own for own in spec.inputs(config) if can_ever_fit(port.type, own.type)), None)
    elif spec.type in PAIR_BY_START:  # the value leaves a pair through its end
        return "output"
    else:
        found = next((own for own in spec.all_outputs(config) if can_ever_fit(own.type, port.type)), None)
    return found.name if found is not None else None


class PickList(QFrame):
    """The pick list. Enter or a click picks; Escape or a click elsewhere closes it."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._parent = parent
        self._entries: Sequence[Entry] = ()
        self._chosen: Callable[[Any], object] = lambda _value: None
        self.setProperty("card", True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.filter = QLineEdit(self)
        self.filter.setClearButtonEnabled(True)
        self.list = QListWidget(self)
        self.list.setAccessibleName("Results")
        self.list.setUniformItemSizes(True)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        column = QVBoxLayout(self)
        column.setContentsMargins(2 * UNIT, 2 * UNIT, 2 * UNIT, 2 * UNIT)
        column.setSpacing(2 * UNIT)
        column.addWidget(self.filter)
        column.addWidget(self.list)
        self.filter.textChanged.connect(self._refill)
        self.filter.installEventFilter(self)
        self.list.installEventFilter(self)
        self.list.itemClicked.connect(self._take)
        self.hide()

    def open(self, place: QPoint, prompt: str, entries: Sequence[Entry], chosen: Callable[[Any], object]) -> None:
        """Open the list at a position of the parent.

        Args:
            place: Position.
            prompt: Placeholder of the filter.
            entries: The entries.
            chosen: Called with the value of the picked entry.
        """
        self._entries, self._chosen = entries, chosen
        scale = style().scale
        side = round(18 * scale)
        self.list.setIconSize(QSize(side, side))
        self.filter.clear()
        self._refill()
        self.resize(round(WIDTH * scale), min(self._wanted_height(), round(HEIGHT * scale)))
        room = self._parent.rect()
        x = min(max(place.x(), 8), max(room.width() - self.width() - 8, 8))
        y = min(max(place.y(), 8), max(room.height() - self.height() - 8, 8))
        self.move(x, y)
        self.filter.setPlaceholderText(prompt)
        self.filter.setAccessibleName(prompt)
        self.show()
        self.raise_()
        self.filter.setFocus(Qt.FocusReason.PopupFocusReason)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Route keys: arrows move in the list, Enter picks, Escape and losing the focus close."""
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            return self._key(watched, event)
        if event.type() == QEvent.Type.FocusOut and self.isVisible():
            focus = self.window().focusWidget()
            if focus is not self.filter and focus is not self.list:
                self.hide()
        return super().eventFilter(watched, event)

    def close_if_open(self) -> None:
        """Close the list if it is open."""
        if self.isVisible():
            self.close_list()

    def close_list(self) -> None:
        """Close the list and return the focus to the canvas."""
        self.hide()
        self._parent.setFocus()

    def _key(self, watched: QObject, event: QKeyEvent) -> bool:
        if event.key() == Qt.Key.Key_Escape:
            self.close_list()
        elif event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            self._take(self.list.currentItem())
        elif watched is self.filter and event.key() in {Qt.Key.Key_Down, Qt.Key.Key_Up}:
            step = 1 if event.key() == Qt.Key.Key_Down else -1
            self.list.setCurrentRow(min(max(self.list.currentRow() + step, 0), self.list.count() - 1))
        else:
            return False
        return True

    def _wanted_height(self) -> int:
        """Return the height that shows all entries without scrolling."""
        rows = max(self.list.count(), 3) * max(self.list.sizeHintForRow(0), 1) + 2 * self.list.frameWidth() + 4 * UNIT
        return rows + self.filter.sizeHint().height() + 6 * UNIT

    def _refill(self) -> None:
        self.list.clear()
        words = self.filter.text().casefold().split()
        fitting = [entry for entry in self._entries if entry.fits(words)]
        for entry in fitting[:MAX_ROWS]:
            item = QListWidgetItem(icon(entry.icon, entry.colour), entry.title)
            item.setToolTip(plain_tool_tip(entry.help))
            item.setData(Qt.ItemDataRole.AccessibleDescriptionRole, entry.help)
            item.setData(Qt.ItemDataRole.UserRole, entry)
            self.list.addItem(item)
        if len(fitting) > MAX_ROWS:
            rest = QListWidgetItem(f"{len(fitting) - MAX_ROWS} more. Type to filter.")
            rest.setFlags(Qt.ItemFlag.NoItemFlags)
            self.list.addItem(rest)
        self.list.setCurrentRow(0)

    def _take(self, item: QListWidgetItem | None) -> None:
        entry: Entry | None = item.data(Qt.ItemDataRole.UserRole) if item is not None else None
        if entry is None:
            return
        self.close_list()
        self._chosen(entry.value)
