"""Read-only tree of a JSON value, from which values and their paths can be copied.

Children are created when their parent is expanded, so that a large value is shown at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QPersistentModelIndex, QSize, Qt
from PySide6.QtGui import QAction, QBrush, QColor, QGuiApplication, QKeySequence
from PySide6.QtWidgets import QHeaderView, QSizePolicy, QTreeView, QWidget

from app.inspector.editor import describe_widget
from app.inspector.result_text import value_preview, value_text
from app.theme.style import style
from app.theme.widgets import plain_tool_tip
from engine.formatting import format_count
from engine.values import Value

_Index = QModelIndex | QPersistentModelIndex
_ROOT: Final = QModelIndex()
_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_MAX_ROWS_SHOWN: Final = 16
_CHUNK: Final = 500
"""Number of children that are added at once."""


class _Item:
    """A value within the tree, with its path; the items of its children are created on demand."""

    __slots__ = ("children", "key", "parent", "path", "row", "value")

    def __init__(self, value: Value, key: str, path: str, parent: _Item | None, row: int) -> None:
        self.value, self.key, self.path, self.parent, self.row = value, key, path, parent, row
        self.children: list[_Item] = []

    @property
    def size(self) -> int:
        return len(self.value) if isinstance(self.value, dict | list) else 0

    def entries(self) -> Iterator[tuple[str, str, Value]]:
        """Yield the label, path and value of each child."""
        if isinstance(self.value, dict):
            for key, value in self.value.items():
                step = key if _NAME.fullmatch(key) else f"[{json.dumps(key, ensure_ascii=False)}]"
                yield key, f"{self.path}.{step}".lstrip(".") if step is key else f"{self.path}{step}", value
        elif isinstance(self.value, list):
            for row, value in enumerate(self.value):
                yield str(row), f"{self.path}[{row}]", value

    def grow(self, count: int) -> None:
        """Create items for the first children."""
        have = len(self.children)
        for row, (key, path, value) in enumerate(islice(self.entries(), have, count), have):
            self.children.append(_Item(value, key, path, self, row))


class JsonModel(QAbstractItemModel):
    """The model: a row for each key or element."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._root = _Item(None, "", "", None, 0)

    def show_value(self, value: Value) -> None:
        """Show another value."""
        self.beginResetModel()
        self._root = _Item(value, "", "", None, 0)
        self._root.grow(_CHUNK)
        self.endResetModel()

    def item(self, index: _Index) -> _Item:
        """Return the item of an index; the whole value for an invalid one."""
        return index.internalPointer() if index.isValid() else self._root

    def index(self, row: int, column: int, parent: _Index = _ROOT) -> QModelIndex:  # noqa: D102 - Qt's own
        children = self.item(parent).children
        return self.createIndex(row, column, children[row]) if 0 <= row < len(children) else QModelIndex()

    def parent(self, index: _Index = _ROOT) -> QModelIndex:  # type: ignore[override]  # noqa: D102
        above = self.item(index).parent if index.isValid() else None
        return QModelIndex() if above is None or above.parent is None else self.createIndex(above.row, 0, above)

    def rowCount(self, parent: _Index = _ROOT) -> int:  # noqa: D102
        return len(self.item(parent).children) if parent.column() <= 0 else 0

    def columnCount(self, parent: _Index = _ROOT) -> int:  # noqa: D102
        del parent
        return 2

    def hasChildren(self, parent: _Index = _ROOT) -> bool:  # noqa: D102
        return parent.column() <= 0 and self.item(parent).size > 0

    def canFetchMore(self, parent: _Index) -> bool:  # noqa: D102
        item = self.item(parent)
        return len(item.children) < item.size

    def fetchMore(self, parent: _Index) -> None:  # noqa: D102
        item = self.item(parent)
        first = len(item.children)
        last = min(first + _CHUNK, item.size)
        self.beginInsertRows(parent, first, last - 1)  # type: ignore[arg-type]
        item.grow(last)
        self.endInsertRows()

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = 0) -> object:  # noqa: D102
        is_title = orientation is Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole
        return ("Name", "Value")[section] if is_title else None

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:  # noqa: D102
        item = self.item(index)
        if role == Qt.ItemDataRole.DisplayRole:
            return item.key if index.column() == 0 else _label(item)
        if role == Qt.ItemDataRole.ToolTipRole and not item.size:
            return plain_tool_tip(value_text(item.value))
        if role == Qt.ItemDataRole.ForegroundRole and (index.column() == 0 or item.size):
            return QBrush(QColor(style().theme.dim))
        return None


