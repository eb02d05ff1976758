"""Editor of the conditions that stop a loop: each is chosen as a sentence, with its settings below."""

from __future__ import annotations

from typing import Any, Final

from PySide6.QtWidgets import QApplication, QComboBox, QMenu, QWidget

from app.inspector.choice_editors import narrow_combo
from app.inspector.editor import ConfigBinding, describe_widget
from app.inspector.field_spec import FieldKind, FieldSpec, field_specs
from app.inspector.form_fields import EditorFactory
from app.inspector.object_editors import ObjectEntry, ObjectListEditor
from app.theme.widgets import PlainLabel, plain_tool_tip
from engine.document.operations import UNSET
from engine.exits.condition import AnyConditionSpec
from engine.exits.loop_conditions import KEY, condition_specs
from engine.exits.max_iterations import MAX_ITERATIONS
from engine.values import Value

LOOP_FIELD: Final = "stop_when"
"""The list of the loop itself; others are groups inside of it, whose conditions must all hold."""
_MODE_FIELD: Final = "stop_mode"
_JOINERS: Final = (("Any of these", "or", "any"), ("All of these", "and", "all"))
"""The words before the first condition and before the others, and the mode."""


class ConditionsEditor(ObjectListEditor):
    """Edits the conditions of a loop, or of a group of conditions.

    A loop without conditions is shown as one that stops after a number of iterations, which is its 'Max iterations'.

    Attributes:
        menu: The conditions that can be added.
    """

    explains_itself = True

    def __init__(
        self, field: FieldSpec, binding: ConfigBinding, make_editor: EditorFactory, parent: QWidget | None = None
    ) -> None:
        super().__init__(field, binding, make_editor, parent)
        self._is_group = field.name != LOOP_FIELD
        self.add.setText("And another condition" if self._is_group else "And/or another condition")
        self.add.clicked.disconnect()  # the menu adds conditions instead
        self.menu = QMenu(self)
        self.menu.setToolTipsVisible(True)
        self.menu.aboutToShow.connect(self.fill_menu)
        self.add.setMenu(self.menu)
        self.add.setProperty("menu", True)

    def fill_menu(self) -> None:
        """Offer the conditions that there are now; a group inside a group would mean nothing new."""
        self.menu.clear()
        for spec in condition_specs().values():
            if not (self._is_group and spec.inner):
                action = self.menu.addAction(spec.label)
                action.setToolTip(plain_tool_tip(spec.added_help))
                action.triggered.connect(lambda _checked=False, spec=spec: self.append(spec))

    def append(self, spec: AnyConditionSpec) -> None:
        """Add a condition with its default settings."""
        self._commit_step([*super()._items(), {KEY: spec.name}])
        self.entries[-1].rows.focus_first()

    def refresh(self) -> None:
        """Refresh all entries, and whether any or all of them must hold."""
        super().refresh()
        self._show_mode()

    @property
    def _is_empty(self) -> bool:
        return not self._is_group and not super()._items()

    @property
    def _mode(self) -> str:
        return "all" if self._is_group or self.binding.values.get(_MODE_FIELD) == "all" else "any"

    def _items(self) -> list[dict[str, Any]]:
        return [{KEY: MAX_ITERATIONS}] if self._is_empty else super()._items()

    def _display(self, value: Any) -> None:
        focused = self._focused_entry()
        items = self._items()
        self._set_entry_count(min(len(self.entries), len(items)))
        for entry, item in zip(self.entries, items, strict=False):
            fields = self._fields_of(item)
            if list(fields.values()) != [row.field for row in entry.rows.rows.values()]:
                entry.set_fields(fields)
                self.layout_changed.emit()
        super()._display(value)
        for entry in self.entries:
            entry.show_framed(len(self.entries) > 1 or self._is_group)
        self.add.setVisible(not self._is_empty)
        self.main_widget = self.entries[0].rows.rows[KEY].editor.main_widget if self.entries else self.add
        self._show_mode()
        if (
            focused is not None and self.entries and focused != self._focused_entry()
        ):  # the field with the focus is gone
            self.entries[min(focused, len(self.entries) - 1)].rows.rows[KEY].editor.focus_path("")

    def _focused_entry(self) -> int | None:
        focus = QApplication.focusWidget()
        return next((at for at, entry in enumerate(self.entries) if focus and entry.isAncestorOf(focus)), None)

    def _new_entry(self, index: int) -> ObjectEntry:
        return ObjectEntry(
            index + 1,
            self.field,
            self.binding,
            self._make_editor,
            self,
            fields=self._fields_of(self._items()[index]),
            with_help=True,
            lead=self._joiner(index),
        )

    def _fields_of(self, item: dict[str, Any]) -> dict[str, FieldSpec]:
        """Return the fields of an entry: its condition and the settings of that."""
        name = item.get(KEY)
        spec = condition_specs().get(name) if isinstance(name, str) else None
        widget = "grouped_condition" if self._is_group else "condition"
        condition = FieldSpec(name=KEY, title="", help="", kind=FieldKind.CHOICE, widget=widget, required=True)
        if spec is None or self._is_empty:  # without conditions, the number of iterations is a field of the loop
            return {KEY: condition}
        return {KEY: condition, **field_specs(spec.config)}

    def _joiner(self, index: int) -> QWidget:
        """Return the word between an entry and the one before: a choice at the first place, which all others follow."""
        if index != 1 or self._is_group:
            return PlainLabel("", look="fieldname")
        combo = narrow_combo()
        combo.setMinimumContentsLength(3)
        for _, word, mode in _JOINERS:
            combo.addItem(word, mode)
        describe_widget(
            combo, f"{self.field.title}: any or all", "or: one of the conditions is enough. and: all are needed."
        )
        self.binding.events.watch(combo)
        combo.activated.connect(lambda row: self._set_mode(combo.itemData(row)))
        return combo

    def _show_mode(self) -> None:
        start, word = next((start, word) for start, word, mode in _JOINERS if mode == self._mode)
        for index, entry in enumerate(self.entries):
            if isinstance(entry.lead, QComboBox):
                entry.lead.setCurrentText(word)
            elif isinstance(entry.lead, PlainLabel):
                entry.lead.setText(word if index else start)

    def _set_mode(self, mode: str) -> None:
        self.binding.session.seal()
        self.binding.write((_MODE_FIELD,), UNSET if mode == "any" else mode)
        self.binding.session.seal()

    def _edit(self, index: int, name: str, value: Value) -> None:
        if name != KEY:
            super()._edit(index, name, value)
            return
        items = self._items()
        if value == MAX_ITERATIONS and len(items) == 1 and not self._is_group:
            items = []  # 'Max iterations' of the loop says the same
        else:
            fields = self._fields_of({KEY: value})
            items[index] = {
                KEY: value,
                **{key: kept for key, kept in items[index].items() if key in fields and key != KEY},
            }
        self._commit_step(items)
