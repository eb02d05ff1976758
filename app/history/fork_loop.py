"""When the loop around a fork stops: its condition with what belongs to that, its count, and what it may spend.

It knows the loop's settings as they ran, and tells those that have been changed. A list of several conditions is left
as it ran: who wants another one opens the workflow as a new document.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QComboBox, QLineEdit, QSpinBox, QVBoxLayout, QWidget

from app.inspector.editors.choice_editors import narrow_combo
from app.inspector.editors.text_editors import NumberBox, read_number, write_number
from app.inspector.field_spec import Field, choice_help, fields_of, is_shown
from app.inspector.text_widgets import GrowingEdit
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel, inset_number, plain_tool_tip
from engine.document.model import Node
from engine.nodes.iteration_cap import clamped, shown_cap
from engine.nodes.judge import JudgeConfig
from engine.nodes.loop_config import LoopConfig
from engine.nodes.registry import builtin_registry
from engine.values import Value

MOST_ITERATIONS: Final = 10_000


def config_of(node: Node, name: str) -> Value:
    """A setting of a node, or what it is where nothing is said."""
    spec = builtin_registry().find(node.type)
    usual = spec.config.model_fields[name].get_default(call_default_factory=True) if spec is not None else None
    return node.config.get(name, usual)


class ForkLoop(QWidget):
    """That part of the form.

    Args:
        loop: The loop as it ran.

    Signals:
        edited: A person changed something.

    Attributes:
        exit_condition: At what it stops; None where several conditions are listed.
        similarity: How similar results are when they are stable.
        criteria: By what its judge decides.
        score: The score from which on its judge is content; empty where the judge says when.
        until: The expression that is checked first.
        most: How many iterations there are at the most.
        budget: The most US dollars that the loop may spend on what is made anew; empty for no limit of its own.
    """

    edited = Signal()

    def __init__(self, loop: Node, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._loop = loop
        self._fields, judge = fields_of(LoopConfig), fields_of(JudgeConfig)
        self._has_list = bool(config_of(loop, "exit_conditions"))
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(2 * UNIT)
        self._rows: dict[QWidget, PlainLabel] = {}
        self.exit_condition: QComboBox | None = None if self._has_list else self._condition_box()
        self.similarity = self._number(self._fields["stability_threshold"], loop.config)
        self.criteria = self._criteria_edit(judge["criteria"])
        self._criteria_at_first = self.criteria.text()
        self.score = self._number(judge["threshold"], self._judge)
        self.until = self._until_line()
        self.most = self._most_box()
        budget = self._fields["budget_usd"]
        told = f"{budget.help} What is reused costs nothing."
        self.budget = self._number(replace(budget, title="Budget of the loop in US dollars", help=told), loop.config)
        self._show_fitting()

    @property
    def settings(self) -> dict[str, Value]:
        """The loop's settings that have been changed, but the count."""
        changed: dict[str, Value] = {}
        if self.exit_condition is not None and self.exit_condition.currentData() != self._old("exit_condition"):
            changed["exit_condition"] = self.exit_condition.currentData()
        similarity = self._read(self.similarity, self._fields["stability_threshold"])
        if not self.similarity.isHidden() and similarity != self._old("stability_threshold"):
            changed["stability_threshold"] = similarity
        if not self.criteria.isHidden() and self._judge_now != self._judge:
            changed["judge"] = self._judge_now
        if self.until.text() != self._old("until"):
            changed["until"] = self.until.text()
        budget = self._read(self.budget, self._fields["budget_usd"])
        if budget != self._old("budget_usd"):
            changed["budget_usd"] = budget
        return changed

    @property
    def max_iterations(self) -> int | None:
        """The count, where it has been changed."""
        return self.most.value() if self.most.value() != self._most else None

    @property
    def _judge(self) -> dict[str, Any]:
        """The judge's settings as they ran; empty where there was none."""
        found = self._loop.config.get("judge")
        return found if isinstance(found, dict) else {}

    @property
    def _judge_now(self) -> dict[str, Any]:
        declared = fields_of(JudgeConfig)
        now: dict[str, Value] = {"threshold": self._read(self.score, declared["threshold"])}
        if self.criteria.text() != self._criteria_at_first:
            now["criteria"] = self.criteria.text()
        judge = self._judge
        return {**judge, **{name: there for name, there in now.items() if there != declared[name].value_in(judge)}}

    def _old(self, name: str) -> Value:
        return config_of(self._loop, name)

    def _condition_box(self) -> QComboBox:
        declared = self._fields["exit_condition"]
        help_of = choice_help(declared)
        combo = narrow_combo()
        for choice in declared.choices:
            combo.addItem(choice.replace("_", " "), choice)
            combo.setItemData(combo.count() - 1, plain_tool_tip(help_of.get(choice, "")), Qt.ItemDataRole.ToolTipRole)
        with QSignalBlocker(combo):
            combo.setCurrentIndex(max(combo.findData(self._old("exit_condition")), 0))
        combo.currentIndexChanged.connect(lambda _at: self._choose())
        self._add("The loop stops when", combo)
        return combo

    def _criteria_edit(self, declared: Field) -> GrowingEdit:
        edit = GrowingEdit(least=2, most=10)
        edit.set_text(str(declared.value_in(self._judge)))
        edit.typed.connect(lambda _text: self.edited.emit())
        self._add(f"{declared.title} of the judge", edit, declared.help)
        return edit

    def _number(self, declared: Field, values: dict[str, Any]) -> NumberBox:
        box = NumberBox(declared)
        inset_number(box)
        box.lineEdit().setText(write_number(declared.value_in(values)))
        if declared.nullable:
            box.lineEdit().setPlaceholderText("empty")
        box.typed.connect(lambda _text: self.edited.emit())
        self._add(declared.title, box, declared.help)
        return box

    def _until_line(self) -> QLineEdit:
        declared = self._fields["until"]
        line = QLineEdit()
        line.setText(str(self._old("until")))
        line.textEdited.connect(lambda _text: self.edited.emit())
        self._add(declared.title, line, declared.help)
        return line

    def _most_box(self) -> QSpinBox:
        most = QSpinBox()
        most.setRange(1, MOST_ITERATIONS)
        inset_number(most)
        count = self._old("max_iterations")
        self._most = clamped(count, shown_cap()) if isinstance(count, int) else 1
        most.setValue(self._most)
        most.valueChanged.connect(lambda _number: self.edited.emit())
        self._add("Iterations at the most, those that are reused counted", most)
        return most

    def _choose(self) -> None:
        self._show_fitting()
        self.edited.emit()

    def _show_fitting(self) -> None:
        """Show what belongs to the condition that is chosen."""
        values = dict(self._loop.config)
        if self.exit_condition is not None:
            values["exit_condition"] = self.exit_condition.currentData()
        alone = not self._has_list
        judged = bool(self._judge) or (alone and is_shown(self._fields["judge"], values, self._fields))
        shown = {
            self.similarity: alone and is_shown(self._fields["stability_threshold"], values, self._fields),
            self.criteria: judged,
            self.score: judged,
        }
        for widget, is_there in shown.items():
            widget.setVisible(is_there)
            self._rows[widget].setVisible(is_there)

    def _read(self, box: NumberBox, declared: Field) -> Value:
        text = box.text().strip()
        return read_number(text) if text else None if declared.nullable else declared.default

    def _add(self, title: str, widget: QWidget, told: str = "") -> None:
        label = PlainLabel(title, wrap=True)
        label.setBuddy(widget)
        label.setToolTip(plain_tool_tip(told))
        widget.setAccessibleName(title)
        widget.setAccessibleDescription(told)
        widget.setToolTip(plain_tool_tip(told))
        self._column.addWidget(label)
        self._column.addWidget(widget)
        self._rows[widget] = label
