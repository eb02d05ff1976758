"""Controls over the view: zoom buttons, hints, and fitting the document beside them."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFrame, QHBoxLayout, QToolButton, QWidget

from app.canvas.annotations import AnnotationItem
from app.canvas.document_view import DocumentView
from app.canvas.minimap import Minimap
from app.canvas.node_item import NodeItem
from app.canvas.viewer import CanvasViewer
from app.theme.style import ThemedIcon, style
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel

HINT_WIDTH: Final = 280
HINT_OFFSET: Final = QPoint(16, 20)
FIRST_STEPS: Final = "Drag a node here, press Tab to add one, or open a template."


class ZoomControls(QFrame):
    """Buttons for zoom out, 100 %, zoom in and fit."""

    def __init__(self, viewer: CanvasViewer, actions: dict[str, QAction], parent: QWidget) -> None:
        super().__init__(parent)
        self._viewer = viewer
        self.setProperty("card", True)
        row = QHBoxLayout(self)
        row.setContentsMargins(UNIT, UNIT, UNIT, UNIT)
        row.setSpacing(UNIT)
        self.buttons: dict[str, QToolButton] = {}
        for name, sign in (("zoom_out", "mdi6.minus"), ("zoom_100", ""), ("zoom_in", "mdi6.plus"), ("fit_all", "")):
            button = QToolButton(self)
            action = actions[name]
            button.setAccessibleName(action.toolTip())
            keys = action.shortcut().toString()
            button.setToolTip(f"{action.toolTip()} ({keys})" if keys else action.toolTip())
            button.clicked.connect(action.trigger)
            if sign:
                ThemedIcon(button, sign)
            row.addWidget(button)
            self.buttons[name] = button
        self.buttons["fit_all"].setText("Fit")
        self.percent = self.buttons["zoom_100"]
        viewer.view_moved.connect(self.refresh)
        style().changed.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Update the displayed zoom."""
        words = f"{round(self._viewer.zoom * 100)}%"
        if words != self.percent.text():
            self.percent.setText(words)
        self.percent.setMinimumWidth(self.fontMetrics().horizontalAdvance("000%") + 6 * UNIT)
        self.adjustSize()


class CursorHint(PlainLabel):
    """Short text beside the mouse, such as why an edge cannot be dropped here."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__("", parent, wrap=True)
        self._canvas = parent
        self.setObjectName("canvas_hint")
        self.setProperty("hint", "bad")
        self.setMargin(2 * UNIT)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()

    def say(self, text: str, place: QPoint) -> None:
        """Show a text near a position, inside the canvas; an empty text hides it."""
        self.setText(text)
        if not text:
            self.hide()
            return
        self.setFixedWidth(round(HINT_WIDTH * style().scale))
        self.adjustSize()
        room = self._canvas.rect()
        place = place + HINT_OFFSET
        self.move(min(place.x(), room.width() - self.width() - 8), min(place.y(), room.height() - self.height() - 8))
        self.show()
        self.raise_()


class EmptyCanvasHint(PlainLabel):
    """First steps, shown on an empty canvas."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(FIRST_STEPS, parent, look="dim", wrap=True)
        self._canvas = parent
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)

    def center_in_parent(self) -> None:
        """Centre in the canvas, on one line if there is room."""
        room = self._canvas.rect()
        one_line = self.fontMetrics().horizontalAdvance(FIRST_STEPS) + 2 * UNIT
        width = max(min(one_line, room.width() - 8 * UNIT), UNIT)
        self.resize(width, self.heightForWidth(width))
        self.move((room.width() - self.width()) // 2, (room.height() - self.height()) // 2)


CORNER: Final = 4 * UNIT
MIN_INITIAL_ZOOM: Final = 0.4
"""Minimum zoom for a new view: titles are legible."""


class FitToView:
    """Fits the document into the view, beside the zoom buttons and the minimap."""

    def __init__(self, view: DocumentView, viewer: CanvasViewer, controls: ZoomControls, minimap: Minimap) -> None:
        self._view, self._viewer = view, viewer
        self._controls, self._minimap = controls, minimap
        self._fitted: tuple[float, float, float] | None = None
        self._fit_again = self.fit_all

    def place_overlays(self, size: QSize) -> None:
        """Move zoom buttons and minimap into the lower corners of a canvas of a size."""
        controls, minimap = self._controls, self._minimap
        controls.adjustSize()
        controls.move(CORNER, size.height() - controls.height() - CORNER)
        minimap.move(size.width() - minimap.width() - CORNER, size.height() - minimap.height() - CORNER)
        is_wide = size.width() > controls.width() + minimap.width() + 4 * CORNER
        minimap.has_room = is_wide and size.height() > 3 * minimap.height()
        minimap.update_visibility()

    def fit_all(self) -> None:
        """Fit the whole document; the minimap is hidden then."""
        self._viewer.fit_rect(self._view.content_rect, self._overlay_rects(has_map=False))
        self._fitted, self._fit_again = self._counter, self.fit_all

    def fit_initial_view(self) -> None:
        """Fit the whole document, or its start if it would be illegible."""
        if self._viewer.fit_zoom(self._view.content_rect, self._overlay_rects(has_map=False)) < MIN_INITIAL_ZOOM:
            self._fit_start()
        else:
            self.fit_all()
        self._fitted, self._fit_again = self._counter, self.fit_initial_view

    @property
    def is_fitted(self) -> bool:
        """Whether the document is still fitted: the view was not moved or zoomed since."""
        return self._fitted is not None and self._fitted == self._counter

    def fit_again(self) -> None:
        """Repeat the last fit."""
        self._fit_again()

    @property
    def _counter(self) -> tuple[float, float, float] | None:
        """Zoom and upper left corner of the view; None for an empty document."""
        if not self._view.nodes:
            return None
        corner = self._viewer.mapToScene(0, 0)
        return (self._viewer.transform().m11(), corner.x(), corner.y())

    def _fit_start(self) -> None:
        rect, cards = self._view.content_rect, self._view.nodes.values()
        middles = (card.card_rect.center() for card in cards)
        start = min(middles, key=lambda place: place.x(), default=rect.center())
        self._viewer.fit_start(rect, start, self._overlay_rects(has_map=self._minimap.has_room), MIN_INITIAL_ZOOM)

    def fit_selection(self) -> None:
        """Fit the selection, or the whole document if nothing is selected."""
        rect = QRectF()
        for item in self._viewer.selected_nodes():
            if isinstance(item, NodeItem):
                rect = rect.united(item.card_rect)
            elif isinstance(item, AnnotationItem):
                rect = rect.united(item.scene_rect)
        if rect.isNull():
            self.fit_all()
        else:
            self._viewer.fit_rect(rect, self._overlay_rects(has_map=self._minimap.has_room))

    def _overlay_rects(self, *, has_map: bool) -> list[QRectF]:
        """Return the rectangles of the controls in view coordinates."""
        overlays = [self._controls, self._minimap] if has_map else [self._controls]
        return [QRectF(cover.geometry()).translated(-QPointF(self._viewer.pos())) for cover in overlays]
