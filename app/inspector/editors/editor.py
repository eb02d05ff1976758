"""Base class of the editors in a form: a widget that shows and edits the value of one field."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.inspector.config_binding import ConfigBinding
from app.inspector.field_spec import FieldSpec
from app.theme.style import set_style_properties
from app.theme.tokens import UNIT
from app.theme.widgets import plain_tool_tip
from engine.document.json_rules import JsonPath
from engine.document.problems import Problem, Severity

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
        field: The field that is edited.
        binding: The object that the form edits.
        path: The place of the value in the config.
        main_widget: The widget that receives the focus first.
        box: The layout of its widgets.
    """

    edited = Signal(object)
    layout_changed = Signal()

    def __init__(self, field: FieldSpec, binding: ConfigBinding, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.field = field
        self.binding = binding
        self.path: JsonPath = (field.name,)
        self.main_widget: QWidget = self
        self._value: Any = _NOTHING
        self.box = QVBoxLayout(self)
        self.box.setContentsMargins(0, 0, 0, 0)
        self.box.setSpacing(UNIT)

    def show_value(self, value: Any) -> None:
        """Show a value. If it equals the current one, leave the text as it was typed."""
        if is_same_json(value, self._value):
            return
        self._value = value
        self._display(value)

    def refresh(self) -> None:
        """Update what depends on the rest of the document: variables, nodes, models."""

    def refresh_run(self) -> None:
        """Update what depends on the last run."""

    def show_problems(self, problems: list[FieldProblem]) -> list[FieldProblem]:
        """Mark problems.

        Returns:
            The problems that the editor does not show itself.
        """
        mark_invalid(self.main_widget, invalid=any(found.problem.severity is Severity.ERROR for found in problems))
        return problems

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
        """Emit a new value from the user."""
        if is_same_json(value, self._value):
            return
        self._value = value
        self.edited.emit(value)


def is_same_json(first: Any, second: Any) -> bool:
    """Return whether two values are the same JSON. Unlike in Python, 1, 1.0 and true differ, and so does key order."""
    if type(first) is not type(second) or first != second:
        return False
    return not isinstance(first, dict | list) or json.dumps(first) == json.dumps(second)


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