def _label(item: _Item) -> str:
    if isinstance(item.value, dict):
        return format_count(len(item.value), "entry", "entries")
    if isinstance(item.value, list):
        return format_count(len(item.value), "item")
    return value_preview(item.value) if isinstance(item.value, str) else value_text(item.value)


class JsonTree(QTreeView):
    """The tree.

    Args:
        name: Accessible name.
        fills: Whether it fills the available height; otherwise its height follows the visible rows.
    """

    def __init__(self, name: str, parent: QWidget | None = None, *, fills: bool = False) -> None:
        super().__init__(parent)
        self._fills = fills
        self.json = JsonModel(self)
        self.setModel(self.json)
        self.setUniformRowHeights(True)
        self.setEditTriggers(QTreeView.EditTrigger.NoEditTriggers)
        self.setTabKeyNavigation(False)
        self.setIndentation(16)
        self.header().setSectionResizeMode(0, QHeaderView.ResizeMode.ResizeToContents)
        self.header().setStretchLastSection(True)
        self.setSizePolicy(
            QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Expanding if fills else QSizePolicy.Policy.Fixed
        )
        describe_widget(self, name)
        self._add_action("Copy value", "Ctrl+C", lambda item: value_text(item.value))
        self._add_action("Copy path", "Ctrl+Shift+C", lambda item: item.path)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        self.expanded.connect(lambda _index: self.updateGeometry())
        self.collapsed.connect(lambda _index: self.updateGeometry())

    def show_value(self, value: Value) -> None:
        """Show a value, expanded as far as there is room."""
        self.json.show_value(value)
        self._expand()
        self.updateGeometry()

    def sizeHint(self) -> QSize:  # Qt's name
        """Return the height of the visible rows, up to a limit."""
        rows, index = 0, self.json.index(0, 0)
        while index.isValid() and rows < _MAX_ROWS_SHOWN:
            rows, index = rows + 1, self.indexBelow(index)
        height = max(self.rowHeight(self.json.index(0, 0)), self.fontMetrics().height())
        return QSize(120, rows * height + self.header().sizeHint().height() + 2 * self.frameWidth() + 4)

    def minimumSizeHint(self) -> QSize:  # Qt's name
        """Return the same height, unless it fills the available one."""
        return QSize(60, 60 if self._fills else self.sizeHint().height())

    def occurrences(self, text: str) -> list[tuple[int, ...]]:
        """Return where keys and values contain a text, as rows from the outermost to the innermost."""
        wanted = text.casefold()
        return [place for place, key, value in _walk(self.json.item(_ROOT)) if wanted in f"{key}\n{value}".casefold()]

    def go_to(self, place: tuple[int, ...]) -> None:
        """Select the row at a place that `occurrences` returned."""
        index = QModelIndex()
        for row in place:
            while row >= self.json.rowCount(index) and self.json.canFetchMore(index):
                self.json.fetchMore(index)
            if index.isValid():
                self.expand(index)
            index = self.json.index(row, 0, index)
        self.setCurrentIndex(index)
        self.scrollTo(index)

    def _add_action(self, text: str, keys: str, read: Callable[[_Item], str]) -> None:
        action = QAction(text, self)
        action.setShortcut(QKeySequence(keys))
        action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        action.triggered.connect(lambda: self._copy(read))
        self.addAction(action)

    def _copy(self, read: Callable[[_Item], str]) -> None:
        if self.currentIndex().isValid():
            QGuiApplication.clipboard().setText(read(self.json.item(self.currentIndex())))

    def _expand(self) -> None:
        """Expand rows, outer ones first, while all of them stay visible."""
        rows = self.json.rowCount()
        level = [self.json.index(row, 0) for row in range(min(rows, _MAX_ROWS_SHOWN))]
        while level:
            inner: list[QModelIndex] = []
            for index in level:
                size = self.json.item(index).size
                if size and rows + size <= _MAX_ROWS_SHOWN:
                    rows += size
                    if self.json.canFetchMore(index):
                        self.json.fetchMore(index)
                    self.expand(index)
                    inner += [self.json.index(row, 0, index) for row in range(size)]
            level = inner


def _walk(item: _Item) -> Iterator[tuple[tuple[int, ...], str, str]]:
    """Yield the place, the key and the scalar of every value below an item."""
    pending: list[tuple[tuple[int, ...], str, Value]] = [((), "", item.value)]
    while pending:
        place, key, value = pending.pop()
        is_container = isinstance(value, dict | list)
        if place:
            yield place, key, "" if is_container else value_text(value)
        if is_container:
            entries = enumerate(_Item(value, "", "", None, 0).entries())
            pending += reversed([((*place, row), name, inner) for row, (name, _, inner) in entries])
