"""A form for an object of the document, generated from its fields, and the choice of an editor for each field.

It reads and writes through a `ConfigBinding` and is independent of node types.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLayout, QWidget

from app.inspector.choice_editors import (
    ChoiceEditor,
    ModelEditor,
    ModelListEditor,
    NodeEditor,
    SwitchEditor,
    ToolListEditor,
)
from app.inspector.comparison_editor import ComparisonEditor, RuleEditor
from app.inspector.conditions_editor import ConditionsEditor
from app.inspector.editor import ConfigBinding, Editor, FieldProblem
from app.inspector.field_spec import FieldKind, FieldSpec
from app.inspector.form_fields import AdvancedButton, FormField, FormFields
from app.inspector.object_editors import ArgumentsEditor, ObjectEditor, ObjectListEditor
from app.inspector.prompt_editor import ExpressionEditor, PromptEditor
from app.inspector.text_editors import (
    JsonEditor,
    LineEditor,
    LinesEditor,
    NumberEditor,
    TextEditor,
    ValueEditor,
    WorkflowFileEditor,
)
from app.theme.widgets import vbox
from engine.document.problems import Problem
from engine.formatting import format_count

_WIDGETS: dict[str, type[Editor]] = {
    "prompt": PromptEditor,
    "expression": ExpressionEditor,
    "comparison": ComparisonEditor,
    "rule": RuleEditor,
    "json": JsonEditor,
    "model": ModelEditor,
    "models": ModelListEditor,
    "lines": LinesEditor,
    "condition": ChoiceEditor,
    "grouped_condition": ChoiceEditor,
    "tool": ChoiceEditor,
    "tools": ToolListEditor,
    "turn_strategy": ChoiceEditor,
    "workflow_file": WorkflowFileEditor,
    "loop": NodeEditor,
    "iterator": NodeEditor,
    "router": NodeEditor,
}

_WIDGETS_WITH_FIELDS: dict[str, type[ArgumentsEditor | ConditionsEditor]] = {
    "arguments": ArgumentsEditor,
    "conditions": ConditionsEditor,
}

_KINDS: dict[FieldKind, type[Editor]] = {
    FieldKind.TEXT: LineEditor,
    FieldKind.INTEGER: NumberEditor,
    FieldKind.NUMBER: NumberEditor,
    FieldKind.SWITCH: SwitchEditor,
    FieldKind.CHOICE: ChoiceEditor,
    FieldKind.JSON: JsonEditor,
    FieldKind.VALUE: ValueEditor,
}


def make_editor(field: FieldSpec, binding: ConfigBinding, parent: QWidget) -> Editor:
    """Create the editor for a field: the widget that it asks for if known, else the default of its kind."""
    if field.widget in _WIDGETS_WITH_FIELDS:
        return _WIDGETS_WITH_FIELDS[field.widget](field, binding, make_editor, parent)
    if field.widget in _WIDGETS:
        return _WIDGETS[field.widget](field, binding, parent)
    if field.kind is FieldKind.OBJECT:
        return ObjectEditor(field, binding, make_editor, parent)
    if field.kind is FieldKind.OBJECTS:
        return ObjectListEditor(field, binding, make_editor, parent)
    if field.kind is FieldKind.TEXT and field.is_long:
        return TextEditor(field, binding, parent)
    return _KINDS[field.kind](field, binding, parent)


class Form(QWidget):
    """The fields of one object; advanced fields are collapsed.

    Signals:
        advanced_toggled: The user expanded or collapsed the advanced fields.

    Args:
        fields: The fields of the object.
        binding: The object.
        leading: A widget that comes before the advanced fields and is collapsed with them.
    """

    advanced_toggled = Signal(bool)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        binding: ConfigBinding,
        parent: QWidget | None = None,
        *,
        leading: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.fields = fields
        binding.fields = fields
        self._binding = binding
        self._leading = leading
        self._problems: Mapping[str, list[FieldProblem]] = {}
        self._shown_values: Any = None
        self._main = self._make_fields(is_advanced=False)
        self._advanced: FormFields | None = None  # created on first use
        self.advanced_button = AdvancedButton(parent=self)
        binding.events.watch(self.advanced_button)
        self.advanced_button.toggled.connect(self._show_advanced)
        self.advanced_button.clicked.connect(self.advanced_toggled)
        self._box = vbox(self._main, (self.advanced_button, Qt.AlignmentFlag.AlignLeft), spacing=4, parent=self)
        if leading is not None:
            self._box.addWidget(leading)
            leading.hide()
        has_advanced = any(field.is_advanced for field in self.fields.values())
        self.advanced_button.setVisible(has_advanced or leading is not None)

    def row(self, name: str) -> FormField | None:
        """Return the row of a field; None if it does not exist or has not been created yet."""
        advanced = self._advanced.rows if self._advanced is not None else {}
        return self._main.rows.get(name) or advanced.get(name)

    def show_values(self, *, force: bool = False) -> None:
        """Show the values of the document; does nothing if they are unchanged, unless forced."""
        values = self._binding.values
        if values is self._shown_values and not force:
            return
        self._shown_values = values
        for fields in self._groups():
            fields.show_values(values)
        self._update_button()
        # What an editor offers may depend on other values: the arguments on the tool.
        self.refresh()

    def show_problems(self, problems: Mapping[str, list[FieldProblem]]) -> None:
        """Show problems by field."""
        self._problems = problems
        for fields in self._groups():
            fields.show_problems(problems, self._binding.values)
        self._update_button()

    def refresh(self) -> None:
        """Update what depends on the rest of the document."""
        for fields in self._groups():
            fields.refresh()

    def focus_field(self, name: str, path: str) -> bool:
        """Move the focus to a field, expanding the advanced fields if needed; False if it does not exist."""
        if name not in self.fields:
            return False
        if self.fields[name].is_advanced:
            self.expand()
        row = self.row(name)
        assert row is not None
        row.setVisible(True)
        row.editor.focus_path(path)
        return True

    def focus_first(self) -> bool:
        """Move the focus to the first visible field, or to the button of the advanced ones; False if there are none."""
        if self._main.focus_first():
            return True
        self.advanced_button.setFocus()
        return not self.advanced_button.isHidden()

    def expand(self) -> None:
        """Expand the advanced fields."""
        if not self.advanced_button.isChecked():
            self.advanced_button.click()

    def _groups(self) -> list[FormFields]:
        return [self._main] if self._advanced is None else [self._main, self._advanced]

    def _make_fields(self, *, is_advanced: bool) -> FormFields:
        chosen = [field for field in self.fields.values() if field.is_advanced == is_advanced]
        fields = FormFields(chosen, self.fields, self._binding, make_editor, parent=self)
        fields.edited.connect(self._binding.write_field)
        fields.layout_changed.connect(lambda: order_tabs(self))
        return fields

    def _show_advanced(self, is_open: bool) -> None:  # Qt's signal
        if is_open and self._advanced is None:
            self._advanced = self._make_fields(is_advanced=True)
            self._box.addWidget(self._advanced)
            self._advanced.show_values(self._binding.values)
            self._advanced.refresh()
            self._advanced.show_problems(self._problems, self._binding.values)
            order_tabs(self)
        for widget in (self._leading, self._advanced):
            if widget is not None:
                widget.setVisible(is_open)
        self._update_button()

    def _update_button(self) -> None:
        """Note on the collapsed button how many hidden fields have problems, or else values of their own."""
        advanced = {name: field for name, field in self.fields.items() if field.is_advanced}
        problem_count = sum(len(found) for name, found in self._problems.items() if name in advanced)
        values = self._binding.values
        set_count = sum(field.value_in(values) != field.default for field in advanced.values())
        if self.advanced_button.isChecked():
            self.advanced_button.show_note("")
        elif problem_count:
            self.advanced_button.show_note(format_count(problem_count, "problem"))
        else:
            self.advanced_button.show_note(f"{set_count} set" if set_count else "")


def problems_by_field(problems: Iterable[Problem], prefix: str = "") -> dict[str, list[FieldProblem]]:
    """Group problems by the first part of their field path after a prefix."""
    grouped: dict[str, list[FieldProblem]] = {}
    for problem in problems:
        if problem.field is not None and problem.field.startswith(prefix):
            name, _, path = problem.field.removeprefix(prefix).partition(".")
            grouped.setdefault(name, []).append(FieldProblem(path, problem))
    return grouped


def order_tabs(parent: QWidget) -> None:
    """Set the tab order of a widget's children to the order of its layout."""
    for before, after in pairwise(_tab_stops(parent)):
        QWidget.setTabOrder(before, after)


def _tab_stops(widget: QWidget) -> Iterator[QWidget]:
    if widget.focusPolicy() & Qt.FocusPolicy.TabFocus:
        yield widget
    layout = widget.layout()
    if layout is not None:
        yield from _tab_stops_in(layout)


def _tab_stops_in(layout: QLayout) -> Iterator[QWidget]:
    index = 0
    while (item := layout.itemAt(index)) is not None:
        index += 1
        inner, widget = item.layout(), item.widget()
        if widget is not None:
            yield from _tab_stops(widget)
        elif inner is not None:
            yield from _tab_stops_in(inner)
