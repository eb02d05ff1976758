"""The canvas: the document drawn as a graph, and all that can be done to it by mouse and keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PySide6.QtCore import QPointF, QRectF, Signal
from PySide6.QtGui import QAction, QImage, QResizeEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.canvas.document_view import DocumentView
from app.canvas.editing import Editing
from app.canvas.gestures import Gestures
from app.canvas.node_item import NodeItem
from app.canvas.viewer import CanvasViewer
from app.session import Session
from app.theme.style import style
from engine.document.model import Workflow

FIT_MARGIN = 48.0


class Canvas(QWidget):
    """The canvas of one document.

    Signals:
        quick_add_requested: An edge from this port was let go over empty ground at this place.
        files_dropped: Files were dropped on it.
        template_dropped: A template of this name was dropped on it.
        zoom_changed: Things are seen larger or smaller.

    Attributes:
        session: The document.
        viewer: The view itself.
        view: The items on it.
        editing: What menus and keys do.
    """

    files_dropped = Signal(list)
    template_dropped = Signal(str)

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.session = session
        self.setAccessibleName("Canvas")
        self.viewer = CanvasViewer(self)
        self.viewer.setAccessibleName("Workflow")
        self.view = DocumentView(session, self.viewer, self)
        self.gestures = Gestures(session, self.view, self.viewer, self)
        self.editing = Editing(session, self.view, self.viewer, self.gestures)
        self.actions_by_name: dict[str, QAction] = {}
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.viewer)
        self.setFocusProxy(self.viewer)
        self._is_selecting = False
        self._connect_signals()

    def _connect_signals(self) -> None:
        self.session.changed.connect(self._document_changed)
        self.session.analysed.connect(self._analysed)
        self.session.selection_changed.connect(self._take_up_selection)
        self.viewer.scene().selectionChanged.connect(self._hand_on_selection)
        self.viewer.files_dropped.connect(self.files_dropped)
        self.viewer.template_dropped.connect(self.template_dropped)
        self.viewer.type_dropped.connect(self.add_node)
        style().changed.connect(self._restyle)

    # What the window calls

    @property
    def view_state(self) -> tuple[float, float, float]:
        """Zoom and the middle of what is seen, to be restored."""
        return (self.viewer.zoom, self.viewer.centre.x(), self.viewer.centre.y())

    @view_state.setter
    def view_state(self, state: tuple[float, float, float]) -> None:
        self.viewer.zoom_to(state[0])
        self.viewer.look_at(QPointF(state[1], state[2]))

    def fit_all(self) -> None:
        """Show the whole document."""
        self.viewer.show_rect(_with_margin(self.view.content_rect))

    def fit_selection(self) -> None:
        """Show what is selected; the whole document where nothing is."""
        rect = QRectF()
        for item in self.viewer.selected_nodes():
            rect = rect.united(item.card_rect if isinstance(item, NodeItem) else item.scene_rect)
        if rect.isNull():
            self.fit_all()
        else:
            self.viewer.show_rect(_with_margin(rect))

    def zoom_to(self, factor: float) -> None:
        """Zoom; 1 is 100 %."""
        self.viewer.zoom_to(factor)

    def center_on(self, node_id: str) -> None:
        """Bring a node to the middle."""
        item = self.view.nodes.get(node_id)
        if item is not None:
            self.viewer.look_at(item.card_rect.center())

    def add_node(self, node_type: str, place: QPointF | None = None) -> str | None:
        """Add a node, and with a loop its exit; gives its id, None where it is not possible."""
        return self.editing.add_node(node_type, place)

    def copy(self) -> None:
        """Put the selected nodes on the clipboard as text."""
        self.editing.copy()

    def cut(self) -> None:
        """Put the selected nodes on the clipboard and take them out."""
        self.editing.cut()

    def paste(self) -> None:
        """Add the nodes on the clipboard."""
        self.editing.paste()

    def duplicate(self) -> None:
        """Add copies of the selected nodes."""
        self.editing.duplicate()

    def delete(self) -> None:
        """Take out what is selected."""
        self.editing.delete()

    def select_all(self) -> None:
        """Select all nodes."""
        self.session.select(self.view.nodes)

    def find(self, text: str) -> list[str]:
        """The ids of the nodes whose title, id, type or summary holds a text."""
        wanted = text.casefold()
        return [
            node_id
            for node_id, item in self.view.nodes.items()
            if any(
                wanted in field.casefold() for field in (item.facts.title, node_id, item.facts.type, item.facts.summary)
            )
        ]

    def grab_picture(self) -> QImage:
        """The whole document as a picture."""
        from app.canvas.export import picture

        return picture(self.viewer.scene(), self.view.content_rect, 1.0)

    def export_png(self, path: Path, scale: float = 2.0) -> None:
        """Write the whole document as a picture.

        Raises:
            ExportError: The file cannot be written.
        """
        from app.canvas.export import write_png

        write_png(self.viewer.scene(), self.view.content_rect, path, scale)

    def export_svg(self, path: Path) -> None:
        """Write the whole document as a drawing.

        Raises:
            ExportError: The file cannot be written.
        """
        from app.canvas.export import write_svg

        write_svg(self.viewer.scene(), self.view.content_rect, path, self.session.name)

    # What comes from the document

    def _document_changed(self, old: Workflow, new: Workflow) -> None:
        with self._selecting():
            self.view.patch(old, new)

    def _analysed(self) -> None:
        self.view.regions.refresh(self.session.workflow)
        self.view.items_changed.emit()

    def _take_up_selection(self) -> None:
        wanted = set(self.session.selection)
        with self._selecting():
            for node_id, item in self.view.nodes.items():
                if item.isSelected() != (node_id in wanted):
                    item.setSelected(node_id in wanted)

    def _hand_on_selection(self) -> None:
        if not self._is_selecting:
            items = self.viewer.scene().selectedItems()
            self.session.select(item.facts.id for item in items if isinstance(item, NodeItem))
        for pipe in self.view.pipes.values():
            pipe.restyle()

    @contextmanager
    def _selecting(self) -> Iterator[None]:
        """Selections that come from the document are not handed back to it."""
        self._is_selecting = True
        try:
            yield
        finally:
            self._is_selecting = False

    def _restyle(self) -> None:
        self.viewer.apply_zoom()
        self.viewer.repaint_ground()
        self.view.restyle()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Keep what lies over the view in its corners."""
        super().resizeEvent(event)


def _with_margin(rect: QRectF) -> QRectF:
    return rect.adjusted(-FIT_MARGIN, -FIT_MARGIN, FIT_MARGIN, FIT_MARGIN)
