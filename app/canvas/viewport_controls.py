"""What lies over the view: the zoom buttons, what is said beside the mouse, and how to begin on empty ground."""

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
HOW_TO_BEGIN: Final = "Drag a node here, press Tab to add one, or open a template."


class ZoomControls(QFrame):
    """Smaller, 100 %, larger, fit."""

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
        """Say how large things are seen."""
        words = f"{round(self._viewer.zoom * 100)} %"
        if words != self.percent.text():
            self.percent.setText(words)
        self.percent.setMinimumWidth(self.fontMetrics().horizontalAdvance("000 %") + 6 * UNIT)
        self.adjustSize()


class CursorHint(PlainLabel):
    """A short text beside the mouse, such as why an edge may not end here."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__("", parent, wrap=True)
        self._canvas = parent
        self.setObjectName("canvas_hint")
        self.setProperty("hint", "bad")
        self.setMargin(2 * UNIT)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()

    def say(self, text: str, place: QPoint) -> None:
        """Say something at a place of the parent; nothing hides it."""
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
    """What to do first, in the middle of a canvas with nothing on it."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(HOW_TO_BEGIN, parent, look="dim", wrap=True)
        self._canvas = parent
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)

    def center_in_parent(self) -> None:
        """Take the middle of the parent, on one line where there is room."""
        room = self._canvas.rect()
        one_line = self.fontMetrics().horizontalAdvance(HOW_TO_BEGIN) + 2 * UNIT
        width = max(min(one_line, room.width() - 8 * UNIT), UNIT)
        self.resize(width, self.heightForWidth(width))
        self.move((room.width() - self.width()) // 2, (room.height() - self.height()) // 2)


CORNER: Final = 4 * UNIT
LEAST_FIRST: Final = 0.4
"""The least zoom at which a document is first seen: titles are legible, and few of them cut."""


class FitToView:
    """Fits parts of a document into the view, beside the zoom buttons and the overview map."""

    def __init__(self, view: DocumentView, viewer: CanvasViewer, controls: ZoomControls, minimap: Minimap) -> None:
        self._view, self._viewer = view, viewer
        self._controls, self._minimap = controls, minimap
        self._fitted: tuple[float, float, float] | None = None
        self._fit_again = self.fit_all

    def place_overlays(self, size: QSize) -> None:
        """Put buttons and map into the lower corners of a canvas of that size."""
        controls, minimap = self._controls, self._minimap
        controls.adjustSize()
        controls.move(CORNER, size.height() - controls.height() - CORNER)
        minimap.move(size.width() - minimap.width() - CORNER, size.height() - minimap.height() - CORNER)
        is_wide = size.width() > controls.width() + minimap.width() + 4 * CORNER
        minimap.has_room = is_wide and size.height() > 3 * minimap.height()
        minimap.update_visibility()

    def fit_all(self) -> None:
        """Show the whole document; the map stands back then."""
        self._viewer.fit_rect(self._view.content_rect, self._overlay_rects(has_map=False))
        self._fitted, self._fit_again = self._standing, self.fit_all

    def fit_initial_view(self) -> None:
        """Show the whole document; the start of one that is too large to be read as a whole."""
        if self._viewer.fit_zoom(self._view.content_rect, self._overlay_rects(has_map=False)) < LEAST_FIRST:
            self._fit_start()
        else:
            self.fit_all()
        self._fitted, self._fit_again = self._standing, self.fit_initial_view

    @property
    def is_fitted(self) -> bool:
        """Whether the document was fitted, and nobody has moved or zoomed the view since."""
        return self._fitted is not None and self._fitted == self._standing

    def fit_again(self) -> None:
        """Fit the document as it was fitted last."""
        self._fit_again()

    @property
    def _standing(self) -> tuple[float, float, float] | None:
        """Where the view stands, whatever its size; None for an empty document, which cannot be fitted."""
        if not self._view.nodes:
            return None
        corner = self._viewer.mapToScene(0, 0)
        return (self._viewer.transform().m11(), corner.x(), corner.y())

    def _fit_start(self) -> None:
        rect, cards = self._view.content_rect, self._view.nodes.values()
        middles = (card.card_rect.center() for card in cards)
        start = min(middles, key=lambda place: place.x(), default=rect.center())
        self._viewer.fit_start(rect, start, self._overlay_rects(has_map=self._minimap.has_room), LEAST_FIRST)

    def fit_selection(self) -> None:
        """Show what is selected; the whole document where nothing is."""
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
        """What lies over the view, in its pixels."""
        overlays = [self._controls, self._minimap] if has_map else [self._controls]
        return [QRectF(cover.geometry()).translated(-QPointF(self._viewer.pos())) for cover in overlays]
