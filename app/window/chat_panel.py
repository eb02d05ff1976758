"""The chat preview: what this document was given and what it answered, and a field that runs it with another text."""

from __future__ import annotations

import time
from typing import Final

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QWidget

from app.history.chat_turns import ChatPage, ChatTurn, chat_input, read_chat, turn_of_run
from app.history.store_client import StoreClient
from app.inspector.result_page import ResultSectionView
from app.inspector.result_text import ResultSection
from app.inspector.text_widgets import GrowingEdit
from app.runs.run_status import state_line
from app.session import Session
from app.theme.style import set_style_properties
from app.theme.widgets import STRETCH, PlainLabel, discard, hbox, plain_tool_tip, push_button, scroll_area, vbox
from app.window.question_cards import QuestionStack
from app.worker import Worker
from engine.formatting import format_count

_MAX_TEXT: Final = 2_000
"""Maximum length of an input that is shown in full; the run has all of it."""

EMPTY: Final = "Type a text below to run this workflow with it. Answers appear here, each with its iterations."


class TurnView(QWidget):
    """One run: the text, the answer, and a line with links.

    Attributes:
        turn: The run.
        text: The text that it was given.
        answers: The outputs.
        error: What failed.
        status: Its status and facts.
        iterations: Shows the iterations of the run.
        show_it: Shows the node that failed.

    Signals:
        iterations_wanted: The user wants to see the iterations; the run's id.
        failure_wanted: The user wants to see the node that failed; the run's id.
    """

    iterations_wanted = Signal(str)
    failure_wanted = Signal(str)

    def __init__(self, turn: ChatTurn, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.turn = turn
        self.text = PlainLabel(wrap=True, selectable=True)
        bubble = QFrame(self)
        bubble.setProperty("bubble", True)
        vbox(self.text, margins=(3, 2, 3, 2), parent=bubble)
        self.answers: list[ResultSectionView] = []
        self._answers_box = vbox(spacing=2)
        self.error = PlainLabel(look="small", wrap=True, selectable=True)
        self.error.setProperty("tone", "bad")
        self.status = PlainLabel(look="dim small", wrap=True)
        self.iterations = push_button("", lambda: self.iterations_wanted.emit(self.turn.run_id), self, look="link")
        self.show_it = push_button("Show it", lambda: self.failure_wanted.emit(self.turn.run_id), self, look="link")
        self.show_it.setAccessibleName("Show what failed")
        vbox(
            hbox(8, (bubble, 1)),
            self._answers_box,
            self.error,
            hbox((self.status, 1), self.show_it, self.iterations, spacing=1),
            spacing=1,
            parent=self,
        )
        self.show_turn(turn)

    def show_turn(self, turn: ChatTurn, progress: str = "") -> None:
        """Show the present state of the run.

        Args:
            turn: The run.
            progress: What a run in progress does.
        """
        self.turn = turn
        text = turn.text if len(turn.text) <= _MAX_TEXT else f"{turn.text[:_MAX_TEXT]}…"
        self.text.setText(text or "(empty)")
        self._show_answers()
        self.error.setText(turn.error)
        self.error.setVisible(bool(turn.error))
        self.status.setText(progress or turn.label)
        self.show_it.setVisible(turn.is_over and bool(turn.node))
        self.iterations.setVisible(bool(turn.run_id) and (turn.is_over or turn.iterations > 0))
        self.iterations.setText(format_count(turn.iterations, "iteration") if turn.iterations else "Show run")

    def _show_answers(self) -> None:
        outputs = list(self.turn.outputs.items())
        while len(self.answers) < len(outputs):
            self.answers.append(ResultSectionView())
            self._answers_box.addWidget(self.answers[-1])
        for view, (name, value) in zip(self.answers, outputs, strict=False):
            view.show_section(ResultSection(name, "Answer" if len(outputs) == 1 else name, value))
        for number, view in enumerate(self.answers):
            view.setVisible(number < len(outputs))


class ChatPanel(QWidget):
    """The chat of one document.

    Args:
        session: The document.
        access: Access to the history.

    Attributes:
        turns: The runs, the oldest first.
        field: The text to run the workflow with.
        send: Runs the workflow; during a run, stops it.
        questions: The open questions of the run.

    Signals:
        run_wanted: The user wants to run the workflow; the name of the input, and its text.
        stop_wanted: The user wants to stop the run.
        iterations_wanted: The user wants to see the iterations of a run; its id.
        failure_wanted: The user wants to see the node that failed; the run's id.
        available: Whether the workflow can be used in a chat has changed.
    """

    run_wanted = Signal(str, str)
    stop_wanted = Signal()
    iterations_wanted = Signal(str)
    failure_wanted = Signal(str)
    available = Signal(bool)

    def __init__(self, session: Session, access: StoreClient, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session, self._access = session, access
        self._worker = Worker(self)
        self._offset, self._is_read = 0, False
        self._live: TurnView | None = None
        self._sent = ""
        self.given = chat_input(session.workflow)
        self.turns: list[TurnView] = []
        self.questions = QuestionStack(session, self, is_column=True)
        self.earlier = push_button("Show earlier runs", self._read, self, look="link")
        self.earlier.hide()
        self.empty = PlainLabel(EMPTY, self, look="dim", wrap=True)
        self.field = GrowingEdit(min_lines=1, max_lines=6, parent=self)
        self.field.setAccessibleName("Text to run the workflow with")
        self.field.installEventFilter(self)
        self.send = push_button("Send", self._press, self)
        self._column = QWidget()
        self._rows = vbox(spacing=5, margins=(0, 0, 3, 2))
        self._area = scroll_area(self._column, self)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._arrange()
        self._connect()
        self._update_field()

    def _arrange(self) -> None:
        vbox(self.earlier, self.empty, self._rows, STRETCH, spacing=3, parent=self._column)
        row = hbox((self.field, 1), (self.send, Qt.AlignmentFlag.AlignBottom), spacing=2)
        vbox((self._area, 1), self.questions, row, spacing=2, margins=(0, 0, 3, 3), parent=self)

    def _connect(self) -> None:
        session, shown = self._session, self._session.shown
        session.changed.connect(lambda *_: self._follow_document())
        shown.started.connect(self._follow_start)
        shown.updated.connect(lambda _touched: self._follow_run())
        shown.ended.connect(self._follow_end)
        self._access.opened.connect(self._read_first)
        self.field.typed.connect(lambda _text: self._update_field())
        self._area.verticalScrollBar().rangeChanged.connect(self._keep_end)
        self._follows = True
        self._area.verticalScrollBar().valueChanged.connect(self._note_scroll)

    def showEvent(self, event: QShowEvent) -> None:
        """Read the history when the chat is first shown."""
        super().showEvent(event)
        self._read_first()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Send with Enter; Shift+Enter starts a new line."""
        is_press = event.type() == QEvent.Type.KeyPress
        if is_press and isinstance(event, QKeyEvent) and event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
                self.field.insertPlainText("\n")  # Qt's own would be a line separator
            else:
                self._send()
            return True
        return super().eventFilter(watched, event)

    def _press(self) -> None:
        if self._session.shown.live is not None:
            self.stop_wanted.emit()
        else:
            self._send()

    def _send(self) -> None:
        text = self.field.text().strip()
        if not text or self.given is None or self._session.shown.live is not None:
            return
        self._follows = True
        self._sent = text
        self.run_wanted.emit(self.given.name, text)

    def _update_field(self) -> None:
        is_running = self._session.shown.live is not None
        self.send.setText("Stop" if is_running else "Send")
        self.send.setAccessibleName("Stop the run" if is_running else "Run the workflow with this text")
        self.send.setEnabled(is_running or bool(self.field.text().strip()))
        set_style_properties(self.send, primary=not is_running)
        name, hint = (self.given.name, self.given.description) if self.given is not None else ("", "")
        self.field.setPlaceholderText(f"Text for “{name}”")
        self.field.setToolTip(plain_tool_tip(hint))
        self.empty.setVisible(not self.turns)

    def _follow_document(self) -> None:
        given = chat_input(self._session.workflow)
        if given != self.given:
            had, self.given = self.given, given
            self._update_field()
            if (had is None) is not (given is None):
                self.available.emit(given is not None)

    def _follow_start(self) -> None:
        shown = self._session.shown
        if shown.live is None or self.given is None:
            return
        is_sent = self._sent != "" and self._sent == shown.last_inputs.get(self.given.name)
        if is_sent and self.field.text().strip() == self._sent:
            self.field.set_text("")
        self._update_field()

    def _follow_run(self) -> None:
        shown = self._session.shown
        if shown.live is None or shown.view_model is None or self.given is None or shown.workflow is None:
            return
        if shown.view_model.state.part is not None:  # it has no answer
            return
        turn = turn_of_run(shown.run_id, shown.view_model, self.given)
        if self._live is None:
            resumed = next((view for view in self.turns if view.turn.run_id == turn.run_id), None)
            self._live = resumed or self._added(turn, len(self.turns))
            self._update_field()
        progress = "Waiting for you" if shown.view_model.questions else ""
        progress = progress or state_line(shown.view_model, shown.workflow, time.time())
        self._live.show_turn(turn, "" if turn.is_over else progress)

    def _follow_end(self) -> None:
        view, self._live = self._live, None
        sent, self._sent = self._sent, ""
        shown = self._session.shown
        if shown.view_model is None:  # it could not be started
            if sent and not self.field.text():
                self.field.set_text(sent)
        elif view is not None and self.given is not None:
            view.show_turn(turn_of_run(shown.run_id, shown.view_model, self.given))
        elif view is not None:  # the input was removed meanwhile
            self.turns.remove(view)
            self._rows.removeWidget(view)
            discard(view)
        self._update_field()

    def _added(self, turn: ChatTurn, place: int) -> TurnView:
        view = TurnView(turn, self._column)
        view.iterations_wanted.connect(self.iterations_wanted)
        view.failure_wanted.connect(self.failure_wanted)
        self.turns.insert(place, view)
        self._rows.insertWidget(place, view)
        view.show()
        return view

    def _read_first(self) -> None:
        if not self._is_read and self.isVisible() and self._access.store is not None:
            self._is_read = True
            self._read()

    def _read(self) -> None:
        """Read the runs before those that are shown; a document without a file has only those of this window."""
        source, given, offset = self._session.path, self.given, self._offset
        if source is None or given is None:
            return
        known = {view.turn.run_id for view in self.turns}
        if self._session.shown.live is not None:
            known.add(self._session.shown.run_id)
        self._access.ask(
            lambda store: read_chat(store, str(source), given, known, offset), self._show_page, worker=self._worker
        )

    def _show_page(self, page: ChatPage) -> None:
        self._offset = page.offset
        self.earlier.setVisible(page.has_more)
        shown = {view.turn.run_id for view in self.turns}
        for place, turn in enumerate(turn for turn in page.turns if turn.run_id not in shown):
            self._added(turn, place)
        self._update_field()

    def _note_scroll(self, value: int) -> None:
        self._follows = value >= self._area.verticalScrollBar().maximum()

    def _keep_end(self) -> None:
        bar = self._area.verticalScrollBar()
        if self._follows:
            bar.setValue(bar.maximum())
