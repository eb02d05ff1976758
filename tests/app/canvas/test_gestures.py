from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from engine.document.model import Workflow
from engine.nodes.node_names import node_name
from tests.app.canvas.conftest import Hand, MakeCanvas, settle
from tests.app.canvas.documents import node, pieces, workflow
from tests.wording import mentions

CONTROL = Qt.KeyboardModifier.ControlModifier


def test_dragging_a_card_is_one_undo_step_with_its_title(hand: Hand) -> None:
    hand.drag(hand.title("draft"), hand.title("draft") + QPointF(40, 120))
    assert hand.place("draft") == (520, 200)
    assert hand.session.undo_title == "Move Draft"
    hand.session.undo()
    assert hand.place("draft") == (480, 80)
    assert (hand.item("draft").x(), hand.item("draft").y()) == (480, 80)


def test_selected_cards_are_dragged_in_one_undo_step(hand: Hand) -> None:
    hand.session.select(["draft", "exit"])
    hand.drag(hand.title("draft"), hand.title("draft") + QPointF(0, 80))
    assert hand.place("draft") == (480, 160)
    assert hand.place("exit") == (720, 160)
    assert hand.session.undo_title == "Move 2 nodes"
    hand.session.undo()
    assert hand.session.undo_title is None


def test_edges_and_region_follow_a_dragged_card(hand: Hand) -> None:
    pipe = hand.canvas.view.edge_items["loop.body", "draft.input"]
    region = hand.canvas.view.regions.items["loop"]
    before = region.rect
    hand.press(hand.title("draft"))
    hand.move(hand.title("draft") + QPointF(0, 40))
    hand.move(hand.title("draft") + QPointF(0, 80))
    end = pipe.path().currentPosition()
    assert (end - hand.port("draft.input")).manhattanLength() < 1
    assert region.rect.bottom() > before.bottom() + 50
    assert hand.place("draft") == (480, 80)
    hand.release(hand.title("draft"))


def test_click_changes_only_the_selection(hand: Hand) -> None:
    hand.click(hand.title("draft"))
    assert hand.session.selection == ("draft",)
    assert hand.session.undo_title is None


def test_small_movement_during_a_click_moves_no_card(hand: Hand) -> None:
    place = hand.title("draft")
    hand.press(place)
    hand.move(place + QPointF(2, 1))
    hand.release(place + QPointF(2, 1))
    assert hand.session.selection == ("draft",)
    assert (hand.item("draft").x(), hand.item("draft").y()) == hand.place("draft") == (480, 80)
    assert hand.session.undo_title is None


def test_drag_that_returns_to_its_start_follows_the_mouse(hand: Hand) -> None:
    place = hand.title("draft")
    hand.press(place)
    hand.move(place + QPointF(0, 60))
    hand.move(place + QPointF(2, 0))
    hand.release(place + QPointF(2, 0))
    assert (hand.item("draft").x(), hand.item("draft").y()) == hand.place("draft") == (480, 80)


