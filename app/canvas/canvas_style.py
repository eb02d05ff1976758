"""Colors, fonts and pens of the canvas, derived from the theme.

Items call `canvas_style()` while painting. Sizes are those at 100 %: the view scales the scene with the text size, so
positions in the document fit every text size.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from operator import or_
from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainterPath, QPen
from PySide6.QtWidgets import QGraphicsItem

from app.theme.style import glyph, glyph_font, style
from app.theme.tokens import FONT_FAMILY, FONT_SIZE, FONT_SIZE_SMALL, FONT_SIZE_TITLE, Theme
from engine.nodes.spec import Category, PortType

FRAME_COLORS: Final = ("grey", "blue", "violet", "orange", "teal")
"""Colors of frames as named in documents; each theme has its own shade."""


def _font(size: float, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
    font = QFont(FONT_FAMILY)
    font.setPixelSize(round(size))
    font.setWeight(weight)
    font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)  # same widths at every zoom
    return font


@dataclass(frozen=True)
class CanvasStyle:
    """Colors and pens of one theme."""

    theme: Theme
    colors: dict[str, QColor] = field(default_factory=dict[str, QColor])
    pens: dict[tuple[str, int, float, Qt.PenStyle], QPen] = field(
        default_factory=dict[tuple[str, int, float, Qt.PenStyle], QPen]
    )

    def color(self, name: str, alpha: int = 255) -> QColor:
        """Return a color of the theme by name, or `#rrggbb`, with an alpha value."""
        key = f"{name}/{alpha}"
        found = self.colors.get(key)
        if found is None:
            found = QColor(name if name.startswith("#") else getattr(self.theme, name))
            found.setAlpha(alpha)
            self.colors[key] = found
        return found

    def pen(self, name: str, alpha: int, width: float, line: Qt.PenStyle) -> QPen:
        """Return a cached pen, shared by the edges of a document."""
        key = (name, alpha, width, line)
        found = self.pens.get(key)
        if found is None:
            found = self.pens[key] = pen(self.color(name, alpha), width, line)
        return found

    def category(self, category: Category | None, alpha: int = 255) -> QColor:
        """Return the color of a category, or dim text for unknown types."""
        return self.color("dim" if category is None else self.theme.category[category], alpha)

    def port(self, port_type: PortType, alpha: int = 255) -> QColor:
        """Return the color of a port type."""
        return self.color(self.theme.port[port_type], alpha)

    def frame(self, name: str, alpha: int = 255) -> QColor:
        """Return the color of a frame by its name in the document."""
        order = (None, Category.IO, Category.AI, Category.LOGIC, Category.TOOLS)
        return self.category(order[FRAME_COLORS.index(name) if name in FRAME_COLORS else 0], alpha)

    @property
    def is_light(self) -> bool:
        """Whether the theme is light."""
        return self.theme.name == "light"


MIN_TEXT_PIXELS: Final = 11.0
"""Minimum text size in screen pixels when zoomed out, at a text size of 100 %."""


def zoom_from_scale(scale: float) -> float:
    """Return the zoom (1 is 100 %) of a painter's scale, independent of the text size."""
    return scale / style().scale


def zoom_of_view(item: QGraphicsItem) -> float:
    """Return the zoom of the view that shows an item; 1 without a view."""
    views = item.scene().views() if item.scene() is not None else []
    return zoom_from_scale(views[0].transform().m11()) if views else 1.0


def legible_scale(size: float, zoom: float, most: float) -> float:
    """Return the factor by which text is enlarged to stay legible when zoomed out."""
    return min(max(MIN_TEXT_PIXELS / (size * zoom), 1.0), most)


def canvas_style() -> CanvasStyle:
    """Return the style of the current theme."""
    return _style_of(style().theme.name)


@lru_cache(maxsize=4)
def _style_of(_name: str) -> CanvasStyle:
    return CanvasStyle(style().theme)


@dataclass(frozen=True)
class Fonts:
    """The fonts of the canvas with their metrics."""

    title: QFont
    text: QFont
    small: QFont
    small_bold: QFont
    title_metrics: QFontMetricsF
    small_metrics: QFontMetricsF
    bold_metrics: QFontMetricsF


@lru_cache(maxsize=1)
def fonts() -> Fonts:
    """Return the fonts; created once, after the application's fonts are loaded."""
    title = _font(FONT_SIZE_TITLE, QFont.Weight.DemiBold)
    small, small_bold = _font(FONT_SIZE_SMALL), _font(FONT_SIZE_SMALL, QFont.Weight.DemiBold)
    return Fonts(
        title,
        _font(FONT_SIZE),
        small,
        small_bold,
        QFontMetricsF(title),
        QFontMetricsF(small),
        QFontMetricsF(small_bold),
    )


@lru_cache(maxsize=1024)
def small_width(text: str) -> float:
    """Return the width of a text in the small font; cached, because port names repeat."""
    return fonts().small_metrics.horizontalAdvance(text)


def united(rects: Iterable[QRectF]) -> QRectF:
    """Return the bounding rectangle of rectangles; a null one if there are none."""
    return reduce(or_, rects, QRectF())  # faster than `united`


Sides = tuple[float, float, float, float]
"""Left, top, right and bottom of a rectangle."""


def rect_around(sides: Iterable[Sides]) -> QRectF:
    """Return the bounding rectangle as `united` does: several times as fast where there are hundreds of cards."""
    columns = tuple(zip(*sides, strict=True))
    if not columns:
        return QRectF()
    lefts, tops, rights, bottoms = columns
    return QRectF(QPointF(min(lefts), min(tops)), QPointF(max(rights), max(bottoms)))


@lru_cache(maxsize=64)
def icon_path(name: str, size: int) -> QPainterPath:
    """Return the outline of an icon at the origin: sharp at every zoom, and in SVG."""
    path = QPainterPath()
    path.addText(0.0, float(size), glyph_font(size), glyph(name))
    bounds = path.boundingRect()
    path.translate(-bounds.x() + (size - bounds.width()) / 2, -bounds.y() + (size - bounds.height()) / 2)
    return path


def pen(color: QColor, width: float = 1.0, style_: Qt.PenStyle = Qt.PenStyle.SolidLine) -> QPen:
    """Create a pen with round caps."""
    made = QPen(color, width, style_, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin)
    if style_ is Qt.PenStyle.DashLine:
        made.setDashPattern([3.0, 3.0])
    return made
