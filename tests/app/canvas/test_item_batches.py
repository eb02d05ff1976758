"""The items of many nodes are created in batches; whatever happens in between, the view ends like a new one."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from PySide6.QtCore import QPointF, QRectF, Qt, QTimer
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QGraphicsItem
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from app.canvas import document_view
from app.canvas.canvas import Canvas
from app.canvas.edge_item import EdgeFlow, EdgeItem
from app.canvas.loop_region import LoopRegionItem
from app.canvas.node_item import NodeItem
from app.node_layout import layout_entries
from app.session import ReplaceDocument, Session, analyze_document
from engine.document.model import Workflow
from engine.document.operations import Batch, Disconnect, RemoveNodes, SetLayout, SetTitle
from engine.run_state.state import NodeState
from tests.app.canvas.conftest import Hand, MakeCanvas, settle
from tests.app.canvas.documents import node, workflow
from tests.app.canvas.test_runs import run, script, state
from tests.app.conftest import MakeSession
from tests.examples import examples

BATCH = 2


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_view, "BATCH", BATCH)


def loops(count: int) -> Workflow:
    """Loops in a row that follow one another, each around a model."""
    nodes, chain, places = [], list[str](), dict[str, tuple[int, int]]()
    for number in range(count):
        loop, step, exit_ = f"loop{number}", f"step{number}", f"exit{number}"
        nodes += [node(loop, "loop"), node(step, "llm", prompt="{{input}}"), node(exit_, "exit", loop=loop)]
        chain += [f"{loop}.body -> {step}.input", f"{step}.output -> {exit_}.input"]
        chain += [f"exit{number - 1}.output -> {loop}.input"] if number else []
        places |= {each: (280 * place, 400 * number) for place, each in enumerate((loop, step, exit_))}
    return workflow(nodes, chain, places)


def remove_all(session: Session) -> None:
    ids = [each.id for each in session.workflow.nodes]
    assert session.do(Batch("Delete nodes", tuple(RemoveNodes((node_id,)) for node_id in ids)))


def complete(canvas: Canvas, qtbot: QtBot) -> None:
    """Let the event loop create the rest."""
    qtbot.waitUntil(lambda: canvas.view.is_complete)


def drawn(canvas: Canvas) -> dict[str, Any]:
    """All that the canvas shows of the document."""
    view, scene = canvas.view, canvas.viewer.scene()
    assert view.is_complete
    items = scene.items()
    for kind, known in ((NodeItem, view.nodes), (EdgeItem, view.edge_items), (LoopRegionItem, view.regions.items)):
        shown = {id(item) for item in items if type(item) is kind and item.isVisible()}
        assert shown == {id(item) for item in known.values()}
    return {
        "nodes": {
            node_id: (item.content, item.x(), item.y(), item.description, item.flags())
            for node_id, item in view.nodes.items()
        },
        "edges": {key: (_ends(edge), edge.flow, edge.pen()) for key, edge in view.edge_items.items()},
        "regions": {loop: (item.rect, item.depth, item.label.content) for loop, item in view.regions.items.items()},
        "hidden": view.hidden,
        "extent": view.content_rect,
    }


def _ends(edge: EdgeItem) -> tuple[QPointF, QPointF]:
    path = edge.path()
    return path.pointAtPercent(0), path.currentPosition()


def test_opening_many_nodes_creates_none_at_once(make_session: MakeSession, qtbot: QtBot) -> None:
    canvas = Canvas(make_session(loops(2)))
    qtbot.addWidget(canvas)
    assert canvas.view.created_nodes == {}
    complete(canvas, qtbot)
    assert set(canvas.view.created_nodes) == set(canvas.session.workflow.nodes_by_id)
    assert len(canvas.view.edge_items) == 5
    assert set(canvas.view.regions.items) == {"loop0", "loop1"}


def test_a_batch_of_nodes_is_created_at_once(hand: Hand) -> None:
    ids = ["task", "draft"]
    assert len(ids) == BATCH
    hand.session.do(Batch("Delete nodes", tuple(RemoveNodes((node_id,)) for node_id in ids)))
    hand.session.undo()
    assert set(hand.canvas.view.created_nodes) >= set(ids)


def test_nodes_in_view_come_first(make_canvas: MakeCanvas, qtbot: QtBot) -> None:
    hand = make_canvas(loops(4))
    complete(hand.canvas, qtbot)
    remove_all(hand.session)
    created: list[set[str]] = []
    hand.canvas.view.nodes_created.connect(lambda _ids: created.append(set(hand.canvas.view.created_nodes)))
    hand.canvas.viewer.center_at(QPointF(420, 1240))  # the last loop
    hand.canvas.viewer.zoom_to(2.0)
    hand.session.undo()
    complete(hand.canvas, qtbot)
    assert created[0] <= {"loop3", "step3", "exit3"}
    assert len(created) == 6 + 1  # the regions


def test_removed_nodes_disappear_at_once_and_leave_the_scene_in_batches(
    make_canvas: MakeCanvas, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_view, "REMOVAL_BATCH", 10)
    hand = make_canvas(loops(4))
    complete(hand.canvas, qtbot)
    scene = hand.canvas.viewer.scene()

    def cards_and_edges() -> list[QGraphicsItem]:
        return [item for item in scene.items() if type(item) in {NodeItem, EdgeItem}]

    remove_all(hand.session)
    assert len(cards_and_edges()) == 12 + 11
    assert not any(item.isVisible() for item in cards_and_edges())
    numbers: list[int] = []
    while items := cards_and_edges():
        numbers.append(len(items))
        del items
        QApplication.processEvents()
    assert {13, 3} <= set(numbers)


def test_regions_around_many_removed_nodes_follow_in_a_turn_of_their_own(make_canvas: MakeCanvas, qtbot: QtBot) -> None:
    hand = make_canvas(loops(4))
    complete(hand.canvas, qtbot)
    hand.session.do(SetLayout(("nodes", "step0"), {"x": 280, "y": 300}))
    before = hand.canvas.view.regions.items["loop0"].rect
    hand.session.do(RemoveNodes(("step0", "loop1", "step1", "exit1")))
    assert set(hand.canvas.view.created_regions.items) == {"loop0", "loop2", "loop3"}
    assert not hand.canvas.view.is_complete
    complete(hand.canvas, qtbot)
    assert hand.canvas.view.regions.items["loop0"].rect.bottom() < before.bottom()


def test_batches_wait_for_the_analysis(make_canvas: MakeCanvas, qtbot: QtBot) -> None:
    hand = make_canvas(loops(4))
    complete(hand.canvas, qtbot)
    remove_all(hand.session)
    analyzing: list[bool] = []
    hand.canvas.view.nodes_created.connect(lambda _ids: analyzing.append(hand.session.is_analyzing))
    hand.session.undo()
    assert hand.session.is_analyzing
    complete(hand.canvas, qtbot)
    assert set(analyzing) == {False}


def test_batches_do_not_wait_for_ever_while_one_edit_follows_another(make_canvas: MakeCanvas, qtbot: QtBot) -> None:
    hand = make_canvas(loops(4))
    complete(hand.canvas, qtbot)
    remove_all(hand.session)
    hand.session.undo()

    numbers = itertools.count()

    def edit() -> None:
        hand.session.do(SetTitle("step0", f"Title {next(numbers)}"))

    edits = QTimer(hand.canvas, interval=5)
    edits.timeout.connect(edit)
    edits.start()
    complete(hand.canvas, qtbot)
    edits.stop()
    assert hand.session.is_analyzing
    assert len(hand.canvas.view.created_nodes) == 12


@pytest.mark.parametrize(
    "read",
    [
        lambda hand: hand.canvas.view.nodes,
        lambda hand: hand.canvas.view.regions,
        lambda hand: hand.canvas.view.edge_items,
        lambda hand: hand.canvas.view.content_rect,
        lambda hand: hand.canvas.view.port("draft.input", is_input=True),
        lambda hand: hand.canvas.view.card_of("draft"),
        lambda hand: hand.canvas.center_on("draft"),
        lambda hand: hand.canvas.actions_by_name["select_all"].trigger(),
        lambda hand: hand.click(QPointF(300, 300)),
    ],
    ids=["nodes", "regions", "edges", "extent", "port", "card", "center", "select all", "click"],
)
def test_what_needs_all_items_creates_the_rest(hand: Hand, qtbot: QtBot, read: Callable[[Hand], object]) -> None:
    complete(hand.canvas, qtbot)
    remove_all(hand.session)
    hand.session.undo()
    assert len(hand.canvas.view.created_nodes) < 5
    read(hand)
    assert hand.canvas.view.is_complete
    assert set(hand.canvas.view.created_nodes) == {"task", "loop", "draft", "exit", "text"}
    assert {node_id for node_id, item in hand.canvas.view.nodes.items() if item.isSelected()} == set(
        hand.session.selection
    )


def test_a_loop_dropped_on_a_card_that_waits_wraps_it(hand: Hand, qtbot: QtBot) -> None:
    complete(hand.canvas, qtbot)
    middle = hand.item("draft").card_rect.center()
    remove_all(hand.session)
    hand.session.undo()
    assert "draft" not in hand.canvas.view.created_nodes
    added = hand.canvas.commands.add_node("loop", middle)
    assert added is not None
    assert hand.session.structure_now.bodies[added].nodes == {"draft"}


def test_picture_of_a_document_has_the_items_that_wait(hand: Hand, qtbot: QtBot, tmp_path: Path) -> None:
    complete(hand.canvas, qtbot)
    settle(hand, qtbot)
    hand.canvas.draw("png")(tmp_path / "before.png")
    remove_all(hand.session)
    hand.session.undo()
    hand.session.structure, hand.session.problems = analyze_document(hand.session.workflow, hand.session.registry)
    hand.canvas.draw("png")(tmp_path / "after.png")
    assert QImage(str(tmp_path / "after.png")) == QImage(str(tmp_path / "before.png"))


def test_undone_deletion_shows_the_run_again(hand: Hand, qtbot: QtBot, tmp_path: Path) -> None:
    complete(hand.canvas, qtbot)
    run(hand, qtbot, script(tmp_path))
    settle(hand, qtbot)
    before = drawn(hand.canvas)
    remove_all(hand.session)
    hand.session.undo()
    complete(hand.canvas, qtbot)
    assert {state(hand, node_id).state for node_id in hand.canvas.view.nodes} == {NodeState.COMPLETED}
    assert {edge.flow for edge in hand.canvas.view.edge_items.values()} == {EdgeFlow.CARRIED}
    settle(hand, qtbot)
    assert drawn(hand.canvas) == before


def test_redo_while_items_wait_removes_everything(hand: Hand, qtbot: QtBot) -> None:
    complete(hand.canvas, qtbot)
    remove_all(hand.session)
    for _ in range(3):
        hand.session.undo()
        QApplication.processEvents()
        hand.session.redo()
        assert hand.canvas.view.is_complete
        assert hand.canvas.view.created_nodes == {}
        assert not {NodeItem, EdgeItem} & {type(item) for item in hand.canvas.viewer.scene().items()}


@pytest.mark.parametrize("count", [1, 12])
@pytest.mark.parametrize("fit", ["fit_all", "fit_initial_view"])
def test_a_fit_while_items_wait_ends_like_one_afterwards(
    make_canvas: MakeCanvas, qtbot: QtBot, fit: str, count: int
) -> None:
    hand = make_canvas(loops(count))
    complete(hand.canvas, qtbot)
    settle(hand, qtbot)
    getattr(hand.canvas.fit_to_view, fit)()
    wanted = hand.canvas.viewer.visible_rect
    remove_all(hand.session)
    hand.canvas.viewer.zoom_to(3.0)
    hand.session.undo()
    hand.session.structure, hand.session.problems = analyze_document(hand.session.workflow, hand.session.registry)
    getattr(hand.canvas.fit_to_view, fit)()
    assert not hand.canvas.view.is_complete
    assert _is_near(hand.canvas.viewer.visible_rect, wanted, 300)
    complete(hand.canvas, qtbot)
    assert _is_near(hand.canvas.viewer.visible_rect, wanted, 4)


def test_a_fit_is_repeated_when_an_analysis_creates_the_last_items(make_canvas: MakeCanvas, qtbot: QtBot) -> None:
    hand = make_canvas(loops(1))
    complete(hand.canvas, qtbot)
    settle(hand, qtbot)
    hand.canvas.fit_to_view.fit_all()
    wanted = hand.canvas.viewer.visible_rect
    remove_all(hand.session)
    hand.session.undo()
    hand.session.structure, hand.session.problems = analyze_document(hand.session.workflow, hand.session.registry)
    hand.canvas.fit_to_view.fit_all()
    created: list[int] = []

    def analyzed(_ids: object) -> None:
        created.append(len(hand.canvas.view.created_nodes))
        if created == [BATCH]:
            hand.session.analyzed.emit()

    hand.canvas.view.nodes_created.connect(analyzed)
    complete(hand.canvas, qtbot)
    assert created == [BATCH, 3, 3]  # at last, the regions
    assert _is_near(hand.canvas.viewer.visible_rect, wanted, 4)


def _is_near(rect: QRectF, wanted: QRectF, within: float) -> bool:
    return (rect.topLeft() - wanted.topLeft()).manhattanLength() <= within and (
        rect.bottomRight() - wanted.bottomRight()
    ).manhattanLength() <= within


def test_a_view_that_the_user_moved_is_not_fitted_in_the_end(make_canvas: MakeCanvas, qtbot: QtBot) -> None:
    hand = make_canvas(loops(3))
    complete(hand.canvas, qtbot)
    remove_all(hand.session)
    hand.session.undo()
    hand.canvas.fit_to_view.fit_all()
    hand.canvas.viewer.zoom_to(2.0)
    assert not hand.canvas.view.is_complete
    complete(hand.canvas, qtbot)
    assert hand.canvas.viewer.zoom == 2.0


def duplicated(hand: Hand, qtbot: QtBot) -> set[str]:
    """Duplicate all nodes, and return the ids of the copies, whose cards wait."""
    complete(hand.canvas, qtbot)
    before = set(hand.session.workflow.nodes_by_id)
    hand.session.select(before)
    hand.canvas.commands.duplicate()
    copies = set(hand.session.workflow.nodes_by_id) - before
    assert len(copies) == len(before)
    assert not copies & hand.canvas.view.created_nodes.keys()
    return copies


def selected_cards(canvas: Canvas) -> set[str]:
    return {node_id for node_id, item in canvas.view.created_nodes.items() if item.isSelected()}


@pytest.mark.parametrize(
    ("count", "zoom"), [(4, 0.1), (4, 2.0), (2, 1.6)], ids=["all", "part", "fits only while cards count as small"]
)
def test_copies_are_selected_and_in_view_once_created(
    make_canvas: MakeCanvas, qtbot: QtBot, count: int, zoom: float
) -> None:
    hand = make_canvas(loops(count))
    hand.canvas.viewer.zoom_to(zoom)
    copies = duplicated(hand, qtbot)
    assert set(hand.session.selection) == copies
    complete(hand.canvas, qtbot)
    assert set(hand.session.selection) == selected_cards(hand.canvas) == copies
    rect = hand.canvas.view.expected_rect_of(copies)
    qtbot.waitUntil(lambda: hand.canvas.viewer.visible_rect.contains(rect))


def test_a_view_moved_while_copies_wait_stays(make_canvas: MakeCanvas, qtbot: QtBot) -> None:
    hand = make_canvas(loops(4))
    hand.canvas.viewer.zoom_to(2.0)
    duplicated(hand, qtbot)
    hand.canvas.viewer.zoom_to(3.0)
    complete(hand.canvas, qtbot)
    QApplication.processEvents()  # the turn in which they would be shown
    assert hand.canvas.viewer.zoom == 3.0


def test_undo_while_copies_wait_removes_them(make_canvas: MakeCanvas, qtbot: QtBot) -> None:
    hand = make_canvas(loops(4))
    copies = duplicated(hand, qtbot)
    hand.session.undo()
    complete(hand.canvas, qtbot)
    assert not copies & hand.canvas.view.nodes.keys()
    assert set(hand.session.selection) == selected_cards(hand.canvas)


def test_deletion_while_copies_wait_deletes_them(make_canvas: MakeCanvas, qtbot: QtBot) -> None:
    hand = make_canvas(loops(4))
    copies = duplicated(hand, qtbot)
    QApplication.processEvents()
    hand.canvas.commands.delete()
    complete(hand.canvas, qtbot)
    assert not copies & set(hand.session.workflow.nodes_by_id)
    assert len(hand.canvas.view.nodes) == 12


def test_escape_while_copies_wait_deselects_them(make_canvas: MakeCanvas, qtbot: QtBot) -> None:
    hand = make_canvas(loops(4))
    duplicated(hand, qtbot)
    QTest.keyClick(hand.canvas.viewer, Qt.Key.Key_Escape)
    complete(hand.canvas, qtbot)
    assert hand.session.selection == ()
    assert selected_cards(hand.canvas) == set()


def test_fitting_the_selection_while_copies_wait_creates_them(make_canvas: MakeCanvas, qtbot: QtBot) -> None:
    hand = make_canvas(loops(4))
    duplicated(hand, qtbot)
    hand.canvas.fit_to_view.fit_selection()
    fitted = hand.canvas.viewer.visible_rect
    complete(hand.canvas, qtbot)
    hand.canvas.fit_to_view.fit_selection()
    assert hand.canvas.viewer.visible_rect == fitted


def test_collapsing_the_loop_of_a_selected_node_that_waits_selects_the_loop(
    make_canvas: MakeCanvas, qtbot: QtBot
) -> None:
    hand = make_canvas(loops(1))
    complete(hand.canvas, qtbot)
    remove_all(hand.session)
    hand.session.undo()
    hand.session.structure, hand.session.problems = analyze_document(hand.session.workflow, hand.session.registry)
    hand.session.select(["step0"])
    hand.session.do(SetLayout(("nodes", "loop0", "collapsed"), value=True))
    assert hand.session.selection == ("loop0",)
    assert selected_cards(hand.canvas) == {"loop0"}


def test_closing_while_items_wait(make_session: MakeSession, qtbot: QtBot) -> None:
    canvas = Canvas(make_session(loops(3)))
    view = canvas.view
    created: list[object] = []

    def close(node_ids: object) -> None:
        created.append(node_ids)
        canvas.deleteLater()

    view.nodes_created.connect(close)
    qtbot.waitUntil(lambda: not isValid(view))
    assert len(created) < 5


class Desk:
    """A canvas, and the steps to take with it."""

    def __init__(self, session: Session) -> None:
        self.session, self.canvas = session, Canvas(session)
        self.canvas.resize(900, 600)
        self.canvas.show()

    def pick(self, number: int, many: int = 1) -> list[str]:
        ids = [each.id for each in self.session.workflow.nodes]
        return [ids[(number + place) % len(ids)] for place in range(min(many, len(ids)))]

    def remove(self, number: int) -> None:
        ids = self.pick(number, 1 + number)
        self.session.do(Batch("Delete nodes", tuple(RemoveNodes((node_id,)) for node_id in ids)))

    def replace(self, number: int) -> None:
        self.session.do(ReplaceDocument("Revert to saved", loops(number % 5)))

    def undo(self, number: int) -> None:
        for _ in range(1 + number % 3):
            self.session.undo()

    def redo(self, number: int) -> None:
        for _ in range(1 + number % 3):
            self.session.redo()

    def turn(self, number: int) -> None:
        for _ in range(1 + number % 3):
            QApplication.processEvents()

    def select(self, number: int) -> None:
        self.session.select(self.pick(number, number))

    def delete_selected(self, _number: int) -> None:
        self.canvas.commands.delete()

    def duplicate(self, number: int) -> None:
        if len(self.session.workflow.nodes) < 40:
            self.session.select(self.pick(number, 2 + number))
            self.canvas.commands.duplicate()

    def escape(self, _number: int) -> None:
        QTest.keyClick(self.canvas.viewer, Qt.Key.Key_Escape)

    def move(self, number: int) -> None:
        for node_id in self.pick(number):
            entry = layout_entries(self.session.workflow, "nodes").get(node_id, {})
            self.session.do(SetLayout(("nodes", node_id), {**entry, "x": 10 * number, "y": -10 * number}))

    def collapse(self, number: int) -> None:
        loop = f"loop{number % 4}"
        entry = layout_entries(self.session.workflow, "nodes").get(loop)
        if entry is not None:
            changed = {**entry, "collapsed": not entry.get("collapsed", False)}
            self.session.do(SetLayout(("nodes", loop), changed))

    def title(self, number: int) -> None:
        for node_id in self.pick(number):
            self.session.do(SetTitle(node_id, f"Title {number}"))

    def disconnect(self, number: int) -> None:
        edges = self.session.workflow.edges
        if edges:
            edge = edges[number % len(edges)]
            self.session.do(Disconnect(edge.from_, edge.to))

    def analyze(self, _number: int = 0) -> None:
        self.session.structure, self.session.problems = analyze_document(self.session.workflow, self.session.registry)
        self.session.analyzed.emit()

    def zoom(self, number: int) -> None:
        self.canvas.viewer.zoom_to((0.1, 1.0)[number % 2])

    def fit(self, _number: int) -> None:
        self.canvas.fit_to_view.fit_all()

    def switch_tab(self, number: int) -> None:
        self.canvas.setVisible(bool(number % 2))

    def read(self, number: int) -> None:
        for node_id in self.pick(number):
            self.canvas.center_on(node_id)


STEPS = [name for name in vars(Desk) if not name.startswith("_") and name != "pick"]


@pytest.fixture
def desks(make_session: MakeSession) -> Callable[[Workflow], Desk]:
    return lambda document: Desk(make_session(document))


@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(STEPS) | st.sampled_from(["turn", "undo", "redo"]), st.integers(0, 9)), max_size=14
    )
)
def test_view_ends_like_a_new_one_after_any_steps(
    desks: Callable[[Workflow], Desk], qtbot: QtBot, steps: list[tuple[str, int]]
) -> None:
    desk = desks(loops(3))
    for name, number in steps:
        getattr(desk, name)(number)
        assert set(desk.session.selection) <= set(desk.session.workflow.nodes_by_id)
    complete(desk.canvas, qtbot)
    desk.analyze()
    complete(desk.canvas, qtbot)
    shown = drawn(desk.canvas)
    selected = {node_id for node_id, item in desk.canvas.view.nodes.items() if item.isSelected()}
    assert selected == set(desk.session.selection)
    new = Canvas(desk.session)
    new.viewer.zoom_to(desk.canvas.viewer.zoom)
    new.view.create_all()
    desk.session._timer.stop()
    try:
        assert drawn(new) == shown
    finally:
        for canvas in (new, desk.canvas):
            canvas.hide()
            canvas.deleteLater()
        QApplication.processEvents()
