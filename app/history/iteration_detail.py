"""The selected loop and iteration, and its details: result, feedback, input, exit conditions and nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QWidget,
)

from app.history.iteration_table import ROW_HEIGHT
from app.inspector.result_page import ResultPage, ResultSectionView, state_color
from app.inspector.result_text import STATE_ICONS, ResultSection, iteration_facts, state_label
from app.runs.loop_status import (
    body_outputs,
    condition_values,
    judge_execution,
    loop_explanation,
    score_lines,
    unit_of,
    warning_label,
)
from app.runs.run_view_model import NO_LOOP, NO_NODE
from app.session import Session
from app.theme.style import ThemedIcon, icon, style
from app.theme.tokens import UNIT
from app.theme.widgets import (
    STRETCH,
    Badge,
    ElidedLabel,
    PlainLabel,
    disabled_item,
    hbox,
    icon_button,
    plain_tool_tip,
    vbox,
)
from engine.document.model import Workflow
from engine.nodes.loop import LoopConfig
from engine.nodes.node_names import node_name
from engine.nodes.spec import PAIR_BY_END, PAIR_BY_START
from engine.run_state.state import LoopExecution, NodeExecution, NodeState
from engine.store.exit_explanation import loop_config
from engine.values import Value

NO_LOOP_THERE = "This workflow has no loop. Add “Loop and Exit” to the canvas to repeat steps."
NO_RUN = "No iterations yet. Run the workflow to see one row for each iteration of its loop."


def loops_of(workflow: Workflow, parents: Mapping[str, str], around: str | None) -> list[tuple[str, str]]:
    """Return the loops directly inside another, or the outermost (None), by id and title in document order."""
    return [
        (node.id, node_name(workflow, node.id))
        for node in workflow.nodes
        if node.type in PAIR_BY_START and parents.get(node.id) == around
    ]


class LoopSelection:
    """The displayed loop: the selected one, the one around the selection, or the first of the document.

    Args:
        session: The document with its run.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._wanted = ""
        self.follow_selection()

    @property
    def loop_id(self) -> str:
        """The loop; empty if there is no run or no loop."""
        view_model, workflow = self._session.shown.view_model, self._session.shown.workflow
        if view_model is None or workflow is None:
            return ""
        node = workflow.nodes_by_id.get(self._wanted)
        if node is not None and node.type in PAIR_BY_START:
            return node.id
        outer = loops_of(workflow, view_model.parents, None)
        return outer[0][0] if outer else ""

    @property
    def loop(self) -> LoopExecution:
        """The run of the loop in the selected iterations of its outer loops."""
        view_model, loop_id = self._session.shown.view_model, self.loop_id
        return NO_LOOP if view_model is None or not loop_id else view_model.loop(loop_id, self._session.shown.chosen)

    @property
    def index(self) -> int:
        """Index of the iteration; -1 if none has started."""
        view_model = self._session.shown.view_model
        if view_model is None or self.loop.current < 0:
            return -1
        return view_model.index_of(self.loop_id, self._session.shown.chosen)

    @property
    def config(self) -> LoopConfig:
        """The settings of the loop as it ran."""
        return loop_config(self._session.shown.workflow or Workflow(), self.loop_id, self.loop.total or None)

    @property
    def unit(self) -> str:
        """`item` for an iterator, `iteration` for a loop."""
        return unit_of(self._session.shown.workflow or Workflow(), self.loop_id)

    @property
    def path(self) -> str:
        """Path of the loop run: `loop`, `outer[1].inner`."""
        view_model = self._session.shown.view_model
        return "" if view_model is None else view_model.path_of(self.loop_id, self._session.shown.chosen)

    @property
    def place(self) -> str:
        """Path of the iteration, such as `outer[1].inner[0]`; empty if none has started."""
        return f"{self.path}[{self.index}]" if self.index >= 0 else ""

    def loop_explanation(self, similarity: float | None = None) -> str:
        """Explain why it stopped, or how far it is.

        Args:
            similarity: Similarity of its last two results, from 0 to 1; None if unknown.
        """
        view_model, workflow = self._session.shown.view_model, self._session.shown.workflow
        if view_model is None or workflow is None:
            return ""
        return loop_explanation(
            workflow, view_model, self._session.registry, self._session.shown.chosen, self.loop_id, similarity
        )

    def given(self, index: int) -> dict[str, Value]:
        """Return the outputs of the loop body in an iteration, if an expression needs them."""
        view_model, workflow = self._session.shown.view_model, self._session.shown.workflow
        if view_model is None or workflow is None or not self.config.names_nodes:
            return {}
        return body_outputs(workflow, view_model, self._session.registry, self.loop_id, f"{self.path}[{index}]")

    @property
    def is_over(self) -> bool:
        """Whether the loop has ended."""
        view_model = self._session.shown.view_model
        return bool(self.loop.exit_reason) or view_model is None or view_model.is_over

    def choose(self, loop_id: str) -> None:
        """Select a loop."""
        self._wanted = loop_id

    def follow_selection(self) -> None:
        """Follow the selection: its loop or the loop around it; otherwise keep the current one."""
        view_model, workflow = self._session.shown.view_model, self._session.shown.workflow
        if view_model is None or workflow is None:
            return
        for node_id in self._session.selection:
            node = workflow.nodes_by_id.get(node_id)
            loop_id = node_id if node is not None and node.type in PAIR_BY_START else view_model.parents.get(node_id)
            if loop_id is not None:
                self._wanted = loop_id
                return

    def is_touched(self, touched: set[str]) -> bool:
        """Return whether events of these nodes affect the loop."""
        view_model, loop_id = self._session.shown.view_model, self.loop_id
        if view_model is None or not loop_id:
            return False
        return loop_id in touched or any(view_model.parents.get(node) == loop_id for node in touched)

    def nothing(self) -> str:
        """Return why there are no iterations and what to do."""
        view_model, workflow = self._session.shown.view_model, self._session.shown.workflow or self._session.workflow
        if not any(node.type in PAIR_BY_START for node in workflow.nodes):
            return NO_LOOP_THERE
        if view_model is None:
            return NO_RUN
        if self.loop.exit_reason:
            return self.loop_explanation()
        if self.unit == "item":
            return "There were no items." if view_model.is_over else "No item has started yet."
        return "The loop had no iterations." if view_model.is_over else "The loop has not started yet."


