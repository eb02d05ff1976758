"""The form that a run is started with: a field for each input of the workflow, and what the run may touch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QHBoxLayout,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.dialogs import FileDialogs
from app.inspector.text_widgets import exact_text
from app.theme.style import set_style_properties
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel, ignore_wheel_in_fields
from app.window.permissions_form import PermissionFields, Permissions, ToolNeeds
from app.worker import Worker
from engine.nodes.json_values import ConversionError, convert
from engine.nodes.spec import PortType
from engine.runner.declared_inputs import MAX_FILE_BYTES, Declared
from engine.safe_file_io import read_text_file
from engine.values import Value, to_text

_KINDS: Final = {
    PortType.TEXT: "text",
    PortType.ANY: "text",
    PortType.NUMBER: "number",
    PortType.BOOLEAN: "yes or no",
    PortType.LIST: "list, as JSON",
    PortType.JSON: "JSON",
}


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a person has answered: the values of the inputs, and what the run may do on this machine.

    Attributes:
        inputs: By name.
        may_use_folder: Whether tools may use the document's folder.
        may_run_code: Whether tools may run code.
    """

    inputs: dict[str, Value]
    may_use_folder: bool
    may_run_code: bool


def known_values(declared: list[Declared], last: Mapping[str, Value]) -> dict[str, Value] | None:
    """The values with which a run can start without a question; None where one is missing.

    Args:
        declared: The inputs of the workflow.
        last: The values of the last run.
    """
    values = {item.name: last[item.name] for item in declared if item.name in last and _fits(last[item.name], item)}
    missing = [item for item in declared if item.name not in values and item.default is None]
    return None if missing else values


def _fits(value: Value, item: Declared) -> bool:
    try:
        return convert(value, item.type) is not None
    except ConversionError:
        return False


