"""Texts cut to the room that there is for them, for whoever paints them."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetricsF


def elided(metrics: QFontMetricsF, text: str, width: float) -> str:
    """The first line of a text, cut with an ellipsis where it is too long."""
    line = text.partition("\n")[0]
    return metrics.elidedText(line[:400], Qt.TextElideMode.ElideRight, width)


def two_lines(metrics: QFontMetricsF, text: str, width: float) -> list[str]:
    """A text on at most two lines, the second cut with an ellipsis where it is too long."""
    words = text[:200].split()
    first: list[str] = []
    while words and metrics.horizontalAdvance(" ".join((*first, words[0]))) <= width:
        first.append(words.pop(0))
    if not first:
        return [elided(metrics, text, width)]
    return [" ".join(first)] + ([elided(metrics, " ".join(words), width)] if words else [])
