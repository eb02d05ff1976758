"""The Problems panel: a row per problem, which leads to its place, with buttons for quick fixes.

Quick fixes are operations on the document for problems with an obvious solution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QFrame, QPushButton, QWidget

from app.inspector.form_fields import problem_fix_title
from app.session import Session
from app.theme.style import style
from app.theme.tokens import UNIT
from app.theme.widgets import STRETCH, IconLabel, PlainLabel, discard, hbox, push_button, scroll_area, vbox
from engine.document.model import Node, Workflow, make_id, unique_id
from engine.document.operations import (
    UNSET,
    AddNodes,
    Batch,
    Connect,
    Disconnect,
    Operation,
    RemoveNodes,
    RenameNode,
    SetConfig,
    SetLayout,
    SetSettings,
)
from engine.document.problems import Problem, Severity
from engine.exits import MAX_ITERATIONS_CAP
from engine.exits.evaluator import DONE
from engine.nodes.spec import PAIR_BY_END, PAIR_BY_START
from engine.plan.structure import Structure
from engine.values import Value

COLUMN: Final = 280.0
"""Distance of a new node from the one it belongs to, in scene units."""


@dataclass(frozen=True, slots=True)
class QuickFix:
    """One fix.

    Attributes:
        title: The text of its button.
        operation: The operation that it does; None if it changes something outside of the document.
        fix: What it does then, as in `EngineError`.
    """

    title: str
    operation: Operation | None
    fix: str = ""


def quick_fixes(problem: Problem, structure: Structure) -> tuple[QuickFix, ...]:
    """Return the quick fixes of a problem; most have none.

    Args:
        problem: One of the problems of that document.
        structure: The analyzed document.
    """
    find = _FIXES.get(problem.code)
    fixes = () if find is None else tuple(find(problem, structure))
    if title := problem_fix_title(problem):
        fixes += (QuickFix(title, None, problem.fix),)
    if problem.correction and problem.node and problem.field:
        path = tuple(int(part) if part.isdigit() else part for part in problem.field.split("."))
        fixes += (QuickFix(f"Use {problem.correction}", SetConfig(path, {problem.node: problem.correction})),)
    return fixes


def _missing_exit(problem: Problem, structure: Structure) -> Iterator[QuickFix]:
    loop = problem.node or ""
    workflow = structure.workflow
    pair = PAIR_BY_START[workflow.node(loop).type]
    exit_id = unique_id(workflow, pair.end)
    place = _beside(workflow, loop, 2 * COLUMN)
    operations: list[Operation] = [AddNodes((Node(id=exit_id, type=pair.end, config={pair.field: loop}),))]
    if place is not None:
        operations.append(SetLayout(("nodes", exit_id), place))
    yield QuickFix(f"Add the missing {pair.end}", Batch(f"Add {exit_id}", tuple(operations)))


def _exit_without_loop(problem: Problem, structure: Structure) -> Iterator[QuickFix]:
    end = structure.workflow.node(problem.node or "").type
    yield QuickFix(f"Remove the {end}", RemoveNodes((problem.node or "",)))


def _unknown_loop(problem: Problem, structure: Structure) -> Iterator[QuickFix]:
    pair = PAIR_BY_END[structure.workflow.node(problem.node or "").type]
    nodes = structure.workflow.nodes
    for loop in (node.id for node in nodes if node.type == pair.start and node.id not in structure.bodies):
        yield QuickFix(f"End “{structure.resolution.name(loop)}”", SetConfig((pair.field,), {problem.node or "": loop}))


def _edge(problem: Problem, _structure: Structure) -> Iterator[QuickFix]:
    source, arrow, target = (problem.edge or "").partition(" -> ")
    if arrow:
        yield QuickFix("Remove edge", Disconnect(source, target))


def _rename_node(problem: Problem, structure: Structure) -> Iterator[QuickFix]:
    old = problem.node or ""
    yield QuickFix("Rename", RenameNode(old, make_id(old, structure.workflow.nodes_by_id)))


def _rename_parameter(problem: Problem, structure: Structure) -> Iterator[QuickFix]:
    kind = problem.code.partition("-")[2]
    taken = {node.config.get("name") or node.id for node in structure.workflow.nodes if node.type == kind}
    node = structure.workflow.nodes_by_id.get(problem.node or "")
    if node is not None:
        name = make_id(str(node.config.get("name") or node.id), taken)
        yield QuickFix(f"Rename to “{name}”", SetConfig(("name",), {node.id: name}))


def _remove_setting(problem: Problem, structure: Structure) -> Iterator[QuickFix]:
    node = structure.workflow.nodes_by_id.get(problem.node or "")
    field = problem.field or ""
    if node is not None and field in node.config:
        yield QuickFix("Remove setting", SetConfig((field,), {node.id: UNSET}))
    elif node is None and field.startswith("settings."):
        yield QuickFix("Remove setting", SetSettings((field.removeprefix("settings."),), UNSET))


def _use_default(problem: Problem, structure: Structure) -> Iterator[QuickFix]:
    field = (problem.field or "").removeprefix("settings.").partition(".")[0]
    node = structure.workflow.nodes_by_id.get(problem.node or "")
    if node is not None and field in node.config:
        yield QuickFix("Use default", SetConfig((field,), {node.id: UNSET}))
    elif node is None and field in structure.workflow.settings:
        yield QuickFix("Use default", SetSettings((field,), UNSET))


def _clamp(problem: Problem, structure: Structure) -> Iterator[QuickFix]:
    node = structure.workflow.nodes_by_id.get(problem.node or "")
    wish = node.config.get("max_iterations") if node is not None else None
    if node is not None and isinstance(wish, int):
        number = min(max(wish, 1), MAX_ITERATIONS_CAP)
        yield QuickFix(f"Use {number}", SetConfig(("max_iterations",), {node.id: number}))


def _choose_evaluator(problem: Problem, structure: Structure) -> Iterator[QuickFix]:
    body = structure.bodies.get(problem.node or "")
    if body is None:
        return
    for node in structure.order:
        is_own = structure.parent.get(node) == body.loop and structure.workflow.node(node).type == "router"
        if is_own and any(link.source_port == DONE for link in structure.links_from.get(node, ())):
            yield QuickFix(f"Use “{structure.resolution.name(node)}”", SetConfig(("evaluator",), {body.loop: node}))


def _feedback_end(problem: Problem, structure: Structure) -> Iterator[QuickFix]:
    loop = structure.parent.get(problem.node or "", "")
    body = structure.bodies.get(loop)
    for end in structure.feedback_ends.get(loop, ()):
        resolved = structure.resolution.nodes.get(end)
        port = next(iter(resolved.outputs), None) if resolved is not None else None
        if body is not None and port is not None:
            yield QuickFix(
                f"Feed back “{structure.resolution.name(end)}”",
                Connect.between(f"{end}.{port}", f"{body.exit}.feedback"),
            )


def _no_output(_problem: Problem, structure: Structure) -> Iterator[QuickFix]:
    workflow = structure.workflow
    output = unique_id(workflow, "result")
    operations: list[Operation] = [AddNodes((Node(id=output, type="output", title="Result"),))]
    inside = {*structure.parent, *structure.bodies}
    ends = [node for node in structure.order if node not in structure.links_from and node not in inside]
    if len(ends) == 1:
        resolved = structure.resolution.nodes.get(ends[0])
        port = next(iter(resolved.outputs), None) if resolved is not None else None
        place = _beside(workflow, ends[0], COLUMN)
        if place is not None:
            operations.append(SetLayout(("nodes", output), place))
        if port is not None:
            operations.append(Connect.between(f"{ends[0]}.{port}", f"{output}.value"))
    yield QuickFix("Add output", Batch("Add output", tuple(operations)))


def _beside(workflow: Workflow, node_id: str, distance: float) -> dict[str, Value] | None:
    places = workflow.layout.get("nodes")
    place = places.get(node_id) if isinstance(places, dict) else None
    if not isinstance(place, dict) or not all(isinstance(place.get(axis), int | float) for axis in ("x", "y")):
        return None
    return {"x": place["x"] + distance, "y": place["y"]}


_CODES: Final[dict[Callable[[Problem, Structure], Iterator[QuickFix]], str]] = {
    _missing_exit: "missing-exit",
    _exit_without_loop: "exit-without-loop",
    _unknown_loop: "unknown-loop",
    _edge: """unknown-node unknown-port duplicate-edge type-mismatch edge-out-of-body loop-result-in-body
        loop-waits-for-itself""",
    _rename_node: "bad-id duplicate-id",
    _rename_parameter: "duplicate-input duplicate-output",
    _remove_setting: "unknown-config-key unknown-key",
    _use_default: "bad-config bad-setting no-effect no-score bad-default",
    _clamp: "iterations-clamped",
    _choose_evaluator: "several-evaluators bad-evaluator",
    _feedback_end: "two-feedback-ends",
    _no_output: "no-output",
}
_FIXES: Final = {code: fix for fix, codes in _CODES.items() for code in codes.split()}


MOST_ROWS: Final = 100
MOST_FIXES: Final = 3


class ProblemRow(QFrame):
    """One problem.

    Args:
        problem: The problem.
        place: Its place in words, with the name of its node; empty for the document as a whole.
        answers: Its quick fixes.

    Signals:
        chosen: It was clicked, or Enter was pressed on it.
        fix_chosen: One of its buttons was pressed.
    """

    chosen = Signal(object)
    fix_chosen = Signal(object)

    def __init__(self, problem: Problem, place: str, answers: tuple[QuickFix, ...], parent: QWidget) -> None:
        super().__init__(parent)
        self.problem = problem
        self.setProperty("row", True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        said = (str(problem.severity), place, f"{problem.message} {problem.remedy}".rstrip())
        self.setAccessibleName(": ".join(filter(None, said)))
        is_error = problem.severity is Severity.ERROR
        mark = IconLabel(self)
        color = "bad" if is_error else "warning"
        mark.show_icon(f"mdi6.alert{'-circle' * is_error}-outline", lambda: getattr(style().theme, color))
        mark.setAccessibleName(str(problem.severity))
        mark.setToolTip("Error: the workflow cannot run." if is_error else "Warning: the workflow can run.")
        message = PlainLabel(problem.message, self, wrap=True)
        where = f"{place}. " if place else ""
        remedy = PlainLabel(f"{where[:1].upper()}{where[1:]}{problem.remedy}", self, look="dim", wrap=True)
        row = hbox(
            (mark, Qt.AlignmentFlag.AlignTop),
            (vbox(message, remedy, spacing=0), 1),
            spacing=2,
            margins=(2, 1, 2, 1),
            parent=self,
        )
        for fix in answers[:MOST_FIXES]:
            button = push_button(fix.title, partial(self.fix_chosen.emit, fix), self)
            button.setAccessibleName(f"{fix.title}: {problem.message}")
            row.addWidget(button, 0, Qt.AlignmentFlag.AlignVCenter)

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
        fix_wanted: The user chose a fix outside of the document, as in `EngineError`.
    """

    problem_chosen = Signal(object)
    fix_wanted = Signal(str)

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._shown: list[tuple[Problem, str, tuple[QuickFix, ...]]] = []
        self._list = QWidget(self)
        self._rows = vbox(STRETCH, spacing=0, margins=(2, 1, 2, 1), parent=self._list)
        self._rest = PlainLabel("", self, look="dim")
        self._rest.setContentsMargins(3 * UNIT, 2 * UNIT, 3 * UNIT, 2 * UNIT)
        self._area = scroll_area(self._list, self)
        self._area.setAccessibleName("Problems")
        vbox(self._rest, (self._area, 1), spacing=0, parent=self)
        session.analyzed.connect(self.refresh)
        self.refresh()

    @property
    def rows(self) -> list[ProblemRow]:
        """The rows that are shown, from top to bottom."""
        items = (self._rows.itemAt(index) for index in range(self._rows.count()))
        widgets = (item.widget() for item in items if item is not None)
        return [widget for widget in widgets if isinstance(widget, ProblemRow)]

    def refresh(self) -> None:
        """Show the current problems; nothing is rebuilt if they are unchanged."""
        problems = sorted(self._session.visible_problems, key=lambda problem: problem.severity is Severity.WARNING)
        structure = self._session.structure
        wanted = [
            (problem, _place(problem, structure), quick_fixes(problem, structure)) for problem in problems[:MOST_ROWS]
        ]
        self._say(len(problems))
        if wanted == self._shown:
            return
        self._shown = wanted
        focused = self.window().focusWidget()
        at = next((at for at, row in enumerate(self.rows) if focused in {row, *row.findChildren(QPushButton)}), None)
        if at is not None:
            self._area.setFocus()  # first, or Qt would move the focus to another part of the window
        for row in self.rows:
            self._rows.removeWidget(row)
            discard(row)
        for number, (problem, place, answers) in enumerate(wanted):
            row = ProblemRow(problem, place, answers, self._list)
            row.chosen.connect(self.problem_chosen)
            row.fix_chosen.connect(self._apply)
            self._rows.insertWidget(number, row)
        if at is not None and self.rows:
            self.rows[min(at, len(self.rows) - 1)].setFocus()

    def _say(self, number: int) -> None:
        text = "" if number else "No problems."
        if number > MOST_ROWS:
            text = f"Showing the first {MOST_ROWS} of {number} problems."
        self._rest.setText(text)
        self._rest.setVisible(bool(text))

    def _apply(self, fix: QuickFix) -> None:
        if fix.operation is None:
            self.fix_wanted.emit(fix.fix)
            return
        self._session.seal()
        self._session.do(fix.operation)


def _place(problem: Problem, structure: Structure) -> str:
    """Return the place of a problem in words, with the node as on its card."""
    node = problem.node
    return replace(problem, node=structure.resolution.name(node) if node is not None else None).place
