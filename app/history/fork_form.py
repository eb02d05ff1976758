"""What a fork does differently: the value that it starts from, prompts, model, and when the loop around it stops.

The form knows the document as it ran and the place; what has been changed in it is told as the engine's `Changes`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QComboBox, QLineEdit, QPlainTextEdit, QSpinBox, QVBoxLayout, QWidget

from app.inspector.editors.choice_editors import narrow_combo
from app.inspector.editors.text_editors import NumberBox, format_number, parse_number
from app.inspector.field_spec import FieldSpec, choice_help, field_specs, is_visible
from app.inspector.result_text import value_text
from app.inspector.text_widgets import GrowingEdit
from app.runs.loop_status import unit_of
from app.theme.tokens import UNIT
from app.theme.widgets import CollapsibleSection, PlainLabel, inset_number, plain_tool_tip
from engine.document.model import Node
from engine.nodes.iteration_cap import clamped, shown_cap
from engine.nodes.json_text import parse_json
from engine.nodes.judge import JudgeConfig
from engine.nodes.loop_config import LoopConfig
from engine.nodes.registry import builtin_registry
from engine.plan.structure import Structure
from engine.store.resume import Changes
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
        self._fields, judge = field_specs(LoopConfig), field_specs(JudgeConfig)
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
        self.iteration_limit = self._make_iteration_limit()
        budget = self._fields["budget_usd"]
        told = f"{budget.help} Reused iterations cost nothing."
        self.budget = self._number(replace(budget, title="Loop budget (USD)", help=told), loop.config)
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
        return self.iteration_limit.value() if self.iteration_limit.value() != self._most else None

    @property
    def _judge(self) -> dict[str, Any]:
        """The judge's settings as they ran; empty where there was none."""
        found = self._loop.config.get("judge")
        return found if isinstance(found, dict) else {}

    @property
    def _judge_now(self) -> dict[str, Any]:
        declared = field_specs(JudgeConfig)
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
        self._add("Exit condition", combo)
        return combo

    def _criteria_edit(self, declared: FieldSpec) -> GrowingEdit:
        edit = GrowingEdit(min_lines=2, max_lines=10)
        edit.set_text(str(declared.value_in(self._judge)))
        edit.typed.connect(lambda _text: self.edited.emit())
        self._add(f"{declared.title} of the judge", edit, declared.help)
        return edit

    def _number(self, declared: FieldSpec, values: dict[str, Any]) -> NumberBox:
        box = NumberBox(declared)
        inset_number(box)
        box.lineEdit().setText(format_number(declared.value_in(values)))
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

    def _make_iteration_limit(self) -> QSpinBox:
        limit = QSpinBox()
        limit.setRange(1, MOST_ITERATIONS)
        inset_number(limit)
        count = self._old("max_iterations")
        self._most = clamped(count, shown_cap()) if isinstance(count, int) else 1
        limit.setValue(self._most)
        limit.valueChanged.connect(lambda _number: self.edited.emit())
        self._add("Max iterations (including reused ones)", limit)
        return limit

    def _choose(self) -> None:
        self._show_fitting()
        self.edited.emit()

    def _show_fitting(self) -> None:
        """Show what belongs to the condition that is chosen."""
        values = dict(self._loop.config)
        if self.exit_condition is not None:
            values["exit_condition"] = self.exit_condition.currentData()
        alone = not self._has_list
        judged = bool(self._judge) or (alone and is_visible(self._fields["judge"], values, self._fields))
        shown = {
            self.similarity: alone and is_visible(self._fields["stability_threshold"], values, self._fields),
            self.criteria: judged,
            self.score: judged,
        }
        for widget, is_there in shown.items():
            widget.setVisible(is_there)
            self._rows[widget].setVisible(is_there)

    def _read(self, box: NumberBox, declared: FieldSpec) -> Value:
        text = box.text().strip()
        return parse_number(text) if text else None if declared.nullable else declared.default

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


AS_IT_RAN: Final = "Unchanged"


@dataclass(frozen=True, slots=True)
class ForkPlace:
    """Where a fork begins.

    Attributes:
        path: The place (`loop[2]`, `loop[2].critique`, `critique`).
        structure: The document as it ran, taken apart.
        value: What the iteration started from, or what the node gave; None where it is not known.
    """

    path: str
    structure: Structure
    value: Value

    @property
    def is_iteration(self) -> bool:
        """Whether it is an iteration, and not a node."""
        return self.path.endswith("]")

    @property
    def loop(self) -> Node | None:
        """The loop or iterator that the place lies in; None outside of all."""
        name = self.path.rpartition("[")[0].rpartition(".")[2]
        return self.structure.workflow.nodes_by_id.get(name)

    @property
    def unit(self) -> str:
        """What an iteration is called there: `item` of an iterator."""
        return "iteration" if self.loop is None else unit_of(self.structure.workflow, self.loop.id)

    @property
    def prompted(self) -> list[Node]:
        """The nodes with prompts that are done anew: those of the loop's body, or of the whole document."""
        loop = self.loop
        body = self.structure.bodies.get(loop.id) if loop is not None else None
        nodes = self.structure.workflow.nodes
        inside = nodes if body is None else [node for node in nodes if node.id in body.nodes]
        return [node for node in inside if _prompts(node)]


