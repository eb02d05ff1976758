"""One object inside the settings, such as a loop's judge: its own fields, the seldom ones behind a fold."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QToolButton, QVBoxLayout, QWidget

from app.inspector.editors.base import Editor, Fault, name_widget
from app.inspector.fields import Field, fields_of
from app.inspector.target import Target
from app.theme.icons import ThemedIcon
from app.theme.tokens import UNIT
from engine.document.config_path import UNSET
from engine.values import Value


class ObjectEditor(Editor):
    """The object is one value; a change in one of its fields is a change of the object."""

    def __init__(self, field: Field, target: Target, parent: QWidget | None = None) -> None:
        from app.inspector.rows import Rows  # rows are made of editors, and this one of rows

        super().__init__(field, target, parent)
        assert field.item is not None
        fields = fields_of(field.item)
        frame = QFrame()
        frame.setProperty("group", True)
        box = QVBoxLayout(frame)
        box.setContentsMargins(3 * UNIT, 3 * UNIT, 3 * UNIT, 3 * UNIT)
        box.setSpacing(3 * UNIT)
        self.main = Rows([one for one in fields.values() if not one.more], fields, target, with_help=False)
        self.more = Rows([one for one in fields.values() if one.more], fields, target, with_help=False)
        self.fold = QToolButton()
        self.fold.setProperty("fold", True)
        self.fold.setCheckable(True)
        self.fold.setText(f"More about: {field.title}")
        self.fold.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        name_widget(self.fold, f"More settings of {field.title}", "Show the settings that are seldom needed.")
        self._sign = ThemedIcon(self.fold, "mdi6.chevron-right", "dim")
        self.fold.toggled.connect(self._unfold)
        target.keys.watch(self.fold)
        box.addWidget(self.main)
        box.addWidget(self.fold, 0, Qt.AlignmentFlag.AlignLeft)
        box.addWidget(self.more)
        self.more.hide()
        self.box.addWidget(frame)
        for rows in (self.main, self.more):
            rows.edited.connect(self._edit)
            rows.arranged.connect(self.arranged)
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

    def show_faults(self, faults: list[Fault]) -> list[Fault]:
        """Show each beside its field, where there is one."""
        rest: list[Fault] = []
        by_name: dict[str, list[Fault]] = {}
        for fault in faults:
            name, _, deeper = fault.place.partition(".")
            if name in self.main.rows or name in self.more.rows:
                by_name.setdefault(name, []).append(Fault(deeper, fault.problem))
            else:
                rest.append(fault)
        self.main.show_faults(by_name, self._values)
        self.more.show_faults(by_name, self._values)
        if any(name in self.more.rows for name in by_name):
            self.fold.setChecked(True)
        return rest

    def focus_place(self, place: str) -> None:
        """Go to the field that the place names."""
        name, _, deeper = place.partition(".")
        for rows in (self.main, self.more):
            if name in rows.rows:
                if rows is self.more:
                    self.fold.setChecked(True)
                rows.rows[name].editor.focus_place(deeper)
                return
        super().focus_place(place)

    @property
    def _values(self) -> dict[str, Any]:
        return self._value if isinstance(self._value, dict) else {}

    def _put(self, value: Any) -> None:
        del value
        self.main.show_values(self._values)
        self.more.show_values(self._values)

    def _unfold(self, is_open: bool) -> None:  # Qt's signal
        self.more.setVisible(is_open)
        self._sign.show("mdi6.chevron-down" if is_open else "mdi6.chevron-right")
        self.arranged.emit()

    def _edit(self, name: str, value: Value) -> None:
        rows = self.main if name in self.main.rows else self.more
        written = rows.rows[name].field.to_write(value)
        item = {key: kept for key, kept in self._values.items() if key != name or written is not UNSET}
        changed = item if written is UNSET else {**item, name: written}
        self._tell(changed or None)
        self._put(changed)
