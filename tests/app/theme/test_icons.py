from __future__ import annotations

import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QColor, QFontMetrics, QIcon, QImage

from app.theme.style import UNKNOWN_ICON, GlyphEngine, Style, glyph, glyph_font

SIDE = 32


def drawn(name: str) -> QImage:
    return QIcon(GlyphEngine(name, "#ff0000", "#00ff00")).pixmap(SIDE, SIDE).toImage()


def ink_box(image: QImage) -> tuple[int, int, int, int]:
    """The columns and rows between which something is drawn."""
    dots = [(x, y) for x in range(image.width()) for y in range(image.height()) if image.pixelColor(x, y).alpha() > 64]
    columns, rows = [x for x, _ in dots], [y for _, y in dots]
    return min(columns), max(columns), min(rows), max(rows)


@pytest.mark.parametrize("name", ["mdi6.no-such-icon", "fa5s.flag", "play", ""])
def test_unknown_glyph_is_a_question_mark(style: Style, name: str) -> None:
    assert glyph(name) == glyph(UNKNOWN_ICON)
    assert glyph("mdi6.play") != glyph(UNKNOWN_ICON)


def test_icon_is_centered_and_fills_most_of_its_rectangle(style: Style) -> None:
    left, right, top, bottom = ink_box(drawn("mdi6.square"))
    assert abs(left - (SIDE - 1 - right)) <= 1
    assert abs(top - (SIDE - 1 - bottom)) <= 1
    assert SIDE / 2 < right - left < SIDE


def test_icon_font_has_the_glyph(style: Style) -> None:
    assert QFontMetrics(glyph_font(16)).inFontUcs4(ord(glyph("mdi6.play")))


def test_icon_uses_the_resolution_of_the_screen(style: Style) -> None:
    pixmap = QIcon(GlyphEngine("mdi6.square", "#ff0000", "#00ff00")).pixmap(QSize(SIDE, SIDE), 2.0)
    assert pixmap.size() == QSize(2 * SIDE, 2 * SIDE)
    assert pixmap.toImage().pixelColor(SIDE, SIDE) == QColor("#ff0000")
