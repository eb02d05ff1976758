"""The form for a run's permissions and budget, and what a workflow's tools need.

Permissions are given for each run, also for a resumed run or a fork; they are not stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QDoubleSpinBox,
    QFormLayout,
    QHBoxLayout,
    QPushButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel, inset_number
from engine.document.model import Workflow
from engine.plan.structure import Structure, analyse
from engine.runner.capabilities import tools_of
from engine.tools.registry import all_tools

NO_FOLDER = "Save the workflow first: it has no folder yet."


@dataclass(frozen=True, slots=True)
class Permissions:
    """What a run may access and spend.

    Attributes:
        folder: The folder that tools may use; None for none.
        may_run_code: Whether tools may run code.
        budget_usd: The budget in US dollars, including what the run has spent; None keeps the present one.
        budget_tokens: The budget in tokens, likewise.
    """

    folder: Path | None = None
    may_run_code: bool = False
    budget_usd: float | None = None
    budget_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ToolNeeds:
    """Which permissions a workflow's tools can use."""

    folder: bool = False
    code: bool = False

    def __bool__(self) -> bool:
        return self.folder or self.code


def needs_of(workflow: Workflow) -> ToolNeeds:
    """Return what the tools of a workflow and its subflows need."""
    return needs_in(analyse(workflow))


def needs_in(structure: Structure) -> ToolNeeds:
    """Return what the tools of an analysed workflow and its subflows need."""
    known = all_tools()
    tools = [known[name] for name in _tools(structure) if name in known]
    return ToolNeeds(any(tool.uses_folder for tool in tools), any(tool.runs_code for tool in tools))


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
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2 * UNIT)
        self.usd = _usd_field(allowed.budget_usd) if allowed.budget_usd is not None else None
        self.tokens = _tokens_field(allowed.budget_tokens) if allowed.budget_tokens is not None else None
        column.addLayout(_rows({"Budget (USD)": self.usd, "Budget (tokens)": self.tokens}))
        column.addWidget(self.folder)
        column.addWidget(self.code)
        self.setVisible(bool(needs or self.usd or self.tokens))

    @property
    def allowed(self) -> Permissions:
        """The permissions and budgets that the user chose."""
        return Permissions(
            self._folder if self.folder.isChecked() else None,
            self.code.isChecked(),
            self.usd.value() if self.usd is not None else None,
            self.tokens.value() if self.tokens is not None else None,
        )


def _usd_field(budget: float) -> QDoubleSpinBox:
    field = QDoubleSpinBox()
    field.setDecimals(4)
    field.setRange(0.0, 1_000_000.0)
    field.setStepType(QDoubleSpinBox.StepType.AdaptiveDecimalStepType)
    field.setValue(budget)
    return field


def _tokens_field(budget: int) -> QSpinBox:
    field = QSpinBox()
    field.setRange(0, 2_000_000_000)
    field.setGroupSeparatorShown(True)
    field.setStepType(QSpinBox.StepType.AdaptiveDecimalStepType)
    field.setValue(budget)
    return field


def _rows(fields: Mapping[str, QDoubleSpinBox | QSpinBox | None]) -> QFormLayout:
    """Lay out the fields that exist, with their labels."""
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
            label = PlainLabel(name)
            label.setBuddy(field)
            rows.addRow(label, field)
    return rows


class PermissionDialog(QDialog):
    """Asks for the permissions of a run that is resumed.

    Args:
        hint: An explanation above the form.
        fields: The form.
        granted: Called with the chosen permissions.
        parent: The window.
    """

    def __init__(
        self, hint: str, fields: PermissionFields, granted: Callable[[Permissions], object], parent: QWidget
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Resume run")
        self.fields = fields
        self._granted = granted
        self.resume = QPushButton("Resume", self)
        self.resume.setProperty("primary", True)
        self.resume.setDefault(True)
        self.resume.clicked.connect(lambda _checked=False: self._grant())
        cancel = QPushButton("Cancel", self)
        cancel.clicked.connect(lambda _checked=False: self.reject())
        buttons = QHBoxLayout()
        buttons.setSpacing(2 * UNIT)
        buttons.addStretch(1)
        buttons.addWidget(cancel)
        buttons.addWidget(self.resume)
        column = QVBoxLayout(self)
        column.setContentsMargins(6 * UNIT, 6 * UNIT, 6 * UNIT, 4 * UNIT)
        column.setSpacing(4 * UNIT)
        column.addWidget(PlainLabel("What may this run access?", look="title"))
        column.addWidget(PlainLabel(hint, look="dim", wrap=True))
        column.addWidget(fields)
        column.addSpacing(2 * UNIT)
        column.addLayout(buttons)

    def _grant(self) -> None:
        self._granted(self.fields.allowed)
        self.accept()
