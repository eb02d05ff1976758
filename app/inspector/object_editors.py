"""Editors of structured values: objects, lists of objects, and the arguments of a tool."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QPushButton, QToolButton, QWidget

from app.inspector.editor import ConfigBinding, Editor, FieldProblem, mark_invalid
from app.inspector.field_spec import FieldKind, FieldSpec, field_specs
from app.inspector.form_fields import AdvancedButton, EditorFactory, FormField, FormFields
from app.theme.style import set_style_properties
from app.theme.tokens import UNIT
from app.theme.widgets import STRETCH, PlainLabel, discard, hbox, icon_button, vbox
from engine.document.model import make_id
from engine.document.operations import UNSET
from engine.tools.registry import all_tools
from engine.values import Value

_ProblemsByField = dict[str, list[FieldProblem]]


def _split_problems(
    problems: Iterable[FieldProblem], names: Iterable[str]
) -> tuple[_ProblemsByField, list[FieldProblem]]:
    """Split problems of an object into those of its known fields and the rest."""
    by_name: _ProblemsByField = {name: [] for name in names}
    rest: list[FieldProblem] = []
    for found in problems:
        name, _, path = found.path.partition(".")
        if name in by_name:
            by_name[name].append(FieldProblem(path, found.problem))
        else:
            rest.append(found)
    return by_name, rest


def _with_field(item: dict[str, Any], field: FieldSpec, value: Value) -> dict[str, Any]:
    """Return an object with another value for a field; a default is left out."""
    stored = field.stored_value(value)
    if stored is UNSET:
        return {name: other for name, other in item.items() if name != field.name}
    return {**item, field.name: stored}


class ObjectEditor(Editor):
    """Editor of one object, such as the judge of a loop. A change in one of its fields changes the whole object."""

    def __init__(
        self, field: FieldSpec, binding: ConfigBinding, make_editor: EditorFactory, parent: QWidget | None = None
    ) -> None:
        super().__init__(field, binding, parent)
        assert field.item is not None
        self._fields = field_specs(field.item)
        self._make_editor = make_editor
        self._frame = QFrame()
        self._frame.setProperty("group", True)
        self.main = self._make_fields(is_advanced=False)
        self.advanced: FormFields | None = None  # created on first use
        self.advanced_button = AdvancedButton(field.title)
        self.advanced_button.toggled.connect(self._show_advanced)
        binding.events.watch(self.advanced_button)
        button = (self.advanced_button, Qt.AlignmentFlag.AlignLeft)
        self._parts = vbox(self.main, button, spacing=3, margins=3, parent=self._frame)
        self.box.addWidget(self._frame)
        self.main_widget = next(iter(self.main.rows.values())).editor.main_widget

    def refresh(self) -> None:
        """Refresh all fields."""
        for fields in self._groups():
            fields.refresh()

    def show_problems(self, problems: list[FieldProblem]) -> list[FieldProblem]:
        """Show each problem at its field."""
        by_name, rest = _split_problems(problems, self._fields)
        if any(by_name[name] for name, field in self._fields.items() if field.is_advanced):
            self.advanced_button.setChecked(True)
        for fields in self._groups():
            fields.show_problems(by_name, self._values)
        return rest

    def focus_path(self, path: str) -> None:
        """Move the focus to a field."""
        name, _, rest = path.partition(".")
        if name in self._fields and self._fields[name].is_advanced:
            self.advanced_button.setChecked(True)
        if (row := self._row(name)) is not None:
            row.editor.focus_path(rest)
        else:
            super().focus_path(path)

    @property
    def _values(self) -> dict[str, Any]:
        return self._value if isinstance(self._value, dict) else {}

    def _groups(self) -> list[FormFields]:
        return [self.main] if self.advanced is None else [self.main, self.advanced]

    def _row(self, name: str) -> FormField | None:
        return next((fields.rows[name] for fields in self._groups() if name in fields.rows), None)

    def _make_fields(self, *, is_advanced: bool) -> FormFields:
        chosen = [field for field in self._fields.values() if field.is_advanced is is_advanced]
        fields = FormFields(
            chosen, self._fields, self.binding, self._make_editor, with_help=is_advanced, parent=self._frame
        )
        fields.edited.connect(self._edit)
        fields.layout_changed.connect(self.layout_changed)
        for row in fields.rows.values():
            row.editor.main_widget.setAccessibleName(f"{self.field.title}: {row.field.title}")
        return fields

    def _display(self, value: Any) -> None:
        del value
        for fields in self._groups():
            self._display_in(fields)

    def _display_in(self, fields: FormFields) -> None:
        for name, row in fields.rows.items():
            row.editor.path = (*self.path, name)
        fields.show_values(self._values)

    def _show_advanced(self, is_open: bool) -> None:  # Qt's signal
        if self.advanced is None:
            self.advanced = self._make_fields(is_advanced=True)
            self._parts.addWidget(self.advanced)
            self._display_in(self.advanced)
            self.advanced.refresh()
        self.advanced.setVisible(is_open)
        self.layout_changed.emit()

    def _edit(self, name: str, value: Value) -> None:
        row = self._row(name)
        assert row is not None
        changed = _with_field(self._values, row.field, value)
        self._commit(changed or None)
        self._display(changed)


_ACTIONS: Final = (
    ("up", "mdi6.arrow-up", "Move up"),
    ("down", "mdi6.arrow-down", "Move down"),
    ("remove", "mdi6.close", "Remove"),
)


class ObjectEntry(QFrame):
    """One object of a list, with buttons to move and remove it.

    Args:
        number: Its number in the list, from 1.
        lead: What its header starts with; the number by default.

    Signals:
        edited: The user changed a field: its name and the new value.
        action_requested: A button was clicked: `up`, `down` or `remove`.

    Attributes:
        header: The line with the buttons.
        lead: The first widget in it.
        buttons: The buttons by action.
        rows: The fields.
    """

    edited = Signal(str, object)
    action_requested = Signal(str)

    def __init__(
        self,
        number: int,
        field: FieldSpec,
        binding: ConfigBinding,
        make_editor: EditorFactory,
        parent: QWidget | None = None,
        *,
        fields: dict[str, FieldSpec],
        with_help: bool = False,
        lead: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setProperty("group", True)
        self.header = QWidget(self)
        self.lead = lead or PlainLabel(str(number), look="section")
        line = hbox(self.lead, STRETCH, spacing=0, parent=self.header)
        title = f"{field.title} {number}"
        self.buttons: dict[str, QToolButton] = {}
        for action, picture, text in _ACTIONS:
            act = partial(self.action_requested.emit, action)
            self.buttons[action] = icon_button(picture, f"{text}: {title}", act, self, color="dim")
            line.addWidget(self.buttons[action])
        self.rows = FormFields(fields.values(), fields, binding, make_editor, with_help=with_help, parent=self)
        self.rows.edited.connect(self.edited)
        self._box = vbox(self.header, self.rows, spacing=2, margins=(3, 2, 3, 3), parent=self)
        self._title = title
        self._name_fields()

    def set_fields(self, fields: dict[str, FieldSpec]) -> None:
        """Replace the fields; the same ones keep their widgets."""
        self.rows.set_fields(fields.values(), fields)
        self._name_fields()

    def _name_fields(self) -> None:
        for row in self.rows.rows.values():
            row.editor.main_widget.setAccessibleName(f"{self._title}: {row.field.title}".removesuffix(": "))

    def show_framed(self, is_framed: bool) -> None:
        """Show frame and header, or only the fields."""
        self.header.setVisible(is_framed)
        if self.property("group") is not is_framed:
            set_style_properties(self, group=is_framed)
        left, top = (3 * UNIT, 2 * UNIT) if is_framed else (0, 0)
        self._box.setContentsMargins(left, top, left, left)


class ObjectListEditor(Editor):
    """Editor of a list of objects, such as the branches of a router. A change in one object changes the whole list."""

    def __init__(
        self, field: FieldSpec, binding: ConfigBinding, make_editor: EditorFactory, parent: QWidget | None = None
    ) -> None:
        super().__init__(field, binding, parent)
        self._make_editor = make_editor
        self.entries: list[ObjectEntry] = []
        self._list = vbox(spacing=2)
        self.box.setSpacing(3 * UNIT)
        self.box.addLayout(self._list)
        self.add = QPushButton("Add", self)
        self.register(self.add, f"Add: {field.title}")
        self.box.addWidget(self.add, 0, Qt.AlignmentFlag.AlignLeft)
        self.main_widget = self.add
        self.add.clicked.connect(self._append)

    def refresh(self) -> None:
        """Refresh all entries."""
        for entry, item in zip(self.entries, self._items(), strict=False):
            entry.rows.show_values(item)  # which fields apply may depend on the node
            entry.rows.refresh()

    def show_problems(self, problems: list[FieldProblem]) -> list[FieldProblem]:
        """Show each problem at its field."""
        by_index, rest = _split_problems(problems, map(str, range(len(self.entries))))
        for index, (entry, item) in enumerate(zip(self.entries, self._items(), strict=False)):
            by_name, others = _split_problems(by_index[str(index)], entry.rows.rows)
            entry.rows.show_problems(by_name, item)
            rest.extend(FieldProblem(f"{index}.{found.path}".rstrip("."), found.problem) for found in others)
        mark_invalid(self.add, invalid=bool(rest))
        return rest

    def focus_path(self, path: str) -> None:
        """Move the focus to a field of an object."""
        index, _, rest = path.partition(".")
        name, _, deeper = rest.partition(".")
        if index.isdecimal() and int(index) < len(self.entries) and name in self.entries[int(index)].rows.rows:
            self.entries[int(index)].rows.rows[name].editor.focus_path(deeper)
        else:
            super().focus_path(path)

    def _items(self) -> list[dict[str, Any]]:
        items = self._value if isinstance(self._value, list) else []
        return [item if isinstance(item, dict) else {} for item in items]

    def _display(self, value: Any) -> None:
        del value
        items = self._items()
        if len(self.entries) != len(items):
            self._set_entry_count(len(items))
        last = len(items) - 1
        for index, (entry, item) in enumerate(zip(self.entries, items, strict=True)):
            for name, row in entry.rows.rows.items():
                row.editor.path = (*self.path, index, name)
            entry.rows.show_values(item)
            entry.buttons["up"].setEnabled(index > 0)
            entry.buttons["down"].setEnabled(index < last)

    def _set_entry_count(self, count: int) -> None:
        while len(self.entries) > count:
            entry = self.entries.pop()
            self._list.removeWidget(entry)
            discard(entry)
        while len(self.entries) < count:
            self._add_entry()
        self.layout_changed.emit()

    def _add_entry(self) -> None:
        index = len(self.entries)
        entry = self._new_entry(index)
        entry.edited.connect(lambda name, value: self._edit(index, name, value))
        entry.action_requested.connect(lambda action: self._perform(index, action))
        self.entries.append(entry)
        self._list.addWidget(entry)

    def _new_entry(self, index: int) -> ObjectEntry:
        assert self.field.item is not None
        fields = field_specs(self.field.item)
        return ObjectEntry(index + 1, self.field, self.binding, self._make_editor, self, fields=fields)

    def _edit(self, index: int, name: str, value: Value) -> None:
        items = self._items()
        items[index] = _with_field(items[index], self.entries[index].rows.rows[name].field, value)
        self._commit(items)

    def _append(self) -> None:
        assert self.field.item is not None
        taken = {value for item in self._items() for value in item.values() if isinstance(value, str)}
        new_id = make_id(self.field.item.__name__, taken)
        fields = field_specs(self.field.item).values()
        new = {field.name: new_id for field in fields if field.required and field.kind is FieldKind.TEXT}
        self._commit_step([*self._items(), new])
        self.entries[-1].rows.focus_first()

    def _perform(self, index: int, action: str) -> None:
        items = self._items()
        item = items.pop(index)
        if action != "remove":
            index += -1 if action == "up" else 1
            items.insert(index, item)
        self._commit_step(items)
        if not self.entries:
            self.add.setFocus()
            return
        button = self.entries[min(index, len(self.entries) - 1)].buttons[action]
        (button if button.isEnabled() else self.add).setFocus()


class ArgumentsEditor(Editor):
    """Editor of the arguments of a tool: one field for each parameter. Parameters set by an edge show their source."""

    def __init__(
        self, field: FieldSpec, binding: ConfigBinding, make_editor: EditorFactory, parent: QWidget | None = None
    ) -> None:
        super().__init__(field, binding, parent)
        self._make_editor = make_editor
        self.box.setContentsMargins(0, UNIT, 0, 0)
        self._tool: str | None = None
        self.rows: FormFields | None = None
        self._placeholder = PlainLabel("Choose a tool first.", self, look="dim small", wrap=True)
        self.box.addWidget(self._placeholder)

    def refresh(self) -> None:
        """Show the parameters of the current tool, and the sources of those set by edges."""
        name = self.binding.values.get("tool", "")
        tool = all_tools().get(name) if isinstance(name, str) else None
        if (tool.name if tool else "") != self._tool:
            self._tool = tool.name if tool else ""
            if self.rows is not None:
                self.box.removeWidget(self.rows)
                discard(self.rows)
                self.rows = None
            if tool is not None:
                fields = field_specs(tool.parameters)
                self.rows = FormFields(fields.values(), fields, self.binding, self._make_editor, parent=self)
                self.rows.edited.connect(self._edit)
                self.box.addWidget(self.rows)
                self.rows.show_values(self._arguments)
            self._placeholder.setVisible(tool is None)
            self.layout_changed.emit()
        self._show_sources()

    def show_problems(self, problems: list[FieldProblem]) -> list[FieldProblem]:
        """Show each problem at its parameter."""
        by_name, rest = _split_problems(problems, self.rows.rows if self.rows is not None else ())
        if self.rows is not None:
            self.rows.show_problems(by_name, self._arguments)
        mark_invalid(self, invalid=bool(rest))
        return rest

    def focus_path(self, path: str) -> None:
        """Move the focus to a parameter."""
        name, _, rest = path.partition(".")
        if self.rows is not None and name in self.rows.rows:
            self.rows.rows[name].editor.focus_path(rest)
        elif self.rows is not None:
            self.rows.focus_first()

    @property
    def _arguments(self) -> dict[str, Any]:
        return self._value if isinstance(self._value, dict) else {}

    def _display(self, value: Any) -> None:
        del value
        self.refresh()
        if self.rows is not None:
            self.rows.show_values(self._arguments)

    def _edit(self, name: str, value: Value) -> None:
        assert self.rows is not None
        field = self.rows.rows[name].field
        others = {key: other for key, other in self._arguments.items() if key != name}
        is_empty = (value is None or value == "") if field.required else value == field.default
        self._commit(others if is_empty else {**self._arguments, name: value})

    def _show_sources(self) -> None:
        if self.rows is None or self.binding.node_id is None:
            return
        structure = self.binding.session.structure
        titles = {
            link.target_port: structure.resolution.name(link.source)
            for link in structure.links_to.get(self.binding.node_id, ())
        }
        for name, row in self.rows.rows.items():
            row.show_source(f"From {titles[name]} (connected by an edge)" if name in titles else "")
