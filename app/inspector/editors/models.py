"""A list of models in order: add, choose or type, remove."""

# pyright: reportAttributeAccessIssue=false, reportUnknownMemberType=false
# (The stubs of PySide6 do not let a signal be connected.)

from __future__ import annotations

from functools import partial
from typing import Any, cast

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QPushButton, QToolButton, QVBoxLayout, QWidget

from app.inspector.editors.base import Editor, name_widget
from app.inspector.editors.choice import narrow_combo
from app.inspector.fields import Field
from app.inspector.target import Target
from app.theme.icons import ThemedIcon
from app.theme.tokens import UNIT
from engine.values import to_text


class ModelsEditor(Editor):
    """A box for each model, and a button for another one.

    Attributes:
        rows: The boxes, each with its button to remove it.
    """

    def __init__(self, field: Field, target: Target, parent: QWidget | None = None) -> None:
        super().__init__(field, target, parent)
        self.rows: list[tuple[QComboBox, QToolButton]] = []
        self._list = QVBoxLayout()
        self._list.setSpacing(UNIT)
        self.box.addLayout(self._list)
        self.add = QPushButton("Add", self)
        self.adopt(self.add, f"Add to {field.title}")
        self.box.addWidget(self.add, 0, Qt.AlignmentFlag.AlignLeft)
        self.main_widget = self.add
        self.add.clicked.connect(self._append)

    def refresh(self) -> None:
        """Offer the models that there are now."""
        for combo, _ in self.rows:
            self._offer(combo)

    def focus_place(self, place: str) -> None:
        """Go to the model that the place names."""
        if place.isdecimal() and int(place) < len(self.rows):
            self.rows[int(place)][0].setFocus()
        else:
            super().focus_place(place)

    def _names(self) -> list[Any]:
        value: Any = self._value
        return list(cast("list[Any]", value)) if isinstance(value, list) else []

    def _put(self, value: Any) -> None:
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
        self.arranged.emit()

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
        self.adopt(combo, title)
        self.adopt(line, title)
        name_widget(button, f"Remove: {title}", f"Remove: {title}")
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
        names = self.target.model_names()
        if names != [combo.itemText(row) for row in range(combo.count())]:
            text = combo.currentText()
            combo.clear()
            combo.addItems(names)
            combo.setCurrentIndex(-1)
            combo.setEditText(text)

    def _edit(self, index: int, text: str) -> None:
        names = self._names()
        names[index] = text.strip()
        self._tell(names)

    def _choose(self, index: int, text: str) -> None:
        self._edit(index, text)
        self.target.session.seal()  # a choice is a step of its own

    def _append(self, _checked: bool = False) -> None:
        known = self._names()
        offered = next((name for name in self.target.model_names() if name not in known), "")
        self._step([*known, offered])
        self.rows[-1][0].setFocus()

    def _remove(self, index: int, _checked: bool = False) -> None:
        names = self._names()
        del names[index]
        self._step(names)
        self.add.setFocus()

    def _step(self, names: list[Any]) -> None:
        """A change that is a step of its own."""
        self.target.session.seal()
        self._tell(names)
        self._put(names)
        self.target.session.seal()
