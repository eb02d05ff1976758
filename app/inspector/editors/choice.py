"""Choices: one of several words, on or off, a model, a tool, a node."""

# pyright: reportAttributeAccessIssue=false, reportUnknownMemberType=false
# (The stubs of PySide6 do not let a signal be connected.)

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QComboBox, QWidget

from app.inspector.editors.base import Editor
from app.inspector.fields import Field, choice_help
from app.inspector.target import Target
from app.theme.widgets import Switch, plain_tool_tip
from engine.tools.registry import all_tools
from engine.values import to_text


def narrow_combo(parent: QWidget | None = None) -> QComboBox:
    """A combo box that is as wide as its place, however long its entries are."""
    combo = QComboBox(parent)
    combo.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    combo.setMinimumContentsLength(8)
    return combo


class ListEditor(Editor):
    """Something to choose from a list of values with names; a value that is not in it is shown all the same."""

    def __init__(self, field: Field, target: Target, parent: QWidget | None = None) -> None:
        super().__init__(field, target, parent)
        self.combo = narrow_combo(self)
        self.adopt(self.combo)
        self.box.addWidget(self.combo)
        self.main_widget = self.combo
        self.combo.activated.connect(self._chosen)
        self._fill()

    def refresh(self) -> None:
        """Offer what there is to choose from now."""
        self._fill()
        self._put(self._value)

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

    def _put(self, value: Any) -> None:
        rows = [row for row in range(self.combo.count()) if self.combo.itemData(row) == value]
        if not rows:
            self._fill()
            self.combo.addItem(f"{to_text(value)} (not there)", value)
            rows = [self.combo.count() - 1]
        self.combo.setCurrentIndex(rows[0])

    def _chosen(self, row: int) -> None:
        self._tell(self.combo.itemData(row))
        self.target.session.seal()  # a choice is a step of its own


class ToolEditor(ListEditor):
    """One of the tools."""

    def options(self) -> Iterable[tuple[Any, str, str]]:
        """All tools, by title."""
        return [("", "Choose a tool", ""), *((tool.name, tool.title, tool.help) for tool in all_tools().values())]


class NodeEditor(ListEditor):
    """A node of the document: a loop, or a router of the body of the loop whose field it is."""

    def options(self) -> Iterable[tuple[Any, str, str]]:
        """What fits, by title; first that none is named."""
        nothing = None if self.field.nullable else ""
        nodes = [node for node in self.target.session.workflow.nodes if node.type == self.field.widget]
        if self.field.widget == "router":
            parent = self.target.session.structure.parent
            nodes = [node for node in nodes if parent.get(node.id) == self.target.node_id]
        named = [(node.id, f"{node.title} ({node.id})" if node.title else node.id, "") for node in nodes]
        return [(nothing, "The only one that fits", ""), *named]


class ModelEditor(Editor):
    """The name of a model: one from the list, or any other, typed."""

    def __init__(self, field: Field, target: Target, parent: QWidget | None = None) -> None:
        super().__init__(field, target, parent)
        self.combo = narrow_combo(self)
        self.combo.setEditable(True)
        self.combo.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        line = self.combo.lineEdit()
        assert line is not None
        self.line = line
        self.line.setPlaceholderText("the usual one")
        self.adopt(self.combo)
        self.adopt(self.line)
        self.combo.addItems(target.model_names())
        self.combo.setCurrentIndex(-1)
        self.box.addWidget(self.combo)
        self.main_widget = self.combo
        self.line.textEdited.connect(self._typed)
        self.combo.activated.connect(self._chosen)

    def refresh(self) -> None:
        """Offer the models that there are now."""
        names = self.target.model_names()
        if names == [self.combo.itemText(row) for row in range(self.combo.count())]:
            return
        text, position = self.line.text(), self.line.cursorPosition()
        self.combo.clear()
        self.combo.addItems(names)
        self.combo.setCurrentIndex(-1)
        self.line.setText(text)
        self.line.setCursorPosition(position)

    def _put(self, value: Any) -> None:
        position = self.line.cursorPosition()
        self.line.setText(to_text(value))
        self.line.setCursorPosition(min(position, len(self.line.text())))

    def _typed(self, text: str) -> None:
        self._tell(text.strip() or (None if self.field.nullable else ""))

    def _chosen(self, row: int) -> None:
        self._typed(self.combo.itemText(row))
        self.target.session.seal()


class SwitchEditor(Editor):
    """Something that is on or off."""

    def __init__(self, field: Field, target: Target, parent: QWidget | None = None) -> None:
        super().__init__(field, target, parent)
        self.switch = Switch(self)
        self.adopt(self.switch)
        self.box.addWidget(self.switch)
        self.main_widget = self.switch
        self.switch.clicked.connect(self._clicked)

    def _put(self, value: Any) -> None:
        self.switch.setChecked(value is True)

    def _clicked(self, on: bool) -> None:  # Qt's signal
        self._tell(on)
        self.target.session.seal()
