"""The order in which Tab goes through widgets: as they stand and are read, whenever they were made.

Qt's own order is that in which widgets came to be. Documents and forms come and go, so it would lead from side to side
and back. Qt is never asked here for its chain: in Python, that ties each widget's wrapper to the one before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cmp_to_key
from itertools import pairwise

from PySide6.QtCore import QRect, Qt
from PySide6.QtWidgets import QWidget


def put_in_reading_order(parts: Sequence[QWidget]) -> None:
    """Let Tab go through the parts in their order, and in each through what is seen, from the top to the bottom.

    Args:
        parts: Parts of one window, which are seen or not.
    """
    reached = [widget for part in parts if part.isVisible() for widget in _in_reading_order(part)]
    for widget, following in pairwise(reached):
        QWidget.setTabOrder(widget, following)


def _in_reading_order(root: QWidget) -> Iterator[QWidget]:
    """What takes the keyboard in a part, and the part itself if it does."""
    if bool(root.focusPolicy() & Qt.FocusPolicy.TabFocus) and root.focusProxy() is None and root.isEnabled():
        yield root
    inside = [child for child in root.children() if isinstance(child, QWidget)]
    for child in sorted((child for child in inside if child.isVisible() and not child.isWindow()), key=_PLACE):
        yield from _in_reading_order(child)


def _compare(first: QWidget, second: QWidget) -> int:
    """Below zero where the first is read before the second: it is higher up, or further left in the same line."""
    one, other = first.geometry(), second.geometry()
    if _is_above(one, other) or _is_above(other, one):
        return -1 if one.top() < other.top() else 1
    return one.left() - other.left()


def _is_above(one: QRect, other: QRect) -> bool:
    return one.bottom() < other.top()


_PLACE = cmp_to_key(_compare)
