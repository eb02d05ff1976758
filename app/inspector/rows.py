"""Several fields of one object below each other: the part of a form that can also stand inside a field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.inspector.editors.base import Fault
from app.inspector.fields import Field, is_shown
from app.inspector.row import Row
from app.inspector.target import Target
from app.theme.tokens import UNIT


class Rows(QWidget):
    """Rows for some fields.

    Signals:
        edited: A person changed a field: its name and the new value.
        arranged: An editor has other widgets than before.

    Args:
        fields: The fields to show.
        everything: All fields of the object, those with it that the others ask about.
        target: What the form is about.
        with_help: Whether the help stands below each field, and not only in its tooltip.
    """

    edited = Signal(str, object)
    arranged = Signal()

    def __init__(
        self,
        fields: Iterable[Field],
        everything: Mapping[str, Field],
        target: Target,
        *,
        with_help: bool,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._everything = everything
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(4 * UNIT)
        self.rows: dict[str, Row] = {}
        for field in fields:
            row = Row(field, target, with_help=with_help, parent=self)
            row.edited.connect(self.edited)
            row.editor.arranged.connect(self.arranged)
            self.rows[field.name] = row
            box.addWidget(row)

    def show_values(self, values: Mapping[str, Any]) -> None:
        """Show the values of an object; a key that is missing shows its default."""
        for name, row in self.rows.items():
            row.show_value(row.field.value_in(values))
            row.setVisible(self.wants(name, values))

    def wants(self, name: str, values: Mapping[str, Any]) -> bool:
        """Whether a field is shown beside these values: where it means something, or something is wrong with it."""
        row = self.rows[name]
        return row.has_problems or is_shown(row.field, values, self._everything)

    def show_faults(self, faults: Mapping[str, list[Fault]], values: Mapping[str, Any]) -> None:
        """Show what is wrong, by field."""
        for name, row in self.rows.items():
            row.show_faults(faults.get(name, []))
            row.setVisible(self.wants(name, values))

    def refresh(self) -> None:
        """Let each editor look again at what stands around it."""
        for row in self.rows.values():
            row.editor.refresh()

    def refresh_run(self) -> None:
        """Let each editor look again at what the last run tells of it."""
        for row in self.rows.values():
            row.editor.refresh_run()

    def focus_first(self) -> None:
        """Give the keyboard to the first field."""
        for row in self.rows.values():
            if not row.isHidden() and row.editor.isEnabled():
                row.editor.focus_place("")
                return
