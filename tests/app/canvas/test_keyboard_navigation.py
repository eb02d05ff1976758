"""Cards, frames and notes are selected by keyboard."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.canvas.annotations import SMALLEST, AnnotationItem
from app.canvas.canvas_style import FRAME_COLORS
from tests.app.canvas.conftest import Hand, MakeCanvas
from tests.app.canvas.documents import node, refine, workflow

CONTROL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier

FRAMED = workflow(
    [node("task", "input", name="task"), node("draft", "llm", prompt="{{input}}"), node("text", "output", name="text")],
    ["task.value -> draft.input", "draft.output -> text.value"],
    {"task": (0, 80), "draft": (320, 80), "text": (640, 80)},
    frames={"frame_1": {"x": -24, "y": 24, "width": 904, "height": 200, "title": "All of it"}},
    notes={"note_1": {"x": 320, "y": 280, "width": 200, "height": 96, "text": "Look here"}},
)


def chosen(hand: Hand) -> list[str]:
    """What is chosen on the canvas, by id."""
    items = hand.canvas.viewer.scene().selectedItems()
    return sorted(item.annotation.id if isinstance(item, AnnotationItem) else item.content.id for item in items)


def test_arrow_keys_reach_notes_and_frame_titles(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(FRAMED)
    hand.session.select(["draft"])

    hand.key(Qt.Key.Key_Down, CONTROL)
    assert (chosen(hand), hand.session.selection) == (["note_1"], ())
    hand.key(Qt.Key.Key_Up, CONTROL)
    assert (chosen(hand), hand.session.selection) == (["draft"], ("draft",))
    hand.key(Qt.Key.Key_Left, CONTROL)
    hand.key(Qt.Key.Key_Up, CONTROL)
    assert (chosen(hand), hand.session.selection) == (["frame_1"], ())
    hand.key(Qt.Key.Key_Down, CONTROL)
    assert chosen(hand) == ["draft"]


def test_next_selects_all_items_from_left_to_right_and_wraps_around(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(FRAMED)
    order = ["frame_1", "task", "draft", "note_1", "text"]

    forward: list[str] = []
    for _ in range(6):
        hand.key(Qt.Key.Key_N)
        forward += chosen(hand)
    assert forward == [*order, "frame_1"]
    hand.key(Qt.Key.Key_N, SHIFT)
    assert chosen(hand) == ["text"]


def test_previous_without_selection_selects_the_last_item(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(FRAMED)

    hand.key(Qt.Key.Key_N, SHIFT)

    assert chosen(hand) == ["text"]


def test_keyboard_navigation_on_an_empty_canvas_selects_nothing(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(workflow([], []))

    hand.key(Qt.Key.Key_N)
    hand.key(Qt.Key.Key_Right, CONTROL)

    assert chosen(hand) == []


def test_item_selected_by_keyboard_is_moved_and_deleted_by_keyboard(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(FRAMED)
    hand.session.select(["draft"])
    hand.key(Qt.Key.Key_Down, CONTROL)

    hand.key(Qt.Key.Key_Right)
    assert hand.session.workflow.layout["notes"]["note_1"]["x"] == 328
    hand.key(Qt.Key.Key_Delete)
    assert "note_1" not in hand.session.workflow.layout.get("notes", {})
    assert len(hand.session.workflow.nodes) == 3


def test_frame_moved_by_keyboard_moves_its_contents(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(FRAMED)
    hand.key(Qt.Key.Key_N)

    hand.key(Qt.Key.Key_Right)

    layout = hand.session.workflow.layout
    assert layout["frames"]["frame_1"]["x"] == -16
    assert [hand.place(card)[0] for card in ("task", "draft", "text")] == [8, 328, 648]
    assert layout["notes"]["note_1"]["x"] == 320
    hand.session.undo()
    assert hand.place("task") == (0, 80)


def note_1(hand: Hand) -> dict[str, Any]:
    return hand.session.workflow.layout["notes"]["note_1"]


def test_a_new_note_is_edited_at_once_and_escape_keeps_its_text(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(refine())
    hand.key(Qt.Key.Key_T, CONTROL | SHIFT)
    area = hand.canvas.popups.text.area
    assert area.hasFocus()
    note = hand.canvas.view.annotations.items["notes", "note_1"].scene_rect
    assert not any(card.card_rect.intersects(note) for card in hand.canvas.view.nodes.values())
    QTest.keyClicks(area, "Check the facts")
    QTest.keyClick(area, Qt.Key.Key_Escape)
    assert note_1(hand)["text"] == "Check the facts"
    assert chosen(hand) == ["note_1"]
    assert hand.canvas.viewer.hasFocus()


@pytest.mark.parametrize("key", [Qt.Key.Key_F2, Qt.Key.Key_Return])
def test_a_note_reached_by_keyboard_is_edited_by_keyboard(make_canvas: MakeCanvas, key: Qt.Key) -> None:
    hand = make_canvas(FRAMED)
    for _ in range(4):
        hand.key(Qt.Key.Key_N)
    hand.key(key)
    QTest.keyClicks(hand.canvas.popups.text.area, "By hand")
    QTest.keyClick(hand.canvas.popups.text.area, Qt.Key.Key_Escape)
    assert note_1(hand)["text"] == "By hand"


def test_a_frame_reached_by_keyboard_is_renamed_by_keyboard(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(FRAMED)
    hand.key(Qt.Key.Key_N)
    hand.key(Qt.Key.Key_Return)
    QTest.keyClicks(hand.canvas.popups.text.line, "Steps")
    QTest.keyClick(hand.canvas.popups.text.line, Qt.Key.Key_Return)
    assert hand.session.workflow.layout["frames"]["frame_1"]["title"] == "Steps"


def test_shift_and_arrows_resize_a_note_down_to_a_minimum(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(FRAMED)
    hand.key(Qt.Key.Key_N, SHIFT)
    hand.key(Qt.Key.Key_N, SHIFT)
    item = hand.canvas.view.annotations.items["notes", "note_1"]
    width, height = item.annotation.width, item.annotation.height
    hand.key(Qt.Key.Key_Right, SHIFT)
    hand.key(Qt.Key.Key_Down, SHIFT)
    assert (note_1(hand)["width"], note_1(hand)["height"]) == (width + 8, height + 8)
    for _ in range(40):
        hand.key(Qt.Key.Key_Up, SHIFT)
    assert note_1(hand)["height"] == SMALLEST[1]
    assert (note_1(hand)["x"], note_1(hand)["y"]) == (item.x(), item.y())


def test_the_color_of_a_frame_is_chosen_by_keyboard(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(FRAMED)
    hand.key(Qt.Key.Key_N)
    viewport = hand.canvas.viewer.viewport()
    middle = viewport.rect().center()
    event = QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, middle, viewport.mapToGlobal(middle))
    QApplication.sendEvent(viewport, event)
    for key in (Qt.Key.Key_Up, Qt.Key.Key_Right, Qt.Key.Key_Down, Qt.Key.Key_Return):
        popup = QApplication.activePopupWidget()
        assert popup is not None
        QTest.keyClick(popup, key)
    colour = hand.session.workflow.layout["frames"]["frame_1"]["colour"]
    assert colour == FRAME_COLORS[1]
