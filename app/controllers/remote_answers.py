"""RemoteAnswers a run that waits in another window or program: the answer is handed over, and the run goes on there.

A run that waits in this window is answered in its Log panel (`app.window.question_cards`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QDialog, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app.dialogs import is_dialog_open
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel
from app.window.log_lines import iterators_of, place, titles_of
from app.window.question_cards import QuestionCard
from app.worker import Worker
from engine.document.files import loads
from engine.events import NodeWaiting
from engine.nodes.context import Answer
from engine.store.answering import give_answer, questions_of
from engine.store.base import RunSummary, Store
from engine.values import Value

if TYPE_CHECKING:
    from app.controllers.history_controller import HistoryController
    from app.window.main_window import MainWindow

TOLD = "The run is at work in another window or program, and goes on there with your answer."
TAKEN = "Your answer was taken. The run goes on in the other window or program."


class AnswerDialog(QDialog):
    """One question of such a run.

    Args:
        asked: The question.
        title: What to call the node and its iteration.
        parent: The window.

    Attributes:
        card: Where it is answered.
    """

    def __init__(self, asked: NodeWaiting, title: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Answer a run")
        self.card = QuestionCard(asked, title, self)
        self.card.show_node.hide()  # its graph is not what is shown
        self.card.answered.connect(lambda *_: self.accept())
        cancel = QPushButton("Cancel", self)
        cancel.setAutoDefault(False)  # Enter in a field of the card is no cancel
        cancel.clicked.connect(lambda _checked=False: self.reject())
        for button in self.card.buttons:
            button.setAutoDefault(False)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(cancel)
        column = QVBoxLayout(self)
        column.setContentsMargins(6 * UNIT, 6 * UNIT, 6 * UNIT, 4 * UNIT)
        column.setSpacing(4 * UNIT)
        column.addWidget(PlainLabel(TOLD, look="dim", wrap=True))
        column.addWidget(self.card, 1)
        column.addLayout(row)
        self.setMinimumSize(160 * UNIT, 80 * UNIT)
        self.card.setFocus()


class RemoteAnswers(QObject):
    """Asks the person, and hands their answers over.

    Args:
        window: Over which is asked.
        history: The history in which the runs are.
    """

    def __init__(self, window: MainWindow, history: HistoryController) -> None:
        super().__init__(history)
        self._window, self._history = window, history
        self._worker = Worker(self)  # of its own: the other process may take some seconds

    def before_resuming(self, summary: RunSummary, resume: Callable[[], object]) -> None:
        """Resume a run that waits; one that waits with another process is answered, and goes on there."""

        def look(store: Store) -> tuple[NodeWaiting, str] | None:
            questions = questions_of(store, summary.run_id) if store.is_held(summary.run_id) else {}
            if not questions:
                return None
            ran = loads(store.document(summary.run_id), source="The document of that run")
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
                lambda choice, value, comment: self._hand_over(question[0], choice, value, comment, resume)
            )
            dialog.open()

        self._ask(look, found)

    def _hand_over(
        self, asked: NodeWaiting, choice: str, value: Value, comment: str, resume: Callable[[], object]
    ) -> None:
        def taken(by_another: bool) -> None:
            self._history.access.changed.emit()
            if by_another:
                self._window.notices.say("answered", TAKEN, "info")
            else:  # that process has gone meanwhile: the answer is kept, and the run goes on here
                resume()

        self._ask(lambda store: give_answer(store, asked, Answer(choice, value, comment)), taken)

    def _ask(self, work: Callable[[Store], object], answered: Callable[..., object]) -> None:
        refuse = self._window.status.refuse
        self._history.access.ask(work, answered, lambda error: refuse(str(error)), worker=self._worker)
