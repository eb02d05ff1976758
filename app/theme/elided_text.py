"""Shorten texts to the width that is available for painting."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetricsF

MAX_LENGTH: Final = 400


def first_line(text: str) -> str:
    """Return the first line of a text, at most 400 characters: measuring more is slow."""
    return text.partition("\n")[0][:MAX_LENGTH]


def elide(metrics: QFontMetricsF, text: str, width: float) -> str:
    """Return the first line of a text, ending in an ellipsis if it is too wide."""
    return metrics.elidedText(first_line(text), Qt.TextElideMode.ElideRight, width)


def elide_two_lines(metrics: QFontMetricsF, text: str, width: float) -> list[str]:
    """Break a text into at most two lines; the second ends in an ellipsis if it is too wide."""
    words = text[:200].split()
    first: list[str] = []
    while words and metrics.horizontalAdvance(" ".join((*first, words[0]))) <= width:
        first.append(words.pop(0))
    if not first:
        return [elide(metrics, text, width)]
    return [" ".join(first)] + ([elide(metrics, " ".join(words), width)] if words else [])
