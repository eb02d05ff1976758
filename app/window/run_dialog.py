"""Dialogs that start or resume a run: values of the workflow's inputs, permissions and budget.

Permissions are given for each run, also for a resumed run or a fork; they are not stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QDoubleSpinBox,
    QFormLayout,
    QHBoxLayout,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QSpinBox,
    QWidget,
)

from app.dialogs import FileDialogs
from app.inspector.text_widgets import exact_text
from app.theme.style import set_style_properties
from app.theme.tokens import UNIT
from app.theme.widgets import (
    STRETCH,
    PlainLabel,
    StatusLabel,
    hbox,
    inset_number,
    push_button,
    resize_on_screen,
    scroll_area,
    vbox,
)
from app.worker import Worker
from engine.document.model import Workflow
from engine.errors import reason_of
from engine.nodes.json_values import ConversionError, convert
from engine.nodes.spec import PortType
from engine.plan.structure import Structure, analyse
from engine.runner.capabilities import tools_of
from engine.runner.declared_inputs import MAX_FILE_BYTES, DeclaredInput
from engine.safe_file_io import read_text_file
from engine.tools.registry import all_tools
from engine.tools.tool import Consent
from engine.values import Value, to_text

NO_FOLDER = "Save the workflow first: it has no folder yet."


@dataclass(frozen=True, slots=True)
class Permissions:
    """What a run may access and spend.

    Attributes:
        folder: The folder that tools may use; None for none.
        may_run_code: Whether tools may run code.
        budget_usd: The budget in US dollars, including what the run has spent; None keeps the present one.
        budget_tokens: The budget in tokens, likewise.
        may_reach_private: Whether tools may reach this computer and private networks.
    """

    folder: Path | None = None
    may_run_code: bool = False
    budget_usd: float | None = None
    budget_tokens: int | None = None
    may_reach_private: bool = False


@dataclass(frozen=True, slots=True)
class ToolNeeds:
    """Which permissions a workflow's tools can use. True if a person is asked for them: few need private addresses."""

    folder: bool = False
    code: bool = False
    private: bool = False

    def __bool__(self) -> bool:
        return self.folder or self.code


def needs_of(workflow: Workflow) -> ToolNeeds:
    """Return what the tools of a workflow and its subflows need."""
    return needs_in(analyse(workflow))


def needs_in(structure: Structure) -> ToolNeeds:
    """Return what the tools of an analyzed workflow and its subflows need."""
    known = all_tools()
    tools = [known[name] for name in _tools(structure) if name in known]
    return ToolNeeds(
        any(tool.uses_folder for tool in tools),
        any(tool.runs_code for tool in tools),
        any(tool.consent is Consent.HOST for tool in tools),
    )


def _tools(structure: Structure) -> Iterator[str]:
    for resolved in structure.resolution.nodes.values():
        if resolved.node.enabled:
            yield from tools_of(resolved.config)
    for subflow, inner in structure.subflows.items():
        if structure.resolution.nodes[subflow].node.enabled:
            yield from _tools(inner)


class PermissionFields(QWidget):
    """The form.

    Args:
        needs: Which checkboxes are shown.
        folder: The folder that can be allowed; None if there is none.
        allowed: The initial values; a budget that is None has no field.

    Attributes:
        folder: The checkbox for the folder.
        code: The checkbox for running code.
        private: The checkbox for private addresses.
        usd: The budget in US dollars; None if there is no field.
        tokens: The budget in tokens; None if there is no field.
    """

    def __init__(
        self, needs: ToolNeeds, folder: Path | None, allowed: Permissions | None = None, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._folder = folder
        allowed = allowed or Permissions()
        self.folder = QCheckBox(self)
        self.folder.setText("Allow tools to read and write files in the workflow's folder")
        self.folder.setChecked(allowed.folder is not None and folder is not None)
        self.folder.setEnabled(folder is not None)
        self.folder.setToolTip(str(folder) if folder is not None else NO_FOLDER)
        self.folder.setVisible(needs.folder)
        self.code = QCheckBox(self)
        self.code.setText("Allow tools to run code and commands on this computer")
        self.code.setChecked(allowed.may_run_code)
        self.code.setToolTip("Only allow this if you trust the workflow: code can do anything that you can do.")
        self.code.setVisible(needs.code)
        self.private = QCheckBox(self)
        self.private.setText("Allow web tools to reach this computer and private networks")
        self.private.setChecked(allowed.may_reach_private)
        self.private.setVisible(needs.private)
        self.usd = _usd_field(allowed.budget_usd) if allowed.budget_usd is not None else None
        self.tokens = _tokens_field(allowed.budget_tokens) if allowed.budget_tokens is not None else None
        vbox(
            _rows({"Budget (USD)": self.usd, "Budget (tokens)": self.tokens}),
            self.folder,
            self.code,
            self.private,
            spacing=2,
            parent=self,
        )
        self.setVisible(bool(needs or needs.private or self.usd or self.tokens))

    @property
    def allowed(self) -> Permissions:
        """The permissions and budgets that the user chose."""
        return Permissions(
            self._folder if self.folder.isChecked() else None,
            self.code.isChecked(),
            self.usd.value() if self.usd is not None else None,
            self.tokens.value() if self.tokens is not None else None,
            self.private.isChecked(),
        )


def _usd_field(budget: float) -> QDoubleSpinBox:
    step = QDoubleSpinBox.StepType.AdaptiveDecimalStepType
    return QDoubleSpinBox(decimals=4, maximum=1_000_000.0, stepType=step, value=budget)


def _tokens_field(budget: int) -> QSpinBox:
    step = QSpinBox.StepType.AdaptiveDecimalStepType
    field = QSpinBox(maximum=2_000_000_000, stepType=step, value=budget)
    field.setGroupSeparatorShown(True)
    return field


def _rows(fields: Mapping[str, QDoubleSpinBox | QSpinBox | None]) -> QFormLayout:
    rows = QFormLayout()
    rows.setHorizontalSpacing(3 * UNIT)
    rows.setVerticalSpacing(2 * UNIT)
    rows.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.FieldsStayAtSizeHint)
    for name, field in fields.items():
        if field is not None:
            inset_number(field)
            field.setAccessibleName(name)
            field.setToolTip("Includes what the run has spent so far.")
            field.setMinimumWidth(40 * UNIT)
            rows.addRow(PlainLabel(name, buddy=field), field)
    return rows


