"""The order in which Tab goes through the window: part by part, as they stand, whenever they were made.

Qt's own order is that in which widgets came to be. Documents come and go, so it would lead from side to side and back.
Within a part Qt's order counts, which the part has put right where it matters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget


def move_focus(window: QWidget, parts: Sequence[QWidget], *, forward: bool) -> bool:
    """Give the keyboard to the next widget, or the one before; the last is followed by the first.

    Args:
        window: The window.
        parts: Its parts in their order; what is in none of them is not gone to.
        forward: Whether Tab was pressed, and not Shift+Tab.

    Returns:
        Whether there was a widget to go to.
    """
    order = sorted(_reachable(window, parts), key=lambda found: found[0])  # stable: Qt's order within a part
    widgets = [widget for _, widget in order]
    current = window.focusWidget()
    if not widgets or widgets == [current]:
        return False
    if current in widgets:
        target = widgets[(widgets.index(current) + (1 if forward else -1)) % len(widgets)]
    else:
        target = _beside(current, parts, order, forward=forward)
    target.setFocus(Qt.FocusReason.TabFocusReason if forward else Qt.FocusReason.BacktabFocusReason)
    return True


def _beside(
    current: QWidget | None, parts: Sequence[QWidget], order: list[tuple[int, QWidget]], *, forward: bool
) -> QWidget:
    """Where to go from a widget that only the mouse can give the keyboard: on in its part, or to the next one."""
    here = _part_of(current, parts) if current is not None else None
    if here is None:
        return order[0 if forward else -1][1]
    if forward:
        return next((widget for part, widget in order if part >= here), order[0][1])
    return next((widget for part, widget in reversed(order) if part <= here), order[-1][1])


def _reachable(window: QWidget, parts: Sequence[QWidget]) -> Iterator[tuple[int, QWidget]]:
    """The place of its part, and the widget, for each that takes the keyboard now; in Qt's order."""
    widget = window.nextInFocusChain()
    while widget is not None and widget is not window:
        takes_tab = bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus) and widget.focusProxy() is None
        if takes_tab and widget.isEnabled() and widget.isVisibleTo(window):
            part = _part_of(widget, parts)
            if part is not None:
                yield part, widget
        widget = widget.nextInFocusChain()


def _part_of(widget: QWidget, parts: Sequence[QWidget]) -> int | None:
    return next((at for at, part in enumerate(parts) if part.isAncestorOf(widget)), None)
