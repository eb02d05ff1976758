"""Choices: one of several words, on or off, a model, a tool, a node."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, cast

from PySide6.QtCore import Qt
from PySide6.QtGui import QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QCheckBox, QComboBox, QHBoxLayout, QPushButton, QToolButton, QVBoxLayout, QWidget

from app.inspector.config_binding import ConfigBinding
from app.inspector.editors.editor import Editor, describe_widget
from app.inspector.field_spec import FieldSpec, choice_help
from app.theme.style import ThemedIcon
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel, Switch, plain_tool_tip
from engine.nodes.agent_tools import tool_choices
from engine.nodes.turns.registry import turn_strategies
from engine.tools.registry import all_tools
from engine.values import to_text

# pyright: reportAttributeAccessIssue=false, reportUnknownMemberType=false
# (The stubs of PySide6 do not let a signal be connected.)


def narrow_combo(parent: QWidget | None = None) -> QComboBox:
    """A combo box that is as wide as its place, however long its entries are."""
    combo = QComboBox(parent)
    combo.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    combo.setMinimumContentsLength(8)
    return combo


class ChoiceEditor(Editor):
    """Something to choose from a list of values with names; a value that is not in it is shown all the same."""

    def __init__(self, field: FieldSpec, binding: ConfigBinding, parent: QWidget | None = None) -> None:
        super().__init__(field, binding, parent)
        self.combo = narrow_combo(self)
        self.register(self.combo)
        self.box.addWidget(self.combo)
        self.main_widget = self.combo
        self.combo.activated.connect(self._chosen)
        self._fill()

    def refresh(self) -> None:
        """Offer what there is to choose from now."""
        self._fill()
        self._display(self._value)

    def options(self) -> Iterable[tuple[Any, str, str]]:
        """Value, name and help of each choice."""
        help_of = choice_help(self.field)
        unset = [(None, "Model default", "")] if self.field.nullable else []
        return [*unset, *((choice, choice.replace("_", " "), help_of.get(choice, "")) for choice in self.field.choices)]

    def _fill(self) -> None:
        wanted = list(self.options())
        present = [(self.combo.itemData(row), self.combo.itemText(row)) for row in range(self.combo.count())]
        if present == [(value, name) for value, name, _ in wanted]:
            return
        model = QStandardItemModel(self.combo)
        for value, name, text in wanted:
            item = QStandardItem(name)
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
            self.combo.addItem(f"{to_text(value)} (not there)", value)
            rows = [self.combo.count() - 1]
        self.combo.setCurrentIndex(rows[0])

    def _chosen(self, row: int) -> None:
        self._commit(self.combo.itemData(row))
        self.binding.session.seal()  # a choice is a step of its own


class ToolEditor(ChoiceEditor):
    """One of the tools."""

    def options(self) -> Iterable[tuple[Any, str, str]]:
        """All tools, by title."""
        return [("", "Choose a tool", ""), *((tool.name, tool.title, tool.help) for tool in all_tools().values())]


class NodeEditor(ChoiceEditor):
    """A node of the document: a loop, or a router of the body of the loop whose field it is."""

    def options(self) -> Iterable[tuple[Any, str, str]]:
        """What fits, by title; first that none is named."""
        nothing = None if self.field.nullable else ""
        nodes = [node for node in self.binding.session.workflow.nodes if node.type == self.field.widget]
        if self.field.widget == "router":
            parent = self.binding.session.structure.parent
            nodes = [node for node in nodes if parent.get(node.id) == self.binding.node_id]
        named = [(node.id, f"{node.title} ({node.id})" if node.title else node.id, "") for node in nodes]
        return [(nothing, "The only one that fits", ""), *named]


class ModelEditor(Editor):
    """The name of a model: one from the list, or any other, typed."""

    def __init__(self, field: FieldSpec, binding: ConfigBinding, parent: QWidget | None = None) -> None:
        super().__init__(field, binding, parent)
        self.combo = narrow_combo(self)
        self.combo.setEditable(True)
        self.combo.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        line = self.combo.lineEdit()
        assert line is not None
        self.line = line
        self.line.setPlaceholderText("the usual one")
        self.register(self.combo)
        self.register(self.line)
        self.combo.addItems(binding.model_names())
        self.combo.setCurrentIndex(-1)
        self.box.addWidget(self.combo)
        self.main_widget = self.combo
        self.line.textEdited.connect(self._typed)
        self.combo.activated.connect(self._chosen)

    def refresh(self) -> None:
        """Offer the models that there are now."""
        names = self.binding.model_names()
        if names == [self.combo.itemText(row) for row in range(self.combo.count())]:
            return
        text, position = self.line.text(), self.line.cursorPosition()
        self.combo.clear()
        self.combo.addItems(names)
        self.combo.setCurrentIndex(-1)
        self.line.setText(text)
        self.line.setCursorPosition(position)

    def _display(self, value: Any) -> None:
        position = self.line.cursorPosition()
        self.line.setText(to_text(value))
        self.line.setCursorPosition(min(position, len(self.line.text())))

    def _typed(self, text: str) -> None:
        self._commit(text.strip() or (None if self.field.nullable else ""))

    def _chosen(self, row: int) -> None:
        self._typed(self.combo.itemText(row))
        self.binding.session.seal()


class SwitchEditor(Editor):
    """Something that is on or off."""

    def __init__(self, field: FieldSpec, binding: ConfigBinding, parent: QWidget | None = None) -> None:
        super().__init__(field, binding, parent)
        self.switch = Switch(self)
        self.register(self.switch)
        self.box.addWidget(self.switch)
        self.main_widget = self.switch
        self.switch.clicked.connect(self._clicked)

    def _display(self, value: Any) -> None:
        self.switch.setChecked(value is True)

    def _clicked(self, on: bool) -> None:  # Qt's signal
        self._commit(on)
        self.binding.session.seal()


ALL_TOOLS = "tools"
"""The field that has all tools of the agent; any other chooses among those."""


class ToolListEditor(Editor):
    """A box to tick for each tool; one that is not there is shown all the same.

    Attributes:
        boxes: The boxes, by the tools' names.
        empty: What stands there where there is nothing to choose from.
    """

    def __init__(self, field: FieldSpec, binding: ConfigBinding, parent: QWidget | None = None) -> None:
        super().__init__(field, binding, parent)
        self.boxes: dict[str, QCheckBox] = {}
        self.empty = PlainLabel("The agent has no tools yet.", self, look="dim small", wrap=True)
        self.box.addWidget(self.empty)
        self._ticked: list[str] = []
        self._fill()

    def refresh(self) -> None:
        """Offer what there is to choose from now."""
        self._fill()

    def _display(self, value: Any) -> None:
        names = cast("list[Any]", value) if isinstance(value, list) else []
        self._ticked = [name for name in names if isinstance(name, str)]
        self._fill()

    def _offered(self) -> dict[str, tuple[str, str]]:
        """Title and help of what may be ticked, by name."""
        known = tool_choices()
        if self.field.name != ALL_TOOLS:
            chosen = self.binding.values.get(ALL_TOOLS)
            names = cast("list[Any]", chosen) if isinstance(chosen, list) else []
            known = {name: known.get(name, (name, "")) for name in names if isinstance(name, str)}
        return known | {name: (f"{name} (not there)", "") for name in self._ticked if name not in known}

    def _fill(self) -> None:
        offered = self._offered()
        if list(offered) != list(self.boxes):
            for box in self.boxes.values():
                self.box.removeWidget(box)
                box.setParent(None)
                box.deleteLater()
            self.boxes = {name: self._make(name, *words) for name, words in offered.items()}
            self.main_widget = next(iter(self.boxes.values()), self)
            self.layout_changed.emit()
        self.empty.setVisible(not self.boxes)
        for name, box in self.boxes.items():
            box.setChecked(name in self._ticked)

    def _make(self, name: str, title: str, text: str) -> QCheckBox:
        box = QCheckBox(title.replace("&", "&&"), self)
        describe_widget(box, f"{self.field.title}: {title}", text)
        self.binding.events.watch(box)
        box.clicked.connect(lambda on: self._tick(name, on=on))
        self.box.addWidget(box)
        return box

    def _tick(self, name: str, *, on: bool) -> None:
        others = [ticked for ticked in self._ticked if ticked != name]
        self._ticked = [*others, name] if on else others
        self._commit(list(self._ticked))
        self.binding.session.seal()


class TurnStrategyEditor(ChoiceEditor):
    """One of the turn strategies that there are."""

    def options(self) -> Iterable[tuple[Any, str, str]]:
        """All of them, by title."""
        return [(strategy.name, strategy.title, strategy.help) for strategy in turn_strategies().values()]


# pyright: reportAttributeAccessIssue=false, reportUnknownMemberType=false
# (The stubs of PySide6 do not let a signal be connected.)


class ModelListEditor(Editor):
    """A box for each model, and a button for another one.

    Attributes:
        rows: The boxes, each with its button to remove it.
    """

    def __init__(self, field: FieldSpec, binding: ConfigBinding, parent: QWidget | None = None) -> None:
        super().__init__(field, binding, parent)
        self.rows: list[tuple[QComboBox, QToolButton]] = []
        self._list = QVBoxLayout()
        self._list.setSpacing(UNIT)
        self.box.addLayout(self._list)
        self.add = QPushButton("Add", self)
        self.register(self.add, f"Add to {field.title}")
        self.box.addWidget(self.add, 0, Qt.AlignmentFlag.AlignLeft)
        self.main_widget = self.add
        self.add.clicked.connect(self._append)

    def refresh(self) -> None:
        """Offer the models that there are now."""
        for combo, _ in self.rows:
            self._offer(combo)

    def focus_path(self, place: str) -> None:
        """Go to the model that the place names."""
        if place.isdecimal() and int(place) < len(self.rows):
            self.rows[int(place)][0].setFocus()
        else:
            super().focus_path(place)

    def _names(self) -> list[Any]:
        value: Any = self._value
        return list(cast("list[Any]", value)) if isinstance(value, list) else []

    def _display(self, value: Any) -> None:
        names = self._names()
        if len(names) != len(self.rows):
            self._have_rows(len(names))
        for (combo, _), name in zip(self.rows, names, strict=True):
            if combo.currentText() != to_text(name):
                combo.setEditText(to_text(name))

    def _have_rows(self, count: int) -> None:
        while len(self.rows) > count:
            combo, button = self.rows.pop()
            for widget in (combo, button):
                widget.setParent(None)
                widget.deleteLater()
            self._list.takeAt(len(self.rows))
        while len(self.rows) < count:
            self._add_row(len(self.rows))
        self.layout_changed.emit()

    def _add_row(self, index: int) -> None:
        combo = narrow_combo(self)
        combo.setEditable(True)
        combo.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        line = combo.lineEdit()
        assert line is not None
        line.setPlaceholderText("Provider/model")
        button = QToolButton(self)
        ThemedIcon(button, "mdi6.close", "dim")
        title = f"{self.field.title}, {index + 1}"
        self.register(combo, title)
        self.register(line, title)
        describe_widget(button, f"Remove: {title}", f"Remove: {title}")
        box = QHBoxLayout()
        box.setSpacing(UNIT)
        box.addWidget(combo, 1)
        box.addWidget(button)
        self._list.addLayout(box)
        self.rows.append((combo, button))
        self._offer(combo)
        line.textEdited.connect(partial(self._edit, index))
        combo.textActivated.connect(partial(self._choose, index))
        button.clicked.connect(partial(self._remove, index))

    def _offer(self, combo: QComboBox) -> None:
        names = self.binding.model_names()
        if names != [combo.itemText(row) for row in range(combo.count())]:
            text = combo.currentText()
            combo.clear()
            combo.addItems(names)
            combo.setCurrentIndex(-1)
            combo.setEditText(text)

    def _edit(self, index: int, text: str) -> None:
        names = self._names()
        names[index] = text.strip()
        self._commit(names)

    def _choose(self, index: int, text: str) -> None:
        self._edit(index, text)
        self.binding.session.seal()  # a choice is a step of its own

    def _append(self, _checked: bool = False) -> None:
        known = self._names()
        offered = next((name for name in self.binding.model_names() if name not in known), "")
        self._step([*known, offered])
        self.rows[-1][0].setFocus()

    def _remove(self, index: int, _checked: bool = False) -> None:
        names = self._names()
        del names[index]
        self._step(names)
        self.add.setFocus()

    def _step(self, names: list[Any]) -> None:
        """A change that is a step of its own."""
        self.binding.session.seal()
        self._commit(names)
        self._display(names)
        self.binding.session.seal()