class InputField(QWidget):
    """The field of one input.

    Args:
        declared: The input.
        value: What it begins with; None for nothing.
        asker: Asks for a file.

    Signals:
        changed: Something else stands in it.
    """

    changed = Signal()

    def __init__(self, declared: Declared, value: Value, asker: FileDialogs, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.declared = declared
        self._reader = Worker(self)
        caption = PlainLabel(f"{declared.name} ({_KINDS[declared.type]})", self)
        self.editor = self._editor(value)
        self.editor.setAccessibleName(declared.name)
        self.editor.setAccessibleDescription(declared.description)
        self.fault = PlainLabel("", self, look="small", wrap=True)
        self.fault.setProperty("tone", "bad")
        self.fault.hide()
        head = QHBoxLayout()
        head.addWidget(caption, 1)
        if isinstance(self.editor, QPlainTextEdit):
            self.from_file = QPushButton("From file…", self)
            self.from_file.setProperty("quiet", True)
            self.from_file.setAccessibleName(f"Read {declared.name} from a file")
            self.from_file.clicked.connect(lambda _checked=False: asker.open_text(self, self.read_file))
            if declared.default is not None:
                head.addWidget(self._sample_button())
            head.addWidget(self.from_file)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(UNIT)
        column.addLayout(head)
        if declared.description:
            column.addWidget(PlainLabel(declared.description, self, look="dim small", wrap=True))
        column.addWidget(self.editor)
        column.addWidget(self.fault)
        self.setFocusProxy(self.editor)

    def _sample_button(self) -> QPushButton:
        """Puts back what the document has as the value, after a run with another."""
        sample = to_text(self.declared.default)
        button = QPushButton("Sample", self)
        button.setProperty("quiet", True)
        button.setAccessibleName(f"Use the sample of {self.declared.name}")
        button.setToolTip("Put the workflow's own value in.")
        assert isinstance(self.editor, QPlainTextEdit)
        edit = self.editor
        button.clicked.connect(lambda _checked=False: edit.setPlainText(sample))
        edit.textChanged.connect(lambda: button.setEnabled(edit.toPlainText() != sample))
        button.setEnabled(edit.toPlainText() != sample)
        return button

    def _editor(self, value: Value) -> QWidget:
        if self.declared.type is PortType.BOOLEAN:
            combo = QComboBox(self)
            combo.addItem("yes", True)
            combo.addItem("no", False)
            combo.setCurrentIndex(0 if value is True else 1)
            combo.currentIndexChanged.connect(lambda _index: self.changed.emit())
            return combo
        text = to_text(value)
        if self.declared.type is PortType.NUMBER:
            line = QLineEdit(text, self)
            line.textChanged.connect(lambda _text: self.changed.emit())
            return line
        edit = QPlainTextEdit(text, self)
        edit.setTabChangesFocus(True)
        edit.setMinimumHeight(20 * UNIT)
        edit.textChanged.connect(self.changed)
        return edit

    def value(self) -> Value:
        """What stands in it.

        Raises:
            ConversionError: It does not fit the type of the input, or nothing stands there.
        """
        editor = self.editor
        if isinstance(editor, QComboBox):
            return bool(editor.currentData())
        assert isinstance(editor, QLineEdit | QPlainTextEdit)
        text = editor.text() if isinstance(editor, QLineEdit) else exact_text(editor)
        if not text.strip() and (self.declared.default is None or self.declared.type is not PortType.TEXT):
            raise ConversionError("A value is needed here.")
        return convert(text, self.declared.type)

    def check(self) -> bool:
        """Say beside the field what is wrong with it; true where nothing is."""
        if self.is_reading:
            self._say("The file is still being read.")
            return False
        try:
            self.value()
        except ConversionError as error:
            self._say(error.message)
            return False
        self._say("")
        return True

    @property
    def is_reading(self) -> bool:
        """Whether a file is still being read for it."""
        return self._reader.is_busy

    def read_file(self, path: Path) -> None:
        """Put a file's text into the field, as soon as it is read."""
        self._reader.ask(partial(_text_of, path), self._take_text)

    def _take_text(self, read: tuple[str, str]) -> None:
        text, fault = read
        if not fault:
            assert isinstance(self.editor, QPlainTextEdit)
            self.editor.setPlainText(text)
        self._say(fault)

    def _say(self, text: str) -> None:
        self.fault.setText(text)
        self.fault.setVisible(bool(text))
        set_style_properties(self.editor, invalid=bool(text))


def _text_of(path: Path) -> tuple[str, str]:
    """The text in a file, or what is wrong with it."""
    try:
        return read_text_file(path, MAX_FILE_BYTES), ""
    except (OSError, ValueError) as error:
        return "", f"{path.name} cannot be read: {getattr(error, 'strerror', None) or error}."


class RunDialog(QDialog):
    """The form.

    Args:
        declared: The inputs of the workflow.
        last: The values of the last run.
        folder: The folder of the document; None where it has none.
        asker: Asks for files.
        may_use_folder: Whether tools may use that folder, as answered last.
        may_run_code: Whether tools may run code, as answered last; None where the document has no such tool.

    Signals:
        wanted: Run with this.
    """

    wanted = Signal(object)

    def __init__(
        self,
        declared: list[Declared],
        last: Mapping[str, Value],
        folder: Path | None,
        asker: FileDialogs,
        *,
        may_use_folder: bool = False,
        may_run_code: bool | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle("Run with")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.fields = [InputField(item, last.get(item.name, item.default), asker, self) for item in declared]
        for field in self.fields:
            field.changed.connect(field.check)
        needs = ToolNeeds(folder=True, code=may_run_code is not None)
        allowed = Permissions(folder if may_use_folder else None, bool(may_run_code))
        self.boxes = PermissionFields(needs, folder, allowed, self)
        self.folder, self.code = self.boxes.folder, self.boxes.code
        self.run = QPushButton("Run", self)
        self.run.setProperty("primary", True)
        self.run.setDefault(True)
        self.run.clicked.connect(self._finish)
        cancel = QPushButton("Cancel", self)
        cancel.clicked.connect(self.reject)
        for keys in ("Ctrl+Return", "Ctrl+Enter"):
            QShortcut(QKeySequence(keys), self, self._finish)
        self._arrange(cancel)

    def _arrange(self, cancel: QPushButton) -> None:
        inside = QWidget()
        form = QVBoxLayout(inside)
        form.setContentsMargins(0, 0, 0, 0)
        form.setSpacing(4 * UNIT)
        for field in self.fields:
            form.addWidget(field, int(isinstance(field.editor, QPlainTextEdit)))
        if not self.fields:
            form.addWidget(PlainLabel("This workflow has no inputs.", inside, look="dim"))
        if not any(isinstance(field.editor, QPlainTextEdit) for field in self.fields):
            form.addStretch(1)
        area = QScrollArea(self)
        area.setWidgetResizable(True)
        area.setWidget(inside)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        ignore_wheel_in_fields(area)
        buttons = QHBoxLayout()
        buttons.setSpacing(2 * UNIT)
        buttons.addStretch(1)
        buttons.addWidget(cancel)
        buttons.addWidget(self.run)
        column = QVBoxLayout(self)
        column.setContentsMargins(6 * UNIT, 6 * UNIT, 6 * UNIT, 4 * UNIT)
        column.setSpacing(4 * UNIT)
        column.addWidget(area, 1)
        column.addWidget(self.boxes)
        column.addLayout(buttons)
        if self.fields:
            self.fields[0].setFocus()
        self.resize(130 * UNIT, min(60 + 45 * len(self.fields), 150) * UNIT)

    def _finish(self) -> None:
        faulty = [field for field in self.fields if not field.check()]
        if faulty:
            faulty[0].setFocus()
            return
        values = {field.declared.name: field.value() for field in self.fields}
        self.wanted.emit(RunRequest(values, self.folder.isChecked(), self.code.isChecked()))
        self.accept()
