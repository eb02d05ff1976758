"""The way of the Tab key through a part of a form: as it is laid out, whenever its widgets were made."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLayout, QWidget


def order_tabs(part: QWidget) -> None:
    """Let Tab go through the controls of a part in the order of its layout; the first keeps its place."""
    for before, after in pairwise(_controls(part)):
        QWidget.setTabOrder(before, after)


def _controls(widget: QWidget) -> Iterator[QWidget]:
    if widget.focusPolicy() & Qt.FocusPolicy.TabFocus:
        yield widget
    layout = widget.layout()
    if layout is not None:
        yield from _within(layout)


def _within(layout: QLayout) -> Iterator[QWidget]:
    for index in range(layout.count()):
        item = layout.itemAt(index)
        inner, widget = item.layout(), item.widget()
        if widget is not None:
            yield from _controls(widget)
        elif inner is not None:
            yield from _within(inner)
