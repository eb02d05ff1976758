"""*Result*: what the node did in the last run, in the iteration that the person looks at; of nothing, the whole run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QItemSelectionModel, QModelIndex, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QStandardItem, QStandardItemModel
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListView,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.inspector.editors.editor import describe_widget
from app.inspector.form_fields import ProblemLines
from app.inspector.result_section import ResultSectionView
from app.inspector.result_text import (
    STATE_ICONS,
    ResultSection,
    execution_metrics,
    iteration_summary,
    result_sections,
    state_label,
    token_label,
    value_preview,
)
from app.runs.executions import NO_LOOP, LoopPicture, NodePicture, NodeState
from app.runs.judged import judge_in, verdict_text
from app.runs.picture import RunPicture
from app.runs.stopping import why
from app.session import Session
from app.theme.style import icon, style
from app.theme.tokens import UNIT, Theme
from app.theme.widgets import PlainLabel, plain_tool_tip
from engine.document.problems import Problem, Severity
from engine.formatting import format_count, format_duration, format_money

SENT = "Sent. The next call of its model gets it."


class NoteInput(QWidget):
    """A note to the node that is shown.

    Attributes:
        line: What is to be sent.
        send: Sends it; Enter in the line does the same.
        told: Says that it was sent.
    """

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._node_id = ""
        self.line = QLineEdit(self)
        describe_widget(self.line, "Note to this node", "The next call of its model gets it, while the run goes on.")
        self.line.setPlaceholderText("Note to this node")
        self.send = QPushButton("Send", self)
        self.send.setAccessibleName("Send the note")
        self.send.setEnabled(False)
        self.told = PlainLabel("", self, look="dim small", wrap=True)
        self.told.hide()
        row = QHBoxLayout()
        row.setSpacing(2 * UNIT)
        row.addWidget(self.line, 1)
        row.addWidget(self.send)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(UNIT)
        box.addLayout(row)
        box.addWidget(self.told)
        self.line.textChanged.connect(self._typed)
        self.line.returnPressed.connect(self._send)
        self.send.clicked.connect(self._send)
        self.hide()

    def show_node(self, node_id: str | None) -> None:
        """Be there for a node that calls a model in a run that goes on; be hidden for any other."""
        if node_id != self._node_id:
            self._node_id = node_id or ""
            self.line.clear()
            self.told.hide()
        resolved = self._session.structure.resolution.nodes.get(self._node_id)
        calls_model = resolved is not None and resolved.spec.model(resolved.config) is not None
        self.setVisible(calls_model and self._session.shown.live is not None)

    def _typed(self, text: str) -> None:
        self.send.setEnabled(bool(text.strip()))
        if text:
            self.told.hide()

    def _send(self) -> None:
        text = self.line.text().strip()
        if not text or self._session.shown.live is None:
            return
        self._session.shown.live.post_note(self._node_id, text)
        self.line.clear()
        self.told.setText(SENT)
        self.told.show()


_MOST_ROWS = 8


class IterationList(QListView):
    """A line for each iteration that has ended.

    Signals:
        chosen: A person chose an iteration; its index.
    """

    chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        describe_widget(self, "Iterations", "Choose one to look at it everywhere.")
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setUniformItemSizes(True)
        self.setTabKeyNavigation(False)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._model = QStandardItemModel(self)
        self.setModel(self._model)
        self._path = ""
        self._returned: int | None = None
        self.selectionModel().currentChanged.connect(self._current_changed)

    @property
    def lines(self) -> list[str]:
        """What the list shows."""
        return [self._model.index(row, 0).data() for row in range(self._model.rowCount())]

    def show_loop(self, path: str, loop: LoopPicture, chosen: int | None) -> None:
        """Show a run of a loop; what is there already stays, so that only new iterations cost something."""
        with QSignalBlocker(self.selectionModel()):
            if path != self._path or self._model.rowCount() > len(loop.iterations):
                self._model.clear()
                self._path, self._returned = path, None
            if self._returned != loop.returned:
                self._returned = loop.returned
                self._write(loop, 0)
            self._write(loop, self._model.rowCount())
            self._choose(chosen)
        self.viewport().update()
        rows = min(max(self._model.rowCount(), 1), _MOST_ROWS)
        self.setFixedHeight(rows * max(self.sizeHintForRow(0), 20) + 2 * UNIT + 2)

    def _write(self, loop: LoopPicture, first: int) -> None:
        for iteration in loop.iterations[first:]:
            line = iteration_summary(iteration, is_returned=iteration.index == loop.returned)
            item = self._model.item(iteration.index) or QStandardItem()
            item.setText(line)
            item.setToolTip(plain_tool_tip(value_preview(iteration.reason or iteration.result)))
            if item.row() < 0:
                self._model.appendRow(item)

    def _choose(self, chosen: int | None) -> None:
        index = self._model.index(chosen, 0) if chosen is not None else QModelIndex()
        flags = QItemSelectionModel.SelectionFlag
        self.selectionModel().setCurrentIndex(index, flags.ClearAndSelect if index.isValid() else flags.Clear)
        if index.isValid():
            self.scrollTo(index)

    def _current_changed(self, current: QModelIndex) -> None:
        if current.isValid():
            self.chosen.emit(current.row())


NO_RUN = "Nothing has run yet. Press Run, and what came of it stands here."

_RUN_STATES = {
    "running": NodeState.RUNNING,
    "paused": NodeState.RUNNING,
    "completed": NodeState.DONE,
    "failed": NodeState.FAILED,
    "cancelled": NodeState.STOPPED,
}


_ITERATIONS = "out:iterations"
_MOST_WARNINGS = 20
_RUN_WORDS = {"completed": "Done", "cancelled": "Stopped"}


class ResultPage(QWidget):
    """Shows one execution.

    Attributes:
        node_id: The node; None for the whole run.
        iterations: The iterations of a loop; hidden for any other node.
    """

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.node_id: str | None = None
        self._state = NodeState.WAITING
        self._title = PlainLabel(look="title", wrap=True)
        self._mark = QLabel()
        self.state = PlainLabel(look="fieldname", wrap=True)
        self.facts = PlainLabel(look="dim small", wrap=True)
        self.sentence = PlainLabel(wrap=True)
        self.problems = ProblemLines()
        self.iterations = IterationList()
        self.iterations.chosen.connect(self._look_at)
        self.parts: dict[str, ResultSectionView] = {}
        line = QHBoxLayout()
        line.setSpacing(2 * UNIT)
        line.addWidget(self._mark)
        line.addWidget(self.state, 1)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(2 * UNIT)
        box.addWidget(self._title)
        box.addLayout(line)
        self.note = NoteInput(session, self)
        for widget in (self.facts, self.problems, self.note, self.sentence, self.iterations):
            box.addWidget(widget)
        self._parts_box = QVBoxLayout()
        self._parts_box.setSpacing(4 * UNIT)
        self._parts_box.setContentsMargins(0, 2 * UNIT, 0, 0)
        box.addLayout(self._parts_box)
        style().changed.connect(self._draw)

    def update_result(self) -> None:
        """Show what the run has told by now."""
        node = self._session.node(self.node_id) if self.node_id is not None else None
        self._title.setText((node.title or node.id) if node is not None else "The whole run")
        self.note.show_node(self.node_id)
        picture = self._session.shown.picture
        if picture is None:
            self._show(NodeState.WAITING, NO_RUN, "", [], [])
            self._show_loop(picture)
            return
        if self.node_id is None:
            self._show_run(picture)
        else:
            execution = picture.node(self.node_id, self._session.shown.chosen)
            parts = result_sections(execution)
            if picture.loop(self.node_id, self._session.shown.chosen).iterations:
                parts = [part for part in parts if part.key != _ITERATIONS]  # the list below the state has them
                parts = [*self._judged(picture, self.node_id), *parts]
            asked = picture.questions.get(picture.path_of(self.node_id, self._session.shown.chosen))
            if asked is not None:
                parts = [ResultSection("question", "Asks you", asked.message), *parts]
            self._show(execution.state, _state(execution), execution_metrics(execution), _problems(execution), parts)
        self._show_loop(picture)

    def _judged(self, picture: RunPicture, loop_id: str) -> list[ResultSection]:
        """What the judge of a loop said of the iteration that is looked at."""
        chosen, ran = self._session.shown.chosen, self._session.shown.workflow
        index = picture.index_of(loop_id, chosen)
        judge = judge_in(picture, loop_id, f"{picture.path_of(loop_id, chosen)}[{index}]")
        text = verdict_text(ran, loop_id, judge) if ran is not None else ""
        return [ResultSection(f"judge:{index}", f"Judge, iteration {index + 1}", text)] if text else []

    def _show_run(self, picture: RunPicture) -> None:
        told = [token_label(picture.usage), format_money(picture.cost_usd)] if picture.usage.total_tokens else []
        if picture.duration_s is not None:
            told.append(format_duration(picture.duration_s))
        words = _RUN_WORDS.get(picture.status, picture.status.capitalize())
        problems = [Problem("run", picture.error, picture.remedy)] if picture.error else []
        problems += _warnings(picture.warnings.all)
        parts = [ResultSection(f"result:{name}", f"Result: {name}", value) for name, value in picture.outputs.items()]
        self._show(_RUN_STATES[picture.status], words, " · ".join(told), problems, parts)

    def _show(
        self, state: NodeState, words: str, told: str, problems: list[Problem], parts: list[ResultSection]
    ) -> None:
        if state is not self._state or self._mark.pixmap().isNull():
            self._state = state
            self._draw()
        self.state.setText(words)
        self.facts.setText(told)
        self.facts.setVisible(bool(told))
        self.problems.show_problems(problems)
        if [part.key for part in parts] != list(self.parts):
            self._arrange(parts)
        for part in parts:
            self.parts[part.key].show_part(part)

    def _arrange(self, parts: list[ResultSection]) -> None:
        """Have a view for each part, in their order; views that fit are kept."""
        spare = list(self.parts.values())
        old, self.parts = self.parts, {}
        for part in parts:
            view = old.pop(part.key, None)
            if view is None:
                view = ResultSectionView()
            else:
                spare.remove(view)
            self.parts[part.key] = view
            self._parts_box.addWidget(view)  # takes one that is there already to the end
        for view in spare:
            self._parts_box.removeWidget(view)
            view.setParent(None)
            view.deleteLater()

    def _show_loop(self, picture: RunPicture | None) -> None:
        node_id = self.node_id
        loop = (
            picture.loop(node_id, self._session.shown.chosen)
            if picture is not None and node_id is not None
            else NO_LOOP
        )
        self.sentence.setVisible(loop is not NO_LOOP)
        self.iterations.setVisible(bool(loop.iterations))
        if picture is not None and node_id is not None and loop is not NO_LOOP:
            session, ran = self._session, self._session.shown.workflow or self._session.workflow
            self.sentence.setText(why(ran, picture, session.registry, session.shown.chosen, node_id))
            path = picture.path_of(node_id, self._session.shown.chosen)
            self.iterations.show_loop(path, loop, self._session.shown.chosen.get(node_id))

    def _look_at(self, index: int) -> None:
        if self.node_id is not None:
            self._session.shown.look_at(self.node_id, index)

    def _draw(self) -> None:
        size = round(16 * style().scale)
        colour = STATE_COLOURS[self._state](style().theme)
        self._mark.setPixmap(icon(STATE_ICONS[self._state], colour).pixmap(size, size))


STATE_COLOURS: dict[NodeState, Callable[[Theme], str]] = {
    NodeState.WAITING: lambda theme: theme.dim,
    NodeState.RUNNING: lambda theme: theme.accent,
    NodeState.DONE: lambda theme: theme.good,
    NodeState.CACHED: lambda theme: theme.good,
    NodeState.SKIPPED: lambda theme: theme.dim,
    NodeState.STOPPED: lambda theme: theme.dim,
    NodeState.FAILED: lambda theme: theme.bad,
    NodeState.ASKING: lambda theme: theme.warning,
}


def _state(execution: NodePicture) -> str:
    words = state_label(execution)
    if execution.state is NodeState.SKIPPED and execution.warnings:
        return f"{words}: {execution.warnings[0]}"
    return words


def _problems(execution: NodePicture) -> list[Problem]:
    """Error and warnings, in the form in which problems are shown everywhere."""
    found: list[Problem] = []
    if execution.error:
        is_fatal = execution.state is NodeState.FAILED
        found.append(
            Problem("run", execution.error, execution.remedy, Severity.ERROR if is_fatal else Severity.WARNING)
        )
    if execution.state is not NodeState.SKIPPED:
        found.extend(_warnings(execution.warnings))
    return found


def _warnings(texts: Sequence[str]) -> list[Problem]:
    """Warnings as problems; of very many the first."""
    found = [Problem("run", text, severity=Severity.WARNING) for text in texts[:_MOST_WARNINGS]]
    if len(texts) > _MOST_WARNINGS:
        more = f"{format_count(len(texts) - _MOST_WARNINGS, 'more warning')}."
        found.append(Problem("run", more, severity=Severity.WARNING))
    return found
