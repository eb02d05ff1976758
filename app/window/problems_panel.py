"""The Problems panel: a row per problem, which leads to its place, with buttons for quick fixes."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QScrollArea, QVBoxLayout, QWidget

from app.session import Session
from app.theme.style import icon, style
from app.theme.tokens import UNIT
from app.window.quick_fixes import QuickFix, quick_fixes
from engine.document.problems import Problem, Severity

MOST_ROWS: Final = 100
MOST_FIXES: Final = 3


class ProblemRow(QFrame):
    """One problem.

    Signals:
        chosen: It was clicked, or Enter was pressed on it.
        fix_chosen: One of its buttons was pressed.
    """

    chosen = Signal(object)
    fix_chosen = Signal(object)

    def __init__(self, problem: Problem, answers: tuple[QuickFix, ...], parent: QWidget) -> None:
        super().__init__(parent)
        self.problem = problem
        self.setProperty("row", True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAccessibleName(str(problem))
        self._mark = QLabel(self)
        message = _text(problem.message, self)
        where = f"{problem.place}. " if problem.place else ""
        remedy = _text(f"{where[:1].upper()}{where[1:]}{problem.remedy}", self)
        remedy.setProperty("dim", True)
        words = QVBoxLayout()
        words.setSpacing(0)
        words.addWidget(message)
        words.addWidget(remedy)
        row = QHBoxLayout(self)
        row.setContentsMargins(2 * UNIT, UNIT, 2 * UNIT, UNIT)
        row.setSpacing(2 * UNIT)
        row.addWidget(self._mark, 0, Qt.AlignmentFlag.AlignTop)
        row.addLayout(words, 1)
        for fix in answers[:MOST_FIXES]:
            button = QPushButton(fix.title, self)
            button.setAccessibleName(f"{fix.title}: {problem.message}")
            button.clicked.connect(lambda _checked=False, fix=fix: self.fix_chosen.emit(fix))
            row.addWidget(button, 0, Qt.AlignmentFlag.AlignVCenter)
        self.dress()

    def dress(self) -> None:
        """Take the theme's colours."""
        theme = style().theme
        is_error = self.problem.severity is Severity.ERROR
        name, colour = ("alert-circle-outline", theme.bad) if is_error else ("alert-outline", theme.warning)
        size = round(16 * style().scale)
        self._mark.setPixmap(icon(f"mdi6.{name}", colour).pixmap(size, size))
        self._mark.setAccessibleName(str(self.problem.severity))
        self._mark.setToolTip("Error: the workflow cannot run." if is_error else "Warning: the workflow can run.")

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: D102 - Qt's own
        if event.button() is Qt.MouseButton.LeftButton:
            self.chosen.emit(self.problem)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: D102 - Qt's own
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space}:
            self.chosen.emit(self.problem)
        else:
            super().keyPressEvent(event)


class ProblemsPanel(QWidget):
    """The problems of one document.

    Signals:
        problem_chosen: A person wants to go to it.
        counted: The number of errors and warnings may be another.

    Attributes:
        numbers: How many errors and warnings there are.
    """

    problem_chosen = Signal(object)
    counted = Signal(int, int)

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.numbers = (0, 0)
        self._shown: list[tuple[Problem, tuple[QuickFix, ...]]] = []
        self._list = QWidget(self)
        self._rows = QVBoxLayout(self._list)
        self._rows.setContentsMargins(2 * UNIT, UNIT, 2 * UNIT, UNIT)
        self._rows.setSpacing(0)
        self._rows.addStretch(1)
        self._rest = QLabel(self)
        self._rest.setProperty("dim", True)
        self._rest.setContentsMargins(3 * UNIT, 2 * UNIT, 3 * UNIT, 2 * UNIT)
        area = QScrollArea(self)
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidget(self._list)
        area.setAccessibleName("Problems")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._rest)
        column.addWidget(area, 1)
        session.analysed.connect(self.refresh)
        style().changed.connect(self._dress)
        self.refresh()

    @property
    def rows(self) -> list[ProblemRow]:
        """The rows that are shown, from top to bottom."""
        items = (self._rows.itemAt(index) for index in range(self._rows.count()))
        widgets = (item.widget() for item in items if item is not None)
        return [widget for widget in widgets if isinstance(widget, ProblemRow)]

    def refresh(self) -> None:
        """Show the current problems; nothing is rebuilt if they are unchanged."""
        problems = sorted(self._session.problems, key=lambda problem: problem.severity is Severity.WARNING)
        structure = self._session.structure
        wanted = [(problem, quick_fixes(problem, structure)) for problem in problems[:MOST_ROWS]]
        errors = sum(problem.severity is Severity.ERROR for problem in problems)
        self.numbers = (errors, len(problems) - errors)
        self.counted.emit(*self.numbers)
        self._say(len(problems))
        if wanted == self._shown:
            return
        self._shown = wanted
        for row in self.rows:
            self._rows.removeWidget(row)
            row.hide()
            row.deleteLater()
        for place, (problem, answers) in enumerate(wanted):
            row = ProblemRow(problem, answers, self._list)
            row.chosen.connect(self.problem_chosen)
            row.fix_chosen.connect(self._apply)
            self._rows.insertWidget(place, row)

    def _say(self, number: int) -> None:
        text = "" if number else "No problems."
        if number > MOST_ROWS:
            text = f"Showing the first {MOST_ROWS} of {number} problems."
        self._rest.setText(text)
        self._rest.setVisible(bool(text))

    def _apply(self, fix: QuickFix) -> None:
        self._session.seal()
        self._session.do(fix.operation)

    def _dress(self) -> None:
        for row in self.rows:
            row.dress()


def _text(text: str, parent: QWidget) -> QLabel:
    label = QLabel(text, parent)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(True)
    return label
