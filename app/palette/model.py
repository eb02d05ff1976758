"""The palette's rows as Qt's views read them, and as they are dragged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from PySide6.QtCore import QAbstractListModel, QMimeData, QModelIndex, QPersistentModelIndex, Qt

from app.palette.rows import Row, RowKind
from app.theme.widgets import plain_tool_tip

NODE_MIME: Final = "application/x-loopwright-node"
TEMPLATE_MIME: Final = "application/x-loopwright-template"
MIME_TYPES: Final = {RowKind.NODE: NODE_MIME, RowKind.TEMPLATE: TEMPLATE_MIME}

Index = QModelIndex | QPersistentModelIndex


class PaletteModel(QAbstractListModel):
    """The rows. Headers can be neither chosen nor dragged."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[Row] = []

    def show_rows(self, rows: list[Row]) -> None:
        """List these rows and no others."""
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()

    def row_at(self, index: Index) -> Row | None:
        """The row at an index; None where there is none."""
        return self._rows[index.row()] if index.isValid() and index.row() < len(self._rows) else None

    def first(self) -> QModelIndex:
        """The first row that can be chosen; an invalid index where there is none."""
        at = next((at for at, row in enumerate(self._rows) if row.kind is not RowKind.HEADER), -1)
        return self.index(at, 0) if at >= 0 else QModelIndex()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        """How many rows there are."""
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """The title, the help as a tool tip, and both for a screen reader."""
        row = self.row_at(index)
        if row is None:
            return None
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return row.title
            case Qt.ItemDataRole.ToolTipRole:
                return plain_tool_tip(row.help)
            case Qt.ItemDataRole.AccessibleTextRole:
                return f"{row.title}: {row.help}" if row.help else row.title
            case _:
                return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        """What can be done with a row."""
        row = self.row_at(index)
        if row is None or row.kind is RowKind.HEADER:
            return Qt.ItemFlag.NoItemFlags
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsDragEnabled

    def mimeTypes(self) -> list[str]:
        """As what rows are dragged."""
        return [NODE_MIME, TEMPLATE_MIME]

    def mimeData(self, indexes: Sequence[Index]) -> QMimeData:
        """The name of the type, or the path of the template, as UTF-8."""
        data = QMimeData()
        for index in indexes:
            row = self.row_at(index)
            if row is not None and row.kind in MIME_TYPES:
                data.setData(MIME_TYPES[row.kind], row.key.encode())
        return data

    def supportedDragActions(self) -> Qt.DropAction:
        """Dragging a row leaves it where it is."""
        return Qt.DropAction.CopyAction
