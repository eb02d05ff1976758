"""What a run is allowed: to touch on this machine, and to spend. What a workflow could use, and fields to allow it.

What a run may touch is allowed anew for each run, one that goes on and a fork included: nothing of it is kept.
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
from engine.runner.permissions import tools_of
from engine.tools.registry import all_tools

NO_FOLDER = "Save the document first: it has no folder yet."


@dataclass(frozen=True, slots=True)
class Permissions:
    """What a person allows a run.

    Attributes:
        folder: The folder that tools may use; None for none.
        may_run_code: Whether tools may run code.
        budget_usd: The most US dollars that the run may spend, all that it has spent counted; None leaves it as it is.
        budget_tokens: The most tokens.
    """

    folder: Path | None = None
    may_run_code: bool = False
    budget_usd: float | None = None
    budget_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ToolNeeds:
    """What a workflow's tools would use if it were allowed: a folder, code."""

    folder: bool = False
    code: bool = False

    def __bool__(self) -> bool:
        return self.folder or self.code


def needs_of(workflow: Workflow) -> ToolNeeds:
    """What the tools of a workflow would use, those of the workflows in it included."""
    return needs_in(analyse(workflow))


def needs_in(structure: Structure) -> ToolNeeds:
    """The same, for a document that was taken apart already."""
    known = all_tools()
    tools = [known[name] for name in _tools(structure) if name in known]
    return ToolNeeds(any(tool.uses_folder for tool in tools), any(tool.runs_code for tool in tools))


def _tools(structure: Structure) -> Iterator[str]:
    for resolved in structure.resolution.nodes.values():
        if resolved.node.enabled:
            yield from tools_of(resolved.config)
    for subflow, inner in structure.parts.items():
        if structure.resolution.nodes[subflow].node.enabled:
            yield from _tools(inner)


class PermissionFields(QWidget):
    """The fields.

    Args:
        needs: Which of the boxes are shown.
        folder: The folder that may be allowed; None where there is none.
        allowed: What is ticked at first, and the budgets; one that is None has no field.

    Attributes:
        folder: Tools may use that folder.
        code: Tools may run code.
        usd: The budget in US dollars; None where there is none.
        tokens: The budget in tokens; None where there is none.
    """

    def __init__(
        self, needs: ToolNeeds, folder: Path | None, allowed: Permissions | None = None, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._folder = folder
        allowed = allowed or Permissions()
        self.folder = QCheckBox(self)
        self.folder.setText("Tools may read and write files in the document's folder")
        self.folder.setChecked(allowed.folder is not None and folder is not None)
        self.folder.setEnabled(folder is not None)
        self.folder.setToolTip(str(folder) if folder is not None else NO_FOLDER)
        self.folder.setVisible(needs.folder)
        self.code = QCheckBox(self)
        self.code.setText("Tools may run code and commands on this machine")
        self.code.setChecked(allowed.may_run_code)
        self.code.setToolTip("Allow it only if you trust the workflow: code can do whatever you can do.")
        self.code.setVisible(needs.code)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2 * UNIT)
        self.usd = _usd_field(allowed.budget_usd) if allowed.budget_usd is not None else None
        self.tokens = _tokens_field(allowed.budget_tokens) if allowed.budget_tokens is not None else None
        column.addLayout(_rows({"Budget in US dollars": self.usd, "Budget in tokens": self.tokens}))
        column.addWidget(self.folder)
        column.addWidget(self.code)
        self.setVisible(bool(needs or self.usd or self.tokens))

    @property
    def allowed(self) -> Permissions:
        """What is ticked and stands there."""
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
    """The fields that there are, each beside its name."""
    rows = QFormLayout()
    rows.setHorizontalSpacing(3 * UNIT)
    rows.setVerticalSpacing(2 * UNIT)
    rows.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.FieldsStayAtSizeHint)
    for name, field in fields.items():
        if field is not None:
            inset_number(field)
            field.setAccessibleName(name)
            field.setToolTip("What the run has spent so far counts.")
            field.setMinimumWidth(40 * UNIT)
            label = PlainLabel(name)
            label.setBuddy(field)
            rows.addRow(label, field)
    return rows


class PermissionDialog(QDialog):
    """Asks what a run is allowed that goes on.

    Args:
        told: What a person should know.
        boxes: What there is to allow.
        granted: Takes what a person allows.
        parent: The window.
    """

    def __init__(
        self, told: str, boxes: PermissionFields, granted: Callable[[Permissions], object], parent: QWidget
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Go on with the run")
        self.boxes = boxes
        self._granted = granted
        self.go_on = QPushButton("Go on", self)
        self.go_on.setProperty("primary", True)
        self.go_on.setDefault(True)
        self.go_on.clicked.connect(lambda _checked=False: self._grant())
        cancel = QPushButton("Cancel", self)
        cancel.clicked.connect(lambda _checked=False: self.reject())
        buttons = QHBoxLayout()
        buttons.setSpacing(2 * UNIT)
        buttons.addStretch(1)
        buttons.addWidget(cancel)
        buttons.addWidget(self.go_on)
        column = QVBoxLayout(self)
        column.setContentsMargins(6 * UNIT, 6 * UNIT, 6 * UNIT, 4 * UNIT)
        column.setSpacing(4 * UNIT)
        column.addWidget(PlainLabel("What is this run allowed as it goes on?", look="title"))
        column.addWidget(PlainLabel(told, look="dim", wrap=True))
        column.addWidget(boxes)
        column.addSpacing(2 * UNIT)
        column.addLayout(buttons)

    def _grant(self) -> None:
        self._granted(self.boxes.allowed)
        self.accept()
