from __future__ import annotations

import itertools

import pytest
from PySide6.QtCore import QPoint, QPointF, QRect, Qt
from PySide6.QtGui import QAction, QContextMenuEvent, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from app.canvas.add_button_item import DISTANCE, button_rect
from app.canvas.node_item import PORTS_FROM
from app.canvas.popups import MAX_ROWS, Entry
from app.theme.style import style
from engine.document.operations import SetLayout
from tests.app.canvas.conftest import Hand, MakeCanvas, settle
from tests.app.canvas.documents import node, workflow

SMALL_SCREEN = 720


def open_menu(hand: Hand, place: QPointF) -> QMenu:
    viewport = hand.canvas.viewer.viewport()
    at = hand.at(place)
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, viewport.mapToGlobal(at))
    QApplication.sendEvent(viewport, event)
    menu = hand.canvas.popups.menu
    assert menu is not None
    return menu


def choose(menu: QMenu, text: str) -> None:
    action = next(action for action in menu.actions() if action.text() == text)
    menu.close()
    action.trigger()
    QApplication.processEvents()


def test_double_click_on_a_card_renames_it_in_place(hand: Hand) -> None:
    hand.double_click(hand.title("draft"))
    line = hand.canvas.popups.text.line
    assert line.isVisible()
    assert line.text() == "Draft"
    QTest.keyClicks(line, "First try")
    QTest.keyClick(line, Qt.Key.Key_Return)
    assert hand.session.workflow.node("draft").title == "First try"
    assert hand.item("draft").content.title == "First try"
    assert not line.isVisible()
    assert hand.canvas.viewer.hasFocus()


def test_f2_renames_and_escape_cancels(hand: Hand) -> None:
    hand.click(hand.title("draft"))
    hand.key(Qt.Key.Key_F2)
    line = hand.canvas.popups.text.line
    QTest.keyClicks(line, "Other")
    QTest.keyClick(line, Qt.Key.Key_Escape)
    assert hand.session.workflow.node("draft").title == "Draft"
    assert hand.session.undo_title is None


def test_click_elsewhere_commits_the_title(hand: Hand) -> None:
    hand.double_click(hand.title("draft"))
    QTest.keyClicks(hand.canvas.popups.text.line, "Kept")
    hand.canvas.viewer.setFocus()
    assert hand.session.workflow.node("draft").title == "Kept"


def test_keys_typed_into_a_title_trigger_no_canvas_action(hand: Hand) -> None:
    hand.click(hand.title("draft"))
    hand.key(Qt.Key.Key_F2)
    line = hand.canvas.popups.text.line
    QTest.keyClicks(line, "e c")
    QTest.keyClick(line, Qt.Key.Key_Backspace)
    QTest.keyClick(line, Qt.Key.Key_Return)
    assert hand.session.workflow.node("draft").title == "e"
    assert hand.session.workflow.node("draft").enabled


