"""What of the document is seen, and what lies in the corners over it: the two keep out of each other's way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QPointF, QRectF, QSize

from app.canvas.node_item import NodeItem
from app.theme.tokens import UNIT

if TYPE_CHECKING:
    from app.canvas.controls import ZoomControls
    from app.canvas.document_view import DocumentView
    from app.canvas.minimap import Minimap
    from app.canvas.viewer import CanvasViewer

CORNER: Final = 4 * UNIT
LEAST_FIRST: Final = 0.4
"""The least zoom at which a document is first seen: titles are legible, and few of them cut."""


class Fitting:
    """Fits parts of a document into the view, beside the zoom buttons and the overview map."""

    def __init__(self, view: DocumentView, viewer: CanvasViewer, controls: ZoomControls, minimap: Minimap) -> None:
        self._view, self._viewer = view, viewer
        self._controls, self._minimap = controls, minimap
        self._fitted: tuple[float, float, float] | None = None
        self._fit_again = self.fit_all

    def place_corners(self, size: QSize) -> None:
        """Put buttons and map into the lower corners of a canvas of that size."""
        controls, minimap = self._controls, self._minimap
        controls.adjustSize()
        controls.move(CORNER, size.height() - controls.height() - CORNER)
        minimap.move(size.width() - minimap.width() - CORNER, size.height() - minimap.height() - CORNER)
        is_wide = size.width() > controls.width() + minimap.width() + 4 * CORNER
        minimap.has_room = is_wide and size.height() > 3 * minimap.height()
        minimap.stand_back()

    def fit_all(self) -> None:
        """Show the whole document; the map stands back then."""
        self._viewer.show_rect(self._view.content_rect, self._covers(has_map=False))
        self._fitted, self._fit_again = self._standing, self.fit_all

    def first_look(self) -> None:
        """Show the whole document; the start of one that is too large to be read as a whole."""
        if self._viewer.zoom_for(self._view.content_rect, self._covers(has_map=False)) < LEAST_FIRST:
            self._look_at_start()
        else:
            self.fit_all()
        self._fitted, self._fit_again = self._standing, self.first_look

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

    def _look_at_start(self) -> None:
        rect, cards = self._view.content_rect, self._view.nodes.values()
        middles = (card.card_rect.center() for card in cards)
        start = min(middles, key=lambda place: place.x(), default=rect.center())
        self._viewer.show_start(rect, start, self._covers(has_map=self._minimap.has_room), LEAST_FIRST)

    def fit_selection(self) -> None:
        """Show what is selected; the whole document where nothing is."""
        rect = QRectF()
        for item in self._viewer.selected_nodes():
            rect = rect.united(item.card_rect if isinstance(item, NodeItem) else item.scene_rect)
        if rect.isNull():
            self.fit_all()
        else:
            self._viewer.show_rect(rect, self._covers(has_map=self._minimap.has_room))

    def _covers(self, *, has_map: bool) -> list[QRectF]:
        """What lies over the view, in its pixels."""
        covers = [self._controls, self._minimap] if has_map else [self._controls]
        return [QRectF(cover.geometry()).translated(-QPointF(self._viewer.pos())) for cover in covers]
