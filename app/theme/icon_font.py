"""Icons drawn from the font Material Design Icons 6, which ships with QtAwesome.

The font and its list of names are read as files. QtAwesome itself is never imported: it needs QtPy, which creates every
Qt class, and that takes a third of a second before the first paint.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontDatabase, QIcon, QIconEngine, QPainter, QPixmap

from engine.errors import EngineError

FAMILY: Final = "mdi6"
"""Prefix of icon names, as in `mdi6.play`."""

UNKNOWN_ICON: Final = f"{FAMILY}.help-circle-outline"
_FILES: Final = "materialdesignicons6-webfont"
_FONT_SCALE: Final = 0.875
"""Font size as a share of the icon's height: the glyphs are taller than their line."""


@lru_cache(maxsize=256)
def glyph(name: str) -> str:
    """Return the character that draws an icon, or a question mark if the font lacks it.

    Plugins may ask for any name.

    Args:
        name: The icon's name, such as `mdi6.play`.
    """
    family, _, short = name.partition(".")
    codes = _code_points()
    code = codes.get(short) if family == FAMILY else None
    return chr(int(code or codes[UNKNOWN_ICON.partition(".")[2]], 16))


def glyph_font(size: int) -> QFont:
    """Return the icon font at a size in pixels."""
    font = QFont(_font_family())
    font.setPixelSize(size)
    return font


class GlyphEngine(QIconEngine):
    """Icon engine that draws a glyph at any size.

    Args:
        name: The icon's name.
        colour: Its colour.
        disabled: Its colour on disabled controls.
    """

    def __init__(self, name: str, colour: str, disabled: str) -> None:
        super().__init__()
        self._glyph = glyph(name)
        self._colour = QColor(colour)
        self._disabled = QColor(disabled)

    def paint(self, painter: QPainter, rect: QRect, mode: QIcon.Mode, _state: QIcon.State) -> None:
        """Draw the glyph centred in a rectangle."""
        painter.save()
        painter.setPen(self._disabled if mode == QIcon.Mode.Disabled else self._colour)
        painter.setFont(glyph_font(round(_FONT_SCALE * rect.height())))
        painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, self._glyph)
        painter.restore()

    def pixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State) -> QPixmap:
        """Draw the glyph on a transparent pixmap."""
        pixmap = QPixmap(size)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        self.paint(painter, QRect(QPoint(0, 0), size), mode, state)
        painter.end()
        return pixmap


@lru_cache(maxsize=1)
def _code_points() -> dict[str, str]:
    """Return the hexadecimal code point of each icon by name."""
    return json.loads(_file("charmap-*.json").read_text("utf-8"))


@lru_cache(maxsize=1)
def _font_family() -> str:
    return QFontDatabase.applicationFontFamilies(QFontDatabase.addApplicationFont(str(_file("*.ttf"))))[0]


def _file(ending: str) -> Path:
    spec = find_spec("qtawesome")
    folders = spec.submodule_search_locations if spec is not None else None
    for folder in folders or ():
        for file in sorted((Path(folder) / "fonts").glob(f"{_FILES}-{ending}")):
            return file
    raise EngineError("QtAwesome's icons are missing.", "Install them with `pip install --upgrade QtAwesome`.")