def test_tab_adds_a_node_by_keyboard(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(workflow([], []))
    hand.key(Qt.Key.Key_Tab)
    pick = hand.canvas.popups.list
    assert pick.filter.hasFocus()
    QTest.keyClicks(pick.filter, "templ")
    assert [pick.list.item(row).text() for row in range(pick.list.count())] == ["Transform"]
    QTest.keyClick(pick.filter, Qt.Key.Key_Return)
    assert set(hand.canvas.view.nodes) == {"transform"}
    assert not pick.isVisible()
    assert hand.canvas.viewer.hasFocus()


def test_arrow_keys_move_in_the_pick_list_while_typing(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(workflow([], []))
    hand.key(Qt.Key.Key_Tab)
    pick = hand.canvas.popups.list
    QTest.keyClick(pick.filter, Qt.Key.Key_Down)
    assert pick.list.currentRow() == 1
    QTest.keyClick(pick.filter, Qt.Key.Key_Up)
    QTest.keyClick(pick.filter, Qt.Key.Key_Up)
    assert pick.list.currentRow() == 0
    QTest.keyClick(pick.filter, Qt.Key.Key_Escape)
    assert not pick.isVisible()
    assert hand.session.undo_title is None


def test_pick_list_closes_on_losing_the_focus(hand: Hand) -> None:
    hand.key(Qt.Key.Key_Tab)
    hand.canvas.viewer.setFocus()
    assert not hand.canvas.popups.list.isVisible()


def test_nodes_are_connected_by_keyboard(hand: Hand, qtbot: QtBot) -> None:
    hand.canvas.commands.add_node("llm", QPointF(480, 400))
    settle(hand, qtbot)
    hand.session.select(["llm"])
    hand.canvas.setFocus()
    hand.key(Qt.Key.Key_C)
    pick = hand.canvas.popups.list
    QTest.keyClicks(pick.filter, "exit feedback")
    QTest.keyClick(pick.filter, Qt.Key.Key_Return)
    assert hand.edges()[-1] == "llm.output -> exit.feedback"


def test_pick_list_of_an_input_offers_types_with_a_matching_output(hand: Hand) -> None:
    hand.canvas.commands.add_node("llm", QPointF(300, 420))
    hand.drag(hand.port("llm.input"), hand.port("llm.input") + QPointF(-100, 120))
    pick = hand.canvas.popups.list
    titles = [pick.list.item(row).text() for row in range(pick.list.count())]
    assert "Output" not in titles
    assert "Loop and Exit" in titles
    QTest.keyClicks(pick.filter, "loop and")
    QTest.keyClick(pick.filter, Qt.Key.Key_Return)
    assert hand.edges()[-1] == "exit_2.output -> llm.input"


def test_context_menu_of_a_card_selects_it(hand: Hand) -> None:
    menu = open_menu(hand, hand.title("draft"))
    assert hand.session.selection == ("draft",)
    choose(menu, "Enable or disable")
    assert not hand.session.workflow.node("draft").enabled


def test_context_menu_keeps_a_selection_that_includes_the_card(hand: Hand) -> None:
    hand.session.select(["draft", "exit"])
    menu = open_menu(hand, hand.title("draft"))
    assert hand.session.selection == ("draft", "exit")
    assert "Align and distribute" in [action.text() for action in menu.actions()]
    menu.close()


@pytest.mark.parametrize(("title", "kind"), [("Wrap in a loop", "loop"), ("Wrap in an iterator", "iterator")])
def test_selected_nodes_are_wrapped_by_the_context_menu(
    make_canvas: MakeCanvas, qtbot: QtBot, title: str, kind: str
) -> None:
    hand = make_canvas(workflow([node("one", "llm"), node("two", "llm")], ["one.output -> two.input"]))
    hand.session.select(["one", "two"])
    choose(open_menu(hand, hand.item("one").card_rect.center()), title)
    settle(hand, qtbot)
    assert hand.session.structure.bodies[kind].nodes == {"one", "two"}


def test_context_menu_of_the_canvas_adds_at_its_position(hand: Hand) -> None:
    choose(open_menu(hand, QPointF(300, 500)), "Add note")
    (note,) = hand.session.workflow.layout["notes"].values()
    assert (note["x"], note["y"]) == (300, 500)


def test_paste_from_the_context_menu_pastes_at_its_position(hand: Hand) -> None:
    hand.session.select(["draft"])
    hand.canvas.commands.copy()
    choose(open_menu(hand, QPointF(304, 500)), "Paste")
    assert hand.place("draft_2") == (304, 500)


def test_menu_key_opens_the_context_menu_of_the_selection(hand: Hand) -> None:
    hand.session.select(["task"])
    hand.canvas.viewer.center_at(hand.item("text").card_rect.center())
    viewport = hand.canvas.viewer.viewport()
    middle = viewport.rect().center()
    event = QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, middle, viewport.mapToGlobal(middle))
    QApplication.sendEvent(viewport, event)
    menu = hand.canvas.popups.menu
    assert menu is not None
    assert hand.session.selection == ("task",)
    assert hand.canvas.viewer.visible_rect.contains(hand.item("task").card_rect)
    choose(menu, "Enable or disable")
    assert not hand.session.workflow.node("task").enabled


def test_context_menu_of_a_loops_label_selects_the_loop_and_acts_on_it(hand: Hand) -> None:
    label = hand.canvas.view.regions.items["loop"].label.scenePos() + QPointF(40, 0)
    menu = open_menu(hand, label)
    assert set(hand.session.selection) == {"loop", "draft", "exit"}
    texts = {action.text() for action in menu.actions() if action.isEnabled()}
    assert {"Collapse or expand loop", "Unwrap", "Cut", "Copy", "Duplicate", "Delete"} <= texts
    choose(menu, "Delete")
    assert set(hand.canvas.view.nodes) == {"task", "text"}


def test_context_menu_of_an_edge_deletes_it(hand: Hand) -> None:
    middle = (hand.port("draft.output") + hand.port("exit.input")) / 2
    choose(open_menu(hand, middle), "Delete")
    assert "draft.output -> exit.input" not in hand.edges()


def test_frame_around_the_selection_moves_its_nodes_and_is_deleted(hand: Hand) -> None:
    hand.session.select(["text"])
    hand.key(Qt.Key.Key_G, Qt.KeyboardModifier.ControlModifier)
    frame = hand.canvas.view.annotations.items["frames", "frame_1"]
    assert frame.scene_rect.contains(hand.item("text").card_rect)
    title = frame.pos() + QPointF(60, 14)
    hand.session.select([])
    hand.drag(title, title + QPointF(0, 160))
    assert hand.place("text") == (960, 240)
    assert hand.session.workflow.layout["frames"]["frame_1"]["y"] == 192
    assert hand.session.undo_title == "Move 2 items"
    hand.session.undo()
    assert (frame.x(), frame.y(), hand.item("text").y()) == (936, 32, 80)
    hand.click(frame.pos() + QPointF(60, 14))
    hand.key(Qt.Key.Key_Delete)
    assert hand.canvas.view.annotations.items == {}
    assert "text" in hand.canvas.view.nodes


def test_rubber_band_starts_inside_a_frame(make_canvas: MakeCanvas) -> None:
    hand = make_canvas()
    hand.canvas.commands.add_annotation("frames", QPointF(440, 40))
    start = QPointF(466, 190)
    hand.drag(start, QPointF(560, 100))
    assert hand.session.selection == ("draft",)


def test_frame_is_renamed_colored_and_resized(hand: Hand) -> None:
    hand.canvas.commands.add_annotation("frames", QPointF(300, 400))
    frame = hand.canvas.view.annotations.items["frames", "frame_1"]
    hand.double_click(frame.pos() + QPointF(60, 14))
    QTest.keyClicks(hand.canvas.popups.text.line, "Ideas")
    QTest.keyClick(hand.canvas.popups.text.line, Qt.Key.Key_Return)
    menu = open_menu(hand, frame.pos() + QPointF(60, 14))
    colors = next(action.menu() for action in menu.actions() if action.text() == "Color")
    assert isinstance(colors, QMenu)
    choose(colors, "Teal")
    corner = frame.scene_rect.bottomRight() - QPointF(6, 6)
    hand.drag(corner, corner + QPointF(100, 40))
    stored_frame = hand.session.workflow.layout["frames"]["frame_1"]
    assert (stored_frame["title"], stored_frame["colour"]) == ("Ideas", "teal")
    assert (stored_frame["width"], stored_frame["height"]) == pytest.approx((414, 234), abs=8)
    assert hand.session.undo_title == "Resize frame or note"


def test_note_has_several_lines(hand: Hand) -> None:
    path = hand.canvas.commands.add_annotation("notes", QPointF(300, 400))
    hand.double_click(hand.canvas.view.annotations.items[path].pos() + QPointF(30, 30))
    area = hand.canvas.popups.text.area
    QTest.keyClicks(area, "one")
    QTest.keyClick(area, Qt.Key.Key_Return)
    QTest.keyClicks(area, "<b>two</b>")
    QTest.keyClick(area, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert hand.session.workflow.layout["notes"]["note_1"]["text"] == "one\n<b>two</b>"
    assert hand.session.undo_title == "Edit note"


def test_moving_the_view_commits_a_rename(hand: Hand) -> None:
    hand.double_click(hand.title("draft"))
    QTest.keyClicks(hand.canvas.popups.text.line, "Moved")
    hand.canvas.viewer.zoom_to(0.8)
    assert hand.session.workflow.node("draft").title == "Moved"
    assert not hand.canvas.popups.text.is_open


def test_hint_stays_inside_the_canvas(hand: Hand) -> None:
    hand.canvas.hint.show_text("No.", QPoint(1190, 790))
    assert hand.canvas.rect().contains(hand.canvas.hint.geometry())


def test_pick_list_in_a_loop_body_offers_no_inputs_and_outputs(hand: Hand) -> None:
    hand.drag(hand.port("draft.output"), hand.port("draft.output") + QPointF(40, 300))
    pick = hand.canvas.popups.list
    titles = [pick.list.item(row).text() for row in range(pick.list.count())]
    assert "Transform" in titles
    assert "Output" not in titles


def test_pick_list_fits_into_a_low_canvas(hand: Hand) -> None:
    entries = [Entry(f"Entry {number}", "", "mdi6.login", "#888888", number) for number in range(20)]
    hand.canvas.resize(hand.canvas.width(), 220)
    QApplication.processEvents()
    pick_list = hand.canvas.popups.list
    pick_list.open(QPoint(100, 100), "Choose", entries, entries.index)
    room = pick_list.parentWidget().rect()
    assert room.height() <= 220
    assert room.contains(pick_list.geometry())


def test_pick_list_limits_its_rows_and_finds_the_rest_by_typing(hand: Hand) -> None:
    entries = [Entry(f"Entry {number}", "", "mdi6.login", "#888888", number) for number in range(10_000)]
    chosen: list[int] = []
    pick_list = hand.canvas.popups.list
    pick_list.open(QPoint(100, 100), "Choose", entries, chosen.append)
    assert pick_list.list.count() == MAX_ROWS + 1
    assert pick_list.list.item(MAX_ROWS).text() == "9800 more. Type to filter."
    pick_list.list.setCurrentRow(MAX_ROWS)
    QTest.keyClick(pick_list.filter, Qt.Key.Key_Return)
    assert chosen == []
    QTest.keyClicks(pick_list.filter, "9876")
    QTest.keyClick(pick_list.filter, Qt.Key.Key_Return)
    assert chosen == [9876]


def test_a_search_without_matches_says_so(hand: Hand) -> None:
    chosen: list[int] = []
    pick_list = hand.canvas.popups.list
    pick_list.open(QPoint(100, 100), "Choose", [Entry("First", "", "mdi6.cog", "#888888", 1)], chosen.append)
    QTest.keyClicks(pick_list.filter, "zebra")
    (row,) = [pick_list.list.item(row) for row in range(pick_list.list.count())]
    assert (row.text(), row.flags()) == ("No results", Qt.ItemFlag.NoItemFlags)
    QTest.keyClick(pick_list.filter, Qt.Key.Key_Return)
    assert (chosen, pick_list.isVisible()) == ([], True)
    pick_list.filter.clear()
    QTest.keyClick(pick_list.filter, Qt.Key.Key_Return)
    assert chosen == [1]


def test_the_plus_beside_an_output_adds_and_connects_the_next_node(hand: Hand) -> None:
    new = hand.canvas.commands.add_node("llm", QPointF(1300, 400))
    assert new is not None
    [port] = hand.canvas.add_button.ports
    assert port.end == f"{new}.output"
    hand.click(port.middle + QPointF(DISTANCE, 0))
    assert hand.canvas.popups.list.isVisible()
    titles = [hand.canvas.popups.list.list.item(row).text() for row in range(3)]
    assert titles[0] == "LLM"
    hand.canvas.popups.list.filter.setText("chat")
    QTest.keyClick(hand.canvas.popups.list.filter, Qt.Key.Key_Return)
    assert f"{new}.output -> llm_2.input" in hand.edges()
    assert hand.item("llm_2").card_rect.left() > hand.item(new).card_rect.right()


def test_the_plus_of_a_new_node_is_in_view_and_ready_although_the_mouse_is_still_on_the_former_one(hand: Hand) -> None:
    hand.canvas.resize(520, 800)
    hand.session.select([])
    new = hand.canvas.commands.add_node("llm", QPointF(1300, 400))
    assert new is not None
    hand.move(hand.title(new))
    for following in ("llm_2", "llm_3"):
        (port,) = hand.canvas.add_button.ports
        hand.click(port.middle + QPointF(DISTANCE, 0))
        QTest.keyClick(hand.canvas.popups.list.filter, Qt.Key.Key_Return)
        (port,) = hand.canvas.add_button.ports
        assert port.end == f"{following}.output"
        assert hand.canvas.viewer.visible_rect.contains(button_rect(port))


def test_the_plus_over_an_edge_leaves_the_edge_and_the_selection(hand: Hand) -> None:
    hand.session.select(["draft"])
    edges = hand.edges()
    (port,) = hand.canvas.add_button.ports
    place = port.middle + QPointF(DISTANCE, 0)
    hand.drag(place, place + QPointF(60, 80))
    assert (hand.edges(), hand.session.selection) == (edges, ("draft",))
    assert not hand.canvas.popups.list.isVisible()
    hand.click(place)
    assert hand.canvas.popups.list.isVisible()
    assert hand.session.selection == ("draft",)


@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_the_plus_can_be_clicked_only_where_it_is_painted(hand: Hand, scale: float) -> None:
    viewer = hand.canvas.viewer

    def place() -> QPointF:
        hand.session.select(["draft"])
        (port,) = hand.canvas.add_button.ports
        return port.middle + QPointF(DISTANCE, 0)

    def picture() -> QImage:
        at = hand.at(place())
        return viewer.viewport().grab(QRect(at.x() - 2, at.y() - 2, 4, 4)).toImage()

    try:
        style().choose("dark", scale)
        for zoom, is_painted in ((PORTS_FROM * 1.05, True), (PORTS_FROM * 0.95, False)):
            hand.canvas.viewer.zoom_to(zoom)
            viewer.center_at(place())
            with_plus = picture()
            hand.canvas.add_button.setOpacity(0)
            assert (picture() != with_plus) is is_painted
            hand.canvas.add_button.setOpacity(1)
            hand.click(place())
            assert hand.canvas.popups.list.isVisible() is is_painted
            hand.canvas.popups.list.close_if_open()
    finally:
        style().choose("dark", 1.0)


@pytest.mark.parametrize("look", [("light", 1.0), ("dark", 1.5)])
def test_a_list_closes_when_theme_or_text_size_change(hand: Hand, look: tuple[str, float]) -> None:
    hand.session.select(["draft"])
    (port,) = hand.canvas.add_button.ports
    hand.click(port.middle + QPointF(DISTANCE, 0))
    pick_list = hand.canvas.popups.list
    assert pick_list.isVisible()
    style().choose(*look)
    try:
        assert not pick_list.isVisible()
        assert hand.canvas.viewer.hasFocus()
    finally:
        style().choose("dark", 1.0)


def test_the_plus_is_there_for_the_card_under_the_mouse(hand: Hand) -> None:
    new = hand.canvas.commands.add_node("llm", QPointF(1300, 400))
    assert new is not None
    hand.session.select([])
    assert hand.canvas.add_button.ports == []
    hand.move(hand.title(new))
    assert [port.end for port in hand.canvas.add_button.ports] == [f"{new}.output"]
    hand.move(hand.title(new) - QPointF(0, 200))
    assert hand.canvas.add_button.ports == []


def press_plus(hand: Hand, end: str, typed: str) -> None:
    """Point at a card, click the + beside its output, and pick the first match."""
    for aside in (QPointF(8, 4), QPointF()):  # without a movement there is no event
        hand.move(hand.title(end.partition(".")[0]) + aside)
    (port,) = (port for port in hand.canvas.add_button.ports if port.end == end)
    hand.click(port.middle + QPointF(DISTANCE, 0))
    hand.canvas.popups.list.filter.setText(typed)
    QTest.keyClick(hand.canvas.popups.list.filter, Qt.Key.Key_Return)


def test_the_plus_beside_a_connected_output_adds_a_node_between_with_room_for_it(hand: Hand) -> None:
    before = hand.place("exit")
    press_plus(hand, "draft.output", "llm")
    assert {"draft.output -> llm.input", "llm.output -> exit.input"} <= set(hand.edges())
    assert "draft.output -> exit.input" not in hand.edges()
    lefts = [hand.item(node).card_rect.left() for node in ("draft", "llm", "exit", "text")]
    assert lefts == sorted(lefts)
    cards = {node: item.card_rect for node, item in hand.canvas.view.nodes.items()}
    assert not any(one.intersects(other) for one, other in itertools.combinations(cards.values(), 2))
    hand.session.undo()
    assert "draft.output -> exit.input" in hand.edges()
    assert hand.place("exit") == before


def test_the_plus_adds_a_loop_with_its_exit_between(hand: Hand) -> None:
    press_plus(hand, "exit.output", "repeat")
    assert {"exit.output -> loop_2.input", "exit_2.output -> text.value"} <= set(hand.edges())
    assert hand.item("text").card_rect.left() > hand.item("exit_2").card_rect.right()


def test_the_plus_adds_a_branch_where_the_node_does_not_fit_between(hand: Hand) -> None:
    press_plus(hand, "exit.output", "output")
    assert {"exit.output -> text.value", "exit.output -> output.value"} <= set(hand.edges())


def test_a_double_click_on_empty_canvas_adds_a_node_there(hand: Hand) -> None:
    hand.double_click(QPointF(300, 400))
    assert hand.canvas.popups.list.isVisible()
    hand.canvas.popups.list.filter.setText("repeat")
    QTest.keyClick(hand.canvas.popups.list.filter, Qt.Key.Key_Return)
    assert hand.place("loop_2") == (300, 400)


@pytest.mark.parametrize(
    ("typed", "title"),
    [
        *((word, "LLM") for word in ("prompt", "chat", "gpt")),
        *((word, "Loop and Exit") for word in ("repeat", "while")),
        *((("if", "Router"), ("http", "Tool"), ("map", "Iterator and Aggregator"))),
    ],
)
def test_quick_add_knows_words_of_other_programs(hand: Hand, typed: str, title: str) -> None:
    hand.double_click(QPointF(300, 400))
    pick = hand.canvas.popups.list
    QTest.keyClicks(pick.filter, typed)
    assert pick.list.item(0).text() == title


def test_quick_add_lists_an_exit_only_if_it_is_searched_for(hand: Hand) -> None:
    hand.double_click(QPointF(300, 400))
    pick = hand.canvas.popups.list

    def listed() -> list[str]:
        return [pick.list.item(row).text() for row in range(pick.list.count())]

    assert not {"Exit", "Aggregator"} & set(listed())
    QTest.keyClicks(pick.filter, "exit")
    assert listed()[0] == "Exit"


def test_quick_add_matches_the_starts_of_words_only(hand: Hand) -> None:
    hand.double_click(QPointF(300, 400))
    pick = hand.canvas.popups.list
    QTest.keyClicks(pick.filter, "oop")
    assert [pick.list.item(row).text() for row in range(pick.list.count())] == ["No results"]


@pytest.mark.parametrize("target", ["draft", "loop", "label"])
def test_context_menus_fit_a_small_screen_with_large_text(hand: Hand, target: str) -> None:
    style().choose("dark", 1.5)
    try:
        hand.canvas.fit_to_view.fit_all()
        hand.canvas.popups.run_actions = [QAction(text, hand.canvas) for text in ("Up to", "This", "From")]
        label = hand.canvas.view.regions.items["loop"].label.scenePos() + QPointF(20, 0)
        menu = open_menu(hand, label if target == "label" else hand.item(target).card_rect.center())
        assert menu.sizeHint().height() <= SMALL_SCREEN
        assert not [action.text() for action in menu.actions() if not action.isEnabled()]
        menu.close()
    finally:
        style().choose("dark", 1.0)


def test_no_plus_covers_the_next_card(hand: Hand) -> None:
    hand.session.select(["draft"])
    assert [port.end for port in hand.canvas.add_button.ports] == ["draft.output"]
    rect = hand.item("draft").card_rect
    hand.session.do(SetLayout(("nodes", "exit"), {"x": rect.right() + 16, "y": rect.top()}))
    assert hand.canvas.add_button.ports == []
