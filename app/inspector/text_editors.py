"""Editors for typed values: texts, lists of lines, numbers, JSON, workflow files."""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, cast

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QValidator
from PySide6.QtWidgets import QAbstractSpinBox, QFileDialog, QLineEdit, QWidget

from app.inspector.editor import MIXED, ConfigBinding, Editor, describe_widget, set_line_text
from app.inspector.field_spec import FieldKind, FieldSpec
from app.inspector.text_widgets import GrowingEdit
from app.theme.widgets import PlainLabel, inset_number, push_button
from engine.document.model import FILE_SUFFIX, FILE_SUFFIXES
from engine.document.subflows import relative_path
from engine.formatting import format_json
from engine.nodes.json_values import parse_json
from engine.values import Value, to_text

_ESCAPES: Final = {"\\": "\\\\", "\n": "\\n", "\t": "\\t"}
_UNESCAPED: Final = {written: sign for sign, written in _ESCAPES.items()}
_SPECIAL: Final = re.compile(r"[\\\n\t]")
_ESCAPED: Final = re.compile(r"\\[\\nt]")


class LineEditor(Editor):
    """Single-line text field."""

    def __init__(self, field: FieldSpec, binding: ConfigBinding, parent: QWidget | None = None) -> None:
        super().__init__(field, binding, parent)
        self.line = QLineEdit(self)
        self.register(self.line)
        self.box.addWidget(self.line)
        self.main_widget = self.text_widget = self.line
        self.line.textEdited.connect(self._typed)

    def _display(self, value: Any) -> None:
        set_line_text(self.line, to_text(value))

    def _typed(self, text: str) -> None:
        self._commit(None if self.field.nullable and not text else text)


class TextEditor(Editor):
    """Multi-line text field."""

    def __init__(self, field: FieldSpec, binding: ConfigBinding, parent: QWidget | None = None) -> None:
        super().__init__(field, binding, parent)
        self.edit = GrowingEdit(parent=self)
        self.register(self.edit)
        self.box.addWidget(self.edit)
        self.main_widget = self.text_widget = self.edit
        self.edit.typed.connect(self._typed)

    def _display(self, value: Any) -> None:
        self.edit.set_text(to_text(value))

    def _typed(self, text: str) -> None:
        self._commit(None if self.field.nullable and not text else text)


class LinesEditor(TextEditor):
    r"""List of texts, one per line. `\n`, `\t` and `\\` stand for a line break, a tab and a backslash."""

    def __init__(self, field: FieldSpec, binding: ConfigBinding, parent: QWidget | None = None) -> None:
        super().__init__(field, binding, parent)
        self.edit.setPlaceholderText("One per line. Use \\n for a line break.")

    def _display(self, value: Any) -> None:
        items = cast("list[Any]", value) if isinstance(value, list) else [value] if value else []
        self.edit.set_text("\n".join(_SPECIAL.sub(lambda sign: _ESCAPES[sign[0]], to_text(item)) for item in items))

    def _typed(self, text: str) -> None:
        lines = (line for line in text.split("\n") if line)
        self._commit([_ESCAPED.sub(lambda sign: _UNESCAPED[sign[0]], line) for line in lines])


_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,18}")
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]{1,18}\.?[0-9]{0,18}|\.[0-9]{1,18})(?:[eE][+-]?[0-9]{1,3})?")


def parse_number(text: str) -> int | float | str:
    """Parse a number. Invalid text is returned unchanged, so that validation reports it."""
    text = text.strip()
    if _WHOLE.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text.replace(",", ".")) and math.isfinite(number := float(text.replace(",", "."))):
        return number
    return text


def format_number(value: Any) -> str:
    """Format a number for editing; other values are only converted to text."""
    return f"{value:.12g}" if isinstance(value, float) else to_text(value)


