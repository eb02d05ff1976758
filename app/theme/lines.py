"""Texts cut to the room that there is for them, for whoever paints them."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetricsF

LONGEST: Final = 400


def first_line(text: str) -> str:
    """The first line of a text, as much of it as any place on the screen has room for: to measure more takes long."""
    return text.partition("\n")[0][:LONGEST]


def elided(metrics: QFontMetricsF, text: str, width: float) -> str:
    """The first line of a text, cut with an ellipsis where it is too long."""
    return metrics.elidedText(first_line(text), Qt.TextElideMode.ElideRight, width)


def two_lines(metrics: QFontMetricsF, text: str, width: float) -> list[str]:
    """A text on at most two lines, the second cut with an ellipsis where it is too long."""
    words = text[:200].split()
    first: list[str] = []
    while words and metrics.horizontalAdvance(" ".join((*first, words[0]))) <= width:
        first.append(words.pop(0))
    if not first:
        return [elided(metrics, text, width)]
    return [" ".join(first)] + ([elided(metrics, " ".join(words), width)] if words else [])
