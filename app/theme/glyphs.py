"""The one icon family: Material Design Icons 6, as the distribution of QtAwesome carries it.

Its font and its list of names are read as files. QtAwesome itself is never imported: it needs QtPy, which makes every
class of Qt's at once, and that takes a third of a second before the window can be seen.
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
"""What names of icons begin with: `mdi6.play`."""

UNKNOWN_ICON: Final = f"{FAMILY}.help-circle-outline"
_FILES: Final = "materialdesignicons6-webfont"
_SHARE: Final = 0.875
"""Of an icon's height, what its font has: the drawings reach over their lines."""


@lru_cache(maxsize=256)
def glyph(name: str) -> str:
    """The sign that draws an icon; that of a question mark for what the family does not have: a plugin may ask for it.

    Args:
        name: The icon's name, such as `mdi6.play`.
    """
    family, _, short = name.partition(".")
    signs = _signs()
    code = signs.get(short) if family == FAMILY else None
    return chr(int(code or signs[UNKNOWN_ICON.partition(".")[2]], 16))


def glyph_font(size: int) -> QFont:
    """The font in which `glyph` is drawn, at a size in pixels."""
    font = QFont(_font_family())
    font.setPixelSize(size)
    return font


class GlyphEngine(QIconEngine):
    """Draws an icon at any size.

    Args:
        name: The icon's name.
        colour: Its colour.
        disabled: Its colour on what cannot be used now.
    """

    def __init__(self, name: str, colour: str, disabled: str) -> None:
        super().__init__()
        self._glyph = glyph(name)
        self._colour = QColor(colour)
        self._disabled = QColor(disabled)

    def paint(self, painter: QPainter, rect: QRect, mode: QIcon.Mode, _state: QIcon.State) -> None:
        """Draw it in the middle of a rectangle."""
        painter.save()
        painter.setPen(self._disabled if mode == QIcon.Mode.Disabled else self._colour)
        painter.setFont(glyph_font(round(_SHARE * rect.height())))
        painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, self._glyph)
        painter.restore()

    def pixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State) -> QPixmap:
        """It alone, on nothing."""
        pixmap = QPixmap(size)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        self.paint(painter, QRect(QPoint(0, 0), size), mode, state)
        painter.end()
        return pixmap


@lru_cache(maxsize=1)
def _signs() -> dict[str, str]:
    """The hexadecimal code of each icon of the family, by its name."""
    return json.loads(_file("charmap-*.json").read_text("utf-8"))


@lru_cache(maxsize=1)
def _font_family() -> str:
    return QFontDatabase.applicationFontFamilies(QFontDatabase.addApplicationFont(str(_file("*.ttf"))))[0]


def _file(ending: str) -> Path:
    spec = find_spec("qtawesome")
    places = spec.submodule_search_locations if spec is not None else None
    for place in places or ():
        for file in sorted((Path(place) / "fonts").glob(f"{_FILES}-{ending}")):
            return file
    raise EngineError("QtAwesome's icons are missing.", "Install them with `pip install --upgrade QtAwesome`.")
