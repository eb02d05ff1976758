"""A list to choose from where the mouse is, with a filter: node types to add, ports to connect to."""

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
MOST_ROWS: Final = 200
"""The most entries that are listed at once: more are found by typing sooner than by scrolling."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing to choose.

    Attributes:
        title: What people call it.
        help: What it is for.
        icon: Name of its icon.
        colour: Of the icon.
        value: What is handed on when it is chosen.
    """

    title: str
    help: str
    icon: str
    colour: str
    value: Any

    def fits(self, words: Iterable[str]) -> bool:
        """Whether all words are in its title or help."""
        text = f"{self.title} {self.help}".casefold()
        return all(word in text for word in words)


@dataclass(frozen=True, slots=True)
class TypeAndPort:
    """A node type (`tool:NAME` for a node that calls that tool), and the port of it that an edge would join."""

    type: str
    port: str


def matching_node_types(
    registry: Registry, port: PortViewModel | None, *, is_input: bool, in_body: bool = False
) -> list[Entry]:
    """The node types and the tools to choose from: all, or those with a port that fits one end of an edge.

    Args:
        registry: The node types.
        port: The port that the edge hangs on; None for all types.
        is_input: Whether that port is an input.
        in_body: Whether the new node would lie in a loop's body, where inputs and outputs of the workflow may not.
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
    elif spec.type in PAIR_BY_START:  # its value goes on from the end that comes with it
        return "output"
    else:
        found = next((own for own in spec.all_outputs(config) if can_ever_fit(own.type, port.type)), None)
    return found.name if found is not None else None


class PickList(QFrame):
    """The list. Enter or a click chooses, Escape or a click elsewhere closes."""

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
        self.list.setAccessibleName("What to choose from")
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
        """Open at a place of the parent.

        Args:
            place: Where.
            prompt: What the empty filter says.
            entries: What there is to choose from.
            chosen: Called with the value of what was chosen.
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
        """Arrows move in the list while one types; Enter chooses; Escape and leaving close."""
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            return self._key(watched, event)
        if event.type() == QEvent.Type.FocusOut and self.isVisible():
            focus = self.window().focusWidget()
            if focus is not self.filter and focus is not self.list:
                self.hide()
        return super().eventFilter(watched, event)

    def close_if_open(self) -> None:
        """Close, if it is open."""
        if self.isVisible():
            self.close_list()

    def close_list(self) -> None:
        """Close and give the keys back to the canvas."""
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
        """What shows all entries without scrolling."""
        rows = max(self.list.count(), 3) * max(self.list.sizeHintForRow(0), 1) + 2 * self.list.frameWidth() + 4 * UNIT
        return rows + self.filter.sizeHint().height() + 6 * UNIT

    def _refill(self) -> None:
        self.list.clear()
        words = self.filter.text().casefold().split()
        fitting = [entry for entry in self._entries if entry.fits(words)]
        for entry in fitting[:MOST_ROWS]:
            item = QListWidgetItem(icon(entry.icon, entry.colour), entry.title)
            item.setToolTip(plain_tool_tip(entry.help))
            item.setData(Qt.ItemDataRole.AccessibleDescriptionRole, entry.help)
            item.setData(Qt.ItemDataRole.UserRole, entry)
            self.list.addItem(item)
        if len(fitting) > MOST_ROWS:
            rest = QListWidgetItem(f"{len(fitting) - MOST_ROWS} more: type a few letters")
            rest.setFlags(Qt.ItemFlag.NoItemFlags)
            self.list.addItem(rest)
        self.list.setCurrentRow(0)

    def _take(self, item: QListWidgetItem | None) -> None:
        entry: Entry | None = item.data(Qt.ItemDataRole.UserRole) if item is not None else None
        if entry is None:
            return
        self.close_list()
        self._chosen(entry.value)
