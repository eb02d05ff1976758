"""One line of a form: a label, the editor, a line of help, and what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.inspector.config_binding import ConfigBinding
from app.inspector.editors.choice_editors import SwitchEditor
from app.inspector.editors.editor import Editor, FieldProblem
from app.inspector.field_spec import FieldSpec, choice_help, is_visible
from app.theme.style import icon, style
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel, plain_tool_tip
from engine.document.problems import Problem, Severity

EditorFactory = Callable[[FieldSpec, ConfigBinding, QWidget], Editor]


class ProblemLine(QWidget):
    """One problem: a mark, what is wrong and what would put it right."""

    def __init__(self, problem: Problem, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(UNIT)
        is_error = problem.severity is Severity.ERROR
        self._picture = "mdi6.alert-circle" if is_error else "mdi6.alert"
        self._is_error = is_error
        self._mark = QLabel()
        self._mark.setAccessibleName("Error" if is_error else "Warning")
        self.text = PlainLabel(f"{problem.message} {problem.remedy}".rstrip(), look="small", wrap=True)
        row.addWidget(self._mark, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self.text, 1)
        style().changed.connect(self._draw)
        self._draw()

    def _draw(self) -> None:
        colour = style().theme.bad if self._is_error else style().theme.warning
        size = round(14 * style().scale)
        self._mark.setPixmap(icon(self._picture, colour).pixmap(QSize(size, size), self.devicePixelRatio()))


class ProblemLines(QWidget):
    """The problems of one place, made anew only where they are others."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._box = QVBoxLayout(self)
        self._box.setContentsMargins(0, 0, 0, 0)
        self._box.setSpacing(UNIT)
        self._problems: list[Problem] = []
        self.setVisible(False)

    @property
    def texts(self) -> list[str]:
        """What is said."""
        return [line.text.text() for line in self.findChildren(ProblemLine)]

    def show_problems(self, problems: list[Problem]) -> None:
        """Show these and no others."""
        if problems == self._problems:
            return
        self._problems = problems
        while (item := self._box.takeAt(0)) is not None:
            line = item.widget()
            line.setParent(None)
            line.deleteLater()
        for problem in problems:
            self._box.addWidget(ProblemLine(problem))
        self.setVisible(bool(problems))


class FormField(QWidget):
    """One field of a form.

    Signals:
        edited: A person changed its value.
    """

    edited = Signal(str, object)

    def __init__(
        self, field: FieldSpec, binding: ConfigBinding, make_editor: EditorFactory, *, with_help: bool, parent: QWidget
    ) -> None:
        super().__init__(parent)
        self.field = field
        self.editor = editor = make_editor(field, binding, self)
        self.has_problems = False
        self._choice_help = choice_help(self.field)
        self._label = PlainLabel(self.field.title, self, look="fieldname", wrap=True)
        self._label.setBuddy(editor.main_widget)
        self._label.setToolTip(plain_tool_tip(self.field.help))
        self._help = PlainLabel(self.field.help, self, look="dim small", wrap=True)
        self._problems = ProblemLines(self)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(UNIT)
        if isinstance(editor, SwitchEditor):
            line = QHBoxLayout()
            line.setSpacing(2 * UNIT)
            line.addWidget(self._label, 1)
            line.addWidget(editor)
            box.addLayout(line)
        else:
            box.addWidget(self._label)
            box.addWidget(editor)
        box.addWidget(self._help)
        self._help.setVisible(with_help and bool(self.field.help))
        box.addWidget(self._problems)
        editor.edited.connect(lambda value: self.edited.emit(self.field.name, value))

    @property
    def problem_texts(self) -> list[str]:
        """What is said to be wrong."""
        return self._problems.texts

    def show_value(self, value: Any) -> None:
        """Show the field's value."""
        self.editor.show_value(value)
        if self._choice_help:
            self._help.setText(self._choice_help.get(value, self.field.help))

    def show_problems(self, problems: list[FieldProblem]) -> None:
        """Show what is wrong with the field."""
        self.has_problems = bool(problems)
        self._problems.show_problems([fault.problem for fault in self.editor.show_problems(problems)])

    def show_source(self, text: str) -> None:
        """Say that the value comes from elsewhere, and take no other; an empty text takes that back."""
        self.editor.setEnabled(not text)
        self._help.setText(text or self.field.help)


class FormFields(QWidget):
    """FormFields for some fields.

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
    layout_changed = Signal()

    def __init__(
        self,
        fields: Iterable[FieldSpec],
        everything: Mapping[str, FieldSpec],
        binding: ConfigBinding,
        make_editor: EditorFactory,
        *,
        with_help: bool,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._everything = everything
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(4 * UNIT)
        self.rows: dict[str, FormField] = {}
        for field in fields:
            row = FormField(field, binding, make_editor, with_help=with_help, parent=self)
            row.edited.connect(self.edited)
            row.editor.layout_changed.connect(self.layout_changed)
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
        return row.has_problems or is_visible(row.field, values, self._everything)

    def show_problems(self, problems: Mapping[str, list[FieldProblem]], values: Mapping[str, Any]) -> None:
        """Show what is wrong, by field."""
        for name, row in self.rows.items():
            row.show_problems(problems.get(name, []))
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
                row.editor.focus_path("")
                return
