"""Answer a run that waits in another process, which then continues it.

A run that waits in this window is answered in its Log panel: see `app.window.question_cards`.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QDialog, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app.dialogs import is_dialog_open
from app.history.store_client import StoreAccess
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel
from app.window.log_lines import iterators_of, place, titles_of
from app.window.question_cards import QuestionCard
from app.worker import Worker
from engine.document.files import loads
from engine.events import NodeWaiting
from engine.nodes.context import Answer
from engine.store.answers import give_answer, open_questions
from engine.store.store_protocol import RunSummary, Store
from engine.values import Value

HINT = "Another window or program is running this. It continues there with your answer."


class AnswerDialog(QDialog):
    """Shows one question of such a run.

    Args:
        asked: The question.
        title: The title of the node, and its iteration.
        parent: The window.

    Attributes:
        card: The form for the answer.
    """

    def __init__(self, asked: NodeWaiting, title: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Answer a run")
        self.card = QuestionCard(asked, title, self)
        self.card.show_node.hide()  # this window does not show its graph
        self.card.answered.connect(lambda *_: self.accept())
        cancel = QPushButton("Cancel", self)
        cancel.setAutoDefault(False)  # Enter in a field must not cancel
        cancel.clicked.connect(lambda _checked=False: self.reject())
        for button in self.card.buttons:
            button.setAutoDefault(False)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(cancel)
        column = QVBoxLayout(self)
        column.setContentsMargins(6 * UNIT, 6 * UNIT, 6 * UNIT, 4 * UNIT)
        column.setSpacing(4 * UNIT)
        column.addWidget(PlainLabel(HINT, look="dim", wrap=True))
        column.addWidget(self.card, 1)
        column.addLayout(row)
        self.setMinimumSize(160 * UNIT, 80 * UNIT)
        self.card.setFocus()


class RemoteAnswers(QObject):
    """Asks the user, and passes the answer on.

    Args:
        window: The parent of dialogs.
        store: The history that contains the runs.

    Signals:
        delivered: The other process has taken the answer.
        refused: Something could not be done; the text says what and why.
    """

    delivered = Signal()
    refused = Signal(str)

    def __init__(self, window: QWidget, store: StoreAccess) -> None:
        super().__init__(window)
        self._window = window
        self._store = store
        self._worker = Worker(self)  # of its own: the other process may take some seconds

    def before_resuming(self, summary: RunSummary, resume: Callable[[], object]) -> None:
        """Resume a run that waits for an answer; if another process runs it, answer it there."""

        def look(store: Store) -> tuple[NodeWaiting, str] | None:
            questions = open_questions(store, summary.run_id) if store.is_owned(summary.run_id) else {}
            if not questions:
                return None
            ran = loads(store.document(summary.run_id), source="The workflow of this run")
            path, asked = next(iter(questions.items()))
            return asked, place(path, titles_of(ran), iterators_of(ran))

        def found(question: tuple[NodeWaiting, str] | None) -> None:
            if question is None:
                resume()
                return
            if is_dialog_open():
                return
            dialog = AnswerDialog(*question, self._window)
            dialog.card.answered.connect(
                lambda choice, value, comment: self._deliver(question[0], choice, value, comment, resume)
            )
            dialog.open()

        self._ask(look, found)

    def _deliver(
        self, asked: NodeWaiting, choice: str, value: Value, comment: str, resume: Callable[[], object]
    ) -> None:
        def taken(by_another: bool) -> None:
            self._store.changed.emit()
            if by_another:
                self.delivered.emit()
            else:  # the other process has ended: the answer is stored, and the run continues here
                resume()

        self._ask(lambda store: give_answer(store, asked, Answer(choice, value, comment)), taken)

    def _ask(self, work: Callable[[Store], object], answered: Callable[..., object]) -> None:
        self._store.ask(work, answered, lambda error: self.refused.emit(str(error)), worker=self._worker)
