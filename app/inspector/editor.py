"""Base class of the editors in a form, and their connection to the object that the form edits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit, QToolButton, QWidget

from app.inspector.field_spec import FieldSpec, field_specs
from app.inspector.model_list import ModelSource
from app.session import Session
from app.theme.style import ThemedIcon, set_style_properties
from app.theme.widgets import ignore_wheel_unless_focused, plain_tool_tip, vbox
from engine.document.model import Node
from engine.document.operations import Operation, SetConfig, SetSettings, Unset
from engine.document.problems import JsonPath, Problem, Severity
from engine.values import Value

_REDO: Final = (QKeySequence("Ctrl+Shift+Z"), QKeySequence("Ctrl+Y"))
"""Redo on every platform, in addition to the platform's own shortcut."""


_STAYS: Final = {
    Qt.FocusReason.MouseFocusReason,
    Qt.FocusReason.PopupFocusReason,
    Qt.FocusReason.ActiveWindowFocusReason,
}
"""Ways to the focus that do not scroll: a click must not move what it hits."""


class FieldEventFilter(QObject):
    """Event filter for the widgets of a form.

    Undo and redo go to the document. Losing the focus ends an undo step, and problems of a half-typed text are due.

    Signals:
        entered: A watched widget received the focus; whether it may be scrolled into view.
        cursor_moved: The text cursor of a watched widget moved.
    """

    entered = Signal(bool)
    cursor_moved = Signal()

    def __init__(self, session: Session, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session

    def watch(self, widget: QWidget) -> None:
        """Install the filter on a widget."""
        widget.installEventFilter(self)
        if isinstance(widget, QPlainTextEdit):
            widget.cursorPositionChanged.connect(self.cursor_moved)
        ignore_wheel_unless_focused(widget)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # Qt's name
        """Handle undo, redo and focus changes."""
        match event.type():
            case QEvent.Type.FocusOut:
                self._session.seal()
                self._session.hold_syntax_problems(())
            case QEvent.Type.FocusIn if isinstance(event, QFocusEvent):
                self.entered.emit(event.reason() not in _STAYS)
            case QEvent.Type.KeyPress if isinstance(event, QKeyEvent):
                return self._handle_key(event)
            case _:
                pass
        return False

    def _handle_key(self, event: QKeyEvent) -> bool:
        if event.matches(QKeySequence.StandardKey.Undo):
            self._session.undo()
            return True
        keys = QKeySequence(event.keyCombination())
        if event.matches(QKeySequence.StandardKey.Redo) or keys in _REDO:
            self._session.redo()
            return True
        return False


class ConfigBinding(QObject):
    """The object that a form shows and edits.

    Signals:
        fix_wanted: The user wants to fix something outside of the document; what, as in `EngineError`.

    Attributes:
        session: The open document.
        node_id: The node; None for the workflow itself.
        models: The models to choose from.
        events: The event filter for the widgets of the form.
        fields: The fields of the object.
    """

    fix_wanted = Signal(str)

    def __init__(self, session: Session, models: ModelSource, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.session = session
        self.node_id: str | None = None
        self.models = models
        self.events = FieldEventFilter(session, self)
        self.fields: Mapping[str, FieldSpec] = {}

    @property
    def edited_nodes(self) -> tuple[str, ...]:
        """The nodes that an edit changes; none for the workflow itself."""
        return () if self.node_id is None else (self.node_id,)

    @property
    def values(self) -> dict[str, Any]:
        """The current values in the document."""
        if self.node_id is None:
            return self.session.workflow.settings
        node = self.session.node(self.node_id)
        return {} if node is None else node.config

    def write(self, path: JsonPath, value: Value | Unset) -> bool:
        """Change a value in the document."""
        operation: Operation
        operation = SetSettings(path, value) if self.node_id is None else SetConfig(path, {self.node_id: value})
        return self.session.do(operation)

    def write_field(self, name: str, value: Value) -> bool:
        """Change the value of a field in the document; a default is left out."""
        return self.write((name,), self.fields[name].stored_value(value))

    def value_to_edit(self, name: str) -> Any:
        """Return the value of a field from which an edit starts."""
        return self.fields[name].value_in(self.values)


class NodesBinding(ConfigBinding):
    """The configs of several nodes, edited as one; each change is made to all of them.

    Attributes:
        node_ids: The nodes. The first one stands for all where an editor needs a single node.
    """

    def __init__(self, session: Session, models: ModelSource, parent: QObject | None = None) -> None:
        super().__init__(session, models, parent)
        self.node_ids: tuple[str, ...] = ()
        self._merged: tuple[list[Node], dict[str, Any]] = [], {}

    def show_nodes(self, node_ids: tuple[str, ...]) -> None:
        """Switch to other nodes."""
        self.node_ids, self.node_id = node_ids, node_ids[0]

    @property
    def edited_nodes(self) -> tuple[str, ...]:
        """All of them."""
        return self.node_ids

    @property
    def nodes(self) -> list[Node]:
        """The nodes that still exist."""
        found = map(self.session.node, self.node_ids)
        return [node for node in found if node is not None]

    @property
    def values(self) -> dict[str, Any]:
        """The values that all nodes have, and MIXED for those that differ."""
        nodes = self.nodes
        is_same = self._merged[0] == nodes
        self._merged = nodes, self._merged[1] if is_same else self._merge(nodes)  # these objects compare fast from now
        return self._merged[1]

    def _merge(self, nodes: list[Node]) -> dict[str, Any]:
        rows = [(self._fields_of(node), node.config) for node in nodes]
        merged: dict[str, Any] = {}
        for name in dict.fromkeys((*self.fields, *(name for _, config in rows for name in config))):
            found = (fields[name].value_in(config) if name in fields else config.get(name) for fields, config in rows)
            first = next(found, None)
            merged[name] = first if all(other is first or is_same_json(first, other) for other in found) else MIXED
        return merged

    def write(self, path: JsonPath, value: Value | Unset) -> bool:
        """Change a value of all nodes in the document."""
        return self.session.do(SetConfig(path, dict.fromkeys(self.node_ids, value)))

    def write_field(self, name: str, value: Value) -> bool:
        """Change a field of all nodes in the document; a default of the node's type is left out."""
        stored = {node.id: self._fields_of(node)[name].stored_value(value) for node in self.nodes}
        return self.session.do(SetConfig((name,), stored))

    def value_to_edit(self, name: str) -> Any:
        """Return the value of a field of the first node."""
        first = self.nodes[0]
        return self._fields_of(first)[name].value_in(first.config)

    def _fields_of(self, node: Node) -> Mapping[str, FieldSpec]:
        spec = self.session.registry.find(node.type)
        return field_specs(spec.config) if spec is not None else {}


MIXED: Final[Any] = object()
"""Stands for the values of several nodes that differ."""

MULTIPLE_VALUES: Final = "Multiple values"


_NOTHING: Any = object()


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """A problem in the value of a field, with its dotted path in that value; empty for the value as a whole."""

    path: str
    problem: Problem


class Editor(QWidget):
    """Edits one value.

    Invalid input is emitted unchanged: the document stores it, and its validation reports the problem.

    Signals:
        edited: The user changed the value; the new value.
        layout_changed: Widgets were added or removed.

    Attributes:
        binding: The object that the form edits.
        path: The place of the value in the config.
        main_widget: The widget that receives the focus first.
        text_widget: The text field of an editor whose whole value is a text; None for others.
        box: The layout of its widgets.
    """

    explains_itself = False
    """Whether its widgets explain the field, so that no help is needed below it."""

    edited = Signal(object)
    layout_changed = Signal()

    def __init__(self, field: FieldSpec, binding: ConfigBinding, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.field = field
        self.binding = binding
        self.path: JsonPath = (field.name,)
        self.main_widget: QWidget = self
        self.text_widget: QLineEdit | QPlainTextEdit | None = None
        self._usual_placeholder = ""
        self._value: Any = _NOTHING
        self.box = vbox(spacing=1, parent=self)

    def show_value(self, value: Any) -> None:
        """Show a value. If it equals the current one, leave the text as it was typed."""
        if is_same_json(value, self._value):
            return
        self._set_value(value)
        self._display(value)

    def link_button(self, icon: str, label: str, text: str) -> QToolButton:
        """Create a button that looks like a link, for an action on the value."""
        button = QToolButton(self)
        button.setProperty("link", True)
        ThemedIcon(button, icon, "accent")
        button.setText(label)
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        describe_widget(button, f"{label}: {self.field.title}", text)
        return button

    def show_mixed(self) -> bool:
        """Show that several nodes have different values, and accept one for all.

        Returns:
            False if the editor cannot do so.
        """
        if self.text_widget is None:
            return False
        if self._value is not MIXED:
            self._usual_placeholder = self.text_widget.placeholderText()
            self._display("")
            self.text_widget.setPlaceholderText(MULTIPLE_VALUES)
            self._value = MIXED
        return True

    def refresh(self) -> None:
        """Update what depends on the rest of the document: variables, nodes, models."""

    def show_problems(self, problems: list[FieldProblem]) -> list[FieldProblem]:
        """Mark problems.

        Returns:
            The problems that the editor does not show itself.
        """
        mark_invalid(self.main_widget, invalid=any(found.problem.severity is Severity.ERROR for found in problems))
        return problems

    def help_for(self, value: Any) -> str:
        """Return the help of a value; that of the field by default."""
        del value
        return self.field.help

    def focus_path(self, path: str) -> None:
        """Move the focus to a dotted path in the value."""
        del path
        self.main_widget.setFocus()

    def register(self, widget: QWidget, title: str = "", text: str = "") -> None:
        """Set the accessible name of a widget and watch its events."""
        describe_widget(widget, title or self.field.title, text or self.field.help)
        self.binding.events.watch(widget)

    def _display(self, value: Any) -> None:
        raise NotImplementedError

    def _commit(self, value: Any) -> None:
        if is_same_json(value, self._value):
            return
        self._set_value(value)
        self.edited.emit(value)

    def _set_value(self, value: Any) -> None:
        if self._value is MIXED and self.text_widget is not None:
            self.text_widget.setPlaceholderText(self._usual_placeholder)
        self._value = value

    def _commit_step(self, value: Any) -> None:
        """Emit a new value as an undo step of its own, and show it."""
        self.binding.session.seal()
        self._commit(value)
        self._display(value)
        self.binding.session.seal()


def is_same_json(first: Any, second: Any) -> bool:
    """Return whether two values are the same JSON. Unlike in Python, 1, 1.0 and true differ, and so does key order."""
    if type(first) is not type(second) or first != second:
        return False
    return not isinstance(first, dict | list) or json.dumps(first) == json.dumps(second)


def set_line_text(line: QLineEdit, text: str) -> None:
    """Set the text of a field that differs, and leave the cursor where it is."""
    if line.text() != text:
        position = line.cursorPosition()
        line.setText(text)
        line.setCursorPosition(min(position, len(text)))


def mark_invalid(widget: QWidget, *, invalid: bool) -> None:
    """Set or clear the error style of a widget."""
    if bool(widget.property("invalid")) != invalid:
        set_style_properties(widget, invalid=invalid)


def describe_widget(widget: QWidget, title: str, text: str = "") -> None:
    """Set the accessible name of a widget, and its help as description and tooltip."""
    widget.setAccessibleName(title)
    if text:
        widget.setAccessibleDescription(text)
        widget.setToolTip(plain_tool_tip(text))
