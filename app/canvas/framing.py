"""How large and where a part of the scene is seen so that nothing that lies over the view covers it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QPointF, QRectF

from app.theme.tokens import UNIT

MARGIN: Final = 6.0 * UNIT
"""Pixels of the screen that stay free around what is shown."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A way to look at the scene.

    Attributes:
        factor: Pixels of the screen for one unit of the scene.
        centre: The place of the scene in the middle of the view.
    """

    factor: float
    centre: QPointF


def framed(rect: QRectF, view: QRectF, covers: Sequence[QRectF], largest: float) -> Frame:
    """Look at a part of the scene as a whole, as large as it goes, beside what lies over the view.

    Args:
        rect: The part of the scene; not empty.
        view: The view in pixels, its upper left corner at the origin.
        covers: What lies over the view in its lower corners, in pixels.
        largest: The greatest factor.
    """
    whole = _in_area(rect, view, view, largest)
    seen = _seen(rect, view, whole)
    if not any(cover.intersects(seen) for cover in covers):
        return whole
    top = min(cover.top() for cover in covers)
    left = max((cover.right() for cover in covers if cover.center().x() < view.center().x()), default=view.left())
    right = min((cover.left() for cover in covers if cover.center().x() >= view.center().x()), default=view.right())
    above = QRectF(view.left(), view.top(), view.width(), top - view.top())
    between = QRectF(left, view.top(), right - left, view.height())
    frames = [_in_area(rect, area, view, largest) for area in (above, between) if _has_room(area)]
    return max(frames, key=lambda frame: frame.factor, default=whole)


def started(rect: QRectF, start: QPointF, view: QRectF, covers: Sequence[QRectF], factor: float) -> Frame:
    """Look at the start of a part of the scene that does not go into the view as a whole.

    Args:
        rect: The part of the scene.
        start: The place in it where people begin to read.
        view: The view in pixels, its upper left corner at the origin.
        covers: What lies over the view in its lower corners, in pixels.
        factor: Pixels of the screen for one unit of the scene.
    """
    bottom = min((cover.top() for cover in covers), default=view.bottom())
    free = QRectF(view.left(), view.top(), view.width(), bottom - view.top()).adjusted(MARGIN, MARGIN, -MARGIN, -MARGIN)
    across, down = free.width() / factor, free.height() / factor
    left = rect.left() if rect.width() > across else rect.center().x() - across / 2
    if rect.height() > down:
        top = min(max(start.y() - down / 2, rect.top()), rect.bottom() - down)
    else:
        top = rect.center().y() - down / 2
    shift = view.center() - free.topLeft()
    return Frame(factor, QPointF(left, top) + shift / factor)


def _in_area(rect: QRectF, area: QRectF, view: QRectF, largest: float) -> Frame:
    free = area.adjusted(MARGIN, MARGIN, -MARGIN, -MARGIN)
    factor = min(max(free.width(), 1.0) / rect.width(), max(free.height(), 1.0) / rect.height(), largest)
    return Frame(factor, rect.center() + (view.center() - area.center()) / factor)


def _seen(rect: QRectF, view: QRectF, frame: Frame) -> QRectF:
    """Where a part of the scene is on the screen, with what stands out of it."""
    corner = view.center() + (rect.topLeft() - frame.centre) * frame.factor
    half = MARGIN / 2
    return QRectF(corner, rect.size() * frame.factor).adjusted(-half, -half, half, half)


def _has_room(area: QRectF) -> bool:
    return area.width() > 4 * MARGIN and area.height() > 4 * MARGIN
