"""The view as a place where things are dropped: node types and templates from the palette, files from anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import QMimeData, QPointF, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDragMoveEvent, QDropEvent

from app.canvas.view_base import ViewBase

NODE_MIME: Final = "application/x-loopwright-node"
TEMPLATE_MIME: Final = "application/x-loopwright-template"
FILES_MIME: Final = "text/uri-list"


class DropView(ViewBase):
    """A view that takes drops.

    Signals:
        type_dropped: A node type was dropped: its name and the place in the scene.
        template_dropped: A template was dropped: its name.
        files_dropped: Files were dropped.
    """

    type_dropped = Signal(str, QPointF)
    template_dropped = Signal(str)
    files_dropped = Signal(list)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Take nodes, templates and files."""
        self._accept(event)

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        """Take nodes, templates and files."""
        self._accept(event)

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        """Nothing was dropped."""
        event.accept()

    def dropEvent(self, event: QDropEvent) -> None:
        """Hand on what was dropped."""
        data, place = event.mimeData(), self.mapToScene(event.position().toPoint())
        if data.hasFormat(NODE_MIME):
            self.type_dropped.emit(_text(data, NODE_MIME), place)
        elif data.hasFormat(TEMPLATE_MIME):
            self.template_dropped.emit(_text(data, TEMPLATE_MIME))
        elif data.hasUrls():
            self.files_dropped.emit([Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile()])
        self._accept(event)

    def _accept(self, event: QDropEvent) -> None:
        kinds = (NODE_MIME, TEMPLATE_MIME, FILES_MIME)
        if any(event.mimeData().hasFormat(kind) for kind in kinds):
            event.setDropAction(Qt.DropAction.CopyAction)
            event.accept()
        else:
            event.ignore()


def _text(data: QMimeData, kind: str) -> str:
    return bytes(data.data(kind).data()).decode("utf-8", "replace").strip()
