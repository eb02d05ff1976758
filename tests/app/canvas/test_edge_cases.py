"""Unusual moments: a document that changes during a gesture, a second mouse button, lost key releases."""

from __future__ import annotations

import threading

import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QFocusEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.canvas import edit_commands
from app.canvas.loop_region import LoopViewModel
from app.worker import wait_for_workers
from engine.document.operations import Disconnect
from tests.app.canvas.conftest import Hand, MakeCanvas, settle
from tests.app.canvas.documents import pieces, workflow


@pytest.fixture
def joined(make_canvas: MakeCanvas) -> Hand:
    """An edge that begins a good way above where it ends, and a card with none."""
    hand = make_canvas(pieces(second=(600, 400)))
    hand.connect("task.value", "second.input")
    return hand


def pull_off(hand: Hand) -> None:
    """Pull the edge's end off its port, without letting go."""
    near = hand.canvas.view.edge_items["task.value", "second.input"].path().pointAtPercent(0.8)
    hand.press(near)
    hand.move(near + QPointF(20, 30))
    hand.move(near + QPointF(40, 60))
    assert hand.canvas.viewer.detached_pipe is not None


def test_edge_removed_while_its_end_is_dragged_cancels_the_drag(joined: Hand) -> None:
    pull_off(joined)
    joined.session.undo()
    QApplication.processEvents()
    assert joined.canvas.viewer.detached_pipe is None
    joined.move(joined.port("first.input"))
    joined.release(joined.port("first.input"))
    assert joined.edges() == []
    assert joined.session.redo_title is not None


def test_node_removed_while_an_edge_is_drawn_from_it_leaves_no_edge(hand: Hand, qtbot: QtBot) -> None:
    new = hand.canvas.commands.add_node("llm", QPointF(300, 400))
    assert new is not None
    settle(hand, qtbot)
    start = hand.port(f"{new}.output")
    hand.press(start)
    hand.move(start + QPointF(40, 40))
    hand.session.undo()
    QApplication.processEvents()
    hand.move(hand.port("text.value"))
    hand.release(hand.port("text.value"))
    assert len(hand.edges()) == 4
    assert {item.opacity() for item in hand.canvas.view.nodes.values()} == {1.0}


def test_card_is_not_inserted_into_an_edge_removed_during_the_drag(joined: Hand) -> None:
    start, edge = joined.title("first"), joined.canvas.view.edge_items["task.value", "second.input"]
    way = edge.path().pointAtPercent(0.5) - joined.item("first").card_rect.center()
    joined.press(start)
    for share in (0.2, 0.6, 1.0):
        joined.move(start + way * share)
    assert edge.is_target
    joined.session.undo()
    joined.release(start + way)
    assert joined.edges() == []


def test_edge_dropped_where_it_was_adds_no_undo_step(joined: Hand) -> None:
    joined.session.mark_saved()
    pull_off(joined)
    joined.move(joined.port("second.input"))
    joined.release(joined.port("second.input"))
    assert joined.edges() == ["task.value -> second.input"]
    assert not joined.session.is_modified


def test_pick_list_closes_when_the_document_changes(hand: Hand, qtbot: QtBot) -> None:
    new = hand.canvas.commands.add_node("llm", QPointF(300, 400))
    assert new is not None
    settle(hand, qtbot)
    hand.canvas.popups.choose_for_port(hand.item(new).inputs[0], QPointF(100, 400))
    assert hand.canvas.popups.list.isVisible()
    hand.session.undo()
    assert not hand.canvas.popups.list.isVisible()


def test_left_button_drops_an_edge_while_the_middle_button_pans(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(pieces())
    target = hand.port("first.input")
    hand.press(hand.port("task.value"))
    hand.move(target)
    hand.press(target, Qt.MouseButton.MiddleButton)
    hand.release(target)
    assert hand.edges() == ["task.value -> first.input"]
    hand.release(target, Qt.MouseButton.MiddleButton)
    assert hand.canvas.viewer.viewport().cursor().shape() == Qt.CursorShape.ArrowCursor


def test_pan_cursor_of_space_is_reset_on_losing_the_focus(hand: Hand) -> None:
    viewer = hand.canvas.viewer
    QTest.keyPress(viewer, Qt.Key.Key_Space)
    assert viewer.viewport().cursor().shape() == Qt.CursorShape.OpenHandCursor
    QApplication.sendEvent(viewer, QFocusEvent(QEvent.Type.FocusOut))
    assert viewer.viewport().cursor().shape() == Qt.CursorShape.ArrowCursor


def test_click_on_the_corner_of_a_frame_changes_nothing(make_canvas: MakeCanvas) -> None:
    frame = {"x": 0, "y": 0, "width": 200, "height": 160, "title": "Ideas"}
    hand = make_canvas(workflow([], [], {}, frames={"frame_1": frame}))
    hand.click(hand.canvas.view.annotations.items["frames", "frame_1"].scene_rect.bottomRight() - QPointF(5, 5))
    assert not hand.session.is_modified


def test_hidden_dots_cannot_be_clicked(hand: Hand) -> None:
    label, chosen = hand.canvas.view.regions.items["loop"].label, list[tuple[str, int]]()
    label.set_content(LoopViewModel("Refine", "iteration 3 of 3", 3, 3, 2, 2))
    label.choose = lambda loop, index: chosen.append((loop, index))
    hand.canvas.viewer.zoom_to(0.4)
    hand.click(label.mapToScene(label.dot(1)))
    assert chosen == []
    hand.canvas.viewer.zoom_to(1.0)
    hand.click(label.mapToScene(label.dot(1)))
    assert chosen == [("loop", 1)]


def test_canvas_may_close_during_auto_layout(
    make_canvas: MakeCanvas, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go_on, real = threading.Event(), edit_commands.auto_layout
    faults: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", faults.append)
    monkeypatch.setattr(edit_commands, "BACKGROUND_FROM", 1)
    monkeypatch.setattr(edit_commands, "auto_layout", lambda *args: may_go_on.wait(5) and real(*args))
    commands = make_canvas().canvas.commands
    commands.tidy()
    at_work = [thread for thread in threading.enumerate() if thread.name.startswith("loopwright")]
    with qtbot.waitSignal(commands.destroyed):
        commands.deleteLater()
    may_go_on.set()
    wait_for_workers(5)
    for thread in at_work:
        if "tidy" in thread.name:
            thread.join(5)
    assert faults == []


def test_disconnecting_a_dragged_end_is_one_undo_step(joined: Hand) -> None:
    pull_off(joined)
    joined.session.do(Disconnect("task.value", "second.input"))
    joined.release(QPointF(500, 700))
    assert joined.edges() == []
    joined.session.undo()
    assert joined.edges() == ["task.value -> second.input"]
    assert joined.canvas.view.edge_items["task.value", "second.input"].isVisible()
