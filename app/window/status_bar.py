"""The status bar: state of the run, its id once stored, refused actions and exports, and the number of problems."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Literal

from PySide6.QtCore import QEasingCurve, QMetaObject, QPropertyAnimation, Qt, QTimer, Signal
from PySide6.QtWidgets import QGraphicsOpacityEffect, QWidget

from app.runs.run_status import question_line, state_line
from app.theme.style import set_style_properties
from app.theme.widgets import ElidedLabel, hbox, push_button
from engine.formatting import format_count

if TYPE_CHECKING:
    from app.session import Session

TICK_MS: Final = 200
SHOWN_MS: Final = 8000
FADE_MS: Final = 600


class StatusBar(QWidget):
    """The bar.

    Signals:
        problems_clicked: The user wants to see the problems.
        failure_clicked: The user wants to see why the run failed.
        question_clicked: The user wants to see the question of the run.
        stored_clicked: The user wants to see the stored run in the list; its id.
    """

    problems_clicked = Signal()
    failure_clicked = Signal()
    question_clicked = Signal()
    stored_clicked = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("panel", True)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._session: Session | None = None
        self._connections: list[QMetaObject.Connection] = []
        self.state = ElidedLabel("", self, look="dim small")
        self.refusal = ElidedLabel("", self, look="small")
        self._effect = QGraphicsOpacityEffect(self.refusal)
        self._effect.setOpacity(1.0)  # with any other, Qt lays out all hidden pages of the window in each frame
        self.refusal.setGraphicsEffect(self._effect)
        self._fading = QPropertyAnimation(self._effect, b"opacity", self)
        self._fading.setDuration(FADE_MS)
        self._fading.setEasingCurve(QEasingCurve.Type.InQuad)
        self._fading.setStartValue(1.0)
        self._fading.setEndValue(0.0)
        self._fading.finished.connect(self._clear)
        self._shown = QTimer(self, singleShot=True, interval=SHOWN_MS)
        self._shown.timeout.connect(self._fading.start)
        self._stored: set[str] = set()
        look = "quiet small"
        self.stored = push_button("", self._click_stored, self, look=look)
        self.stored.hide()
        self._counts = (0, 0)
        self.problems = push_button("No problems", self._click_problems, self, look=look)
        self.question = push_button("", self.question_clicked.emit, self, look=look)
        self.question.setProperty("tone", "warning")
        self.question.hide()
        self._ticking = QTimer(self, interval=TICK_MS)
        self._ticking.timeout.connect(self._show_state)
        texts = ((self.state, 2), (self.refusal, 3))
        hbox(*texts, self.stored, self.question, self.problems, spacing=4, margins=(2, 0, 2, 0), parent=self)

    def show_session(self, session: Session | None) -> None:
        """Show another document; None for none."""
        for connection in self._connections:
            self.disconnect(connection)
        self._connections.clear()
        self._session = session
        self._clear()
        if session is not None:
            signals = (session.shown.started, session.shown.ended)
            self._connections = [signal.connect(self._show_state) for signal in signals]
            self._connections.append(session.shown.updated.connect(self._show_question))
        self._show_state()

    def refuse(self, text: str) -> None:
        """Show why something was not done; it fades after a while."""
        self._say(text, "warning")

    def note(self, text: str) -> None:
        """Show what was done; it fades after a while."""
        self._say(text, False)

    def _say(self, text: str, tone: str | Literal[False]) -> None:
        set_style_properties(self.refusal, tone=tone)
        self._fading.stop()
        self._effect.setOpacity(1.0)
        self.refusal.set_full_text(text)
        self.refusal.show()
        self._shown.start()

    def note_stored(self, run_id: str) -> None:
        """Note that a run has ended and is stored."""
        self._stored.add(run_id)
        self._show_stored()

    def count(self, errors: int, warnings: int) -> None:
        """Show the number of problems; without any, that the run failed."""
        self._counts = (errors, warnings)
        self._show_problems()

    @property
    def _shows_failure(self) -> bool:
        view_model = self._session.shown.view_model if self._session is not None else None
        return not any(self._counts) and view_model is not None and view_model.status == "failed"

    def _show_problems(self) -> None:
        errors, warnings = self._counts
        parts = [format_count(number, word) for number, word in ((errors, "error"), (warnings, "warning")) if number]
        has_failed = self._shows_failure
        text = "Failed" if has_failed else ", ".join(parts) or "No problems"
        tone = "bad" if errors or has_failed else "warning" if warnings else False
        if (text, tone) != (self.problems.text(), self.problems.property("tone")):
            self.problems.setText(text)
            self.problems.setAccessibleName(f"{text}; {'show why' if has_failed else 'show problems'}")
            set_style_properties(self.problems, tone=tone)

    def _click_stored(self) -> None:
        self.stored_clicked.emit(self._session.shown.run_id if self._session else "")

    def _click_problems(self) -> None:
        (self.failure_clicked if self._shows_failure else self.problems_clicked).emit()

    def _show_question(self) -> None:
        session = self._session
        text = ""
        if session is not None and session.shown.view_model is not None and session.shown.workflow is not None:
            text = question_line(session.shown.view_model, session.shown.workflow)
        if text != self.question.text():
            self.question.setText(text)
            self.question.setAccessibleName(f"{text}; go there" if text else "")
            self.question.setVisible(bool(text))

    def _show_stored(self) -> None:
        """Show the id of the current run once it is over; a stored run's tab shows it itself."""
        session = self._session
        is_stored = (
            session is not None
            and session.shown.live is None
            and not session.is_past
            and session.shown.run_id in self._stored
        )
        self.stored.setVisible(is_stored)
        if is_stored and session is not None:
            # Imported here: the status bar is part of the first picture, the history is not.
            from app.history.run_labels import short_id

            self.stored.setText(f"Stored as run {short_id(session.shown.run_id)}")
            self.stored.setAccessibleName(f"{self.stored.text()}; show in the list of runs")
            self.stored.setToolTip("Show in the list of runs")

    def _show_state(self) -> None:
        self._show_question()
        self._show_stored()
        session = self._session
        self.problems.setVisible(session is not None)
        self._show_problems()
        if session is None or session.shown.view_model is None or session.shown.workflow is None:
            self._ticking.stop()
            self.state.set_full_text("")
            return
        self.state.set_full_text(state_line(session.shown.view_model, session.shown.workflow, time.time()))
        if session.shown.live is not None:
            self._ticking.start()
        else:
            self._ticking.stop()

    def _clear(self) -> None:
        self._shown.stop()
        self.refusal.set_full_text("")
        self.refusal.hide()  # or its share of the width would be missing to the state
