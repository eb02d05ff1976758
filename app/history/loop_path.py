"""Where in a run of nested loops one is: `outer › iteration 2 › inner`. No Qt here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QMenu, QToolButton, QWidget

from app.runs.run_view_model import RunViewModel
from app.theme.style import ThemedIcon, style
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel, plain_tool_tip
from engine.document.model import Workflow
from engine.nodes.pairs import ITERATOR, PAIR_BY_START


@dataclass(frozen=True, slots=True)
class Crumb:
    """One part of the way.

    Attributes:
        text: What it says.
        loop_id: The loop that is shown when it is clicked.
        index: The iteration that is looked at then; None for a part that names a loop.
        others: The loops beside it, by id and title, itself included; empty where it stands alone.
        is_here: Whether it is the loop that is shown.
        is_deeper: Whether it is a loop in the body of the one that is shown.
    """

    text: str
    loop_id: str
    index: int | None = None
    others: tuple[tuple[str, str], ...] = ()
    is_here: bool = False
    is_deeper: bool = False


def loops_of(workflow: Workflow, parents: Mapping[str, str], around: str | None) -> list[tuple[str, str]]:
    """The loops right inside another, or outside all (None), by id and title, in the order of the document."""
    return [
        (node.id, node.title or node.id)
        for node in workflow.nodes
        if node.type in PAIR_BY_START and parents.get(node.id) == around
    ]


def crumbs(workflow: Workflow, picture: RunViewModel, chosen: Mapping[str, int], loop_id: str) -> list[Crumb]:
    """The way to a loop from outside, with the iterations that are looked at, and the loops in its body."""
    way: list[Crumb] = []
    there: str | None = loop_id
    while there is not None:
        around = picture.parents.get(there)
        beside = loops_of(workflow, picture.parents, around)
        title = dict(beside).get(there, there)
        others = tuple(beside) if len(beside) > 1 else ()
        way.insert(0, Crumb(title, there, others=others, is_here=there == loop_id))
        if around is not None:
            index = picture.index_of(around, chosen)
            unit = "item" if workflow.node(around).type == ITERATOR.start else "iteration"
            way.insert(0, Crumb(f"{unit} {index + 1}", around, index))
        there = around
    if picture.loop(loop_id, chosen).current >= 0:
        inside = loops_of(workflow, picture.parents, loop_id)
        way += [Crumb(title, inner, is_deeper=True) for inner, title in inside]
    return way


_WIDEST: Final = 160
"""The widest part, in pixels at the usual size of texts; a longer title ends in `…`."""


class Breadcrumb(QWidget):
    """Shows where one is.

    Signals:
        loop_wanted: Show that loop.
        iteration_wanted: Show that loop, and look at its iteration of that index.
    """

    loop_wanted = Signal(str)
    iteration_wanted = Signal(str, int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._crumbs: list[Crumb] = []
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(UNIT)
        self.buttons: list[QToolButton] = []
        style().changed.connect(self._build)

    def show_crumbs(self, crumbs: list[Crumb]) -> None:
        """Show a way."""
        if crumbs != self._crumbs:
            self._crumbs = crumbs
            self._build()

    def _build(self) -> None:
        had_focus = next((place for place, button in enumerate(self.buttons) if button.hasFocus()), None)
        while (item := self._row.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        self.buttons = []
        for place, crumb in enumerate(self._crumbs):
            if place:
                sign = "·" if crumb.is_deeper and self._crumbs[place - 1].is_deeper else "›"
                self._row.addWidget(PlainLabel(sign, look="dim"))
            self._row.addWidget(self._part(crumb))
        if had_focus is not None and had_focus < len(self.buttons):
            self.buttons[had_focus].setFocus()

    def _part(self, crumb: Crumb) -> QWidget:
        is_only = crumb.is_here and not crumb.others
        widest = round(_WIDEST * style().scale)
        if is_only:
            label = PlainLabel(look="title")
            label.setText(label.fontMetrics().elidedText(crumb.text, Qt.TextElideMode.ElideRight, widest))
            label.setAccessibleName(f"Loop: {crumb.text}")
            return label
        button = QToolButton()
        self.buttons.append(button)
        button.setText(button.fontMetrics().elidedText(crumb.text, Qt.TextElideMode.ElideRight, widest))
        button.setToolTip(plain_tool_tip(crumb.text) if button.text() != crumb.text else "")
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        if crumb.is_deeper:
            button.setAccessibleName(f"Go to loop {crumb.text}")
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
            ThemedIcon(button, "mdi6.subdirectory-arrow-right", "dim")
        else:
            button.setAccessibleName(f"Loop: {crumb.text}" if crumb.index is None else f"Go to {crumb.text}")
        if crumb.others:
            self._add_menu(button, crumb)
        elif crumb.index is not None:
            loop, index = crumb.loop_id, crumb.index
            button.clicked.connect(lambda _checked=False: self.iteration_wanted.emit(loop, index))
        else:
            button.clicked.connect(lambda _checked=False: self.loop_wanted.emit(crumb.loop_id))
        return button

    def _add_menu(self, button: QToolButton, crumb: Crumb) -> None:
        """Offer the loops beside this one."""
        menu = QMenu(button)
        for loop_id, title in crumb.others:
            action = menu.addAction(title.replace("&", "&&"))
            action.setCheckable(True)
            action.setChecked(loop_id == crumb.loop_id)
            action.triggered.connect(lambda _checked=False, loop_id=loop_id: self.loop_wanted.emit(loop_id))
        button.setMenu(menu)
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        button.setLayoutDirection(Qt.LayoutDirection.RightToLeft)  # the arrow stands behind the name
        ThemedIcon(button, "mdi6.chevron-down", "dim")
