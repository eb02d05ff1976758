"""JSON, checked while it is typed, and values of any kind."""

from __future__ import annotations

import json
from typing import Any

from PySide6.QtWidgets import QWidget

from app.inspector.editors.base import Editor
from app.inspector.editors.texts import GrowingEdit
from app.inspector.fields import Field
from app.inspector.target import Target
from app.theme.style import fixed_font, style
from app.theme.widgets import PlainLabel
from engine.nodes.json_text import parse_json
from engine.values import Value


class JsonEditor(Editor):
    """A JSON object or list.

    A text that is no JSON yet is kept as that text, and the line below says where it breaks.
    """

    least = 3

    def __init__(self, field: Field, target: Target, parent: QWidget | None = None) -> None:
        super().__init__(field, target, parent)
        self.edit = GrowingEdit(least=self.least, most=14, parent=self)
        self.adopt(self.edit)
        self.said = PlainLabel(parent=self, look="dim small", wrap=True)
        self.box.addWidget(self.edit)
        self.box.addWidget(self.said)
        self.main_widget = self.edit
        self.edit.typed.connect(self._typed)
        style().changed.connect(self._dress)
        self._dress()

    def _dress(self) -> None:
        self.edit.setFont(fixed_font())

    def _put(self, value: Any) -> None:
        self.edit.set_text(self._write(value))
        self._say(self.edit.text())

    def _typed(self, text: str) -> None:
        self._say(text)
        self._tell(self._read(text))

    def _write(self, value: Any) -> str:
        if value is None or isinstance(value, str):
            return value or ""
        return json.dumps(value, ensure_ascii=False, indent=2)

    def _read(self, text: str) -> Value:
        if not text.strip():
            return None if self.field.nullable else self.field.default
        try:
            return parse_json(text)
        except ValueError:
            return text

    def _say(self, text: str) -> None:
        self.said.setText(_fault(text))
        self.said.setVisible(bool(self.said.text()))


class ValueEditor(JsonEditor):
    """Any value: what reads as JSON is that, anything else is a text. The line below says which."""

    least = 1

    def _write(self, value: Any) -> str:
        if isinstance(value, str) and self._read(value) == value:
            return value
        return "" if value is None else json.dumps(value, ensure_ascii=False, indent=2)

    def _say(self, text: str) -> None:
        value = self._read(text)
        kinds = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
        self.said.setText(f"Read as {kinds[type(value)]}." if type(value) in kinds else "")
        self.said.setVisible(bool(self.said.text()))


def _fault(text: str) -> str:
    """Where a text breaks as JSON; empty where it does not."""
    if not text.strip():
        return ""
    try:
        parse_json(text)
    except json.JSONDecodeError as error:
        return f"This is no JSON yet: line {error.lineno}, column {error.colno}: {error.msg}."
    except ValueError as error:
        return f"This is no JSON yet: {error}"
    return ""
