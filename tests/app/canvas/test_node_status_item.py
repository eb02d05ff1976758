"""The run status on a card is legible at every zoom, theme and text size."""

from __future__ import annotations

from collections import Counter

import pytest
from PySide6.QtCore import QPointF, QRectF

from app.canvas.canvas_style import fonts, legible_scale
from app.canvas.node_card import HEADER_FROM, card_text
from app.canvas.node_status_item import GROWS_FROM, MARK, MAX_ENLARGEMENT, PILL_HEIGHT, NodeStatus, NodeStatusItem
from app.theme.style import style
from app.theme.tokens import FONT_SIZE_SMALL
from engine.run_state.state import NodeState
from tests.app.canvas.conftest import Hand
from tests.app.theme.test_contrast import MARK as LEAST_CONTRAST
from tests.app.theme.test_contrast import contrast

LEAST_INK = 0.08
"""How much of the room for a mark it must fill with what stands out: thinner strokes fade into their ground."""


@pytest.fixture(autouse=True)
def usual_look() -> object:
    yield
    style().choose("dark", 1.0)


@pytest.mark.parametrize("theme", ["dark", "light"])
@pytest.mark.parametrize(("scale", "zoom"), [(1.0, 0.5), (1.0, 0.7), (1.0, 1.0), (1.5, 0.5), (1.5, 1.0)])
@pytest.mark.parametrize("state", [NodeState.COMPLETED, NodeState.FAILED])
def test_status_icon_has_enough_contrast(hand: Hand, theme: str, scale: float, zoom: float, state: NodeState) -> None:
    style().choose(theme, scale)
    hand.canvas.viewer.zoom_to(zoom)
    item = hand.item("draft")
    hand.canvas.center_on("draft")
    item.status_item = NodeStatusItem(item, item.geometry, item.content.title)
    item.status_item.set_status(NodeStatus(state))
    grown = legible_scale(FONT_SIZE_SMALL, zoom, MAX_ENLARGEMENT)
    width = item.status_item._pill.width() * grown
    top = GROWS_FROM - (GROWS_FROM + MARK / 2) * grown
    corner = item.pos() + QPointF(item.geometry.width - 8 - width + 8 * grown, top)
    image = hand.canvas.viewer.viewport().grab().toImage()

    def colors(rect: QRectF) -> Counter[str]:
        seen = hand.canvas.viewer.mapFromScene(rect).boundingRect()
        places = ((x, y) for x in range(seen.left(), seen.right()) for y in range(seen.top(), seen.bottom()))
        return Counter(image.pixelColor(x, y).name() for x, y in places)

    above = corner + QPointF(2 * grown, (MARK - PILL_HEIGHT) / 2 * grown + 2.5 * grown)
    [(ground, _)] = colors(QRectF(above, above + QPointF(6 * grown, 2 * grown))).most_common(1)
    mark = colors(QRectF(corner.x(), corner.y(), MARK * grown, MARK * grown))
    strong = sum(count for color, count in mark.items() if contrast(color, ground) >= LEAST_CONTRAST)
    assert strong / mark.total() >= LEAST_INK


@pytest.mark.parametrize("scale", [1.0, 1.5])
@pytest.mark.parametrize("zoom", [HEADER_FROM, 0.65, 0.69, 0.75, 1.0])
def test_status_does_not_cover_the_title(hand: Hand, scale: float, zoom: float) -> None:
    style().choose("light", scale)
    item = hand.item("loop")
    words = card_text(item.content.title, item.geometry, zoom)
    letters = words.scale * (words.room.center().y() - fonts().title_metrics.capHeight() / 2)
    lower_edge = GROWS_FROM + (PILL_HEIGHT / 2 - GROWS_FROM) * legible_scale(FONT_SIZE_SMALL, zoom, MAX_ENLARGEMENT)
    assert lower_edge + 3 <= letters
