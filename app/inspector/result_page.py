"""The Result tab: what the selected node did in the displayed run and iteration, or a summary of the whole run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from PySide6.QtCore import QItemSelectionModel, QModelIndex, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QGuiApplication, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import (
    QAbstractItemView,
    QLineEdit,
    QListView,
    QPushButton,
    QToolButton,
    QWidget,
)

from app.inspector.editor import describe_widget
from app.inspector.form_fields import ProblemLines
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
from app.inspector.text_widgets import from_utf16_units
from app.inspector.value_view import FormatButton, ValueView, ValueViewer
from app.runs.loop_status import judge_execution, loop_explanation, verdict_text, warning_label
from app.runs.run_view_model import NO_LOOP, RunViewModel
from app.session import Session
from app.theme.style import ThemedIcon, style
from app.theme.tokens import UNIT
from app.theme.widgets import IconLabel, PlainLabel, discard, hbox, plain_tool_tip, push_button, vbox
from engine.document.problems import Problem, Severity
from engine.formatting import format_count, format_duration, format_money
from engine.nodes.node_names import node_name
from engine.nodes.spec import PAIR_BY_END, PAIR_BY_START
from engine.run_state.state import FINISHED, LoopExecution, NodeExecution, NodeState


class ResultSectionView(QWidget):
    """Shows one section.

    Args:
        fills: Whether the text fills the available height.

    Attributes:
        value: The value.
        content: The value as plain text.
        details: A line below it.
        format: Switches between formatted and plain text.
        open: Shows the value in a window of its own.
        copy: Copies the whole text, including what is not shown yet.
        expand: Expands and collapses a collapsible section; hidden for others.
    """

    def __init__(self, *, fills: bool = False) -> None:
        super().__init__()
        self._section: ResultSection | None = None
        self.heading = PlainLabel(look="fieldname", wrap=True)
        self.details = PlainLabel(look="dim small", wrap=True)
        self.value = ValueView("", fills=fills)
        self.content = self.value.plain
        self.format = FormatButton(self.value)
        self.open = QToolButton()
        self.copy = QToolButton()
        self.expand = QToolButton()
        self.expand.setCheckable(True)
        self.expand.setArrowType(Qt.ArrowType.RightArrow)
        self.expand.setVisible(False)
        vbox(
            hbox(self.expand, (self.heading, 1), self.format, self.open, self.copy, spacing=1),
            self.value,
            self.details,
            spacing=1,
            parent=self,
        )
        self.open.clicked.connect(self._open)
        self.copy.clicked.connect(self._copy)
        self.expand.toggled.connect(self._show_content)
        ThemedIcon(self.open, "mdi6.arrow-expand", "dim")
        ThemedIcon(self.copy, "mdi6.content-copy", "dim")

    def show_section(self, section: ResultSection) -> None:
        """Show a section; does nothing if it is unchanged."""
        self._section = section
        if self.heading.text() != section.heading:
            self.heading.setText(section.heading)
            describe_widget(self.open, f"Open in a window: {section.heading}", "Open in a window, with a search")
            describe_widget(self.copy, f"Copy: {section.heading}", "Copy text")
            self.value.set_name(section.heading)
            describe_widget(self.expand, f"Expand or collapse: {section.heading}", "Expand or collapse")
        if section.is_collapsible is self.expand.isHidden():
            self.expand.setVisible(section.is_collapsible)
            self._show_content(not section.is_collapsible or self.expand.isChecked())
        self.details.setText(section.details)
        self.details.setVisible(bool(section.details))
        self.value.show_value(section.value, is_exact=section.is_exact)

    def _show_content(self, is_shown: bool) -> None:
        self.value.setVisible(is_shown)
        self.expand.setArrowType(Qt.ArrowType.DownArrow if is_shown else Qt.ArrowType.RightArrow)

    def _open(self) -> None:
        if self._section is not None:
            section = self._section
            ValueViewer(section.heading, section.value, self.window(), is_exact=section.is_exact).show()

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(from_utf16_units(self.content.text))


NO_RUN: Final = "No results yet. Run the workflow to see them here."
NOTE_SENT: Final = "Sent. The node's next model call will include it."


def state_color(state: NodeState) -> str:
    """Return the color of a node's state in the current theme."""
    theme = style().theme
    if state in FINISHED:
        return theme.good
    colors = {NodeState.RUNNING: theme.accent, NodeState.FAILED: theme.bad, NodeState.WAITING: theme.warning}
    return colors.get(state, theme.dim)


