"""Editor of conditions as rows of value, comparison, value, with a switch to the expression."""

from __future__ import annotations

import json
from typing import Any, Final, Literal, cast

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QComboBox, QWidget

from app.inspector.choice_editors import narrow_combo
from app.inspector.editor import ConfigBinding, FieldProblem, describe_widget, mark_invalid
from app.inspector.field_spec import FieldSpec
from app.inspector.prompt_editor import ExpressionEditor
from app.theme.widgets import PlainLabel, ResponsiveRow, discard, hbox, icon_button, vbox
from engine.document.problems import Severity
from engine.expr.comparisons import UNARY, Comparison, Constant, Name, Row, Rows, comparisons_of, expression_of
from engine.nodes.router import ELSE

_NUMERIC: Final = frozenset(
    {
        Comparison.AT_LEAST,
        Comparison.AT_MOST,
        Comparison.GREATER,
        Comparison.LESS,
        Comparison.LONGER,
        Comparison.SHORTER,
    }
)
"""Comparisons with a number."""

_ANY_TYPE: Final = frozenset({Comparison.EQUALS, Comparison.NOT_EQUALS})


def written_value(value: Name | Constant) -> str:
    """The second value of a comparison as a person writes it: texts without quotation marks where that is clear."""
    if isinstance(value, Name):
        return value.path
    if isinstance(value, str) and read_value(value, Comparison.EQUALS, ()) == value:
        return value
    return json.dumps(value, ensure_ascii=False)


def read_value(text: str, comparison: Comparison, names: tuple[str, ...]) -> Name | Constant:
    """Read the second value of a comparison as a person wrote it: a name, a number, or a text."""
    stripped = text.strip()
    if stripped in names:
        return Name(stripped)
    if len(stripped) >= 2 and stripped[0] == stripped[-1] == '"':
        try:
            return cast("str", json.loads(stripped))
        except ValueError:
            return stripped[1:-1]
    if comparison in _NUMERIC or comparison in _ANY_TYPE:
        try:
            value = json.loads(stripped)
        except ValueError:
            return text
        return value if isinstance(value, int | float | bool | None) else text
    return text


class ComparisonRow(QWidget):
    """One comparison.

    Signals:
        edited: The user changed it.
        removed: The user wants it removed.
    """

    edited = Signal()
    removed = Signal()

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.left, self.comparison, self.right = narrow_combo(self), narrow_combo(self), narrow_combo(self)
        for combo in (self.left, self.right):
            combo.setEditable(True)
            combo.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
            combo.editTextChanged.connect(self._edited)
        for comparison in Comparison:
            self.comparison.addItem(comparison.value, comparison)
        self.comparison.activated.connect(self._edited)
        self.remove = icon_button(
            "mdi6.close", f"{title}: remove", self.removed.emit, self, tip="Remove this comparison."
        )
        describe_widget(self.left, f"{title}: value")
        describe_widget(self.comparison, f"{title}: comparison")
        describe_widget(self.right, f"{title}: compared with")
        first = hbox((self.left, 1), self.remove, spacing=1)
        for combo in (self.left, self.comparison, self.right):
            combo.setMinimumContentsLength(5)
        second = hbox((self.comparison, 1), (self.right, 1), spacing=1)
        vbox(first, second, spacing=1, parent=self)
        self._is_shown = False
        self._names: tuple[str, ...] = ()

    def set_names(self, names: tuple[str, ...]) -> None:
        """Offer these names."""
        if names == self._names:
            return
        self._names, self._is_shown = names, True
        for combo in (self.left, self.right):
            text = combo.currentText()
            combo.clear()
            combo.addItems(names)
            combo.setEditText(text)
        self._is_shown = False

    @property
    def row(self) -> Row:
        """The comparison as it stands in the widgets."""
        comparison = cast("Comparison", self.comparison.currentData())
        right = None if comparison in UNARY else read_value(self.right.currentText(), comparison, self._names)
        return Row(self.left.currentText().strip(), comparison, right)

    def show_row(self, row: Row) -> None:
        """Show a comparison."""
        if self._is_complete and row == self.row:
            return  # leave the text as it was typed
        self._is_shown = True
        self.left.setEditText(row.left)
        self.comparison.setCurrentIndex(self.comparison.findData(row.comparison))
        self.right.setEditText("" if row.comparison in UNARY else written_value(row.right))
        self._is_shown = False
        self.right.setVisible(row.comparison not in UNARY)

    @property
    def is_being_typed(self) -> bool:
        """Whether one of its values has the keyboard focus."""
        return self.left.hasFocus() or self.right.hasFocus()

    @property
    def _is_complete(self) -> bool:
        return bool(self.left.currentText().strip())

    def _edited(self) -> None:
        if not self._is_shown:
            self.right.setVisible(self.row.comparison not in UNARY)
            self.edited.emit()


