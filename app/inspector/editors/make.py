"""From a field to its editor: the one place that knows all kinds of editors."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.inspector.editors.arguments import ArgumentsEditor
from app.inspector.editors.base import Editor
from app.inspector.editors.choice import ListEditor, ModelEditor, NodeEditor, SwitchEditor, ToolEditor
from app.inspector.editors.json_editor import JsonEditor, ValueEditor
from app.inspector.editors.models import ModelsEditor
from app.inspector.editors.number import NumberEditor
from app.inspector.editors.object_editor import ObjectEditor
from app.inspector.editors.objects import ObjectsEditor
from app.inspector.editors.texts import LineEditor, LinesEditor, TextEditor
from app.inspector.editors.tools import ToolsEditor, TurnStrategyEditor
from app.inspector.editors.workflow_file import WorkflowFileEditor
from app.inspector.fields import Field, Kind
from app.inspector.prompt_editor import ExpressionEditor, PromptEditor
from app.inspector.target import Target

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
    "arguments": ArgumentsEditor,
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
    Kind.OBJECT: ObjectEditor,
    Kind.OBJECTS: ObjectsEditor,
    Kind.JSON: JsonEditor,
    Kind.VALUE: ValueEditor,
}


def make_editor(field: Field, target: Target, parent: QWidget) -> Editor:
    """The editor that a field asks for; a widget that this program does not know gives way to the usual one."""
    if field.widget in _WIDGETS:
        return _WIDGETS[field.widget](field, target, parent)
    if field.kind is Kind.TEXT and field.is_long:
        return TextEditor(field, target, parent)
    return _KINDS[field.kind](field, target, parent)