_RUN_STATES: Final = {
    "running": (NodeState.RUNNING, "Running"),
    "paused": (NodeState.RUNNING, "Paused"),
    "completed": (NodeState.COMPLETED, "Done"),
    "failed": (NodeState.FAILED, "Failed"),
    "cancelled": (NodeState.CANCELLED, "Stopped"),
    "interrupted": (NodeState.INTERRUPTED, "Interrupted"),
}
_ITERATIONS: Final = "out:iterations"
_MAX_ROWS: Final = 8
_MAX_WARNINGS: Final = 20


class NoteInput(QWidget):
    """Sends a note to the model of the displayed node; visible only while it can be received.

    Attributes:
        line: The text of the note.
        send: The Send button; Enter does the same.
        status: Confirmation that the note was sent.
    """

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._node_id = ""
        self.line = QLineEdit(self)
        describe_widget(self.line, "Note to this node", "Its next model call in this run will include the note.")
        self.line.setPlaceholderText("Note to this node")
        self.send = QPushButton("Send", self)
        self.send.setAccessibleName("Send note")
        self.send.setEnabled(False)
        self.status = PlainLabel("", self, look="dim small", wrap=True)
        self.status.hide()
        vbox(hbox((self.line, 1), self.send, spacing=2), self.status, spacing=1, parent=self)
        self.line.textChanged.connect(self._typed)
        self.line.returnPressed.connect(self._send)
        self.send.clicked.connect(self._send)
        self.hide()

    def show_node(self, node_id: str | None) -> None:
        """Show the input if the node calls a model and the run is active."""
        if node_id != self._node_id:
            self._node_id = node_id or ""
            self.line.clear()
            self.status.hide()
        resolved = self._session.structure.resolution.nodes.get(self._node_id)
        calls_model = resolved is not None and resolved.spec.model(resolved.config) is not None
        self.setVisible(calls_model and self._session.shown.live is not None)

    def _typed(self, text: str) -> None:
        self.send.setEnabled(bool(text.strip()))
        if text:
            self.status.hide()

    def _send(self) -> None:
        text = self.line.text().strip()
        if not text or self._session.shown.live is None:
            return
        self._session.shown.live.post_note(self._node_id, text)
        self.line.clear()
        self.status.setText(NOTE_SENT)
        self.status.show()


class IterationList(QListView):
    """One line for each completed iteration.

    Signals:
        chosen: The user selected an iteration; its index.
    """

    chosen = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        describe_widget(self, "Iterations", "Select an iteration to show it in all panels.")
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
        """The displayed lines."""
        return [self._model.index(row, 0).data() for row in range(self._model.rowCount())]

    def show_loop(self, path: str, loop: LoopExecution, chosen: int | None) -> None:
        """Show a loop run, adding only the new iterations if it is already displayed."""
        with QSignalBlocker(self.selectionModel()):
            if path != self._path or self._model.rowCount() > len(loop.iterations):
                self._model.clear()
                self._path, self._returned = path, None
            if self._returned != loop.returned:
                self._returned = loop.returned
                self._update_rows(loop, 0)
            self._update_rows(loop, self._model.rowCount())
            self._select(chosen)
        self.viewport().update()
        rows = min(max(self._model.rowCount(), 1), _MAX_ROWS)
        self.setFixedHeight(rows * max(self.sizeHintForRow(0), 20) + 2 * UNIT + 2)

    def _update_rows(self, loop: LoopExecution, first: int) -> None:
        for iteration in loop.iterations[first:]:
            item = self._model.item(iteration.index) or QStandardItem()
            item.setText(iteration_summary(iteration, is_returned=iteration.index == loop.returned))
            item.setToolTip(plain_tool_tip(value_preview(iteration.reason or iteration.result)))
            if item.row() < 0:
                self._model.appendRow(item)

    def _select(self, chosen: int | None) -> None:
        index = self._model.index(chosen, 0) if chosen is not None else QModelIndex()
        flags = QItemSelectionModel.SelectionFlag
        self.selectionModel().setCurrentIndex(index, flags.ClearAndSelect if index.isValid() else flags.Clear)
        if index.isValid():
            self.scrollTo(index)

    def _current_changed(self, current: QModelIndex) -> None:
        if current.isValid():
            self.chosen.emit(current.row())


