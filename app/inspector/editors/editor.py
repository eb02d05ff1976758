"""What every editor of a form is: a widget that shows the value of one field and tells what a person makes of it."""

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
from engine.document.problems import Problem, Severity

_NOTHING: Any = object()


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """A problem of a field: the place in its value as a dotted path, empty for all of it, and what to say."""

    place: str
    problem: Problem


class Editor(QWidget):
    """Shows one value.

    What was typed is told as it is, also where it does not fit: the document keeps it, and its check says what is
    wrong with it.

    Signals:
        edited: A person changed the value; the new one.
        arranged: The editor has other widgets than before.

    Attributes:
        field: The field whose value it is.
        target: What the form is about.
        main_widget: What takes the keyboard first.
        box: Where its widgets stand.
    """

    edited = Signal(object)
    layout_changed = Signal()

    def __init__(self, field: FieldSpec, binding: ConfigBinding, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.field = field
        self.binding = binding
        self.main_widget: QWidget = self
        self._value: Any = _NOTHING
        self.box = QVBoxLayout(self)
        self.box.setContentsMargins(0, 0, 0, 0)
        self.box.setSpacing(UNIT)

    def show_value(self, value: Any) -> None:
        """Show a value; the one that is shown already is left as it was typed."""
        if is_same_json(value, self._value):
            return
        self._value = value
        self._display(value)

    def refresh(self) -> None:
        """Look again at what stands around the value: names, nodes, models."""

    def refresh_run(self) -> None:
        """Look again at what the last run tells of it."""

    def show_problems(self, problems: list[FieldProblem]) -> list[FieldProblem]:
        """Mark what is wrong.

        Returns:
            What the editor has no place of its own for.
        """
        mark_invalid(self.main_widget, invalid=any(fault.problem.severity is Severity.ERROR for fault in problems))
        return problems

    def focus_path(self, _place: str) -> None:
        """Take the keyboard, at a place in the value."""
        self.main_widget.setFocus()

    def register(self, widget: QWidget, title: str = "", text: str = "") -> None:
        """Name a widget of this editor, and let the keys of undo and leaving it mean the document's."""
        describe_widget(widget, title or self.field.title, text or self.field.help)
        self.binding.events.watch(widget)

    def _display(self, value: Any) -> None:
        raise NotImplementedError

    def _commit(self, value: Any) -> None:
        """Tell a value that a person has made."""
        if is_same_json(value, self._value):
            return
        self._value = value
        self.edited.emit(value)


def is_same_json(first: Any, second: Any) -> bool:
    """Whether two values stand for the same JSON: unlike for Python, 1, 1.0 and true differ, and so does an order."""
    if type(first) is not type(second) or first != second:
        return False
    return not isinstance(first, dict | list) or json.dumps(first) == json.dumps(second)


def mark_invalid(widget: QWidget, *, invalid: bool) -> None:
    """Give a widget the look of one with something wrong in it, or take it away."""
    if bool(widget.property("invalid")) != invalid:
        set_style_properties(widget, invalid=invalid)


def describe_widget(widget: QWidget, title: str, text: str = "") -> None:
    """Give a widget its name and help for people and for screen readers."""
    widget.setAccessibleName(title)
    if text:
        widget.setAccessibleDescription(text)
        widget.setToolTip(plain_tool_tip(text))