_WIDTHS: Final = (96, 164)
"""Minimum and maximum width of the list in pixels at the default text size."""
HEADING: Final = "Nodes"
_KEY_ROLE: Final = Qt.ItemDataRole.UserRole
_STATE_ROLE: Final = Qt.ItemDataRole.UserRole + 1
_ICONS: Final = {
    "result": "mdi6.text-box-outline",
    "feedback": "mdi6.keyboard-return",
    "start": "mdi6.ray-start-arrow",
    "verdict": "mdi6.scale-balance",
}


class SectionList(QListWidget):
    """List of the sections of an iteration.

    Signals:
        chosen: The user selected a section; its key.
    """

    chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._tabs: list[SectionTab] = []
        self._shown: tuple[str, Callable[[str], NodeExecution]] | None = None
        self._is_showing = False
        self.setAccessibleName("Iteration sections")
        self.setProperty("bare", True)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.setTabKeyNavigation(False)
        self.setMinimumHeight(10 * UNIT)
        self.currentItemChanged.connect(self._note_current)
        style().changed.connect(self._restyle)

    @property
    def titles(self) -> list[str]:
        """The titles, headings included."""
        return [self.item(row).text() or HEADING for row in range(self.count())]

    def show_parts(self, tabs: list[SectionTab], chosen: str, execution: Callable[[str], NodeExecution]) -> None:
        """Show sections.

        Args:
            tabs: The sections, those of the iteration first.
            chosen: Key of the selected section.
            execution: Returns the execution of a node by its id.
        """
        self._shown = (chosen, execution)
        self._is_showing = True
        try:
            if tabs != self._tabs:
                self._tabs = tabs
                self._write()
            for row in range(self.count()):
                item = self.item(row)
                key = item.data(_KEY_ROLE)
                if isinstance(key, str) and key.startswith("node:"):
                    _show_state(item, execution(key.removeprefix("node:")))
                if key == chosen and row != self.currentRow():
                    self.setCurrentRow(row)
        finally:
            self._is_showing = False

    def _write(self) -> None:
        self.clear()
        has_heading = False
        for tab in self._tabs:
            if tab.node_id and not has_heading:
                has_heading = True
                self._add_heading()
            item = QListWidgetItem(tab.title)
            item.setData(_KEY_ROLE, tab.key)
            item.setToolTip(plain_tool_tip(tab.title))
            if not tab.node_id:
                item.setIcon(icon(_ICONS[tab.key], style().theme.dim))
            self.addItem(item)
        for row in range(self.count()):
            self.item(row).setSizeHint(QSize(0, round(ROW_HEIGHT * style().scale)))
        side = round(14 * style().scale)
        self.setIconSize(QSize(side, side))
        least, most = (round(width * style().scale) for width in _WIDTHS)
        wanted = max((self.fontMetrics().horizontalAdvance(tab.title) for tab in self._tabs), default=0)
        self.setFixedWidth(min(max(wanted + side + 13 * UNIT, least), most))

    def _add_heading(self) -> None:
        """Add a heading that cannot be selected. Its text is a label, because disabled list items are hard to read."""
        item = disabled_item("")
        item.setData(Qt.ItemDataRole.AccessibleTextRole, HEADING)
        self.addItem(item)
        label = PlainLabel(HEADING, look="section")
        label.setContentsMargins(2 * UNIT, 0, 0, 0)
        self.setItemWidget(item, label)

    def _note_current(self, item: QListWidgetItem | None) -> None:
        if not self._is_showing and item is not None and isinstance(item.data(_KEY_ROLE), str):
            self.chosen.emit(item.data(_KEY_ROLE))

    def _restyle(self) -> None:
        tabs, self._tabs = self._tabs, []
        if self._shown is not None:
            self.show_parts(tabs, *self._shown)


