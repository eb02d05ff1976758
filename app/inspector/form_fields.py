"""Fields of a form: label, editor, help text and problems, one below the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QApplication, QToolButton, QWidget

from app.inspector.choice_editors import SwitchEditor
from app.inspector.editor import MIXED, MULTIPLE_VALUES, ConfigBinding, Editor, FieldProblem, describe_widget
from app.inspector.field_spec import FieldSpec, is_visible
from app.theme.style import ThemedIcon, style
from app.theme.widgets import IconLabel, PlainLabel, discard, hbox, plain_tool_tip, vbox
from engine.document.problems import Problem, Severity
from engine.errors import Fix

EditorFactory = Callable[[FieldSpec, ConfigBinding, QWidget], Editor]

_FIX_TITLES: Final = {Fix.ADD_KEY: "Add key…", Fix.GET_MODEL: "Download the model…"}
"""The buttons of problems that are solved outside of the document."""


def problem_fix_title(problem: Problem) -> str:
    """Return the text of the button that solves a problem outside of the document; empty if there is none."""
    return next((title for kind, title in _FIX_TITLES.items() if problem.fix.startswith(kind)), "")


class ProblemLine(QWidget):
    """One problem: an icon, the message and the remedy, and a button if there is a correction or a fix."""

    def __init__(
        self,
        problem: Problem,
        use: Callable[[str], object],
        fix: Callable[[str], object],
    ) -> None:
        super().__init__()
        is_error = problem.severity is Severity.ERROR
        mark = IconLabel(size=14)
        mark.setAccessibleName("Error" if is_error else "Warning")
        color = "bad" if is_error else "warning"
        mark.show_icon("mdi6.alert-circle" if is_error else "mdi6.alert", lambda: getattr(style().theme, color))
        self.text = PlainLabel(f"{problem.message} {problem.remedy}".rstrip(), look="small", wrap=True)
        line = hbox((mark, Qt.AlignmentFlag.AlignTop), (self.text, 1), spacing=1)
        column = vbox(line, spacing=1, parent=self)
        if problem.correction:
            self.use = QToolButton(self)
            self.use.setProperty("link", True)
            self.use.setText("Use this")
            describe_widget(self.use, f"Use {problem.correction}", f"Replace the text by {problem.correction}")
            self.use.clicked.connect(lambda: use(problem.correction))
            column.addWidget(self.use)
        if title := problem_fix_title(problem):
            self.fix = QToolButton(self)
            self.fix.setProperty("link", True)
            self.fix.setText(title)
            describe_widget(self.fix, f"{title} {problem.message}", problem.remedy)
            self.fix.clicked.connect(lambda: fix(problem.fix))
            column.addWidget(self.fix)


class ProblemLines(QWidget):
    """A list of problems; hidden while it is empty.

    Signals:
        correction_chosen: The user wants the field to have this value.
        fix_wanted: The user wants to fix something outside of the document; what, as in `EngineError`.
    """

    correction_chosen = Signal(str)
    fix_wanted = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._box = vbox(spacing=1, parent=self)
        self.problems: list[Problem] = []
        self.setVisible(False)

    @property
    def texts(self) -> list[str]:
        """The displayed texts."""
        return [line.text.text() for line in self.findChildren(ProblemLine)]

    def show_problems(self, problems: list[Problem]) -> None:
        """Replace the displayed problems."""
        if problems == self.problems:
            return
        self.problems = problems
        while (item := self._box.takeAt(0)) is not None:
            if (line := item.widget()) is not None:
                discard(line)
        for problem in problems:
            self._box.addWidget(ProblemLine(problem, self.correction_chosen.emit, self.fix_wanted.emit))
        self.setVisible(bool(problems))


class FormField(QWidget):
    """One field of a form.

    Signals:
        edited: The user changed the value: the field's name and the new value.
    """

    edited = Signal(str, object)

    def __init__(
        self, field: FieldSpec, binding: ConfigBinding, make_editor: EditorFactory, *, with_help: bool, parent: QWidget
    ) -> None:
        super().__init__(parent)
        self.field = field
        self.editor = editor = make_editor(field, binding, self)
        self.has_problems = False
        self._label = PlainLabel(field.title, self, look="fieldname", wrap=True, buddy=editor.main_widget)
        self._label.setToolTip(plain_tool_tip(self.field.help))
        self._help = PlainLabel(self.field.help, self, look="dim small", wrap=True)
        self.problems = ProblemLines(self)
        self._binding = binding
        self._label.setVisible(bool(field.title))
        self._box = box = vbox(spacing=1, parent=self)
        if isinstance(editor, SwitchEditor):
            line = hbox((self._label, 1), editor, spacing=2)
            box.addLayout(line)
        else:
            box.addWidget(self._label)
            box.addWidget(editor)
        box.addWidget(self._help)
        self._with_help = with_help and not editor.explains_itself
        self._show_help(self.field.help)
        box.addWidget(self.problems)
        editor.edited.connect(lambda value: self.edited.emit(self.field.name, value))
        self.problems.correction_chosen.connect(self._correct)
        self.problems.fix_wanted.connect(binding.fix_wanted)

    def _correct(self, text: str) -> None:
        self.editor.show_value(text)
        self.edited.emit(self.field.name, text)

    def show_value(self, value: Any) -> None:
        """Show a value, and its help."""
        is_shown = value is not MIXED or self.editor.show_mixed()
        self.editor.setVisible(is_shown)
        if not is_shown or "_unify" in self.__dict__:
            self._unify.setVisible(not is_shown)
        if value is not MIXED:
            self.editor.show_value(value)
            self._show_help(self.editor.help_for(value))

    @cached_property
    def _unify(self) -> QToolButton:
        """Stands for an editor that cannot show that several nodes have different values."""
        button = QToolButton(self)
        button.setProperty("link", True)
        button.setText(f"{MULTIPLE_VALUES} · Use the same for all")
        describe_widget(button, f"{self.field.title}: {button.text()}", "Give all nodes the value of the first one.")
        button.clicked.connect(self._use_first)
        self._binding.events.watch(button)
        self._box.insertWidget(self._box.indexOf(self.editor), button)
        return button

    def _use_first(self) -> None:
        self._binding.session.seal()
        self._binding.write_field(self.field.name, self._binding.value_to_edit(self.field.name))
        self._binding.session.seal()
        self.editor.focus_path("")

    def show_problems(self, problems: list[FieldProblem]) -> None:
        """Show the problems of the field."""
        self.has_problems = bool(problems)
        focused = self.window().focusWidget()
        is_fixing = focused is not None and self.problems.isAncestorOf(focused)
        self.problems.show_problems([found.problem for found in self.editor.show_problems(problems)])
        if is_fixing and self.window().focusWidget() is not focused:  # the button that had the keyboard is gone
            self.editor.focus_path("")

    def show_source(self, text: str) -> None:
        """Disable the editor and show where the value comes from; an empty text enables it again."""
        self.editor.setEnabled(not text)
        self._show_help(text or self.field.help)

    def _show_help(self, text: str) -> None:
        self._help.setText(text)
        self._help.setVisible(self._with_help and bool(text))


class FormFields(QWidget):
    """Some fields of an object, in a form or inside another field.

    Signals:
        edited: The user changed a field: its name and the new value.
        layout_changed: An editor added or removed widgets.

    Args:
        fields: The fields to show.
        all_fields: All fields of the object, for conditions of visibility.
        binding: The object that the form edits.
        with_help: Whether to show the help below each field, in addition to the tooltip.
    """

    edited = Signal(str, object)
    layout_changed = Signal()

    def __init__(
        self,
        fields: Iterable[FieldSpec],
        all_fields: Mapping[str, FieldSpec],
        binding: ConfigBinding,
        make_editor: EditorFactory,
        *,
        with_help: bool = True,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._binding, self._make_editor, self._with_help = binding, make_editor, with_help
        self._box = vbox(spacing=4, parent=self)
        self.rows: dict[str, FormField] = {}
        self.set_fields(fields, all_fields)

    def set_fields(self, fields: Iterable[FieldSpec], all_fields: Mapping[str, FieldSpec]) -> None:
        """Replace the fields; the same ones keep their widgets."""
        self._all_fields = all_fields
        before, self.rows = self.rows, {}
        for place, field in enumerate(fields):
            row = before.pop(field.name, None)
            if row is not None and row.field != field:
                before[field.name], row = row, None
            if row is None:
                row = FormField(field, self._binding, self._make_editor, with_help=self._with_help, parent=self)
                row.edited.connect(self.edited)
                row.editor.layout_changed.connect(self.layout_changed)
            self.rows[field.name] = row
            self._box.insertWidget(place, row)
        for row in before.values():
            self._box.removeWidget(row)
            discard(row)

    def show_values(self, values: Mapping[str, Any]) -> None:
        """Show the values of an object; a missing key shows its default."""
        for row in self.rows.values():
            row.show_value(row.field.value_in(values))
        self._show_wanted(values)

    def _show_wanted(self, values: Mapping[str, Any]) -> None:
        """Show the fields that apply. The focus moves from one that disappears to the one before it."""
        wanted = {name: self.is_wanted(name, values) for name in self.rows}
        focus = QApplication.focusWidget()
        before: FormField | None = None
        for name, row in self.rows.items():
            if not wanted[name] and before is not None and focus is not None and row.isAncestorOf(focus):
                before.editor.focus_path("")
            elif wanted[name]:
                before = row
        for name, row in self.rows.items():
            row.setVisible(wanted[name])

    def is_wanted(self, name: str, values: Mapping[str, Any]) -> bool:
        """Return whether to show a field: it applies to these values, or it has problems."""
        row, node = self.rows[name], self._binding
        return row.has_problems or is_visible(row.field, values, self._all_fields, node.values, node.fields)

    def show_problems(self, problems: Mapping[str, list[FieldProblem]], values: Mapping[str, Any]) -> None:
        """Show problems by field."""
        for name, row in self.rows.items():
            row.show_problems(problems.get(name, []))
        self._show_wanted(values)

    def refresh(self) -> None:
        """Update what depends on the rest of the document."""
        for row in self.rows.values():
            row.editor.refresh()

    def focus_first(self) -> bool:
        """Move the focus to the first visible field; False if there is none."""
        for row in self.rows.values():
            if not row.isHidden() and row.editor.isEnabled():
                row.editor.focus_path("")
                return True
        return False


class AdvancedButton(QToolButton):
    """The button "More": expands and collapses the advanced fields of an object."""

    def __init__(self, subject: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._prefix = f"{subject}: " if subject else ""
        self.setProperty("fold", True)
        self.setCheckable(True)
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._chevron = ThemedIcon(self, "mdi6.chevron-right", "dim")
        self.toggled.connect(lambda on: self._chevron.show("mdi6.chevron-down" if on else "mdi6.chevron-right"))
        self.show_note("")

    def show_note(self, note: str) -> None:
        """Set a short note after the label, such as the number of problems."""
        text = f"More · {note}" if note else "More"
        self.setText(text)
        describe_widget(self, f"{self._prefix}{text}", "Show or hide the settings that are rarely needed.")
