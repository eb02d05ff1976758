"""Editors for choices: a value from a list, a switch, models, tools, nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, cast

from PySide6.QtCore import Qt
from PySide6.QtGui import QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QCheckBox, QComboBox, QPushButton, QToolButton, QWidget

from app.inspector.editor import MIXED, MULTIPLE_VALUES, ConfigBinding, Editor, describe_widget, set_line_text
from app.inspector.field_spec import FieldSpec
from app.inspector.model_list import ModelComboBox
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel, Switch, discard, hbox, icon_button, plain_tool_tip, vbox
from engine.exits.loop_conditions import condition_specs
from engine.nodes.agent import turn_strategies
from engine.nodes.agent_tools import tool_choices
from engine.tools.registry import all_tools
from engine.values import to_text

_MAX_VISIBLE: Final = 24
"""Entries of a list that are visible without scrolling."""


class _NarrowCombo(QComboBox):
    def showPopup(self) -> None:
        """Open the list as wide as its entries."""
        view = self.view()
        room = 4 * UNIT + view.verticalScrollBar().sizeHint().width()
        view.setMinimumWidth(view.sizeHintForColumn(0) + room)
        super().showPopup()


def narrow_combo(parent: QWidget | None = None) -> QComboBox:
    """Create a combo box that is not widened by long entries; its list shows them in full."""
    combo = _NarrowCombo(parent)
    combo.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    combo.setMinimumContentsLength(8)
    combo.setMaxVisibleItems(_MAX_VISIBLE)
    return combo


REGISTRY_CHOICES: Final[dict[str, Callable[[], list[tuple[Any, str, str]]]]] = {
    "tool": lambda: [("", "Choose a tool", ""), *((tool.name, tool.title, tool.help) for tool in all_tools().values())],
    "turn_strategy": lambda: [(known.name, known.title, known.help) for known in turn_strategies().values()],
    "condition": lambda: _conditions(with_groups=True),
    "grouped_condition": lambda: _conditions(with_groups=False),
}
"""Value, label and help of the choices that a registry has, by the widget of the field."""


def _conditions(*, with_groups: bool) -> list[tuple[Any, str, str]]:
    specs = (spec for spec in condition_specs().values() if with_groups or not spec.inner)
    return [(spec.name, spec.label, spec.added_help) for spec in specs]


class ChoiceEditor(Editor):
    """Combo box for a list of values. A value that is not in the list is shown as missing."""

    def __init__(self, field: FieldSpec, binding: ConfigBinding, parent: QWidget | None = None) -> None:
        super().__init__(field, binding, parent)
        self.combo = narrow_combo(self)
        self.register(self.combo)
        self.box.addWidget(self.combo)
        self.main_widget = self.combo
        self.combo.activated.connect(self._chosen)
        self._fill()

    def refresh(self) -> None:
        """Update the available values."""
        self._fill()
        if self._value is not MIXED:
            self._display(self._value)

    def show_mixed(self) -> bool:
        """Show that several nodes have different values."""
        self._value = MIXED
        self.combo.setPlaceholderText(MULTIPLE_VALUES)
        self.combo.setCurrentIndex(-1)
        return True

    def options(self) -> Iterable[tuple[Any, str, str]]:
        """Return value, label and help of each choice."""
        if self.field.widget in REGISTRY_CHOICES:
            return REGISTRY_CHOICES[self.field.widget]()
        unset = [(None, "Model default", "")] if self.field.nullable else []
        return [*unset, *((choice.value, choice.label, choice.help) for choice in self.field.choices)]

    def help_for(self, value: Any) -> str:
        """Return the help of a choice, or that of the field."""
        found = next((text for known, _, text in self.options() if known == value), "")
        return found or self.field.help

    def _fill(self) -> None:
        options = list(self.options())
        present = [(self.combo.itemData(row), self.combo.itemText(row)) for row in range(self.combo.count())]
        if present == [(value, label) for value, label, _ in options]:
            return
        model = QStandardItemModel(self.combo)
        for value, label, text in options:
            item = QStandardItem(label)
            item.setData(value, Qt.ItemDataRole.UserRole)
            if text:
                item.setToolTip(plain_tool_tip(text))
                item.setData(text, Qt.ItemDataRole.AccessibleDescriptionRole)
            model.appendRow(item)
        self.combo.setModel(model)

    def _display(self, value: Any) -> None:
        rows = [row for row in range(self.combo.count()) if self.combo.itemData(row) == value]
        if not rows:
            self._fill()
            self.combo.addItem(f"{to_text(value)} (missing)", value)
            rows = [self.combo.count() - 1]
        self.combo.setCurrentIndex(rows[0])

    def _chosen(self, row: int) -> None:
        self._commit_step(self.combo.itemData(row))


class NodeEditor(ChoiceEditor):
    """Combo box for a node: a loop or iterator, or a router in the body of the edited loop."""

    def options(self) -> Iterable[tuple[Any, str, str]]:
        """Return the matching nodes, after the automatic choice."""
        nothing = None if self.field.nullable else ""
        nodes = [node for node in self.binding.session.workflow.nodes if node.type == self.field.widget]
        if self.field.widget == "router":
            parent = self.binding.session.structure.parent
            nodes = [node for node in nodes if parent.get(node.id) == self.binding.node_id]
        named = [(node.id, f"{node.title} ({node.id})" if node.title else node.id, "") for node in nodes]
        return [(nothing, "Automatic", "Uses the only node that fits."), *named]


class ModelEditor(Editor):
    """Field for the name of a model, with the list of models."""

    def __init__(self, field: FieldSpec, binding: ConfigBinding, parent: QWidget | None = None) -> None:
        super().__init__(field, binding, parent)
        self.combo = ModelComboBox(binding.models, self._placeholder(), self)
        self.line = self.combo.line
        self.register(self.combo)
        self.register(self.line)
        self.box.addWidget(self.combo)
        self.main_widget = self.combo
        self.text_widget = self.line
        self.line.textEdited.connect(self._typed)
        self.combo.model_chosen.connect(self._chosen)
        binding.models.changed.connect(self._update_placeholder)

    def _update_placeholder(self) -> None:
        self._usual_placeholder = self._placeholder()
        if self._value is not MIXED:
            self.line.setPlaceholderText(self._usual_placeholder)

    def _placeholder(self) -> str:
        default = self.binding.models.default_label
        return "Workflow default" if self.binding.node_id is not None or not default else f"Default ({default})"

    def _display(self, value: Any) -> None:
        set_line_text(self.line, to_text(value))

    def _typed(self, text: str) -> None:
        self._commit(text.strip() or (None if self.field.nullable else ""))

    def _chosen(self, name: str) -> None:
        self.binding.session.seal()
        self._typed(name)
        self.binding.session.seal()


class SwitchEditor(Editor):
    """A switch."""

    def __init__(self, field: FieldSpec, binding: ConfigBinding, parent: QWidget | None = None) -> None:
        super().__init__(field, binding, parent)
        self.switch = Switch(self)
        self.register(self.switch)
        self.box.addWidget(self.switch)
        self.main_widget = self.switch
        self.switch.clicked.connect(self._commit_step)

    def show_mixed(self) -> bool:
        """Show that several nodes have different values; a click turns it on for all."""
        self._value = MIXED
        self.switch.setChecked(False)
        self.switch.setText(MULTIPLE_VALUES)
        return True

    def _display(self, value: Any) -> None:
        self.switch.setText("")
        self.switch.setChecked(value is True)


ALL_TOOLS = "tools"
"""Field with all tools of an agent; other tool fields offer a subset of these."""


class ToolListEditor(Editor):
    """Check boxes for tools. A selected tool that does not exist is shown as missing.

    Attributes:
        boxes: The check boxes by tool name.
        empty: The label that is shown if there are no tools to choose from.
    """

    def __init__(self, field: FieldSpec, binding: ConfigBinding, parent: QWidget | None = None) -> None:
        super().__init__(field, binding, parent)
        self.boxes: dict[str, QCheckBox] = {}
        self.empty = PlainLabel("The agent has no tools yet.", self, look="dim small", wrap=True)
        self.box.addWidget(self.empty)
        self._checked: list[str] = []
        self._fill()

    def refresh(self) -> None:
        """Update the available values."""
        self._fill()

    def _display(self, value: Any) -> None:
        names = cast("list[Any]", value) if isinstance(value, list) else []
        self._checked = [name for name in names if isinstance(name, str)]
        self._fill()

    def _available(self) -> dict[str, tuple[str, str]]:
        known = tool_choices()
        if self.field.name != ALL_TOOLS:
            chosen = self.binding.values.get(ALL_TOOLS)
            names = cast("list[Any]", chosen) if isinstance(chosen, list) else []
            known = {name: known.get(name, (name, "")) for name in names if isinstance(name, str)}
        return known | {name: (f"{name} (missing)", "") for name in self._checked if name not in known}

    def _fill(self) -> None:
        available = self._available()
        if list(available) != list(self.boxes):
            for box in self.boxes.values():
                self.box.removeWidget(box)
                discard(box)
            self.boxes = {name: self._make_box(name, title, text) for name, (title, text) in available.items()}
            self.main_widget = next(iter(self.boxes.values()), self)
            self.layout_changed.emit()
        self.empty.setVisible(not self.boxes)
        for name, box in self.boxes.items():
            box.setChecked(name in self._checked)

    def _make_box(self, name: str, title: str, text: str) -> QCheckBox:
        box = QCheckBox(title.replace("&", "&&"), self)
        describe_widget(box, f"{self.field.title}: {title}", text)
        self.binding.events.watch(box)
        box.clicked.connect(lambda on: self._set_checked(name, on=on))
        self.box.addWidget(box)
        return box

    def _set_checked(self, name: str, *, on: bool) -> None:
        others = [other for other in self._checked if other != name]
        self._checked = [*others, name] if on else others
        self._commit(list(self._checked))
        self.binding.session.seal()


class ModelListEditor(Editor):
    """Ordered list of models, such as fallback models.

    Attributes:
        rows: The combo box of each model, with its Remove button.
    """

    def __init__(self, field: FieldSpec, binding: ConfigBinding, parent: QWidget | None = None) -> None:
        super().__init__(field, binding, parent)
        self.rows: list[tuple[ModelComboBox, QToolButton]] = []
        self._list = vbox(spacing=1)
        self.box.addLayout(self._list)
        self.add = QPushButton("Add", self)
        self.register(self.add, f"Add: {field.title}")
        self.box.addWidget(self.add, 0, Qt.AlignmentFlag.AlignLeft)
        self.main_widget = self.add
        self.add.clicked.connect(self._append)

    def focus_path(self, path: str) -> None:
        """Move the focus to a model."""
        if path.isdecimal() and int(path) < len(self.rows):
            self.rows[int(path)][0].setFocus()
        else:
            super().focus_path(path)

    def _names(self) -> list[Any]:
        value: Any = self._value
        return list(cast("list[Any]", value)) if isinstance(value, list) else []

    def _display(self, value: Any) -> None:
        names = self._names()
        if len(names) != len(self.rows):
            self._set_row_count(len(names))
        for (combo, _), name in zip(self.rows, names, strict=True):
            if combo.currentText() != to_text(name):
                combo.setEditText(to_text(name))

    def _set_row_count(self, count: int) -> None:
        while len(self.rows) > count:
            combo, button = self.rows.pop()
            for widget in (combo, button):
                discard(widget)
            self._list.takeAt(len(self.rows))
        while len(self.rows) < count:
            self._add_row(len(self.rows))
        self.layout_changed.emit()

    def _add_row(self, index: int) -> None:
        combo = ModelComboBox(self.binding.models, "provider/model", self)
        title = f"{self.field.title} {index + 1}"
        button = icon_button("mdi6.close", f"Remove: {title}", partial(self._remove, index), self, color="dim")
        self.register(combo, title)
        self.register(combo.line, title)
        box = hbox((combo, 1), button, spacing=1)
        self._list.addLayout(box)
        self.rows.append((combo, button))
        combo.line.textEdited.connect(partial(self._edit, index))
        combo.model_chosen.connect(partial(self._choose, index))

    def _edit(self, index: int, text: str) -> None:
        names = self._names()
        names[index] = text.strip()
        self._commit(names)

    def _choose(self, index: int, text: str) -> None:
        self._edit(index, text)
        self.binding.session.seal()  # each choice is an undo step of its own

    def _append(self, _checked: bool = False) -> None:
        names = self._names()
        new = next((name for name in self.binding.models.names() if name not in names), "")
        self._commit_step([*names, new])
        self.rows[-1][0].setFocus()

    def _remove(self, index: int) -> None:
        names = self._names()
        del names[index]
        self._commit_step(names)
        self.add.setFocus()
