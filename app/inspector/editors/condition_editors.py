"""The list of conditions at which a loop stops: each with its own settings, chosen by what holds when it stops."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from PySide6.QtWidgets import QMenu, QWidget

from app.inspector.config_binding import ConfigBinding
from app.inspector.editors.choice_editors import ChoiceEditor
from app.inspector.editors.object_editors import ObjectEntry, ObjectListEditor
from app.inspector.field_spec import FieldKind, FieldSpec, field_specs
from app.inspector.form_fields import EditorFactory
from app.theme.widgets import plain_tool_tip
from engine.exits.condition import AnyConditionSpec
from engine.exits.registry import KEY, condition_specs
from engine.values import Value


class ConditionEditor(ChoiceEditor):
    """Which condition an entry of the list is."""

    def options(self) -> Iterable[tuple[Any, str, str]]:
        """All conditions, by label."""
        return [(spec.name, spec.label, spec.help) for spec in condition_specs().values()]


class ConditionsEditor(ObjectListEditor):
    """Edits the conditions of a loop; an entry shows the settings of its condition.

    Attributes:
        menu: The conditions that can be added.
    """

    def __init__(
        self, field: FieldSpec, binding: ConfigBinding, make_editor: EditorFactory, parent: QWidget | None = None
    ) -> None:
        super().__init__(field, binding, make_editor, parent)
        self._shown_names: list[Any] = []
        self.add.setText("Add condition")
        self.add.clicked.disconnect()  # the menu adds conditions instead
        self.menu = QMenu(self)
        self.menu.setToolTipsVisible(True)
        self.menu.aboutToShow.connect(self.fill_menu)
        self.add.setMenu(self.menu)

    def fill_menu(self) -> None:
        """Offer the conditions that there are now; a group inside a group would mean nothing new."""
        self.menu.clear()
        for spec in condition_specs().values():
            if self.field.name == "stop_when" or not spec.inner:
                action = self.menu.addAction(spec.label)
                action.setToolTip(plain_tool_tip(spec.help))
                action.triggered.connect(lambda _checked=False, spec=spec: self.append(spec))

    def append(self, spec: AnyConditionSpec) -> None:
        """Add a condition with its default settings."""
        self._commit_step([*self._items(), {KEY: spec.name}])
        self.entries[-1].rows.focus_first()

    def _display(self, value: Any) -> None:
        names = [item.get(KEY) for item in self._items()]
        if names != self._shown_names:
            self._set_entry_count(0)
            self._shown_names = names
        super()._display(value)

    def _new_entry(self, index: int) -> ObjectEntry:
        fields = _fields(self._items()[index].get(KEY))
        entry = ObjectEntry(index + 1, self.field, self.binding, self._make_editor, self, fields=fields, with_help=True)
        for name, row in entry.rows.rows.items():
            row.editor.path = (*self.path, index, name)
        return entry

    def _edit(self, index: int, name: str, value: Value) -> None:
        if name != KEY:
            super()._edit(index, name, value)
            return
        items = self._items()
        fields = _fields(value)
        items[index] = {KEY: value, **{key: kept for key, kept in items[index].items() if key != KEY and key in fields}}
        self._commit_step(items)
        self.entries[index].rows.rows[KEY].editor.focus_path("")


def _fields(name: Any) -> dict[str, FieldSpec]:
    """The fields of an entry: its condition, and the settings of that."""
    spec = condition_specs().get(name) if isinstance(name, str) else None
    help_text = spec.help if spec is not None else ""
    condition = FieldSpec(
        name=KEY, title="When", help=help_text, kind=FieldKind.CHOICE, widget="condition", required=True
    )
    return {KEY: condition, **(field_specs(spec.config) if spec is not None else {})}