class ComparisonEditor(ExpressionEditor):
    """A condition as rows where it consists of comparisons, else as an expression.

    Attributes:
        rows: The rows.
        mode: Whether all or any of the rows must hold.
        add: Adds a row.
        switch: Switches between rows and expression.
    """

    def __init__(self, field: FieldSpec, binding: ConfigBinding, parent: QWidget | None = None) -> None:
        super().__init__(field, binding, parent)
        self.text_widget = None  # rows cannot show that values differ
        self.rows: list[ComparisonRow] = []
        self._is_expression = False
        self.mode = narrow_combo(self)
        self.mode.addItem("All of these are true", "all")
        self.mode.addItem("Any of these is true", "any")
        self.register(self.mode, f"{field.title}: all or any")
        self.mode.activated.connect(self._commit_rows)
        self._list = vbox(spacing=2)
        self.add = self.link_button("mdi6.plus", "Add comparison", "Compare another value.")
        self.add.clicked.connect(lambda: self._add_row(focus=True))
        self.switch = self.link_button(
            "mdi6.code-tags", "Edit as expression", "Write the condition as an expression in CEL."
        )
        self.switch.clicked.connect(self._toggle)
        self.note = PlainLabel("This expression can't be shown as rows.", self, look="dim small", wrap=True)
        self.box.insertWidget(0, self.mode)
        self.box.insertLayout(1, self._list)
        self.box.addWidget(self.note)
        self.box.addWidget(ResponsiveRow([self.add], [self.switch], self))
        self._show_state()

    def refresh(self) -> None:
        """Update the available variables."""
        super().refresh()
        for row in self.rows:
            row.set_names(self._names)

    def show_problems(self, problems: list[FieldProblem]) -> list[FieldProblem]:
        """Mark problems."""
        has_error = any(found.problem.severity is Severity.ERROR for found in problems)
        for row in self.rows:
            mark_invalid(row.left, invalid=has_error)
        return super().show_problems(problems)

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(variable.text for variable in self.edit.variables)

    def _display(self, value: Any) -> None:
        super()._display(value)
        rows = comparisons_of(self.edit.text())
        if rows is None:
            self._is_expression = True
        if not self._is_expression:
            self._show_rows(rows or Rows(()))
        self._show_state()

    def _show_rows(self, rows: Rows) -> None:
        while len(self.rows) > max(len(rows.rows), 1):
            self._drop(self.rows[-1])
        for index, row in enumerate(rows.rows):
            if index == len(self.rows):
                self._add_row(focus=False)
            self.rows[index].show_row(row)
        if not self.rows:
            self._add_row(focus=False)
        self.mode.setCurrentIndex(self.mode.findData(rows.mode))

    def _add_row(self, *, focus: bool) -> None:
        row = ComparisonRow(self.field.title, self)
        row.set_names(self._names)
        row.edited.connect(self._commit_rows)
        row.removed.connect(lambda: self._remove(row))
        for widget in (row.left, row.comparison, row.right):
            self.binding.events.watch(widget)
        self.rows.append(row)
        self._list.addWidget(row)
        self._show_state()
        if focus:
            row.left.setFocus()
        self.layout_changed.emit()

    def _remove(self, row: ComparisonRow) -> None:
        self._drop(row)
        self._commit_rows()
        self.binding.session.seal()

    def _drop(self, row: ComparisonRow) -> None:
        self.rows.remove(row)
        self._list.removeWidget(row)
        discard(row)
        self.layout_changed.emit()

    def _commit_rows(self, *_: object) -> None:
        complete = tuple(row.row for row in self.rows if row.row.left)
        mode = cast("Literal['all', 'any']", self.mode.currentData())
        text = expression_of(Rows(complete, mode))
        self.edit.set_text(text)
        if any(row.is_being_typed for row in self.rows):
            self.binding.session.hold_syntax_problems(self.binding.edited_nodes)
        self._commit(text)
        self._show_state()

    def _toggle(self) -> None:
        self._is_expression = not self._is_expression
        if not self._is_expression:
            self._show_rows(comparisons_of(self.edit.text()) or Rows(()))
        self._show_state()
        (self.edit if self._is_expression else self.rows[0].left).setFocus()
        self.layout_changed.emit()

    def _typed(self, text: str) -> None:
        super()._typed(text)
        self._show_state()

    def _show_state(self) -> None:
        """Show either the rows or the expression, and what can be switched to."""
        shows_rows = not self._is_expression
        for row in self.rows:
            row.setVisible(shows_rows)
        self.mode.setVisible(shows_rows and len(self.rows) > 1)
        self.add.setVisible(shows_rows)
        self.edit.setVisible(not shows_rows)
        can_switch = shows_rows or comparisons_of(self.edit.text()) is not None
        self.switch.setVisible(can_switch)
        self.switch.setText("Edit as expression" if shows_rows else "Edit as rows")
        self.note.setVisible(not can_switch)
        self.main_widget = self.rows[0].left if shows_rows and self.rows else self.edit


class RuleEditor(ComparisonEditor):
    """The rule of a router's branch: a condition, or `else`.

    Attributes:
        kind: Whether the rule is a condition or `else`.
    """

    def __init__(self, field: FieldSpec, binding: ConfigBinding, parent: QWidget | None = None) -> None:
        self._is_else = False
        self.kind = narrow_combo(parent)
        super().__init__(field, binding, parent)
        self.kind.addItem("If this is true", False)
        self.kind.addItem("Otherwise", True)
        self.register(self.kind, f"{field.title}: condition or otherwise", "Otherwise: no rule before it is true.")
        self.box.insertWidget(0, self.kind)
        self.kind.activated.connect(lambda row: self._choose(is_else=self.kind.itemData(row)))

    def _choose(self, *, is_else: bool) -> None:
        if is_else is not self._is_else:  # choosing the current entry would delete its condition
            self._commit_step(ELSE if is_else else "")

    def _display(self, value: Any) -> None:
        self._is_else = isinstance(value, str) and value.strip() == ELSE
        self.kind.setCurrentIndex(self.kind.findData(self._is_else))
        super()._display("" if self._is_else else value)

    def _show_state(self) -> None:
        super()._show_state()
        if self._is_else:
            for widget in (*self.rows, self.mode, self.add, self.edit, self.switch, self.note):
                widget.hide()
            self.main_widget = self.kind
