"""Which iteration of a loop is looked at: a slider with dots, and a line on it. It moves the whole window."""

from __future__ import annotations

from typing import Final

from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from app.runs.picture import LoopPicture
from app.session import Session
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel
from app.window.iteration_slider import IterationSlider
from app.window.log_lines import iteration_facts
from engine.runner.words import stop_sentence
from engine.values import to_text

PREVIEW: Final = 4000


class IterationsPanel(QWidget):
    """The iterations of the selected loop of one document, or of its only one."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.loops = QComboBox(self)
        self.loops.setAccessibleName("Loop")
        self.loops.activated.connect(lambda _place: self.refresh())
        self.slider = IterationSlider(self)
        self.slider.chosen.connect(self._look_at)
        self.slider.latest_wanted.connect(session.look_at_latest)
        self.latest = QPushButton("Latest", self)
        self.latest.setAccessibleName("Follow the run again")
        self.latest.setToolTip("Follow the run again (Esc)")
        self.latest.clicked.connect(session.look_at_latest)
        self.line = PlainLabel("", self, wrap=True)
        self.result = QPlainTextEdit(self)
        self.result.setReadOnly(True)
        self.result.setAccessibleName("Result of the iteration")
        self.empty = PlainLabel("Run the workflow: each iteration of its loop then has a dot here.", self, look="dim")
        self._caption = QLabel("Loop", self)
        self._caption.setBuddy(self.loops)
        row = QHBoxLayout()
        row.setSpacing(2 * UNIT)
        for widget in (self._caption, self.loops):
            row.addWidget(widget)
        row.addWidget(self.slider, 1)
        row.addWidget(self.latest)
        column = QVBoxLayout(self)
        column.setContentsMargins(3 * UNIT, 2 * UNIT, 3 * UNIT, 2 * UNIT)
        column.setSpacing(2 * UNIT)
        column.addLayout(row)
        column.addWidget(self.line)
        column.addWidget(self.result, 1)
        column.addWidget(self.empty)
        session.run_started.connect(self._start)
        session.run_updated.connect(self._note_update)
        for signal in (session.run_ended, session.view_changed, session.selection_changed):
            signal.connect(self.refresh)
        self.refresh()

    @property
    def loop_id(self) -> str | None:
        """The loop whose iterations are shown; None where the run has none."""
        return self.loops.currentData()

    def step(self, distance: int) -> bool:
        """Look at an iteration before or after the present one; false where there is no loop that has run."""
        picture = self._picture()
        if picture is None or picture.current < 0:
            return False
        wanted = self._index(picture) + distance
        if wanted > picture.current:
            self._session.look_at_latest()
        else:
            self._look_at(max(wanted, 0))
        return True

    def refresh(self) -> None:
        """Show the loop and the iteration that are looked at now."""
        self._choose_loop()
        picture = self._picture()
        has_run = picture is not None and picture.current >= 0
        for widget in (self._caption, self.loops):
            widget.setVisible(self.loops.count() > 1)
        for widget in (self.slider, self.latest, self.line, self.result):
            widget.setVisible(has_run)
        self.empty.setVisible(not has_run)
        if picture is None or not has_run:
            return
        index = self._index(picture)
        self.latest.setEnabled(bool(self._session.chosen))
        self.slider.show_loop(picture, index)
        self.line.setText(_line(picture, index))
        text = to_text(picture.iterations[index].result) if index < len(picture.iterations) else ""
        shown = text[:PREVIEW] + ("…" if len(text) > PREVIEW else "")
        if shown != self.result.toPlainText():
            self.result.setPlainText(shown)

    def _start(self) -> None:
        self.loops.clear()
        self.refresh()

    def _note_update(self, touched: set[str]) -> None:
        if self.loop_id is None or self.loop_id in touched:
            self.refresh()

    def _choose_loop(self) -> None:
        workflow = self._session.run_workflow
        if workflow is None:
            return
        if not self.loops.count():
            for node in workflow.nodes:
                if node.type == "loop":
                    self.loops.addItem(node.title or node.id, node.id)
        parents = self._session.picture.parents if self._session.picture is not None else {}
        for node_id in self._session.selection:
            place = self.loops.findData(node_id)
            if place < 0:
                place = self.loops.findData(parents.get(node_id))
            if place >= 0:
                self.loops.setCurrentIndex(place)
                return

    def _picture(self) -> LoopPicture | None:
        picture, loop = self._session.picture, self.loop_id
        return None if picture is None or loop is None else picture.loop(loop, self._session.chosen)

    def _index(self, picture: LoopPicture) -> int:
        return min(self._session.chosen.get(self.loop_id or "", picture.current), picture.current)

    def _look_at(self, index: int) -> None:
        if self.loop_id is not None:
            self._session.look_at(self.loop_id, index)


def _line(picture: LoopPicture, index: int) -> str:
    parts = [f"Iteration {index + 1} of {max(picture.total, picture.current + 1)}"]
    if index < len(picture.iterations):
        event = picture.iterations[index]
        parts += iteration_facts(event)
        if event.reason:
            parts.append(f"“{event.reason}”")
    else:
        parts.append("under way" if not picture.exit_reason else "not finished")
    if index == picture.returned:
        parts.append("this is the result")
    line = " · ".join(parts)
    if not picture.exit_reason:
        return line
    return f"{line}\n{stop_sentence(picture.exit_reason, len(picture.iterations), picture.total or None)}"