def _show_state(item: QListWidgetItem, execution: NodeExecution) -> None:
    """Show the state of a node. Nothing is redrawn if it is unchanged."""
    state: NodeState | None = item.data(_STATE_ROLE)
    if state == execution.state:
        return
    item.setData(_STATE_ROLE, execution.state)
    item.setIcon(icon(STATE_ICONS[execution.state], state_color(execution.state)))
    item.setData(Qt.ItemDataRole.AccessibleTextRole, f"{item.text()}: {state_label(execution)}")


RESULT: Final = "result"


@dataclass(frozen=True, slots=True)
class SectionTab:
    """An entry of the section list.

    Attributes:
        key: Its key, the same in all iterations.
        title: Its title.
        node_id: The node of the loop body; empty for a section of the iteration itself.
    """

    key: str
    title: str
    node_id: str = ""


def node_tabs(workflow: Workflow, parents: Mapping[str, str], loop_id: str) -> list[SectionTab]:
    """Return an entry for each node of a loop body in document order, without end nodes."""
    return [
        SectionTab(f"node:{node.id}", node_name(workflow, node.id), node.id)
        for node in workflow.nodes
        if node.type not in PAIR_BY_END and parents.get(node.id) == loop_id
    ]


def iteration_sections(
    loop: LoopExecution, index: int, was_tested: str, workflow: Workflow, *, is_over: bool, unit: str = "iteration"
) -> dict[str, ResultSection]:
    """Return the sections of an iteration itself by key.

    Args:
        loop: The loop run.
        index: The iteration, which has started.
        was_tested: Description of the tested conditions.
        workflow: The workflow as it ran.
        is_over: Whether the run has ended.
        unit: `iteration`, or `item` of an iterator, which has no feedback and no conditions.
    """
    iteration = loop.iteration(index)
    if iteration is None:
        words = "Not completed." if is_over else "Still running."
        parts = {RESULT: ResultSection("under way", "Result", f"{words} See the nodes for their results so far.")}
        if loop.input_preview and index == loop.current:
            parts["start"] = ResultSection("start preview", "Input (beginning)", loop.input_preview)
        return parts
    parts = {RESULT: ResultSection("result", "Result", iteration.result)}
    warnings = [f"Warning: {warning_label(warning, workflow)}" for warning in iteration.warnings]
    if unit == "item":
        if iteration.result is None and iteration.reason:
            parts[RESULT] = ResultSection("no result", "No result", iteration.reason)
        parts["start"] = ResultSection("start", "Item", iteration.input)
        notes = [*([iteration.reason] if iteration.reason else []), *warnings]
        if notes:
            parts["verdict"] = ResultSection("verdict", "Outcome", "\n\n".join(notes))
        return parts
    if iteration.feedback != iteration.result:
        parts["feedback"] = ResultSection("feedback", "Feedback (input of the next iteration)", iteration.feedback)
    parts["start"] = ResultSection("start", "Input", iteration.input)
    parts["verdict"] = ResultSection("verdict", "Exit conditions", "\n\n".join([was_tested, *warnings]))
    return parts


TITLES: Final = {RESULT: "Result", "feedback": "Feedback", "start": "Input", "verdict": "Exit conditions"}
ITEM_TITLES: Final = {**TITLES, "start": "Item", "verdict": "Outcome"}