class NumberBox(QAbstractSpinBox):
    """Spin box that accepts any text and stores no value.

    Signals:
        typed: The user typed or stepped.
    """

    typed = Signal(str)

    def __init__(self, field: FieldSpec, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._field = field
        self.lineEdit().textEdited.connect(self.typed)

    def validate(self, input: str, pos: int) -> tuple[QValidator.State, str, int]:  # noqa: A002  Qt's names
        """Accept all input; problems are shown below the field."""
        return QValidator.State.Acceptable, input, pos

    def stepBy(self, steps: int) -> None:  # Qt's name
        """Step within the limits."""
        current = parse_number(self.text())
        if isinstance(current, str):
            start = self._field.default if self._field.default is not None else self._field.minimum
            stepped = Decimal(str(start or 0))
        else:
            stepped = Decimal(str(current)) + steps * self._step()
        if self._field.minimum is not None:
            stepped = max(stepped, Decimal(str(self._field.minimum)))
        if self._field.maximum is not None:
            stepped = min(stepped, Decimal(str(self._field.maximum)))
        whole = self._field.kind is FieldKind.INTEGER or stepped == stepped.to_integral_value()
        self.lineEdit().setText(str(int(stepped)) if whole else format_number(float(stepped)))
        self.typed.emit(self.text())

    def stepEnabled(self) -> QAbstractSpinBox.StepEnabledFlag:  # Qt's name
        """Return that both directions are enabled; `stepBy` applies the limits."""
        return QAbstractSpinBox.StepEnabledFlag.StepUpEnabled | QAbstractSpinBox.StepEnabledFlag.StepDownEnabled

    def _step(self) -> Decimal:
        if self._field.kind is FieldKind.INTEGER:
            return Decimal(1)
        span = self._field.maximum
        if span is not None and span <= 1:
            return Decimal("0.01")
        return Decimal("0.1") if span is not None and span <= 10 else Decimal(1)


class NumberEditor(Editor):
    """Spin box for an integer or decimal number."""

    def __init__(self, field: FieldSpec, binding: ConfigBinding, parent: QWidget | None = None) -> None:
        super().__init__(field, binding, parent)
        self.number = NumberBox(field, self)
        self.register(self.number, text=f"{field.help} Use ↑ and ↓ to change it.".strip())
        self.register(self.number.lineEdit())
        if field.nullable:
            self.number.lineEdit().setPlaceholderText("Not set")
        inset_number(self.number)
        self.box.addWidget(self.number)
        self.main_widget = self.number
        self.text_widget = self.number.lineEdit()
        self.number.typed.connect(self._typed)
        self.number.editingFinished.connect(self._tidy)

    def _display(self, value: Any) -> None:
        set_line_text(self.number.lineEdit(), format_number(value))

    def _typed(self, text: str) -> None:
        if text.strip():
            self._commit(parse_number(text))
        else:
            self._commit(None if self.field.nullable else self.field.default)

    def _tidy(self) -> None:
        """When editing ends, show the effective value: `5` for an empty field with the default 5."""
        if self._value is not MIXED:
            self._display(self._value)


class JsonEditor(Editor):
    """Editor for a JSON object or list.

    Text that is not valid JSON is stored as text; the line below shows the position of the error.
    """

    min_lines = 3

    def __init__(self, field: FieldSpec, binding: ConfigBinding, parent: QWidget | None = None) -> None:
        super().__init__(field, binding, parent)
        self.edit = GrowingEdit(min_lines=self.min_lines, max_lines=14, parent=self)
        self.edit.setProperty("monospace", True)
        self.register(self.edit)
        self.status = PlainLabel(parent=self, look="dim small", wrap=True)
        self.box.addWidget(self.edit)
        self.box.addWidget(self.status)
        self.main_widget = self.text_widget = self.edit
        self.edit.typed.connect(self._typed)

    def _display(self, value: Any) -> None:
        self.edit.set_text(self._format(value))
        self._show_status(self.edit.text())

    def _typed(self, text: str) -> None:
        self._show_status(text)
        self._commit(self._parse(text))

    def _format(self, value: Any) -> str:
        if value is None or isinstance(value, str):
            return value or ""
        return format_json(value)

    def _parse(self, text: str) -> Value:
        if not text.strip():
            return None if self.field.nullable else self.field.default
        try:
            return parse_json(text)
        except ValueError:
            return text

    def _show_status(self, text: str) -> None:
        self.status.setText(_json_error(text))
        self.status.setVisible(bool(self.status.text()))


class ValueEditor(JsonEditor):
    """Editor for any JSON value. Input that is not JSON is a text; the line below shows the type."""

    min_lines = 1

    def _format(self, value: Any) -> str:
        if isinstance(value, str) and self._parse(value) == value:
            return value
        return "" if value is None else format_json(value)

    def _show_status(self, text: str) -> None:
        value = self._parse(text)
        kinds = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
        self.status.setText(f"Interpreted as {kinds[type(value)]}." if type(value) in kinds else "")
        self.status.setVisible(bool(self.status.text()))


def _json_error(text: str) -> str:
    """Return the syntax error of a JSON text with its position; empty if it is valid."""
    if not text.strip():
        return ""
    try:
        parse_json(text)
    except json.JSONDecodeError as error:
        return f"Invalid JSON in line {error.lineno}, column {error.colno}: {error.msg}."
    except ValueError as error:
        return f"Invalid JSON: {error}"
    return ""


class WorkflowFileEditor(LineEditor):
    """Path of another workflow, relative to the folder of this one.

    Attributes:
        browse: Opens the file dialog.
    """

    def __init__(self, field: FieldSpec, binding: ConfigBinding, parent: QWidget | None = None) -> None:
        super().__init__(field, binding, parent)
        self.line.setPlaceholderText(f"name{FILE_SUFFIX}")
        self.browse = push_button("Browse…", self._browse, self)
        describe_widget(self.browse, "Browse for a workflow file", "Tip: double-click the node to open its workflow.")
        self.binding.events.watch(self.browse)
        self.box.addWidget(self.browse)

    def set_file(self, file: Path) -> None:
        """Set the path to a file."""
        path = self.binding.session.path
        name = (relative_path(file, path) if path is not None else "") or file.as_posix()
        self.line.setText(name)
        self._typed(name)
        self.binding.session.seal()

    def _browse(self) -> None:
        path = self.binding.session.path
        folder = str(path.parent) if path is not None else ""
        patterns = " ".join(f"*{suffix}" for suffix in FILE_SUFFIXES)
        dialog = QFileDialog(self, "Choose a workflow", folder, f"Workflows ({patterns})")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(lambda name: self.set_file(Path(name)))
        dialog.open()