class ResultPage(QWidget):
    """Shows one execution of a node, or the whole run.

    Args:
        session: The document with its run.
        can_compare: Whether it has a button to compare with another run.

    Signals:
        compare_wanted: The user wants to compare with another run; the path in this run (`loop[2].draft`).

    Attributes:
        node_id: The node; None for the whole run.
        state: State of the execution.
        metrics: Tokens, cost and duration.
        exit_reason: Why a loop ended, or its progress.
        sections: The displayed sections by key.
        iterations: The iterations of a loop; hidden for other nodes.
        compare: Compares with another run.
    """

    compare_wanted = Signal(str)

    def __init__(self, session: Session, parent: QWidget | None = None, *, can_compare: bool = False) -> None:
        super().__init__(parent)
        self._session = session
        self._can_compare = can_compare
        self.node_id: str | None = None
        self._title = PlainLabel(look="title", wrap=True)
        self._icon = IconLabel()
        self.state = PlainLabel(look="fieldname", wrap=True)
        self.metrics = PlainLabel(look="dim small", wrap=True)
        self.exit_reason = PlainLabel(wrap=True)
        self.problems = ProblemLines()
        self.iterations = IterationList()
        self.iterations.chosen.connect(self._show_iteration)
        self.sections: dict[str, ResultSectionView] = {}
        self.note = NoteInput(session, self)
        self.compare = push_button("Compare…", lambda: self.compare_wanted.emit(self._path or ""), look="link")
        describe_widget(self.compare, "Compare with another run", "Compare with another run of this workflow")
        self._sections_box = vbox(spacing=4, margins=(0, 2, 0, 0))
        vbox(
            self._title,
            hbox(self._icon, (self.state, 1), self.compare, spacing=2),
            self.metrics,
            self.problems,
            self.note,
            self.exit_reason,
            self.iterations,
            self._sections_box,
            spacing=2,
            parent=self,
        )

    def update_result(self) -> None:
        """Show the current state of the run."""
        node = self._session.node(self.node_id) if self.node_id is not None else None
        self._title.setText(node_name(self._session.workflow, node.id) if node is not None else "Run summary")
        self.note.show_node(self.node_id)
        view_model = self._session.shown.view_model
        if view_model is None:
            self._show(NodeState.PENDING, NO_RUN, "", [], [])
        elif self.node_id is None:
            self._show_run(view_model)
        else:
            self._show_execution(view_model, self.node_id)
        self._show_loop(view_model)
        self.compare.setVisible(self._can_compare and self._path is not None)

    @property
    def _path(self) -> str | None:
        """What can be compared: the node, an iteration, or the run (""); None for what did not run or is inside."""
        view_model, chosen = self._session.shown.view_model, self._session.shown.chosen
        if view_model is None or view_model.prefix or not view_model.is_over:
            return None
        node = self._session.node(self.node_id) if self.node_id is not None else None
        if node is None:
            return ""
        path = view_model.path_of(node.id, chosen)
        if node.type in PAIR_BY_START:
            has_begun = view_model.loop(node.id, chosen).current >= 0
            return f"{path}[{view_model.index_of(node.id, chosen)}]" if has_begun else None
        return path if path in view_model.nodes and node.type not in PAIR_BY_END else None

    def _show_execution(self, view_model: RunViewModel, node_id: str) -> None:
        chosen = self._session.shown.chosen
        execution = view_model.node(node_id, chosen)
        sections = result_sections(execution)
        if view_model.loop(node_id, chosen).iterations:
            sections = [section for section in sections if section.key != _ITERATIONS]  # shown by the list
            sections = [*self._judge_sections(view_model, node_id), *sections]
        question = view_model.questions.get(view_model.path_of(node_id, chosen))
        if question is not None:
            sections = [ResultSection("question", "Question", question.message), *sections]
        label = state_label(execution)
        if execution.state is NodeState.SKIPPED and execution.error:
            label = f"{label}: {execution.error}"
        self._show(execution.state, label, execution_metrics(execution), _execution_problems(execution), sections)

    def _judge_sections(self, view_model: RunViewModel, loop_id: str) -> list[ResultSection]:
        chosen, workflow = self._session.shown.chosen, self._session.shown.workflow
        index = view_model.index_of(loop_id, chosen)
        judge = judge_execution(view_model, loop_id, f"{view_model.path_of(loop_id, chosen)}[{index}]")
        text = verdict_text(workflow, loop_id, judge) if workflow is not None else ""
        return [ResultSection(f"judge:{index}", f"Judge, iteration {index + 1}", text)] if text else []

    def _show_run(self, view_model: RunViewModel) -> None:
        metrics = (
            [token_label(view_model.usage), format_money(view_model.cost_usd)] if view_model.usage.total_tokens else []
        )
        if view_model.duration_s is not None:
            metrics.append(format_duration(view_model.duration_s))
        problems = [Problem("run", view_model.error, view_model.remedy)] if view_model.error else []
        workflow = self._session.shown.workflow
        problems += _warning_problems([warning_label(text, workflow) for text in view_model.state.warnings.all])
        sections = [
            ResultSection(f"result:{name}", f"Output: {name}", value) for name, value in view_model.outputs.items()
        ]
        state, label = _RUN_STATES[view_model.status]
        self._show(state, label, " · ".join(metrics), problems, sections)

    def _show(
        self, state: NodeState, label: str, metrics: str, problems: list[Problem], sections: list[ResultSection]
    ) -> None:
        self._icon.show_icon(STATE_ICONS[state], partial(state_color, state))
        self.state.setText(label)
        self.metrics.setText(metrics)
        self.metrics.setVisible(bool(metrics))
        self.problems.show_problems(problems)
        if [section.key for section in sections] != list(self.sections):
            self._arrange_sections(sections)
        for section in sections:
            self.sections[section.key].show_section(section)

    def _arrange_sections(self, sections: list[ResultSection]) -> None:
        """Create a view for each section, reusing existing ones, and put them in order."""
        old, self.sections = self.sections, {}
        for section in sections:
            view = old.pop(section.key, None) or ResultSectionView()
            self.sections[section.key] = view
            self._sections_box.addWidget(view)  # moves an existing one to the end
        for view in old.values():
            self._sections_box.removeWidget(view)
            discard(view)

    def _show_loop(self, view_model: RunViewModel | None) -> None:
        node_id, session = self.node_id, self._session
        loop = NO_LOOP
        if view_model is not None and node_id is not None:
            loop = view_model.loop(node_id, session.shown.chosen)
            if loop is not NO_LOOP:
                workflow = session.shown.workflow or session.workflow
                self.exit_reason.setText(
                    loop_explanation(workflow, view_model, session.registry, session.shown.chosen, node_id)
                )
                path = view_model.path_of(node_id, session.shown.chosen)
                self.iterations.show_loop(path, loop, session.shown.chosen.get(node_id))
        self.exit_reason.setVisible(loop is not NO_LOOP)
        self.iterations.setVisible(bool(loop.iterations))

    def _show_iteration(self, index: int) -> None:
        if self.node_id is not None:
            self._session.shown.look_at(self.node_id, index)


def _execution_problems(execution: NodeExecution) -> list[Problem]:
    if execution.state is NodeState.SKIPPED:
        return []
    problems: list[Problem] = []
    if execution.error:
        severity = Severity.ERROR if execution.state is NodeState.FAILED else Severity.WARNING
        problems.append(Problem("run", execution.error, execution.remedy, severity))
    return [*problems, *_warning_problems(execution.warnings)]


def _warning_problems(texts: Sequence[str]) -> list[Problem]:
    problems = [Problem("run", text, severity=Severity.WARNING) for text in texts[:_MAX_WARNINGS]]
    if len(texts) > _MAX_WARNINGS:
        rest = f"{format_count(len(texts) - _MAX_WARNINGS, 'more warning')}."
        problems.append(Problem("run", rest, severity=Severity.WARNING))
    return problems