class PermissionDialog(QDialog):
    """Asks for the permissions of a run that is resumed.

    Args:
        hint: An explanation above the form.
        granted: Called with the chosen permissions.
    """

    def __init__(
        self, hint: str, fields: PermissionFields, granted: Callable[[Permissions], object], parent: QWidget
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Resume run")
        self.fields = fields
        self._granted = granted
        self.resume = push_button("Resume", self._grant, self, look="primary", auto_default=True)
        self.resume.setDefault(True)
        cancel = push_button("Cancel", self.reject, self, auto_default=True)
        vbox(
            PlainLabel("What may this run access?", look="title"),
            PlainLabel(hint, look="dim", wrap=True),
            fields,
            2,
            hbox(STRETCH, cancel, self.resume, spacing=2),
            spacing=4,
            margins=(6, 6, 6, 4),
            parent=self,
        )

    def _grant(self) -> None:
        self._granted(self.fields.allowed)
        self.accept()


_KINDS: Final = {
    PortType.TEXT: "text",
    PortType.ANY: "text",
    PortType.NUMBER: "number",
    PortType.BOOLEAN: "yes or no",
    PortType.LIST: "list, as JSON",
    PortType.JSON: "JSON",
}


def known_values(declared: list[DeclaredInput], last: Mapping[str, Value]) -> dict[str, Value] | None:
    """Return the values with which a run can start without asking; None if one is missing.

    Args:
        declared: The inputs of the workflow.
        last: The values of the last run.
    """
    values = {item.name: last[item.name] for item in declared if item.name in last and _fits(last[item.name], item)}
    missing = [item for item in declared if item.name not in values and item.default is None]
    return None if missing else values


def _fits(value: Value, item: DeclaredInput) -> bool:
    try:
        return convert(value, item.type) is not None
    except ConversionError:
        return False


class InputField(QWidget):
    """The field of one input.

    Args:
        value: The initial value; None for an empty field.

    Signals:
        changed: The user changed the value.
    """

    changed = Signal()

    def __init__(
        self, declared: DeclaredInput, value: Value, asker: FileDialogs, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.declared = declared
        self._reader = Worker(self)
        caption = PlainLabel(f"{declared.name} ({_KINDS[declared.type]})", self)
        self.editor = self._editor(value)
        self.editor.setAccessibleName(declared.name)
        self.editor.setAccessibleDescription(declared.description)
        self.error = StatusLabel(self, look="small")
        head = QHBoxLayout()
        head.addWidget(caption, 1)
        if isinstance(self.editor, QPlainTextEdit):
            choose = partial(asker.open_text, self, self.read_file)
            self.from_file = push_button("Read from file…", choose, self, look="quiet", auto_default=True)
            self.from_file.setAccessibleName(f"Read {declared.name} from a file")
            if declared.default is not None:
                head.addWidget(self._sample_button())
            head.addWidget(self.from_file)
        column = vbox(head, spacing=1, parent=self)
        if declared.description:
            column.addWidget(PlainLabel(declared.description, self, look="dim small", wrap=True))
        column.addWidget(self.editor)
        column.addWidget(self.error)
        self.setFocusProxy(self.editor)

    def _sample_button(self) -> QPushButton:
        sample = to_text(self.declared.default)
        assert isinstance(self.editor, QPlainTextEdit)
        edit = self.editor
        button = push_button("Use sample", lambda: edit.setPlainText(sample), self, look="quiet", auto_default=True)
        button.setAccessibleName(f"Use the sample of {self.declared.name}")
        button.setToolTip("Restore the value in the workflow.")
        edit.textChanged.connect(lambda: button.setEnabled(edit.toPlainText() != sample))
        button.setEnabled(edit.toPlainText() != sample)
        return button

    def _editor(self, value: Value) -> QWidget:
        if self.declared.type is PortType.BOOLEAN:
            combo = QComboBox(self)
            combo.addItem("Yes", True)
            combo.addItem("No", False)
            combo.setCurrentIndex(0 if value is True else 1)
            combo.currentIndexChanged.connect(lambda _index: self.changed.emit())
            return combo
        text = to_text(value)
        if self.declared.type is PortType.NUMBER:
            line = QLineEdit(text, self)
            line.textChanged.connect(lambda _text: self.changed.emit())
            return line
        edit = QPlainTextEdit(text, self, tabChangesFocus=True)
        edit.setMinimumHeight(20 * UNIT)
        edit.textChanged.connect(self.changed)
        return edit

    def value(self) -> Value:
        """Return the entered value.

        Raises:
            ConversionError: It does not fit the type of the input, or is missing.
        """
        editor = self.editor
        if isinstance(editor, QComboBox):
            return bool(editor.currentData())
        assert isinstance(editor, QLineEdit | QPlainTextEdit)
        text = editor.text() if isinstance(editor, QLineEdit) else exact_text(editor)
        if not text.strip() and (self.declared.default is None or self.declared.type is not PortType.TEXT):
            raise ConversionError("Enter a value.")
        return convert(text, self.declared.type)

    def check(self) -> bool:
        """Validate the value and show an error below the field; returns whether it is valid."""
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
        """Whether a file is being read into the field."""
        return self._reader.is_busy

    def read_file(self, path: Path) -> None:
        """Read a file in a thread and show its text in the field."""
        self._reader.ask(partial(_read_file, path), self._show_file)

    def _show_file(self, read: tuple[str, str]) -> None:
        text, error = read
        if not error:
            assert isinstance(self.editor, QPlainTextEdit)
            self.editor.setPlainText(text)
        self._say(error)

    def _say(self, text: str) -> None:
        self.error.say(text, "bad")
        set_style_properties(self.editor, invalid=bool(text))


def _read_file(path: Path) -> tuple[str, str]:
    """Return the text of a file, or an error message."""
    try:
        return read_text_file(path, MAX_FILE_BYTES), ""
    except (OSError, ValueError) as error:
        return "", f"{path.name} cannot be read: {reason_of(error)}."


class RunDialog(QDialog):
    """Asks for the inputs and permissions of a new run.

    Args:
        declared: The inputs of the workflow.
        last: The values of the last run.
        folder: The folder of the document; None if it has none.
        needs: The permissions that the workflow's tools can use.
        allowed: The permissions as last answered.

    Signals:
        wanted: The user clicked Run: the inputs by name, and the `Permissions`.
    """

    wanted = Signal(dict, object)

    def __init__(
        self,
        declared: list[DeclaredInput],
        last: Mapping[str, Value],
        folder: Path | None,
        asker: FileDialogs,
        needs: ToolNeeds,
        allowed: Permissions,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle("Run with")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.fields = [InputField(item, last.get(item.name, item.default), asker, self) for item in declared]
        for field in self.fields:
            field.changed.connect(field.check)
        self.boxes = PermissionFields(needs, folder, allowed, self)
        self.folder, self.code = self.boxes.folder, self.boxes.code
        self.run = push_button("Run", self._finish, self, look="primary", auto_default=True)
        self.run.setDefault(True)
        cancel = push_button("Cancel", self.reject, self, auto_default=True)
        for keys in ("Ctrl+Return", "Ctrl+Enter"):
            QShortcut(QKeySequence(keys), self, self._finish)
        self._arrange(cancel)

    def _arrange(self, cancel: QPushButton) -> None:
        inside = QWidget()
        form = vbox(spacing=4, parent=inside)
        for field in self.fields:
            form.addWidget(field, int(isinstance(field.editor, QPlainTextEdit)))
        if not self.fields:
            form.addWidget(PlainLabel("This workflow has no inputs.", inside, look="dim"))
        if not any(isinstance(field.editor, QPlainTextEdit) for field in self.fields):
            form.addStretch(1)
        vbox(
            (scroll_area(inside, self), 1),
            self.boxes,
            hbox(STRETCH, cancel, self.run, spacing=2),
            spacing=4,
            margins=(6, 6, 6, 4),
            parent=self,
        )
        if self.fields:
            self.fields[0].setFocus()
        resize_on_screen(self, QSize(130, min(60 + 45 * len(self.fields), 150)) * UNIT)

    def _finish(self) -> None:
        invalid = [field for field in self.fields if not field.check()]
        if invalid:
            invalid[0].setFocus()
            return
        values = {field.declared.name: field.value() for field in self.fields}
        self.wanted.emit(values, self.boxes.allowed)
        self.accept()