class ForkForm(QWidget):
    """The form.

    Args:
        place: Where the fork begins.
        model_names: Lists names of models.

    Signals:
        edited: A person changed something.
    """

    edited = Signal()

    def __init__(
        self, place: ForkPlace, model_names: Callable[[], Sequence[str]], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._place = place
        self._model_names = model_names
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 4 * UNIT, 0)
        self._column.setSpacing(2 * UNIT)
        self.value = self._value_edit()
        self._value_at_first = _text_of(self.value)
        self.prompts: dict[tuple[str, str], GrowingEdit] = {}
        self._prompts_at_first: dict[tuple[str, str], str] = {}
        for node in place.prompted:
            self._add_prompts(node)
        self.model = self._model_box()
        self.loop = ForkLoop(place.loop) if place.loop is not None and place.loop.type == "loop" else None
        if self.loop is not None:
            self.loop.edited.connect(self.edited)
            self._column.addWidget(self.loop)
        self._column.addStretch(1)

    def changes(self) -> Changes:
        """What has been changed.

        Raises:
            ValueError: The value is to be JSON and cannot be read as such; the text says so to a person.
        """
        settings: dict[str, dict[str, Value]] = {}
        for (node_id, name), edit in self.prompts.items():
            if edit.text() != self._prompts_at_first[node_id, name]:
                settings.setdefault(node_id, {})[name] = edit.text()
        max_iterations, loop = None, self._place.loop
        if loop is not None and self.loop is not None:
            max_iterations = self.loop.max_iterations
            if self.loop.settings:
                settings[loop.id] = self.loop.settings
        has_value, value = self._changed_value()
        model = self.model.currentText().strip()
        return Changes(settings, value, has_value, model if model not in {"", AS_IT_RAN} else None, max_iterations)

    def _changed_value(self) -> tuple[bool, Value]:
        text, old = _text_of(self.value), self._place.value
        if text == self._value_at_first:  # not its own text: a field shows some signs otherwise
            return False, None
        if old is None or isinstance(old, str):
            return True, text
        try:
            return True, parse_json(text)
        except ValueError:
            raise ValueError(
                "The input was JSON but is no longer valid JSON. Correct it, or undo your changes."
            ) from None

    def _value_edit(self) -> QPlainTextEdit:
        title = "Iteration input" if self._place.unit == "iteration" else "Item"
        title = title if self._place.is_iteration else "Node output"
        edit = QPlainTextEdit()
        edit.setTabChangesFocus(True)
        edit.setMinimumHeight(30 * UNIT)
        edit.setPlainText(_shown(self._place.value))
        edit.textChanged.connect(self.edited)
        self._add(title, edit)
        return edit

    def _add_prompts(self, node: Node) -> None:
        inner = QWidget()
        column = QVBoxLayout(inner)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(UNIT)
        for name, title in _prompts(node):
            edit = GrowingEdit(min_lines=2, max_lines=10)
            edit.set_text(str(config_of(node, name) or ""))
            edit.setAccessibleName(f"{node.title or node.id}: {title}")
            edit.typed.connect(lambda _text: self.edited.emit())
            label = PlainLabel(title, look="dim small")
            label.setBuddy(edit)
            column.addWidget(label)
            column.addWidget(edit)
            self.prompts[node.id, name], self._prompts_at_first[node.id, name] = edit, edit.text()
        self._column.addWidget(CollapsibleSection(f"Prompts: {node.title or node.id}", inner, is_open=True))

    def _model_box(self) -> QComboBox:
        box = narrow_combo()
        box.setEditable(True)
        box.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        box.addItems([AS_IT_RAN, *self._model_names()])
        line = box.lineEdit()
        assert line is not None
        line.setAccessibleName("Model")
        box.currentTextChanged.connect(lambda _text: self.edited.emit())
        self._add("Model", box)
        return box

    def _add(self, title: str, widget: QWidget) -> None:
        label = PlainLabel(title)
        label.setBuddy(widget)
        widget.setAccessibleName(title)
        self._column.addWidget(label)
        self._column.addWidget(widget)
        self._column.addSpacing(UNIT)


def _prompts(node: Node) -> list[tuple[str, str]]:
    """The fields of a node that a model is told: name and title."""
    spec = builtin_registry().find(node.type)
    if spec is None or not node.enabled:
        return []
    fields = field_specs(spec.config)
    return [(name, fields[name].title) for name in ("system", "prompt", "criteria") if name in fields]


def _text_of(edit: QPlainTextEdit) -> str:
    """The text in a field, with its spaces that do not break, which `toPlainText` gives as ordinary ones."""
    return edit.document().toRawText().replace("\u2029", "\n")


def _shown(value: Value) -> str:
    return "" if value is None else value_text(value)