def test_drag_after_one_whose_card_was_deleted_meanwhile_follows_the_mouse(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(pieces())
    start, by = hand.title("task"), QPointF(64, 32)
    hand.press(start)
    hand.move(start + by)
    hand.key(Qt.Key.Key_Delete)
    hand.release(start + by)
    assert "task" not in hand.session.workflow.nodes_by_id
    hand.drag(hand.title("second"), hand.title("second") + by)
    assert hand.place("second") == (664, 112)


def test_edge_is_drawn_from_output_to_input(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(pieces())
    hand.connect("task.value", "first.input")
    assert hand.edges() == ["task.value -> first.input"]
    assert hand.session.undo_title == "Connect task → first"


def test_edge_is_drawn_from_input_to_output(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(pieces())
    hand.connect("first.input", "task.value")
    assert hand.edges() == ["task.value -> first.input"]


@pytest.mark.parametrize("zoom", [1.0, 0.5, 0.25])
def test_edge_drawn_from_beside_a_port_moves_no_card(make_canvas: MakeCanvas, zoom: float) -> None:
    hand = make_canvas(pieces())
    viewer, card = hand.canvas.viewer, hand.item("first")
    viewer.zoom_to(zoom)
    place, drawn = card.pos(), 0
    for left in range(16):  # the pixels from the port to the text of the card
        start = hand.port("first.output") - QPointF(left, 0) / zoom
        hand.press(start)
        if viewer._LIVE_PIPE.isVisible():
            drawn += 1
            hand.move(start + QPointF(60, 60) / zoom)
            hand.move(start + QPointF(90, 90) / zoom)
            assert card.pos() == place
        hand.key(Qt.Key.Key_Escape)
        hand.release(start)
    assert drawn > 1


def test_edge_dropped_on_a_card_connects_its_first_matching_port(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(pieces())
    hand.drag(hand.port("task.value"), hand.title("second"))
    assert hand.edges() == ["task.value -> second.input"]


def test_edge_to_a_single_input_replaces_the_existing_edge(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(pieces())
    hand.connect("task.value", "second.more")
    hand.connect("first.output", "second.more")
    assert hand.edges() == ["first.output -> second.more"]
    hand.session.undo()
    assert hand.edges() == ["task.value -> second.more"]


def test_input_that_accepts_many_keeps_its_edges(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(pieces())
    hand.connect("task.value", "second.input")
    hand.connect("first.output", "second.input")
    assert hand.edges() == ["task.value -> second.input", "first.output -> second.input"]


def test_cycle_is_rejected_with_a_hint_beside_the_mouse(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(pieces())
    hand.connect("first.output", "second.input")
    hand.press(hand.port("second.output"))
    hand.move(hand.port("second.output") + QPointF(20, 20))
    hand.move(hand.port("first.input"))
    assert hand.canvas.hint.isVisible()
    assert hand.canvas.hint.text().startswith("This would create a cycle.")
    hand.release(hand.port("first.input"))
    assert hand.edges() == ["first.output -> second.input"]
    assert not hand.canvas.hint.isVisible()


def test_connection_of_incompatible_types_is_rejected(make_canvas: MakeCanvas) -> None:
    document = workflow(
        [node("many", "input", type="list"), node("files", "tool", tool="search_files")],
        [],
        {"many": (0, 0), "files": (400, 0)},
    )
    hand = make_canvas(document)
    hand.press(hand.port("many.value"))
    hand.move(hand.port("many.value") + QPointF(20, 20))
    hand.move(hand.port("files.limit"))
    assert mentions(hand.canvas.hint.text(), "A list … a number … Transform")
    hand.release(hand.port("files.limit"))
    assert hand.edges() == []


def test_edge_that_leaves_a_loop_body_is_rejected(hand: Hand) -> None:
    hand.press(hand.port("draft.output"))
    hand.move(hand.port("draft.output") + QPointF(20, 20))
    hand.move(hand.port("text.value"))
    assert "would leave the loop “Refine”" in hand.canvas.hint.text()
    hand.release(hand.port("text.value"))
    assert len(hand.edges()) == 4


def test_matching_ports_are_highlighted_and_other_cards_dimmed(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(pieces())
    hand.press(hand.port("first.output"))
    hand.move(hand.port("first.output") + QPointF(30, 40))
    lit = hand.canvas.gestures.port_highlight.positions
    assert hand.port("second.input") in lit
    assert hand.port("second.more") in lit
    assert hand.port("first.input") not in lit
    assert hand.item("task").opacity() < 0.5
    assert hand.item("second").opacity() == 1.0
    hand.key(Qt.Key.Key_Escape)
    assert hand.canvas.gestures.port_highlight.positions == []
    assert hand.item("task").opacity() == 1.0
    hand.release(hand.port("first.output"))
    assert hand.edges() == []


def test_edge_dropped_on_empty_canvas_lists_matching_types(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(pieces())
    hand.drag(hand.port("task.value"), hand.port("task.value") + QPointF(60, 400))
    pick = hand.canvas.popups.list
    assert pick.isVisible()
    titles = [pick.list.item(row).text() for row in range(pick.list.count())]
    assert "LLM" in titles
    assert "Input" not in titles  # it has no input
    pick.filter.setText("output")
    hand_row = next(row for row in range(pick.list.count()) if pick.list.item(row).text() == "Output")
    pick.list.setCurrentRow(hand_row)
    pick.list.itemClicked.emit(pick.list.item(hand_row))
    assert hand.edges() == ["task.value -> output.value"]
    assert hand.session.undo_title == "Add Output"
    hand.session.undo()
    assert "output" not in hand.canvas.view.nodes


def test_end_of_an_edge_is_dragged_to_another_port(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(pieces())
    hand.connect("task.value", "first.input")
    near_end = hand.port("first.input") - QPointF(22, 0)
    hand.drag(near_end, hand.port("second.input"))
    assert hand.edges() == ["task.value -> second.input"]
    hand.session.undo()
    assert hand.edges() == ["task.value -> first.input"]


def test_end_of_an_edge_dragged_to_empty_canvas_removes_it(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(pieces())
    hand.connect("task.value", "first.input")
    near_end = hand.port("first.input") - QPointF(22, 0)
    hand.drag(near_end, near_end + QPointF(0, 300))
    assert hand.edges() == []
    assert hand.session.undo_title == "Disconnect task → first"


def test_rejected_drag_of_an_end_keeps_the_edge(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(pieces())
    hand.connect("first.output", "second.input")
    near_end = hand.port("second.input") - QPointF(22, 0)
    hand.drag(near_end, hand.port("first.input"))
    assert hand.edges() == ["first.output -> second.input"]
    assert hand.canvas.view.edge_items["first.output", "second.input"].isVisible()


def test_clicked_edge_is_selected_and_deleted(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(pieces())
    hand.connect("task.value", "first.input")
    hand.click((hand.port("task.value") + hand.port("first.input")) / 2)
    assert hand.canvas.view.edge_items["task.value", "first.input"].isSelected()
    hand.key(Qt.Key.Key_Delete)
    assert hand.edges() == []


def test_card_dropped_on_an_edge_is_inserted_in_one_undo_step(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(pieces(first=(280, 400), second=(700, 80)))
    hand.connect("task.value", "second.input")
    middle = (hand.port("task.value") + hand.port("second.input")) / 2
    card = hand.item("first").card_rect.center()
    hand.drag(hand.title("first"), hand.title("first") + (middle - card))
    assert hand.edges() == ["task.value -> first.input", "first.output -> second.input"]
    assert hand.session.undo_title == "Insert First into an edge"
    hand.session.undo()
    assert hand.edges() == ["task.value -> second.input"]
    assert hand.place("first") == (280, 400)


def test_dragged_loop_dropped_on_an_edge_is_inserted_with_its_exit(make_canvas: MakeCanvas, qtbot: QtBot) -> None:
    hand = make_canvas(pieces(second=(800, 80)))
    hand.connect("task.value", "second.input")
    hand.canvas.commands.add_node("loop", QPointF(280, 400))
    settle(hand, qtbot)
    middle = (hand.port("task.value") + hand.port("second.input")) / 2
    hand.drag(hand.title("exit"), hand.title("exit") + (middle - hand.item("exit").card_rect.center()))
    assert hand.edges() == ["task.value -> second.input"]
    hand.drag(hand.title("loop"), hand.title("loop") + (middle - hand.item("loop").card_rect.center()))
    assert hand.edges() == ["task.value -> loop.input", "exit.output -> second.input"]


def test_connected_card_is_not_inserted_into_an_edge(hand: Hand) -> None:
    hand.session.select(["text"])
    middle = (hand.port("loop.body") + hand.port("draft.input")) / 2
    hand.drag(hand.title("text"), hand.title("text") + (middle - hand.item("text").card_rect.center()))
    assert len(hand.edges()) == 4
    assert hand.session.undo_title == "Move Text"


def test_rubber_band_selects_cards_but_no_edges(hand: Hand) -> None:
    start = hand.item("draft").card_rect.topLeft() - QPointF(16, 24)
    hand.drag(start, hand.item("exit").card_rect.bottomRight() - QPointF(20, 0))
    assert set(hand.session.selection) == {"draft", "exit"}
    assert not hand.canvas.commands.selected_edges
    assert hand.session.undo_title is None


def test_ctrl_click_toggles_the_selection(hand: Hand) -> None:
    hand.click(hand.title("draft"))
    hand.click(hand.title("exit"), Qt.KeyboardModifier.ControlModifier)
    assert set(hand.session.selection) == {"draft", "exit"}
    hand.click(hand.title("draft"), Qt.KeyboardModifier.ControlModifier)
    assert hand.session.selection == ("exit",)


def test_click_on_empty_canvas_clears_the_selection(hand: Hand) -> None:
    hand.click(hand.title("draft"))
    hand.click(QPointF(500, 500))
    assert hand.session.selection == ()


def test_selection_of_the_session_is_shown(hand: Hand) -> None:
    hand.session.select(["exit"])
    assert hand.item("exit").isSelected()
    assert not hand.item("draft").isSelected()


def wheel(hand: Hand, delta: int, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    viewport = hand.canvas.viewer.viewport()
    place = QPointF(300, 200)
    event = QWheelEvent(
        place,
        viewport.mapToGlobal(place),
        QPoint(),
        QPoint(0, delta),
        Qt.MouseButton.NoButton,
        modifiers,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(viewport, event)


def test_wheel_zooms_at_the_mouse_within_limits(hand: Hand) -> None:
    before = hand.canvas.viewer.mapToScene(QPoint(300, 200))
    wheel(hand, 240)
    assert hand.canvas.viewer.zoom > 1.3
    after = hand.canvas.viewer.mapToScene(QPoint(300, 200))
    assert (after - before).manhattanLength() < 2
    for _ in range(60):
        wheel(hand, 600)
    assert hand.canvas.viewer.zoom == 3.0
    for _ in range(90):
        wheel(hand, -600)
    assert hand.canvas.viewer.zoom == 0.02


def test_shift_wheel_scrolls_horizontally(hand: Hand) -> None:
    before = hand.canvas.viewer.center
    wheel(hand, -120, Qt.KeyboardModifier.ShiftModifier)
    assert hand.canvas.viewer.center.x() - before.x() == 120
    assert hand.canvas.viewer.zoom == 1.0


def test_middle_button_and_space_pan(hand: Hand) -> None:
    before = hand.canvas.viewer.center
    hand.press(QPointF(500, 500), Qt.MouseButton.MiddleButton)
    viewport = hand.canvas.viewer.viewport()
    at = hand.canvas.viewer.mapFromScene(QPointF(500, 500))
    from PySide6.QtTest import QTest

    QTest.mouseMove(viewport, at + QPoint(60, 30))
    QTest.mouseRelease(viewport, Qt.MouseButton.MiddleButton, Qt.KeyboardModifier.NoModifier, at + QPoint(60, 30))
    moved = hand.canvas.viewer.center - before
    assert (moved.x(), moved.y()) == (-60, -30)
    QTest.keyPress(hand.canvas.viewer, Qt.Key.Key_Space)
    QTest.mousePress(viewport, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at)
    QTest.mouseMove(viewport, at + QPoint(-60, -30))
    QTest.mouseRelease(viewport, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at + QPoint(-60, -30))
    QTest.keyRelease(hand.canvas.viewer, Qt.Key.Key_Space)
    assert (hand.canvas.viewer.center - before).manhattanLength() < 1
    assert hand.session.selection == ()


def test_first_move_stores_all_computed_positions(make_canvas: MakeCanvas) -> None:
    document = pieces()
    hand = make_canvas(document.model_copy(update={"layout": {}}))
    assert not hand.session.is_modified
    elsewhere = (hand.item("second").x(), hand.item("second").y())
    hand.drag(hand.title("task"), hand.title("task") + QPointF(400, 300))
    assert set(hand.session.workflow.layout["nodes"]) == {"task", "first", "second", "count", "files"}
    assert hand.place("second") == elsewhere


def test_region_includes_a_node_connected_into_the_loop(hand: Hand, qtbot: QtBot) -> None:
    added = hand.canvas.commands.add_node("llm", QPointF(480, 400))
    assert added == "llm"
    hand.connect("draft.output", "llm.input")
    settle(hand, qtbot)
    region = hand.canvas.view.regions.items["loop"]
    qtbot.waitUntil(lambda: region.rect.contains(hand.item("llm").card_rect))


def test_a_free_node_dropped_in_the_region_of_a_loop_becomes_part_of_its_body(hand: Hand) -> None:
    new = hand.canvas.commands.add_node("transform", QPointF(1400, 600))
    assert new is not None
    before_exit = QPointF(hand.item("exit").pos().x() - 40, hand.item("draft").pos().y() + 110)
    hand.drag(hand.title(new), before_exit)
    assert {"draft.output -> transform.input", "transform.output -> exit.input"} <= set(hand.edges())
    hand.session.undo()
    assert "draft.output -> exit.input" in hand.edges()


def test_a_node_dragged_out_of_the_region_leaves_the_body(hand: Hand, qtbot: QtBot) -> None:
    middle = (hand.port("draft.output") + hand.port("exit.input")) / 2
    hand.canvas.commands.add_node("transform", middle)
    settle(hand, qtbot)
    region = hand.canvas.view.regions.items["loop"].rect
    hand.drag(hand.title("draft"), QPointF(region.center().x(), region.bottom() + 200))
    edges = set(hand.edges())
    assert {"loop.body -> transform.input", "transform.output -> exit.input"} <= edges
    assert not any("draft" in edge for edge in edges)
    settle(hand, qtbot)
    assert hand.session.structure.bodies["loop"].nodes == {"transform"}


def test_a_node_dragged_within_the_region_stays_in_the_body(hand: Hand) -> None:
    edges = hand.edges()
    hand.drag(hand.title("draft"), hand.title("draft") + QPointF(16, 24))
    assert hand.edges() == edges


def planned() -> Workflow:
    """A loop with a node before it, and one that feeds its body from outside."""
    return workflow(
        [
            node("task", "input"),
            node("plan", "llm"),
            node("tone", "llm"),
            node("loop", "loop"),
            node("draft", "llm", prompt="{{input}} {{tone}}"),
            node("exit", "exit", loop="loop"),
            node("text", "output"),
        ],
        [
            "task.value -> plan.input",
            "task.value -> tone.input",
            "plan.output -> loop.input",
            "loop.body -> draft.input",
            "tone.output -> draft.tone",
            "draft.output -> exit.input",
            "exit.output -> text.value",
        ],
        {"tone": (240, 320)}
        | {name: (at * 240, 80) for at, name in enumerate(("task", "plan", "loop", "draft", "exit", "text"))},
    )


def test_a_connected_node_dropped_in_the_region_leaves_its_place_and_joins_the_body(
    make_canvas: MakeCanvas, qtbot: QtBot
) -> None:
    hand = make_canvas(planned())
    before = hand.edges()
    hand.drag(hand.title("plan"), hand.item("draft").card_rect.bottomLeft() + QPointF(140, 20))
    assert hand.session.undo_title == "Put LLM into the loop"
    edges = {"task.value -> loop.input", "draft.output -> plan.input", "plan.output -> exit.input"}
    assert edges <= set(hand.edges())
    settle(hand, qtbot)
    assert hand.session.structure.bodies["loop"].nodes == {"draft", "plan"}
    hand.session.undo()
    assert hand.edges() == before


@pytest.mark.parametrize("name", ["tone", "text"])
def test_a_constant_of_the_body_and_an_output_stay_outside(make_canvas: MakeCanvas, name: str) -> None:
    hand = make_canvas(planned())
    before = hand.edges()
    hand.drag(hand.title(name), hand.item("draft").card_rect.bottomLeft() + QPointF(140, 20))
    assert hand.edges() == before
    assert hand.session.undo_title == f"Move {node_name(hand.session.workflow, name)}"


def test_selected_nodes_are_wrapped_with_one_command(hand: Hand, qtbot: QtBot) -> None:
    hand.session.select(["draft"])
    hand.key(Qt.Key.Key_L, Qt.KeyboardModifier.ControlModifier)
    settle(hand, qtbot)
    assert hand.session.structure.parent["loop_2"] == "loop"
    assert hand.session.selection == ("loop_2",)
    hand.key(Qt.Key.Key_L, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)
    assert "loop.body -> draft.input" in hand.edges()


def test_a_loop_dropped_on_a_card_wraps_it(hand: Hand, qtbot: QtBot) -> None:
    hand.canvas.commands.add_node("loop", hand.title("draft"))
    settle(hand, qtbot)
    assert hand.session.structure.parent["draft"] == "loop_2"


def test_a_click_on_a_loops_label_selects_the_whole_loop(hand: Hand) -> None:
    label = hand.canvas.view.regions.items["loop"].label
    hand.click(label.scenePos() + QPointF(40, 0))
    assert set(hand.session.selection) == {"loop", "draft", "exit"}


def label_of(hand: Hand) -> QPointF:
    return hand.canvas.view.regions.items["loop"].label.scenePos() + QPointF(40, 0)


def test_a_loop_is_copied_duplicated_and_deleted_by_its_label(hand: Hand, qtbot: QtBot) -> None:
    hand.click(label_of(hand))
    hand.key(Qt.Key.Key_C, CONTROL)
    hand.move(QPointF(240, 480))
    hand.key(Qt.Key.Key_V, CONTROL)
    settle(hand, qtbot)
    assert hand.session.structure.bodies["loop_2"].nodes == {"draft_2"}
    assert hand.place("loop_2") == (240, 480)
    hand.click(label_of(hand))
    hand.key(Qt.Key.Key_D, CONTROL)
    settle(hand, qtbot)
    assert hand.session.structure.bodies["loop_3"].nodes == {"draft_3"}
    assert hand.place("loop_3") == (280, 120)
    hand.click(label_of(hand))
    hand.key(Qt.Key.Key_Delete)
    assert not {"loop", "draft", "exit"} & set(hand.canvas.view.nodes)


def test_a_loop_is_dragged_by_its_label(hand: Hand) -> None:
    title = hand.canvas.view.regions.items["loop"].label.scenePos() + QPointF(40, 0)
    edges = hand.edges()
    hand.drag(title, title + QPointF(40, 80))
    assert [hand.place(node) for node in ("task", "loop", "draft", "exit")] == [
        (0, 80),
        (280, 160),
        (520, 160),
        (760, 160),
    ]
    assert hand.edges() == edges
    assert hand.session.undo_title == "Move 3 nodes"
