"""From a field to its editor: the one place that knows all kinds of editors."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.inspector.config_binding import Target
from app.inspector.editors.choice_editors import (
    ListEditor,
    ModelEditor,
    ModelsEditor,
    NodeEditor,
    SwitchEditor,
    ToolEditor,
    ToolsEditor,
    TurnStrategyEditor,
)
from app.inspector.editors.editor import Editor
from app.inspector.editors.object_editors import ArgumentsEditor, ObjectEditor, ObjectsEditor
from app.inspector.editors.text_editors import (
    JsonEditor,
    LineEditor,
    LinesEditor,
    NumberEditor,
    TextEditor,
    ValueEditor,
    WorkflowFileEditor,
)
from app.inspector.field_spec import Field, Kind
from app.inspector.prompt_editor import ExpressionEditor, PromptEditor

_WIDGETS: dict[str, type[Editor]] = {
    "prompt": PromptEditor,
    "expression": ExpressionEditor,
    "json": JsonEditor,
    "model": ModelEditor,
    "models": ModelsEditor,
    "lines": LinesEditor,
    "tool": ToolEditor,
    "tools": ToolsEditor,
    "turn_strategy": TurnStrategyEditor,
    "workflow_file": WorkflowFileEditor,
    "loop": NodeEditor,
    "iterator": NodeEditor,
    "router": NodeEditor,
}

_KINDS: dict[Kind, type[Editor]] = {
    Kind.TEXT: LineEditor,
    Kind.INTEGER: NumberEditor,
    Kind.NUMBER: NumberEditor,
    Kind.SWITCH: SwitchEditor,
    Kind.CHOICE: ListEditor,
    Kind.JSON: JsonEditor,
    Kind.VALUE: ValueEditor,
}


def make_editor(field: Field, target: Target, parent: QWidget) -> Editor:
    """Create the editor for a field: the widget that it asks for if known, else the default of its kind."""
    if field.widget == "arguments":
        return ArgumentsEditor(field, target, make_editor, parent)
    if field.widget in _WIDGETS:
        return _WIDGETS[field.widget](field, target, parent)
    if field.kind is Kind.OBJECT:
        return ObjectEditor(field, target, make_editor, parent)
    if field.kind is Kind.OBJECTS:
        return ObjectsEditor(field, target, make_editor, parent)
    if field.kind is Kind.TEXT and field.is_long:
        return TextEditor(field, target, parent)
    return _KINDS[field.kind](field, target, parent)
