"""Bars above past runs and subflows, and the differences of a past run from the current workflow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QPushButton, QToolButton, QWidget

from app.theme.style import ThemedIcon, set_style_properties, style
from app.theme.widgets import ElidedLabel, PlainLabel, hbox, plain_tool_tip, push_button, stack_buttons, vbox
from engine.document.model import Node, Workflow
from engine.formatting import format_count
from engine.nodes.node_names import node_name
from engine.nodes.node_registry import Registry, builtin_registry


class PastRunBar(QFrame):
    """Bar above a past run: its name, origin, differences from the current workflow, and actions.

    Attributes:
        origin: Where the run comes from; empty if it is not a fork.
        differences: Description of the differences; empty if there are none.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._title = ElidedLabel("")
        self._more = ElidedLabel("", look="dim small")
        self._more.hide()
        self.origin = ""
        self.differences = ""
        self._buttons = hbox(spacing=2)
        self._by_title: dict[str, QPushButton] = {}
        texts = vbox(self._title, self._more, spacing=0)
        self._body = hbox((texts, 1), self._buttons, spacing=2, margins=(3, 1, 2, 1), parent=self)
        self._body.setAlignment(self._buttons, Qt.AlignmentFlag.AlignLeft)
        set_style_properties(self, hint="info")

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the buttons below the text where there is too little room beside them."""
        super().resizeEvent(event)
        stack_buttons(self._body, self._buttons, self.width())

    @property
    def text(self) -> str:
        """Title of the run."""
        return self._title.full_text

    def say(self, text: str, origin: str = "") -> None:
        """Set the title of the run, and where it comes from."""
        self._title.set_full_text(text)
        self.origin = origin
        self._show_more()

    def show_differences(self, lines: list[str]) -> None:
        """Show the differences from the current workflow."""
        count = len(lines)
        words = f"{format_count(count, 'difference')} from the current workflow: {' '.join(lines)}"
        self.differences = words if lines else ""
        self._show_more()

    def add_button(self, title: str, pressed: Callable[[], object]) -> QPushButton:
        """Add a button for an action."""
        button = push_button(title, pressed)
        button.setAccessibleName(title.rstrip("…"))
        self._buttons.addWidget(button)
        self._by_title[title] = button
        return button

    def offer(self, title: str, *, can: bool) -> None:
        """Show or hide a button."""
        self._by_title[title].setVisible(can)

    def _show_more(self) -> None:
        more = " · ".join(part for part in (self.origin, self.differences) if part)
        self._more.set_full_text(more)
        self._more.setVisible(bool(more))
        self.setAccessibleName(" · ".join(part for part in (self.text, more) if part))


_WIDEST = 160
"""Maximum width of a step in pixels at the default text size; longer titles are elided."""


class SubflowBar(QFrame):
    """Bar above a subflow of a run, with the path to it.

    Signals:
        back_wanted: The user wants to go back: 0 is the whole run, 1 the outermost subflow.
        workflow_wanted: The user wants to open the workflow of the subflow for editing.

    Attributes:
        steps: Buttons of the path, the whole run first.
        open: Opens the workflow.
    """

    back_wanted = Signal(int)
    workflow_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.steps: list[QToolButton] = []
        self._here = ElidedLabel("")
        self.open = push_button("Open workflow", self.workflow_wanted.emit)
        self.open.setAccessibleName("Open workflow")
        self.open.setToolTip("Open the workflow of this subflow for editing")
        self._way = hbox(spacing=1)
        hbox(self._way, (self._here, 1), self.open, spacing=1, margins=(3, 1, 2, 1), parent=self)
        set_style_properties(self, hint="info")

    @property
    def text(self) -> str:
        """The path as text."""
        return " › ".join([*(button.accessibleDescription() for button in self.steps), self._here.full_text])

    def show_way(self, names: Sequence[str], here: str) -> None:
        """Show a path.

        Args:
            names: The run and the subflows that contain this one, outermost first.
            here: This subflow with its iteration.
        """
        self._here.set_full_text(here)
        if [button.accessibleDescription() for button in self.steps] != list(names):
            self._build(names)
        self.setAccessibleName(self.text)

    def _build(self, names: Sequence[str]) -> None:
        while (item := self._way.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        self.steps = []
        for place, name in enumerate(names):
            button = QToolButton()
            widest = round(_WIDEST * style().scale)
            button.setText(button.fontMetrics().elidedText(name, Qt.TextElideMode.ElideRight, widest))
            button.setAccessibleName(f"Back to {name}")
            button.setAccessibleDescription(name)
            button.setToolTip(plain_tool_tip(f"Back to {name}"))
            button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
            if not place:
                ThemedIcon(button, "mdi6.arrow-left", "dim")
            button.clicked.connect(lambda _checked=False, place=place: self.back_wanted.emit(place))
            self.steps.append(button)
            self._way.addWidget(button)
            self._way.addWidget(PlainLabel("›", look="dim"))


def workflow_differences(ran: Workflow, other: Workflow) -> list[str]:
    """List the changes between a document as it ran and another version, a sentence each, in document order.

    Args:
        ran: The document as it ran.
        other: The other version.
    """
    types = builtin_registry()
    return [
        *_nodes(ran, other, types),
        *_edges(ran, other),
        *(f"The workflow setting “{name}” was changed." for name in _changed(ran.settings, other.settings)),
    ]


def _nodes(ran: Workflow, other: Workflow, registry: Registry) -> Iterator[str]:
    for node in ran.nodes:
        now = other.nodes_by_id.get(node.id)
        if now is None:
            yield f"“{node_name(ran, node.id)}” was removed."
        elif now.type != node.type:
            yield f"“{node_name(ran, node.id)}” was changed from {node.type} to {now.type}."
        else:
            yield from _fields(ran, other, node, now, registry)
    for node in other.nodes:
        if node.id not in ran.nodes_by_id:
            yield f"“{node_name(other, node.id)}” was added."


def _fields(ran: Workflow, other: Workflow, node: Node, now: Node, registry: Registry) -> Iterator[str]:
    name = node_name(other, now.id)
    if node.title != now.title:
        yield f"“{node_name(ran, node.id)}” was renamed to “{name}”."
    if node.enabled != now.enabled:
        yield f"“{name}” was {'enabled' if now.enabled else 'disabled'}."
    if node.pinned != now.pinned:
        change = "unpinned" if not now.pinned else "pinned at another value" if node.pinned else "pinned"
        yield f"“{name}” was {change}."
    spec = registry.find(node.type)
    for field in _changed(node.config, now.config):
        declared = spec.config.model_fields.get(field) if spec is not None else None
        title = declared.title if declared is not None and declared.title else field
        yield f"“{title}” of “{name}” was changed."


def _edges(ran: Workflow, other: Workflow) -> Iterator[str]:
    before, after = ({(edge.from_, edge.to) for edge in workflow.edges} for workflow in (ran, other))
    kept_ids = ran.nodes_by_id.keys() & other.nodes_by_id.keys()
    for workflow, edges, what in ((ran, before - after, "removed"), (other, after - before, "added")):
        for edge in workflow.edges:
            ends = (edge.source[0], edge.target[0])
            # edges of added and removed nodes are not listed
            if (edge.from_, edge.to) in edges and all(end in kept_ids for end in ends):
                first, second = (node_name(workflow, end) for end in ends)
                yield f"The connection from “{first}” to “{second}” was {what}."


def _changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [name for name in {**before, **after} if before.get(name) != after.get(name)]
