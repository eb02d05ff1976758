"""A form made from a pydantic model: the first fields at once, the others behind a fold.

It writes to its target and shows what the target has; it knows no node type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from pydantic import BaseModel
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLayout, QToolButton, QVBoxLayout, QWidget

from app.inspector.config_binding import ConfigBinding
from app.inspector.editors.editor import FieldProblem, describe_widget
from app.inspector.editors.editor_factory import make_editor
from app.inspector.field_spec import field_specs
from app.inspector.form_fields import FormField, FormFields
from app.theme.style import ThemedIcon
from app.theme.tokens import UNIT
from engine.formatting import format_count
from engine.values import Value


class Form(QWidget):
    """The fields of one object of the document.

    Signals:
        fold_changed: A person opened or closed the fold.

    Args:
        model: What the object is read through.
        target: The object.
    """

    fold_changed = Signal(bool)

    def __init__(self, model: type[BaseModel], binding: ConfigBinding, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.fields = field_specs(model)
        self._binding = binding
        self._faults: Mapping[str, list[FieldProblem]] = {}
        self._shown: Any = None
        self._main = self._make_rows(more=False)
        self._more: FormFields | None = None  # made when it is opened first
        self.fold = QToolButton(self)
        self.fold.setProperty("fold", True)
        self._sign = ThemedIcon(self.fold, "mdi6.chevron-right", "dim")
        self.fold.setCheckable(True)
        self.fold.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        binding.events.watch(self.fold)
        self.fold.toggled.connect(self._unfold)
        self.fold.clicked.connect(self.fold_changed)
        self._box = QVBoxLayout(self)
        self._box.setContentsMargins(0, 0, 0, 0)
        self._box.setSpacing(4 * UNIT)
        self._box.addWidget(self._main)
        self._box.addWidget(self.fold, 0, Qt.AlignmentFlag.AlignLeft)
        self.fold.setVisible(any(field.is_advanced for field in self.fields.values()))
        self._draw_fold()

    def row(self, name: str) -> FormField | None:
        """The row of a field; None where there is none, or where it has not been made yet."""
        more = self._more.rows if self._more is not None else {}
        return self._main.rows.get(name) or more.get(name)

    def show_values(self, *, force: bool = False) -> None:
        """Show what the document has; costs nothing where that is the same as before."""
        values = self._binding.values
        if values is self._shown and not force:
            return
        self._shown = values
        for rows in self._parts():
            rows.show_values(values)
        self._draw_fold()
        # What the config says may change what an editor offers: a tool its arguments.
        self.refresh()

    def show_problems(self, faults: Mapping[str, list[FieldProblem]]) -> None:
        """Show what is wrong, by field."""
        self._faults = faults
        for rows in self._parts():
            rows.show_problems(faults, self._binding.values)
        self._draw_fold()

    def refresh(self) -> None:
        """Let each editor look again at what stands around it."""
        for rows in self._parts():
            rows.refresh()

    def refresh_run(self) -> None:
        """Let each editor look again at what the last run tells of it."""
        for rows in self._parts():
            rows.refresh_run()

    def focus_field(self, name: str, place: str) -> bool:
        """Give the keyboard to a field, opening the fold for it; False where there is no such field."""
        if name not in self.fields:
            return False
        if self.fields[name].is_advanced and not self.fold.isChecked():
            self.fold.click()
        row = self.row(name)
        assert row is not None
        row.setVisible(True)
        row.editor.focus_path(place)
        return True

    def _parts(self) -> list[FormFields]:
        return [self._main] if self._more is None else [self._main, self._more]

    def _make_rows(self, *, more: bool) -> FormFields:
        chosen = [field for field in self.fields.values() if field.is_advanced == more]
        rows = FormFields(chosen, self.fields, self._binding, make_editor, with_help=not more, parent=self)
        rows.edited.connect(self._edited)
        rows.layout_changed.connect(lambda: order_tabs(self))
        return rows

    def _unfold(self, is_open: bool) -> None:  # Qt's signal
        if is_open and self._more is None:
            self._more = self._make_rows(more=True)
            self._box.addWidget(self._more)
            self._more.show_values(self._binding.values)
            self._more.refresh()
            self._more.show_problems(self._faults, self._binding.values)
            order_tabs(self)
        if self._more is not None:
            self._more.setVisible(is_open)
        self._draw_fold()

    def _draw_fold(self) -> None:
        behind = [
            found for name, found in self._faults.items() if name in self.fields and self.fields[name].is_advanced
        ]
        count = sum(map(len, behind))
        is_open = self.fold.isChecked()
        told = f" · {format_count(count, 'problem')}" if count else self._set_behind()
        told = "" if is_open else told
        self.fold.setText(f"More{told}")
        describe_widget(self.fold, f"More settings{told}", "Show the settings that are seldom needed.")
        self._sign.show("mdi6.chevron-down" if is_open else "mdi6.chevron-right")

    def _set_behind(self) -> str:
        """How many of the fields behind the fold have a value of their own, so that none works unseen."""
        values, behind = self._binding.values, (field for field in self.fields.values() if field.is_advanced)
        count = sum(field.value_in(values) != field.default for field in behind)
        return f" · {count} set" if count else ""

    def _edited(self, name: str, value: Value) -> None:
        self._binding.write((name,), self.fields[name].stored_value(value))


def problems_by_field(problems: list[Any], prefix: str = "") -> dict[str, list[FieldProblem]]:
    """Problems by the field that they belong to: the first part of their place, behind a prefix."""
    found: dict[str, list[FieldProblem]] = {}
    for problem in problems:
        if problem.field is not None and problem.field.startswith(prefix):
            name, _, place = problem.field.removeprefix(prefix).partition(".")
            found.setdefault(name, []).append(FieldProblem(place, problem))
    return found


def order_tabs(part: QWidget) -> None:
    """Let Tab go through the controls of a part in the order of its layout; the first keeps its place."""
    for before, after in pairwise(_controls(part)):
        QWidget.setTabOrder(before, after)


def _controls(widget: QWidget) -> Iterator[QWidget]:
    if widget.focusPolicy() & Qt.FocusPolicy.TabFocus:
        yield widget
    layout = widget.layout()
    if layout is not None:
        yield from _within(layout)


def _within(layout: QLayout) -> Iterator[QWidget]:
    for index in range(layout.count()):
        item = layout.itemAt(index)
        inner, widget = item.layout(), item.widget()
        if widget is not None:
            yield from _controls(widget)
        elif inner is not None:
            yield from _within(inner)
