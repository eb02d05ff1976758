"""A list of objects, such as a router's branches: add, take out, move up and down."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QToolButton, QVBoxLayout, QWidget

from app.inspector.config_binding import ConfigBinding
from app.inspector.editors.editor import Editor, FieldProblem, describe_widget, mark_invalid
from app.inspector.field_spec import FieldKind, FieldSpec, field_specs
from app.inspector.form_fields import EditorFactory, FormFields
from app.theme.style import ThemedIcon
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel
from engine.document.model import make_id
from engine.document.operation import UNSET
from engine.tools.registry import all_tools
from engine.values import Value


class ObjectEntry(QFrame):
    """One object of the list.

    Signals:
        edited: A person changed a field: its name and the new value.
        asked: A button was pressed: `up`, `down` or `remove`.
    """

    edited = Signal(str, object)
    asked = Signal(str)

    def __init__(
        self,
        number: int,
        field: FieldSpec,
        binding: ConfigBinding,
        make_editor: EditorFactory,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        assert field.item is not None
        self.setProperty("group", True)
        box = QVBoxLayout(self)
        box.setContentsMargins(3 * UNIT, 2 * UNIT, 3 * UNIT, 3 * UNIT)
        box.setSpacing(2 * UNIT)
        line = QHBoxLayout()
        line.setSpacing(0)
        name = PlainLabel(str(number), self, look="section")
        line.addWidget(name, 1)
        what = f"{field.title}, {number}"
        self.buttons = {
            "up": self._button("mdi6.arrow-up", f"Move up: {what}"),
            "down": self._button("mdi6.arrow-down", f"Move down: {what}"),
            "remove": self._button("mdi6.close", f"Take out: {what}"),
        }
        for asked, button in self.buttons.items():
            button.clicked.connect(lambda _checked=False, asked=asked: self.asked.emit(asked))
            line.addWidget(button)
        box.addLayout(line)
        fields = field_specs(field.item)
        self.rows = FormFields(fields.values(), fields, binding, make_editor, with_help=False, parent=self)
        self.rows.edited.connect(self.edited)
        box.addWidget(self.rows)
        for row in self.rows.rows.values():
            row.editor.main_widget.setAccessibleName(f"{row.field.title} of {what}")

    def _button(self, picture: str, name: str) -> QToolButton:
        button = QToolButton(self)
        ThemedIcon(button, picture, "dim")
        describe_widget(button, name, name)
        return button


class ObjectListEditor(Editor):
    """The whole list is one value; a change in one object is a change of the list."""

    def __init__(
        self, field: FieldSpec, binding: ConfigBinding, make_editor: EditorFactory, parent: QWidget | None = None
    ) -> None:
        super().__init__(field, binding, parent)
        self._make_editor = make_editor
        self.entries: list[ObjectEntry] = []
        self._list = QVBoxLayout()
        self._list.setSpacing(2 * UNIT)
        self.box.addLayout(self._list)
        self.add = QPushButton("Add", self)
        self.register(self.add, f"Add to {field.title}")
        self.box.addWidget(self.add, 0, Qt.AlignmentFlag.AlignLeft)
        self.main_widget = self.add
        self.add.clicked.connect(self._append)

    def refresh(self) -> None:
        """Pass it on."""
        for entry in self.entries:
            entry.rows.refresh()

    def show_problems(self, problems: list[FieldProblem]) -> list[FieldProblem]:
        """Show each beside its field, where there is one."""
        rest: list[FieldProblem] = []
        by_entry: dict[int, dict[str, list[FieldProblem]]] = {}
        for fault in problems:
            index, _, place = fault.place.partition(".")
            name, _, deeper = place.partition(".")
            if index.isdecimal() and int(index) < len(self.entries) and name in self.entries[int(index)].rows.rows:
                by_entry.setdefault(int(index), {}).setdefault(name, []).append(FieldProblem(deeper, fault.problem))
            else:
                rest.append(fault)
        for index, (entry, item) in enumerate(zip(self.entries, self._items(), strict=True)):
            entry.rows.show_problems(by_entry.get(index, {}), item)
        mark_invalid(self.add, invalid=bool(rest))
        return rest

    def focus_path(self, place: str) -> None:
        """Go to the field of the object that the place names."""
        index, _, rest = place.partition(".")
        name, _, deeper = rest.partition(".")
        if index.isdecimal() and int(index) < len(self.entries) and name in self.entries[int(index)].rows.rows:
            self.entries[int(index)].rows.rows[name].editor.focus_path(deeper)
        else:
            super().focus_path(place)

    def _items(self) -> list[dict[str, Any]]:
        items = self._value if isinstance(self._value, list) else []
        return [item if isinstance(item, dict) else {} for item in items]

    def _display(self, value: Any) -> None:
        items = self._items()
        if len(self.entries) != len(items):
            self._have_entries(len(items))
        last = len(items) - 1
        for index, (entry, item) in enumerate(zip(self.entries, items, strict=True)):
            entry.rows.show_values(item)
            entry.buttons["up"].setEnabled(index > 0)
            entry.buttons["down"].setEnabled(index < last)

    def _have_entries(self, count: int) -> None:
        while len(self.entries) > count:
            entry = self.entries.pop()
            self._list.removeWidget(entry)
            entry.setParent(None)
            entry.deleteLater()
        while len(self.entries) < count:
            self._add_entry()
        self.layout_changed.emit()

    def _add_entry(self) -> None:
        index = len(self.entries)
        entry = ObjectEntry(index + 1, self.field, self.binding, self._make_editor, self)
        entry.edited.connect(lambda name, value: self._edit(index, name, value))
        entry.asked.connect(lambda asked: self._arrange(index, asked))
        self.entries.append(entry)
        self._list.addWidget(entry)

    def _edit(self, index: int, name: str, value: Value) -> None:
        items = self._items()
        written = self.entries[index].rows.rows[name].field.stored_value(value)
        item = {key: kept for key, kept in items[index].items() if key != name or written is not UNSET}
        items[index] = item if written is UNSET else {**item, name: written}
        self._commit(items)

    def _append(self) -> None:
        assert self.field.item is not None
        taken = {value for item in self._items() for value in item.values() if isinstance(value, str)}
        made = make_id(self.field.item.__name__, taken)
        fields = field_specs(self.field.item).values()
        new = {field.name: made for field in fields if field.required and field.kind is FieldKind.TEXT}
        self._step([*self._items(), new])
        self.entries[-1].rows.focus_first()

    def _arrange(self, index: int, asked: str) -> None:
        items = self._items()
        item = items.pop(index)
        if asked != "remove":
            index += -1 if asked == "up" else 1
            items.insert(index, item)
        self._step(items)
        if not self.entries:
            self.add.setFocus()
            return
        button = self.entries[min(index, len(self.entries) - 1)].buttons[asked]
        (button if button.isEnabled() else self.add).setFocus()

    def _step(self, items: list[Any]) -> None:
        """A change that is a step of its own."""
        self.binding.session.seal()
        self._commit(items)
        self._display(items)
        self.binding.session.seal()


class ObjectEditor(Editor):
    """The object is one value; a change in one of its fields is a change of the object."""

    def __init__(
        self, field: FieldSpec, binding: ConfigBinding, make_editor: EditorFactory, parent: QWidget | None = None
    ) -> None:
        super().__init__(field, binding, parent)
        self._make_editor = make_editor
        assert field.item is not None
        fields = field_specs(field.item)
        frame = QFrame()
        frame.setProperty("group", True)
        box = QVBoxLayout(frame)
        box.setContentsMargins(3 * UNIT, 3 * UNIT, 3 * UNIT, 3 * UNIT)
        box.setSpacing(3 * UNIT)
        self.main = FormFields(
            [one for one in fields.values() if not one.is_advanced], fields, binding, make_editor, with_help=False
        )
        self.more = FormFields(
            [one for one in fields.values() if one.is_advanced], fields, binding, make_editor, with_help=False
        )
        self.fold = QToolButton()
        self.fold.setProperty("fold", True)
        self.fold.setCheckable(True)
        self.fold.setText(f"More about: {field.title}")
        self.fold.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        describe_widget(self.fold, f"More settings of {field.title}", "Show the settings that are seldom needed.")
        self._sign = ThemedIcon(self.fold, "mdi6.chevron-right", "dim")
        self.fold.toggled.connect(self._unfold)
        binding.events.watch(self.fold)
        box.addWidget(self.main)
        box.addWidget(self.fold, 0, Qt.AlignmentFlag.AlignLeft)
        box.addWidget(self.more)
        self.more.hide()
        self.box.addWidget(frame)
        for rows in (self.main, self.more):
            rows.edited.connect(self._edit)
            rows.layout_changed.connect(self.layout_changed)
            for row in rows.rows.values():
                row.editor.main_widget.setAccessibleName(f"{row.field.title} of {field.title}")
        self.main_widget = next(iter(self.main.rows.values())).editor.main_widget

    def refresh(self) -> None:
        """Pass it on."""
        self.main.refresh()
        self.more.refresh()

    def refresh_run(self) -> None:
        """Pass it on."""
        self.main.refresh_run()
        self.more.refresh_run()

    def show_problems(self, problems: list[FieldProblem]) -> list[FieldProblem]:
        """Show each beside its field, where there is one."""
        rest: list[FieldProblem] = []
        by_name: dict[str, list[FieldProblem]] = {}
        for fault in problems:
            name, _, deeper = fault.place.partition(".")
            if name in self.main.rows or name in self.more.rows:
                by_name.setdefault(name, []).append(FieldProblem(deeper, fault.problem))
            else:
                rest.append(fault)
        self.main.show_problems(by_name, self._values)
        self.more.show_problems(by_name, self._values)
        if any(name in self.more.rows for name in by_name):
            self.fold.setChecked(True)
        return rest

    def focus_path(self, place: str) -> None:
        """Go to the field that the place names."""
        name, _, deeper = place.partition(".")
        for rows in (self.main, self.more):
            if name in rows.rows:
                if rows is self.more:
                    self.fold.setChecked(True)
                rows.rows[name].editor.focus_path(deeper)
                return
        super().focus_path(place)

    @property
    def _values(self) -> dict[str, Any]:
        return self._value if isinstance(self._value, dict) else {}

    def _display(self, value: Any) -> None:
        del value
        self.main.show_values(self._values)
        self.more.show_values(self._values)

    def _unfold(self, is_open: bool) -> None:  # Qt's signal
        self.more.setVisible(is_open)
        self._sign.show("mdi6.chevron-down" if is_open else "mdi6.chevron-right")
        self.layout_changed.emit()

    def _edit(self, name: str, value: Value) -> None:
        rows = self.main if name in self.main.rows else self.more
        written = rows.rows[name].field.stored_value(value)
        item = {key: kept for key, kept in self._values.items() if key != name or written is not UNSET}
        changed = item if written is UNSET else {**item, name: written}
        self._commit(changed or None)
        self._display(changed)


class ArgumentsEditor(Editor):
    """An object with a value for each parameter that no edge gives."""

    def __init__(
        self, field: FieldSpec, binding: ConfigBinding, make_editor: EditorFactory, parent: QWidget | None = None
    ) -> None:
        super().__init__(field, binding, parent)
        self._make_editor = make_editor
        self.box.setContentsMargins(0, UNIT, 0, 0)
        self._tool: str | None = None
        self.rows: FormFields | None = None
        self._nothing = PlainLabel("Choose a tool first.", self, look="dim small", wrap=True)
        self.box.addWidget(self._nothing)

    def refresh(self) -> None:
        """Show the parameters of the tool that is chosen now, and what edges lead to them."""
        name = self.binding.values.get("tool", "")
        tool = all_tools().get(name) if isinstance(name, str) else None
        if (tool.name if tool else "") != self._tool:
            self._tool = tool.name if tool else ""
            if self.rows is not None:
                self.box.removeWidget(self.rows)
                self.rows.setParent(None)
                self.rows.deleteLater()
                self.rows = None
            if tool is not None:
                fields = field_specs(tool.parameters)
                self.rows = FormFields(
                    fields.values(), fields, self.binding, self._make_editor, with_help=True, parent=self
                )
                self.rows.edited.connect(self._edited)
                self.box.addWidget(self.rows)
                self.rows.show_values(self._arguments())
            self._nothing.setVisible(tool is None)
            self.layout_changed.emit()
        self._show_sources()

    def show_problems(self, problems: list[FieldProblem]) -> list[FieldProblem]:
        """Show each beside its parameter, where there is one."""
        rows = self.rows.rows if self.rows is not None else {}
        by_name: dict[str, list[FieldProblem]] = {}
        rest: list[FieldProblem] = []
        for fault in problems:
            name, _, deeper = fault.place.partition(".")
            if name in rows:
                by_name.setdefault(name, []).append(FieldProblem(deeper, fault.problem))
            else:
                rest.append(fault)
        if self.rows is not None:
            self.rows.show_problems(by_name, self._arguments())
        mark_invalid(self, invalid=bool(rest))
        return rest

    def focus_path(self, place: str) -> None:
        """Go to a parameter."""
        name, _, deeper = place.partition(".")
        if self.rows is not None and name in self.rows.rows:
            self.rows.rows[name].editor.focus_path(deeper)
        elif self.rows is not None:
            self.rows.focus_first()

    def _arguments(self) -> dict[str, Any]:
        return self._value if isinstance(self._value, dict) else {}

    def _display(self, _value: Any) -> None:
        self.refresh()
        if self.rows is not None:
            self.rows.show_values(self._arguments())

    def _edited(self, name: str, value: Value) -> None:
        assert self.rows is not None
        field = self.rows.rows[name].field
        kept = {key: other for key, other in self._arguments().items() if key != name}
        is_empty = (value is None or value == "") if field.required else value == field.default
        self._commit(kept if is_empty else {**self._arguments(), name: value})

    def _show_sources(self) -> None:
        if self.rows is None or self.binding.node_id is None:
            return
        structure = self.binding.session.structure
        titles = {
            link.target_port: structure.workflow.node(link.source).title or link.source
            for link in structure.links_to.get(self.binding.node_id, ())
        }
        for name, row in self.rows.rows.items():
            row.show_source(f"From {titles[name]}, by an edge." if name in titles else "")
