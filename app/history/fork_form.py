"""What a fork does differently: the value that it starts from, prompts, model, and when the loop around it stops.

The form knows the document as it ran and the place; what has been changed in it is told as the engine's `Changes`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QComboBox, QPlainTextEdit, QVBoxLayout, QWidget

from app.history.fork_loop import ForkLoop, config_of
from app.inspector.editors.choice_editors import narrow_combo
from app.inspector.field_spec import fields_of
from app.inspector.result_text import value_text
from app.inspector.text_widgets import GrowingEdit
from app.runs.stopping import unit_of
from app.theme.tokens import UNIT
from app.theme.widgets import CollapsibleSection, PlainLabel
from engine.document.model import Node
from engine.nodes.json_text import parse_json
from engine.nodes.registry import builtin_registry
from engine.plan.structure import Structure
from engine.store.resume import Changes
from engine.values import Value

AS_IT_RAN: Final = "As it ran"


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
        most, loop = None, self._place.loop
        if loop is not None and self.loop is not None:
            most = self.loop.max_iterations
            if self.loop.settings:
                settings[loop.id] = self.loop.settings
        has_value, value = self._changed_value()
        model = self.model.currentText().strip()
        return Changes(settings, value, has_value, model if model not in {"", AS_IT_RAN} else None, most)

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
                "The value that it starts from was JSON and cannot be read as JSON any more. Mend it, or undo."
            ) from None

    def _value_edit(self) -> QPlainTextEdit:
        title = "It starts from" if self._place.unit == "iteration" else "The item"
        title = title if self._place.is_iteration else "What the node gave"
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
            edit = GrowingEdit(least=2, most=10)
            edit.set_text(str(config_of(node, name) or ""))
            edit.setAccessibleName(f"{node.title or node.id}: {title}")
            edit.typed.connect(lambda _text: self.edited.emit())
            label = PlainLabel(title, look="dim small")
            label.setBuddy(edit)
            column.addWidget(label)
            column.addWidget(edit)
            self.prompts[node.id, name], self._prompts_at_first[node.id, name] = edit, edit.text()
        self._column.addWidget(CollapsibleSection(f"Prompts of {node.title or node.id}", inner, is_open=True))

    def _model_box(self) -> QComboBox:
        box = narrow_combo()
        box.setEditable(True)
        box.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        box.addItems([AS_IT_RAN, *self._model_names()])
        box.lineEdit().setAccessibleName("Model")
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
    fields = fields_of(spec.config)
    return [(name, fields[name].title) for name in ("system", "prompt", "criteria") if name in fields]


def _text_of(edit: QPlainTextEdit) -> str:
    """The text in a field, with its spaces that do not break, which `toPlainText` gives as ordinary ones."""
    return edit.document().toRawText().replace("\u2029", "\n")


def _shown(value: Value) -> str:
    return "" if value is None else value_text(value)
