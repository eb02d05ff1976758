"""Creates the editor of a field."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.inspector.config_binding import ConfigBinding
from app.inspector.editors.choice_editors import (
    ChoiceEditor,
    ModelEditor,
    ModelListEditor,
    NodeEditor,
    SwitchEditor,
    ToolEditor,
    ToolListEditor,
    TurnStrategyEditor,
)
from app.inspector.editors.condition_editors import ConditionEditor, ConditionsEditor
from app.inspector.editors.editor import Editor
from app.inspector.editors.object_editors import ArgumentsEditor, ObjectEditor, ObjectListEditor
from app.inspector.editors.text_editors import (
    JsonEditor,
    LineEditor,
    LinesEditor,
    NumberEditor,
    TextEditor,
    ValueEditor,
    WorkflowFileEditor,
)
from app.inspector.field_spec import FieldKind, FieldSpec
from app.inspector.prompt_editor import ExpressionEditor, PromptEditor

_WIDGETS: dict[str, type[Editor]] = {
    "prompt": PromptEditor,
    "expression": ExpressionEditor,
    "json": JsonEditor,
    "model": ModelEditor,
    "models": ModelListEditor,
    "lines": LinesEditor,
    "condition": ConditionEditor,
    "tool": ToolEditor,
    "tools": ToolListEditor,
    "turn_strategy": TurnStrategyEditor,
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
