"""A loop as one card: collapsing, editing and expanding it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.canvas.collapsed_loops import collapse, expand
from app.canvas.loop_edits import Document
from app.node_layout import Box, Position
from engine.document.model import Workflow
from engine.document.operations import Disconnect
from engine.document.problems import Problem, Severity
from engine.nodes.node_registry import builtin_registry
from engine.plan.structure import analyse
from tests.app.canvas.conftest import Hand, MakeCanvas, settle
from tests.app.canvas.documents import nested, node, refine, workflow

HIDDEN = {"draft", "exit"}


def press_l(hand: Hand) -> None:
    hand.canvas.actions_by_name["toggle_collapsed"].trigger()
    QApplication.processEvents()


@pytest.fixture
def collapsed(hand: Hand) -> Hand:
    """The canvas of `refine` with its loop collapsed."""
    hand.session.select(["loop"])
    press_l(hand)
    return hand


def with_constant() -> Workflow:
    """A loop whose body has a second input from outside, and whose count is used after it."""
    return workflow(
        [
            node("task", "input", name="task"),
            node("tone", "input", name="tone"),
            node("loop", "loop", "Refine", max_iterations=3),
            node("draft", "llm", "Draft", prompt="{{input}} {{tone}}"),
            node("exit", "exit", loop="loop"),
            node("text", "output"),
            node("count", "output"),
        ],
        [
            "task.value -> loop.input",
            "tone.value -> draft.tone",
            "loop.body -> draft.input",
            "draft.output -> exit.input",
            "exit.output -> text.value",
            "loop.count -> count.value",
        ],
    )


def test_a_collapsed_loop_is_one_card(collapsed: Hand) -> None:
    view = collapsed.canvas.view
    assert set(view.nodes) == {"task", "loop", "text"}
    card = collapsed.item("loop").content
    assert (card.title, card.collapsed) == ("Refine", 1)
    assert card.summary.startswith("1 node")
    assert not view.regions.items
    assert collapsed.session.selection == ("loop",)
    assert collapsed.session.undo_title == "Collapse Refine"


def test_its_edges_start_and_end_at_the_card(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(with_constant())
    hand.session.select(["loop"])
    press_l(hand)
    view, card = hand.canvas.view, hand.item("loop")
    assert {f"{source} -> {target}" for source, target in view.edge_items} == {
        "task.value -> loop.input",
        "tone.value -> draft.tone",
        "exit.output -> text.value",
        "loop.count -> count.value",
    }
    assert all(card in (port.parentItem() for port in edge.ports) for edge in view.edge_items.values())
    assert [port.end for port in card.inputs] == ["loop.input", "draft.tone"]
    assert [port.end for port in card.outputs] == ["exit.output", "loop.count"]


def test_the_gap_closes_and_opens_again(collapsed: Hand) -> None:
    assert 0 < collapsed.item("text").x() - collapsed.item("loop").card_rect.right() < 240
    press_l(collapsed)
    places = {node_id: collapsed.place(node_id) for node_id in ("task", "loop", "draft", "exit", "text")}
    assert places == {"task": (0, 80), "loop": (240, 80), "draft": (480, 80), "exit": (720, 80), "text": (960, 80)}


def test_it_survives_saving_and_loading(collapsed: Hand, make_canvas: MakeCanvas) -> None:
    again = make_canvas(Workflow.model_validate(collapsed.session.workflow.model_dump(by_alias=True)))
    assert set(again.canvas.view.nodes) == {"task", "loop", "text"}


def test_undo_and_redo_expand_and_collapse(collapsed: Hand) -> None:
    collapsed.session.undo()
    assert set(collapsed.canvas.view.nodes) >= HIDDEN
    assert "loop" in collapsed.canvas.view.regions.items
    collapsed.session.select(["draft"])
    collapsed.session.redo()
    assert not HIDDEN & set(collapsed.canvas.view.nodes)
    assert collapsed.session.selection == ("loop",)


def test_the_outputs_of_a_hidden_node_are_shown_once_it_is_expanded(collapsed: Hand) -> None:
    collapsed.canvas.view.toggle_ports("draft")
    assert "draft" not in collapsed.canvas.view.nodes
    collapsed.session.undo()
    assert "usage" in [port.content.name for port in collapsed.item("draft").outputs]


def test_a_double_click_expands(collapsed: Hand) -> None:
    collapsed.double_click(collapsed.title("loop"))
    assert set(collapsed.canvas.view.nodes) >= HIDDEN


def test_the_button_of_the_card_expands(collapsed: Hand) -> None:
    card = collapsed.item("loop")
    collapsed.click(card.pos() + card.geometry.expand.center())
    assert set(collapsed.canvas.view.nodes) >= HIDDEN


def test_the_button_is_a_part_of_the_card_when_zoomed_out(collapsed: Hand) -> None:
    collapsed.canvas.viewer.zoom_to(0.5)
    card = collapsed.item("loop")
    collapsed.drag(card.pos() + card.geometry.expand.center(), card.pos() + QPointF(200, 200))
    assert not HIDDEN & set(collapsed.canvas.view.nodes)
    assert collapsed.session.undo_title == "Move Refine"


def test_the_button_of_the_label_collapses(hand: Hand) -> None:
    label = hand.canvas.view.regions.items["loop"].label
    hand.click(label.mapToScene(QPointF(label.shape().boundingRect().right() - 8, 0)))
    QApplication.processEvents()
    assert not HIDDEN & set(hand.canvas.view.nodes)


def test_a_double_click_on_the_label_collapses(hand: Hand) -> None:
    label = hand.canvas.view.regions.items["loop"].label
    hand.double_click(label.mapToScene(QPointF(12, 0)))
    assert not HIDDEN & set(hand.canvas.view.nodes)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_double_click_on_the_outermost_pixels_of_the_label_collapses(hand: Hand, share: float) -> None:
    viewer, label = hand.canvas.viewer, hand.canvas.view.regions.items["loop"].label
    edge = label.mapToScene(label.shape().boundingRect().topLeft()).y()
    viewer.translate(0, math.ceil(edge) - edge + share)
    top = viewer.viewportTransform().map(label.mapToScene(QPointF(12, label.shape().boundingRect().top())))
    QTest.mouseDClick(viewer.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(round(top.x()), math.floor(top.y())))
    assert not HIDDEN & set(hand.canvas.view.nodes)


def test_the_key_l_collapses_and_expands(hand: Hand, qtbot: QtBot) -> None:
    hand.session.select(["loop"])
    with qtbot.waitSignal(hand.session.changed):
        hand.key(Qt.Key.Key_L)
    assert not HIDDEN & set(hand.canvas.view.nodes)
    with qtbot.waitSignal(hand.session.changed):
        hand.key(Qt.Key.Key_L)
    assert set(hand.canvas.view.nodes) >= HIDDEN


def test_the_context_menu_offers_it(collapsed: Hand) -> None:
    collapsed.canvas.popups.open_menu(collapsed.canvas.mapToGlobal(collapsed.canvas.pos()), collapsed.title("loop"))
    menu = collapsed.canvas.popups.menu
    assert menu is not None
    assert collapsed.canvas.actions_by_name["toggle_collapsed"] in menu.actions()
    menu.close()


def test_showing_a_hidden_node_expands(collapsed: Hand) -> None:
    collapsed.session.select(["draft"])
    collapsed.canvas.center_on("draft")
    assert set(collapsed.canvas.view.nodes) >= HIDDEN
    assert collapsed.session.selection == ("draft",)


def test_showing_a_node_expands_every_loop_around_it(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(nested())
    for loop in ("loop_2", "loop_1", "loop_0"):
        hand.session.select([loop])
        press_l(hand)
    assert set(hand.canvas.view.nodes) == {"task", "loop_0", "text"}
    hand.session.select(["step_2"])
    assert "step_2" in hand.canvas.view.nodes
    assert hand.session.selection == ("step_2",)


def test_an_inner_loop_stays_collapsed_in_an_expanded_one(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(nested())
    for loop in ("loop_1", "loop_0"):
        hand.session.select([loop])
        press_l(hand)
    press_l(hand)
    assert {"loop_0", "step_0", "loop_1", "exit_0"} <= set(hand.canvas.view.nodes)
    assert not {"step_1", "exit_1", "loop_2"} & set(hand.canvas.view.nodes)
    assert set(hand.canvas.view.regions.items) == {"loop_0"}


def test_the_hidden_nodes_move_with_the_card(collapsed: Hand) -> None:
    before = {node_id: collapsed.place(node_id) for node_id in ("loop", "draft", "exit")}
    collapsed.drag(collapsed.title("loop"), collapsed.title("loop") + QPointF(40, 160))
    moved = {node_id: (x + 40, y + 160) for node_id, (x, y) in before.items()}
    assert {node_id: collapsed.place(node_id) for node_id in before} == moved
    collapsed.key(Qt.Key.Key_Right)
    assert {node_id: collapsed.place(node_id) for node_id in before} == {
        node_id: (x + 8, y) for node_id, (x, y) in moved.items()
    }


def test_deleting_the_card_deletes_the_loop(collapsed: Hand) -> None:
    collapsed.canvas.commands.delete()
    assert {one.id for one in collapsed.session.workflow.nodes} == {"task", "text"}
    collapsed.session.undo()
    assert set(collapsed.canvas.view.nodes) == {"task", "loop", "text"}


def test_a_copy_is_collapsed_too(collapsed: Hand, qtbot: QtBot) -> None:
    collapsed.canvas.commands.duplicate()
    settle(collapsed, qtbot)
    assert {"loop_2", "draft_2", "exit_2"} <= {one.id for one in collapsed.session.workflow.nodes}
    assert set(collapsed.canvas.view.nodes) == {"task", "loop", "text", "loop_2"}
    assert collapsed.session.selection == ("loop_2",)


def test_a_loop_that_is_cut_and_pasted_at_once_stays_collapsed(collapsed: Hand, qtbot: QtBot) -> None:
    collapsed.canvas.commands.cut()
    collapsed.canvas.commands.paste()
    settle(collapsed, qtbot)
    assert set(collapsed.canvas.view.nodes) == {"task", "loop", "text"}
    assert collapsed.session.selection == ("loop",)


def test_a_new_loop_is_collapsed_before_it_was_analyzed(make_canvas: MakeCanvas, qtbot: QtBot) -> None:
    hand = make_canvas(refine())
    hand.session.select(["draft"])
    hand.canvas.actions_by_name["wrap_loop"].trigger()
    hand.canvas.commands.set_collapsed("loop_2", collapsed=True)
    settle(hand, qtbot)
    assert "draft" not in hand.canvas.view.nodes
    assert hand.session.selection == ("loop_2",)


def test_unwrapping_shows_the_body(collapsed: Hand) -> None:
    collapsed.canvas.commands.unwrap()
    assert set(collapsed.canvas.view.nodes) == {"task", "draft", "text"}


def test_it_is_wrapped_with_its_body(collapsed: Hand, qtbot: QtBot) -> None:
    collapsed.canvas.actions_by_name["wrap_loop"].trigger()
    settle(collapsed, qtbot)
    assert collapsed.session.structure.parent["loop"] == "loop_2"
    assert {"loop", "loop_2", "exit_2"} <= set(collapsed.canvas.view.nodes)
    assert not HIDDEN & set(collapsed.canvas.view.nodes)


def test_tidying_takes_it_as_one_card(collapsed: Hand) -> None:
    offset = collapsed.place("draft")[0] - collapsed.place("loop")[0]
    collapsed.drag(collapsed.title("loop"), collapsed.title("loop") + QPointF(0, 240))
    collapsed.canvas.commands.tidy()
    task, loop, text = (collapsed.item(node_id).card_rect for node_id in ("task", "loop", "text"))
    assert task.right() < loop.left()
    assert loop.right() < text.left() < loop.right() + 160
    assert collapsed.place("draft")[0] - collapsed.place("loop")[0] == offset


def test_a_node_after_it_is_connected_to_the_exit(make_canvas: MakeCanvas) -> None:
    document = refine()
    hand = make_canvas(document.model_copy(update={"edges": document.edges[:-1]}))
    hand.session.select(["loop"])
    press_l(hand)
    hand.canvas.commands.add_node("llm")
    assert "exit.output -> llm.input" in hand.edges()


def test_the_plus_beside_its_output_adds_between_it_and_what_follows(collapsed: Hand) -> None:
    places = {node_id: collapsed.place(node_id) for node_id in ("loop", "draft", "exit")}
    assert collapsed.canvas.commands.add_after("llm", "exit.output", "input") == "llm"
    assert {"exit.output -> llm.input", "llm.output -> text.value"} <= set(collapsed.edges())
    assert {node_id: collapsed.place(node_id) for node_id in places} == places
    lefts = [collapsed.item(node_id).card_rect.left() for node_id in ("loop", "llm", "text")]
    assert lefts == sorted(lefts)


def test_an_edge_is_drawn_from_its_output(collapsed: Hand) -> None:
    collapsed.canvas.commands.add_node("transform", QPointF(300, 400))
    card = collapsed.item("loop")
    collapsed.drag(card.outputs[0].middle, collapsed.port("transform.input"))
    assert "exit.output -> transform.input" in collapsed.edges()


def test_problems_of_hidden_nodes_are_counted_on_the_card(collapsed: Hand) -> None:
    collapsed.session.problems = [Problem("x", "Draft is broken.", "Mend it.", Severity.ERROR, node="draft")]
    collapsed.session.analyzed.emit()
    status = collapsed.item("loop").status_item
    assert status is not None
    assert status.status.errors == 1
    assert "Draft is broken." in collapsed.item("loop").toolTip()


def test_a_loop_that_is_no_longer_complete_shows_its_nodes(collapsed: Hand, qtbot: QtBot) -> None:
    collapsed.session.do(Disconnect("loop.body", "draft.input"))
    settle(collapsed, qtbot)
    assert set(collapsed.canvas.view.nodes) == {"task", "loop", "draft", "exit", "text"}


def test_a_loop_without_a_body_is_not_collapsed(make_canvas: MakeCanvas, qtbot: QtBot) -> None:
    hand = make_canvas(Workflow())
    hand.canvas.commands.add_node("loop")
    settle(hand, qtbot)
    with qtbot.waitSignal(hand.session.refused):
        press_l(hand)
    assert set(hand.canvas.view.nodes) == {"loop", "exit"}


def test_in_a_read_only_document_only_the_view_changes(hand: Hand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hand.session, "is_past", True)
    hand.session.select(["loop"])
    press_l(hand)
    assert set(hand.canvas.view.nodes) == {"task", "loop", "text"}
    press_l(hand)
    assert set(hand.canvas.view.nodes) >= HIDDEN
    assert hand.session.undo_title is None


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """Nested loops in a row, at random positions, with other cards around them."""
    whole = nested()
    boxes = {one.id: Box(160, 84) for one in whole.nodes}
    columns = draw(st.permutations(range(len(whole.nodes))))
    rows = draw(st.lists(st.integers(0, 3), min_size=len(whole.nodes), max_size=len(whole.nodes)))
    positions: dict[str, Position] = {
        one.id: (240.0 * column, 160.0 * row) for one, column, row in zip(whole.nodes, columns, rows, strict=True)
    }
    return Document(whole, analyse(whole), builtin_registry(), positions, boxes)


@given(documents())
def test_collapsing_and_expanding_make_no_cards_overlap(document: Document) -> None:
    small = Box(200, 84)
    folded, _ = collapse(document, "loop_1", small).apply(document.workflow)
    hidden = dict.fromkeys(("step_1", "loop_2", "step_2", "exit_2", "exit_1"), "loop_1")
    there = Document(folded, document.structure, document.registry, stored(folded), document.boxes, hidden)
    unfolded, _ = expand(there, "loop_1", Box(160, 84)).apply(folded)
    assert "collapsed" not in unfolded.layout["nodes"]["loop_1"]
    places = sorted(stored(unfolded).values())
    for index, (x, y) in enumerate(places):
        assert not any(right < x + 160 and abs(down - y) < 84 for right, down in places[index + 1 :])


def stored(document: Workflow) -> dict[str, Position]:
    return {key: (place["x"], place["y"]) for key, place in document.layout["nodes"].items()}