class IterationDetail(QWidget):
    """Shows one iteration.

    Args:
        session: The document with its run.
        selection: The selected loop and iteration.
        parent: Its parent.

    Signals:
        compare_wanted: The user wants to compare a path, such as `loop[2]` or `loop[2].critique`.
        run_compare_wanted: The user wants to compare a path with the same one in another run.
        fork_wanted: The user wants to fork from a path.

    Attributes:
        parts: The section list.
        text: Shows a section of the iteration itself.
        node: Shows the result of a node.
    """

    compare_wanted = Signal(str)
    run_compare_wanted = Signal(str)
    fork_wanted = Signal(str)

    def __init__(self, session: Session, selection: LoopSelection, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._selection = selection
        self._tabs: list[SectionTab] = []
        self._wanted = RESULT
        self._parts: dict[str, ResultSection] = {}
        self._known: tuple[object, ...] = ()
        self.title = PlainLabel(look="title")
        self.returned = Badge("✓ returned", "good")
        self.facts = ElidedLabel(look="dim small")
        self.parts = SectionList()
        self.parts.chosen.connect(self._choose_part)
        self.text = ResultSectionView(fills=True)
        self.node = ResultPage(session)
        self._area = QScrollArea()
        self.pages = QStackedWidget()
        self.compare = QPushButton("Compare…")
        self.compare.clicked.connect(lambda: self.compare_wanted.emit(self.place))
        other, show = "Compare with another run", lambda: self.run_compare_wanted.emit(self.place)
        self.compare_run = icon_button("mdi6.compare", other, show, tip=f"{other}…", color="dim")
        self.fork = QPushButton("Fork from here…")
        self.fork.clicked.connect(lambda: self.fork_wanted.emit(self.place))
        self._arrange()

    def _arrange(self) -> None:
        self.compare.setToolTip("Compare with the iteration before")
        ThemedIcon(self.compare, "mdi6.compare-horizontal", "dim")
        ThemedIcon(self.fork, "mdi6.source-branch", "dim")
        self._area.setWidgetResizable(True)
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._area.setMinimumHeight(10 * UNIT)
        head = hbox(self.title, self.returned, (self.facts, 1), self.compare_run, spacing=2)
        middle = hbox(self.parts, (self.pages, 1), spacing=3)
        buttons = hbox(self.compare, self.fork, STRETCH, spacing=2)
        vbox(head, (middle, 1), buttons, spacing=2, margins=(3, 0, 0, 0), parent=self)
        # From the outside in: Qt restyles a whole widget tree whenever its parent changes.
        self.pages.addWidget(self.text)
        self.pages.addWidget(self._area)
        self._area.setWidget(self.node)

    @property
    def key(self) -> str:
        """Key of the displayed section: the selected one, or the result if the iteration does not have it."""
        return self._wanted if any(tab.key == self._wanted for tab in self._tabs) else RESULT

    @property
    def place(self) -> str:
        """Path of the displayed iteration or node; empty if no iteration has started."""
        node_id = next((tab.node_id for tab in self._tabs if tab.key == self.key), "")
        around = self._selection.place
        return f"{around}.{node_id}" if around and node_id else around

    def show_iteration(self, similarity: float | None) -> None:
        """Show the selected iteration with the same section as before.

        Args:
            similarity: Similarity of its result to the previous one; None if unknown.
        """
        view_model, workflow = self._session.shown.view_model, self._session.shown.workflow
        assert view_model is not None
        assert workflow is not None
        selection = self._selection
        loop, index, place = selection.loop, selection.index, selection.place
        self.title.setText(f"{selection.unit.capitalize()} {index + 1}")
        self.returned.setVisible(index == loop.returned)
        iteration, is_item = loop.iteration(index), selection.unit == "item"
        known = (place, iteration, similarity, selection.is_over)
        if iteration is None or known != self._known:  # a completed iteration is formatted once
            self._known, was_tested = known, ""
            if iteration is not None and not is_item:
                given = selection.given(index)
                was_tested = condition_values(loop, index, selection.config, similarity=similarity, outputs=given)
                scores = score_lines(workflow, selection.loop_id, judge_execution(view_model, selection.loop_id, place))
                was_tested = "\n\n".join([was_tested, *(["\n".join(["Scores:", *scores])] if scores else [])])
            self.facts.set_full_text(iteration_facts(iteration, similarity) if iteration is not None else "")
            self._parts = iteration_sections(
                loop, index, was_tested, workflow, is_over=selection.is_over, unit=selection.unit
            )
        own = [SectionTab(key, (ITEM_TITLES if is_item else TITLES)[key]) for key in self._parts]
        self._tabs = own + node_tabs(workflow, view_model.parents, selection.loop_id)
        self.parts.show_parts(self._tabs, self.key, lambda node_id: view_model.nodes.get(f"{place}.{node_id}", NO_NODE))
        self._show_section()

    def _choose_part(self, key: str) -> None:
        self._wanted = key
        self._show_section()

    def _show_section(self) -> None:
        part = self._parts.get(self.key)
        if part is not None:
            self.text.show_section(part)
            self.pages.setCurrentWidget(self.text)
            return
        node_id = self.key.removeprefix("node:")
        if self.node.node_id != node_id:
            self.node.node_id = node_id
            self._area.verticalScrollBar().setValue(0)
        self.node.update_result()
        self.pages.setCurrentWidget(self._area)
