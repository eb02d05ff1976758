"""Many nodes are pasted by a worker thread; the result is that of a paste at once, whatever happens in between."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.canvas import edit_commands
from app.timers import call_later
from app.worker import wait_for_workers
from engine.document.files import dumps
from engine.document.model import Node
from engine.document.operations import AddNodes, RemoveNodes
from tests.app.canvas.conftest import Hand, MakeCanvas

BODY = ["loop", "draft", "exit"]


@pytest.fixture
def in_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edit_commands, "BACKGROUND_FROM", 0)
    monkeypatch.setattr(edit_commands, "BACKGROUND_PASTE_FROM", 0)


def paste(hand: Hand) -> None:
    hand.canvas.commands.copy()
    hand.canvas.commands.paste()


def duplicate(hand: Hand) -> None:
    hand.canvas.commands.duplicate()


def done_at_once(make_canvas: MakeCanvas, act: Callable[[Hand], object]) -> Hand:
    hand = make_canvas()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edit_commands, "BACKGROUND_FROM", 1_000)
        patch.setattr(edit_commands, "BACKGROUND_PASTE_FROM", 1_000_000)
        hand.session.select(BODY)
        act(hand)
    return hand


@pytest.mark.usefixtures("in_background")
@pytest.mark.parametrize("act", [paste, duplicate])
def test_paste_in_the_background_has_the_same_result(
    make_canvas: MakeCanvas, qtbot: QtBot, act: Callable[[Hand], object]
) -> None:
    wanted, hand = done_at_once(make_canvas, act), make_canvas()
    before = hand.session.workflow
    hand.session.select(BODY)
    act(hand)
    assert hand.session.workflow is before
    qtbot.waitUntil(lambda: len(hand.session.selection) == len(BODY) and hand.session.selection[0] not in BODY)
    assert dumps(hand.session.workflow) == dumps(wanted.session.workflow)
    assert hand.session.selection == wanted.session.selection
    assert hand.canvas.viewer.visible_rect == wanted.canvas.viewer.visible_rect
    assert hand.session.undo_title == wanted.session.undo_title
    hand.session.undo()
    assert hand.session.undo_title is None
    assert dumps(hand.session.workflow) == dumps(before)
    hand.session.redo()
    assert dumps(hand.session.workflow) == dumps(wanted.session.workflow)


@pytest.mark.usefixtures("in_background")
@pytest.mark.parametrize("act", [paste, duplicate])
def test_document_edited_during_a_paste_keeps_both_edits(
    make_canvas: MakeCanvas, qtbot: QtBot, act: Callable[[Hand], object]
) -> None:
    hand = make_canvas()
    hand.session.select(BODY)
    act(hand)
    hand.session.do(RemoveNodes(("draft",)))
    hand.session.do(AddNodes((Node(id="loop_2", type="llm"),)))  # the id that the copy would have
    edited = hand.session.workflow
    qtbot.waitUntil(lambda: hand.session.selection == ("loop_3", "draft", "exit_2"))
    after = hand.session.workflow
    assert after.nodes[: len(edited.nodes)] == edited.nodes
    assert [node.id for node in after.nodes[len(edited.nodes) :]] == ["loop_3", "draft", "exit_2"]
    assert after.node("exit_2").config["loop"] == "loop_3"
    new_edges = {str(edge) for edge in after.edges} - {str(edge) for edge in edited.edges}
    assert new_edges == {"loop_3.body -> draft.input", "draft.output -> exit_2.input"}
    hand.session.undo()
    assert dumps(hand.session.workflow) == dumps(edited)


@pytest.mark.usefixtures("in_background")
def test_undo_during_a_paste_can_be_redone(hand: Hand, qtbot: QtBot) -> None:
    hand.session.do(AddNodes((Node(id="extra", type="llm"),)))
    edited = hand.session.workflow
    hand.session.select(BODY)
    duplicate(hand)
    hand.session.undo()
    with qtbot.waitSignal(hand.session.refused):
        pass
    hand.session.redo()
    assert dumps(hand.session.workflow) == dumps(edited)


@pytest.mark.usefixtures("in_background")
def test_paste_undone_before_it_is_selected_changes_nothing(hand: Hand, qtbot: QtBot) -> None:
    before, visible = hand.session.workflow, hand.canvas.viewer.visible_rect
    hand.session.select(BODY)
    hand.session.changed.connect(
        lambda *_: call_later(hand.canvas, hand.session.undo), Qt.ConnectionType.SingleShotConnection
    )
    shown: list[object] = []
    hand.canvas.commands.placed.connect(shown.append)
    duplicate(hand)
    qtbot.waitUntil(lambda: hand.session.redo_title is not None)
    call_later(hand.canvas, lambda: shown.append("end"))
    qtbot.waitUntil(lambda: bool(shown))
    assert shown == ["end"]
    assert dumps(hand.session.workflow) == dumps(before)
    assert hand.session.selection == tuple(BODY)
    assert hand.canvas.viewer.visible_rect == visible


@pytest.mark.usefixtures("in_background")
def test_text_without_nodes_is_refused(hand: Hand, qtbot: QtBot) -> None:
    before = hand.session.workflow
    QGuiApplication.clipboard().setText("rubbish")
    with qtbot.waitSignal(hand.session.refused) as refused:
        hand.canvas.commands.paste()
    assert "clipboard" in refused.args[0]
    assert hand.session.workflow is before


@pytest.mark.usefixtures("in_background")
def test_canvas_may_close_during_a_paste(hand: Hand, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    may_continue, real, session = threading.Event(), edit_commands.paste_fragment, hand.session
    monkeypatch.setattr(edit_commands, "paste_fragment", lambda *args, **kw: may_continue.wait(5) and real(*args, **kw))
    before = session.workflow
    session.select(BODY)
    hand.canvas.commands.duplicate()
    with qtbot.waitSignal(hand.canvas.commands.destroyed):
        hand.canvas.commands.deleteLater()
    may_continue.set()
    wait_for_workers(5)
    assert session.workflow is before
