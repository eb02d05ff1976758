"""The colours, fonts and pens of the canvas, made from the theme.

Items of the scene ask `look()` while they paint. Sizes are those of 100 %: the view enlarges the whole scene by the
size of texts that is chosen, so that places in the document fit at every size.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainterPath, QPen

from app.theme.icon_font import glyph, glyph_font
from app.theme.style import style
from app.theme.tokens import FONT_FAMILY, FONT_SIZE, FONT_SIZE_SMALL, FONT_SIZE_TITLE, Theme
from engine.nodes.spec import Category, PortType

FRAME_COLOURS: Final = ("grey", "blue", "violet", "orange", "teal")
"""The colours that a frame may have, as the document names them; each theme has its own tone of them."""


def _font(size: float, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
    font = QFont(FONT_FAMILY)
    font.setPixelSize(round(size))
    font.setWeight(weight)
    font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)  # the same widths at every zoom
    return font


@dataclass(frozen=True)
class CanvasStyle:
    """What items paint with in one theme."""

    theme: Theme
    colours: dict[str, QColor] = field(default_factory=dict[str, QColor])
    pens: dict[tuple[str, int, float, Qt.PenStyle], QPen] = field(
        default_factory=dict[tuple[str, int, float, Qt.PenStyle], QPen]
    )

    def colour(self, name: str, alpha: int = 255) -> QColor:
        """A colour of the theme by its name there, or `#rrggbb`, more or less see-through."""
        key = f"{name}/{alpha}"
        found = self.colours.get(key)
        if found is None:
            found = QColor(name if name.startswith("#") else getattr(self.theme, name))
            found.setAlpha(alpha)
            self.colours[key] = found
        return found

    def pen(self, name: str, alpha: int, width: float, line: Qt.PenStyle) -> QPen:
        """A pen of a colour; the many edges of a document share a few of them."""
        key = (name, alpha, width, line)
        found = self.pens.get(key)
        if found is None:
            found = self.pens[key] = pen(self.colour(name, alpha), width, line)
        return found

    def category(self, category: Category | None, alpha: int = 255) -> QColor:
        """The colour of a category; that of dim text where the type is unknown."""
        return self.colour("dim" if category is None else self.theme.category[category], alpha)

    def port(self, port_type: PortType, alpha: int = 255) -> QColor:
        """The colour of what flows through a port."""
        return self.colour(self.theme.port[port_type], alpha)

    def frame(self, name: str, alpha: int = 255) -> QColor:
        """The colour of a frame by its name in the document."""
        order = (None, Category.IO, Category.AI, Category.LOGIC, Category.TOOLS)
        return self.category(order[FRAME_COLOURS.index(name) if name in FRAME_COLOURS else 0], alpha)

    @property
    def is_light(self) -> bool:
        """Whether dark stands on light."""
        return self.theme.name == "light"


LEGIBLE: Final = 11.0
"""The size in pixels of the screen that words keep when zoomed out, at the usual size of texts."""


def zoom_from_scale(scale: float) -> float:
    """The zoom, 1 for 100 %, where a unit of the scene takes that many pixels, whatever the size of texts."""
    return scale / style().scale


def legible_scale(size: float, zoom: float, most: float) -> float:
    """How many times larger words of a size are painted than at 100 %, to be legible when zoomed out."""
    return min(max(LEGIBLE / (size * zoom), 1.0), most)


def canvas_style() -> CanvasStyle:
    """What to paint with now."""
    return _style_of(style().theme.name)


@lru_cache(maxsize=4)
def _style_of(_name: str) -> CanvasStyle:
    return CanvasStyle(style().theme)


@dataclass(frozen=True)
class Fonts:
    """The fonts of the canvas with their measures."""

    title: QFont
    text: QFont
    small: QFont
    small_bold: QFont
    title_metrics: QFontMetricsF
    small_metrics: QFontMetricsF
    bold_metrics: QFontMetricsF


@lru_cache(maxsize=1)
def fonts() -> Fonts:
    """The fonts; made once, after the program's fonts are loaded."""
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
    """How wide a text in the small font is; ports of one name are on most cards."""
    return fonts().small_metrics.horizontalAdvance(text)


@lru_cache(maxsize=64)
def icon_path(name: str, size: int) -> QPainterPath:
    """The outline of an icon, its upper left corner at the origin: sharp at every zoom, and in SVG."""
    path = QPainterPath()
    path.addText(0.0, float(size), glyph_font(size), glyph(name))
    bounds = path.boundingRect()
    path.translate(-bounds.x() + (size - bounds.width()) / 2, -bounds.y() + (size - bounds.height()) / 2)
    return path


def pen(colour: QColor, width: float = 1.0, style_: Qt.PenStyle = Qt.PenStyle.SolidLine) -> QPen:
    """A pen with round ends."""
    made = QPen(colour, width, style_, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin)
    if style_ is Qt.PenStyle.DashLine:
        made.setDashPattern([3.0, 3.0])
    return made
