"""*Result*: what the node did in the last run, in the iteration that the person looks at; of nothing, the whole run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.inspector.iteration_list import IterationList
from app.inspector.note_line import NoteLine
from app.inspector.part_view import PartView
from app.inspector.result_parts import Part, parts_of
from app.inspector.row import ProblemLines
from app.inspector.words import STATE_ICONS, cost_words, facts, state_words, token_words
from app.runs.executions import NO_LOOP, NodePicture, NodeState
from app.runs.judged import judge_in, verdict_text
from app.runs.picture import RunPicture
from app.runs.stopping import why
from app.session import Session
from app.theme.style import icon, style
from app.theme.tokens import UNIT, Theme
from app.theme.widgets import PlainLabel
from engine.document.problems import Problem, Severity
from engine.runner.words import seconds

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
        self.parts: dict[str, PartView] = {}
        line = QHBoxLayout()
        line.setSpacing(2 * UNIT)
        line.addWidget(self._mark)
        line.addWidget(self.state, 1)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(2 * UNIT)
        box.addWidget(self._title)
        box.addLayout(line)
        self.note = NoteLine(session, self)
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
            parts = parts_of(execution)
            if picture.loop(self.node_id, self._session.shown.chosen).iterations:
                parts = [part for part in parts if part.key != _ITERATIONS]  # the list below the state has them
                parts = [*self._judged(picture, self.node_id), *parts]
            asked = picture.questions.get(picture.path_of(self.node_id, self._session.shown.chosen))
            if asked is not None:
                parts = [Part("question", "Asks you", asked.message), *parts]
            self._show(execution.state, _state(execution), facts(execution), _problems(execution), parts)
        self._show_loop(picture)

    def _judged(self, picture: RunPicture, loop_id: str) -> list[Part]:
        """What the judge of a loop said of the iteration that is looked at."""
        chosen, ran = self._session.shown.chosen, self._session.shown.workflow
        index = picture.index_of(loop_id, chosen)
        judge = judge_in(picture, loop_id, f"{picture.path_of(loop_id, chosen)}[{index}]")
        text = verdict_text(ran, loop_id, judge) if ran is not None else ""
        return [Part(f"judge:{index}", f"Judge, iteration {index + 1}", text)] if text else []

    def _show_run(self, picture: RunPicture) -> None:
        told = [token_words(picture.usage), cost_words(picture.cost_usd)] if picture.usage.total_tokens else []
        if picture.duration_s is not None:
            told.append(seconds(picture.duration_s))
        words = _RUN_WORDS.get(picture.status, picture.status.capitalize())
        problems = [Problem("run", picture.error, picture.remedy)] if picture.error else []
        problems += _warnings(picture.warnings.all)
        parts = [Part(f"result:{name}", f"Result: {name}", value) for name, value in picture.outputs.items()]
        self._show(_RUN_STATES[picture.status], words, " · ".join(told), problems, parts)

    def _show(self, state: NodeState, words: str, told: str, problems: list[Problem], parts: list[Part]) -> None:
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

    def _arrange(self, parts: list[Part]) -> None:
        """Have a view for each part, in their order; views that fit are kept."""
        spare = list(self.parts.values())
        old, self.parts = self.parts, {}
        for part in parts:
            view = old.pop(part.key, None)
            if view is None:
                view = PartView()
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
    words = state_words(execution)
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
        more = f"There are {len(texts) - _MOST_WARNINGS:,} more warnings."
        found.append(Problem("run", more, severity=Severity.WARNING))
    return found
