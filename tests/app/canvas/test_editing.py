from __future__ import annotations

import itertools
import json

import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from engine.bundled import templates_folder
from engine.document.files import load
from engine.document.model import Workflow
from engine.document.operations import RenameNode
from tests.app.canvas.conftest import Hand, MakeCanvas, settle
from tests.app.canvas.documents import branching, node, pieces, workflow

CONTROL = Qt.KeyboardModifier.ControlModifier
SHIFT = Qt.KeyboardModifier.ShiftModifier


def overlapping(hand: Hand) -> list[tuple[str, str]]:
    items = hand.canvas.view.nodes.items()
    pairs = itertools.combinations(((name, item.card_rect) for name, item in items), 2)
    return [(one, other) for (one, rect), (other, second) in pairs if rect.intersects(second)]


def cards_right_of(hand: Hand, node_id: str) -> list[str]:
    lefts = {name: item.card_rect.left() for name, item in hand.canvas.view.nodes.items()}
    return sorted((name for name, left in lefts.items() if left > lefts[node_id]), key=lefts.__getitem__)


def edges_at(hand: Hand, node_id: str) -> list[tuple[str, str]]:
    rect = hand.item(node_id).card_rect
    return [edge.ends for edge in hand.canvas.view.edge_items.values() if edge.shape().intersects(rect)]


def refusals(hand: Hand) -> list[str]:
    messages: list[str] = []
    hand.session.refused.connect(messages.append)
    return messages


def test_adding_a_loop_adds_its_exit_in_one_undo_step(make_canvas: MakeCanvas, qtbot: QtBot) -> None:
    hand = make_canvas(workflow([], []))
    assert hand.canvas.commands.add_node("loop", QPointF(100, 100)) == "loop"
    assert set(hand.canvas.view.nodes) == {"loop", "exit"}
    assert hand.session.workflow.node("exit").config == {"loop": "loop"}
    assert hand.place("exit")[0] > hand.place("loop")[0] + 300
    settle(hand, qtbot)
    qtbot.waitUntil(lambda: "loop" in hand.canvas.view.regions.items)
    assert hand.session.undo_title == "Add Loop and Exit"
    hand.session.undo()
    assert hand.canvas.view.nodes == {}
    settle(hand, qtbot)
    qtbot.waitUntil(lambda: hand.canvas.view.regions.items == {})


def test_second_node_of_a_type_has_a_numbered_title(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(workflow([], []))
    hand.canvas.commands.add_node("llm")
    assert hand.canvas.commands.add_node("llm") == "llm_2"
    assert [hand.item(key).content.title for key in ("llm", "llm_2")] == ["LLM", "LLM 2"]
    assert not hand.item("llm").card_rect.intersects(hand.item("llm_2").card_rect)


def test_adding_an_unknown_type_is_refused(hand: Hand) -> None:
    messages = refusals(hand)
    assert hand.canvas.commands.add_node("nosuch") is None
    assert messages == ["Unknown node type “nosuch”. Choose one from the palette."]


def test_delete_removes_a_loop_with_its_exit_and_edges(hand: Hand) -> None:
    hand.click(hand.title("loop"))
    hand.key(Qt.Key.Key_Delete)
    assert set(hand.canvas.view.nodes) == {"task", "draft", "text"}
    assert hand.edges() == []
    assert hand.session.undo_title == "Delete 2 nodes"
    hand.session.undo()
    assert len(hand.edges()) == 4
    assert len(hand.canvas.view.edge_items) == 4


def test_backspace_deletes(hand: Hand) -> None:
    hand.click(hand.title("draft"))
    hand.key(Qt.Key.Key_Backspace)
    assert "draft" not in hand.canvas.view.nodes
    assert hand.session.undo_title == "Delete Draft"


def test_delete_and_reconnect_connects_predecessors_to_successors(hand: Hand) -> None:
    hand.click(hand.title("draft"))
    hand.key(Qt.Key.Key_Delete, CONTROL)
    assert hand.edges() == ["task.value -> loop.input", "exit.output -> text.value", "loop.body -> exit.input"]
    assert hand.session.undo_title == "Delete Draft and reconnect"


def test_delete_and_reconnect_of_several_nodes(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(pieces())
    for source, target in (("task.value", "first.input"), ("first.output", "second.input")):
        hand.connect(source, target)
    hand.connect("second.output", "files.query")
    hand.session.select(["first", "second"])
    hand.canvas.commands.delete_and_reconnect()
    assert hand.edges() == ["task.value -> files.query"]


def test_copies_have_new_ids_and_the_edges_between_them(hand: Hand) -> None:
    hand.session.select(["loop", "draft", "exit"])
    hand.key(Qt.Key.Key_C, CONTROL)
    text = QGuiApplication.clipboard().text()
    assert {entry["id"] for entry in json.loads(text)["nodes"]} == {"loop", "draft", "exit"}
    hand.canvas.commands.paste()
    assert {"loop_2", "draft_2", "exit_2"} <= set(hand.canvas.view.nodes)
    assert "loop_2.body -> draft_2.input" in hand.edges()
    assert "draft_2.output -> exit_2.input" in hand.edges()
    assert hand.session.workflow.node("exit_2").config["loop"] == "loop_2"
    assert set(hand.session.selection) == {"loop_2", "draft_2", "exit_2"}
    assert hand.place("draft_2") == (520, 120)
    hand.canvas.commands.paste()
    assert hand.place("draft_3") == (560, 160)


def test_copies_are_pasted_at_the_pointer(hand: Hand) -> None:
    hand.session.select(["draft"])
    hand.key(Qt.Key.Key_C, CONTROL)
    hand.move(QPointF(300, 400))
    hand.key(Qt.Key.Key_V, CONTROL)
    assert hand.place("draft_2") == (300, 400)


def test_copies_hide_no_other_copies(hand: Hand) -> None:
    hand.session.select(["draft"])
    hand.key(Qt.Key.Key_C, CONTROL)
    hand.move(QPointF(260, 420))
    for _ in range(2):
        hand.key(Qt.Key.Key_V, CONTROL)
    assert [hand.place(f"draft_{number}") for number in (2, 3)] == [(260, 420), (300, 460)]
    for _ in range(2):
        hand.session.select(["draft"])
        hand.key(Qt.Key.Key_D, CONTROL)
    assert [hand.place(f"draft_{number}") for number in (4, 5)] == [(520, 120), (560, 160)]


def test_loop_is_copied_with_its_exit(hand: Hand) -> None:
    hand.session.select(["loop", "draft"])
    hand.canvas.commands.copy()
    hand.canvas.commands.paste()
    pasted = [hand.session.workflow.node(node_id) for node_id in hand.session.selection]
    assert [node.type for node in pasted] == ["loop", "llm", "exit"]
    assert pasted[2].config["loop"] == pasted[0].id


def test_copy_is_pasted_into_another_document(make_canvas: MakeCanvas) -> None:
    first, second = make_canvas(), make_canvas(workflow([], []))
    first.session.select(["loop", "draft", "exit"])
    first.canvas.commands.copy()
    second.canvas.commands.paste()
    assert set(second.canvas.view.nodes) == {"loop", "draft", "exit"}
    assert len(second.canvas.view.edge_items) == 2


def test_cut_removes_and_paste_restores(hand: Hand) -> None:
    hand.click(hand.title("draft"))
    hand.key(Qt.Key.Key_X, CONTROL)
    assert "draft" not in hand.canvas.view.nodes
    assert hand.session.undo_title == "Cut Draft"
    hand.key(Qt.Key.Key_V, CONTROL)
    assert hand.item("draft").content.title == "Draft"


def test_pasting_foreign_text_is_refused(hand: Hand) -> None:
    messages = refusals(hand)
    QGuiApplication.clipboard().setText("Dear Sir or Madam,")
    hand.key(Qt.Key.Key_V, CONTROL)
    assert len(messages) == 1
    assert messages[0].startswith("clipboard")
    assert hand.session.undo_title is None


def test_empty_clipboard_pastes_nothing(hand: Hand) -> None:
    messages = refusals(hand)
    QGuiApplication.clipboard().clear()
    hand.canvas.commands.paste()
    assert messages == []
    assert hand.session.undo_title is None


def test_paste_outside_the_view_is_centered(hand: Hand) -> None:
    hand.session.select(["draft"])
    hand.canvas.commands.copy()
    hand.canvas.viewer.center_at(QPointF(9000, 9000))
    hand.canvas.commands.paste()
    x, y = hand.place("draft_2")
    assert abs(x - 9000) < 200
    assert abs(y - 9000) < 200


def test_duplicate_does_not_use_the_clipboard(hand: Hand) -> None:
    QGuiApplication.clipboard().setText("mine")
    hand.click(hand.title("draft"))
    hand.key(Qt.Key.Key_D, CONTROL)
    assert "draft_2" in hand.canvas.view.nodes
    assert hand.session.undo_title == "Duplicate draft_2"
    assert QGuiApplication.clipboard().text() == "mine"


def test_select_all_selects_every_node(hand: Hand) -> None:
    hand.key(Qt.Key.Key_A, CONTROL)
    assert set(hand.session.selection) == {"task", "loop", "draft", "exit", "text"}
    assert all(item.isSelected() for item in hand.canvas.view.nodes.values())


def test_selection_of_the_session_is_shown_with_one_update(hand: Hand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shown node by node, a thousand of them would take seconds."""
    shown: list[int] = []
    show = hand.canvas.view.show_selection

    def note() -> None:
        shown.append(len(hand.canvas.viewer.scene().selectedItems()))
        show()

    monkeypatch.setattr(hand.canvas.view, "show_selection", note)
    hand.session.select(["task", "loop", "draft"])
    hand.session.select([])
    assert shown == [3, 0]
    assert not hand.canvas.actions_by_name["delete"].isEnabled()


def test_arrow_keys_nudge_the_selection(hand: Hand) -> None:
    hand.click(hand.title("draft"))
    hand.key(Qt.Key.Key_Right)
    hand.key(Qt.Key.Key_Down, SHIFT)
    assert hand.place("draft") == (488, 120)
    hand.session.undo()
    assert hand.place("draft") == (488, 80)


def test_arrow_keys_belong_to_the_window_while_an_older_iteration_is_shown(hand: Hand) -> None:
    hand.click(hand.title("draft"))
    hand.session.shown.look_at("loop", 0)
    hand.key(Qt.Key.Key_Right)
    assert hand.session.undo_title is None


def test_ctrl_arrow_selects_the_next_node_in_that_direction(hand: Hand) -> None:
    hand.session.select(["draft"])
    hand.key(Qt.Key.Key_Right, CONTROL)
    assert hand.session.selection == ("exit",)
    hand.key(Qt.Key.Key_Left, CONTROL)
    hand.key(Qt.Key.Key_Left, CONTROL)
    assert hand.session.selection == ("loop",)
    hand.session.select([])
    hand.canvas.center_on("text")
    hand.key(Qt.Key.Key_Down)
    assert hand.session.selection == ("text",)


def test_e_disables_and_enables(hand: Hand) -> None:
    hand.session.select(["draft", "exit"])
    hand.key(Qt.Key.Key_E)
    assert [hand.session.workflow.node(key).enabled for key in ("draft", "exit")] == [False, False]
    assert not hand.item("draft").content.enabled
    assert hand.canvas.view.edge_items["loop.body", "draft.input"].pen().style() != Qt.PenStyle.SolidLine
    hand.key(Qt.Key.Key_E)
    assert hand.item("draft").content.enabled
    assert hand.canvas.view.edge_items["loop.body", "draft.input"].pen().style() == Qt.PenStyle.SolidLine


@pytest.mark.parametrize(
    ("where", "draft", "exit_"),
    [
        ("left", (480, 80), (480, 200)),
        ("top", (480, 80), (720, 80)),
        ("bottom", (480, 180), (720, 200)),
    ],
)
def test_align_selected_cards(hand: Hand, where: str, draft: tuple[int, int], exit_: tuple[int, int]) -> None:
    hand.drag(hand.title("exit"), hand.title("exit") + QPointF(0, 120))
    hand.session.select(["draft", "exit"])
    hand.canvas.actions_by_name[f"align_{where}"].trigger()
    if where == "bottom":
        bottom = hand.item("exit").card_rect.bottom()
        assert abs(hand.item("draft").card_rect.bottom() - bottom) <= 2
        return
    assert hand.place("draft") == draft
    assert hand.place("exit") == exit_


def test_distribute_selected_cards(hand: Hand) -> None:
    hand.drag(hand.title("draft"), hand.title("draft") + QPointF(40, 0))
    hand.session.select(["loop", "draft", "exit"])
    hand.canvas.actions_by_name["distribute_across"].trigger()
    rects = [hand.item(key).card_rect for key in ("loop", "draft", "exit")]
    gaps = [rects[1].left() - rects[0].right(), rects[2].left() - rects[1].right()]
    assert abs(gaps[0] - gaps[1]) <= 4


def test_tidy_up_is_one_undo_step(hand: Hand) -> None:
    hand.drag(hand.title("draft"), hand.title("draft") + QPointF(-400, 300))
    hand.key(Qt.Key.Key_A, CONTROL | Qt.KeyboardModifier.ShiftModifier)
    assert hand.session.undo_title == "Tidy up"
    order = ["task", "loop", "draft", "exit", "text"]
    lefts = [hand.place(key)[0] for key in order]
    assert lefts == sorted(lefts)
    hand.session.undo()
    assert hand.place("draft") == (80, 380)


def test_large_document_is_laid_out_in_a_worker_thread(make_canvas: MakeCanvas, qtbot: QtBot) -> None:
    count = 160
    nodes = [node(f"n{index}", "llm") for index in range(count)]
    edges = [f"n{index}.output -> n{index + 1}.input" for index in range(count - 1)]
    hand = make_canvas(workflow(nodes, edges, {f"n{index}": (0, 0) for index in range(count)}))
    hand.canvas.commands.tidy()
    assert hand.session.undo_title is None
    qtbot.waitUntil(lambda: hand.session.undo_title == "Tidy up")
    assert hand.place("n159")[0] > hand.place("n0")[0] + 10_000


def test_outdated_layout_of_a_changed_document_is_dropped(hand: Hand) -> None:
    old = hand.session.workflow
    hand.canvas.commands.toggle_enabled()
    hand.session.select(["draft"])
    hand.canvas.commands.toggle_enabled()
    hand.canvas.commands._apply_layout(old, {"draft": (1, 2)})
    assert hand.place("draft") == (480, 80)


def test_actions_are_enabled_by_the_selection(hand: Hand) -> None:
    actions = hand.canvas.actions_by_name

    def possible(*names: str) -> list[bool]:
        return [actions[name].isEnabled() for name in names]

    assert possible("copy", "delete", "rename", "align_left", "select_all") == [False, False, False, False, True]
    hand.session.select(["draft"])
    assert possible("copy", "delete", "rename", "align_left") == [True, True, True, False]
    hand.session.select(["draft", "exit"])
    assert possible("rename", "align_left", "distribute_across") == [False, True, False]


def test_hidden_outputs_are_shown_on_demand(hand: Hand) -> None:
    assert [port.name for port in hand.item("loop").outputs] == ["body"]
    assert hand.item("loop").content.folded == 5
    hand.click(hand.title("loop"))
    hand.key(Qt.Key.Key_O)
    assert [port.name for port in hand.item("loop").outputs][:3] == ["body", "output", "iterations"]
    end = hand.canvas.view.edge_items["loop.body", "draft.input"].path().elementAt(0)
    assert (QPointF(end.x, end.y) - hand.port("loop.body")).manhattanLength() < 1
    hand.key(Qt.Key.Key_O)
    assert hand.item("loop").content.folded == 5


def test_renamed_node_stays_selected_after_undo_and_redo(hand: Hand) -> None:
    hand.session.select(["draft"])
    hand.session.do(RenameNode("draft", "first_try"))
    hand.session.select(["first_try"])
    for step, now in ((hand.session.undo, "draft"), (hand.session.redo, "first_try")):
        step()
        assert hand.session.selection == (now,)
        assert [item.content.id for item in hand.canvas.viewer.selected_nodes()] == [now]


def test_a_new_node_is_connected_to_the_selected_one_that_nothing_follows(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(workflow([], []))
    for node_type in ("input", "llm", "llm", "output"):
        hand.canvas.commands.add_node(node_type)
    assert hand.edges() == ["input.value -> llm.input", "llm.output -> llm_2.input", "llm_2.output -> output.value"]
    assert cards_right_of(hand, "input") == ["llm", "llm_2", "output"]
    assert not overlapping(hand)


@pytest.mark.parametrize(
    ("before", "edges"),
    [
        ("task", {"task.value -> llm.input", "llm.output -> loop.input"}),
        ("draft", {"draft.output -> llm.input", "llm.output -> exit.input"}),
        ("exit", {"exit.output -> llm.input", "llm.output -> text.value"}),
    ],
)
def test_a_new_node_is_inserted_between_the_selected_one_and_the_only_one_that_follows(
    hand: Hand, before: str, edges: set[str]
) -> None:
    followers, old = cards_right_of(hand, before), hand.edges()
    hand.session.select([before])

    hand.canvas.commands.add_node("llm")

    assert set(hand.edges()) - set(old) == edges
    assert len(hand.edges()) == len(old) + 1
    assert cards_right_of(hand, before) == ["llm", *followers]
    assert not overlapping(hand)
    hand.session.undo()
    assert hand.edges() == old


@pytest.mark.parametrize("before", ["check", "first", "loop"])
def test_a_new_node_is_not_connected_where_that_is_ambiguous(make_canvas: MakeCanvas, before: str) -> None:
    hand = make_canvas(branching())
    hand.session.select([before])
    edges = hand.edges()

    added = hand.canvas.commands.add_node("llm")

    assert hand.edges() == edges
    assert added is not None
    assert not overlapping(hand)
    assert edges_at(hand, added) == []


def test_edges_from_other_outputs_do_not_count_as_what_follows(make_canvas: MakeCanvas) -> None:
    nodes = [node("first", "llm", prompt="{{input}}"), node("text", "output"), node("usage", "output")]
    hand = make_canvas(workflow(nodes, ["first.usage -> usage.value"]))
    for added in ("llm", "llm_2"):
        hand.session.select(["first"])
        assert hand.canvas.commands.add_node("llm") == added
    assert set(hand.edges()) == {
        "first.usage -> usage.value",
        "first.output -> llm_2.input",
        "llm_2.output -> llm.input",
    }


@pytest.mark.parametrize(
    ("template", "before", "kind"),
    [
        ("agentic-search", "loop", "llm"),
        ("agentic-search", "plan", "llm"),
        ("best-of-several", "task", "output"),
        ("best-of-several", "task", "subflow"),
    ],
)
def test_an_unconnected_new_node_lies_in_no_region(
    make_canvas: MakeCanvas, template: str, before: str, kind: str
) -> None:
    hand = make_canvas(load(templates_folder() / f"{template}.loop.json"))
    hand.session.select([before])
    edges = hand.edges()

    added = hand.canvas.commands.add_node(kind)

    assert added is not None
    assert hand.edges() == edges
    rect, regions = hand.item(added).card_rect, hand.canvas.view.regions.items
    assert [loop for loop, region in regions.items() if region.rect.intersects(rect)] == []
    assert not overlapping(hand)


@pytest.mark.parametrize("kind", ["llm", "loop"])
def test_without_a_selection_a_new_node_covers_neither_cards_nor_edges(make_canvas: MakeCanvas, kind: str) -> None:
    places = {"task": (0, 300), "text": (1500, 300)}
    hand = make_canvas(workflow([node("task", "input"), node("text", "output")], ["task.value -> text.value"], places))
    hand.canvas.viewer.center_at(QPointF(750, 340))

    added = hand.canvas.commands.add_node(kind)

    assert added is not None
    assert edges_at(hand, added) == []


def test_a_node_added_to_an_empty_loop_becomes_its_body(make_canvas: MakeCanvas, qtbot: QtBot) -> None:
    hand = make_canvas(workflow([], []))
    hand.canvas.commands.add_node("loop")
    settle(hand, qtbot)
    hand.canvas.commands.add_node("llm")
    assert set(hand.edges()) == {"loop.body -> llm.input", "llm.output -> exit.input"}


def test_an_empty_document_can_be_tidied(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(workflow([], []))
    hand.canvas.actions_by_name["tidy"].trigger()
    assert hand.session.undo_title is None


def test_pasted_and_duplicated_cards_are_in_view(hand: Hand) -> None:
    hand.session.select(["draft", "loop"])
    hand.canvas.commands.copy()
    corner = hand.canvas.viewer.visible_rect.bottomRight() - QPointF(20, 20)
    hand.canvas.commands.paste(corner)
    hand.canvas.commands.duplicate()
    for node_id in hand.session.selection:
        assert hand.canvas.viewer.visible_rect.contains(hand.item(node_id).card_rect)


@pytest.mark.parametrize("action", ["paste", "duplicate", "tidy", "wrap_loop"])
def test_everything_that_was_in_view_still_is(hand: Hand, action: str) -> None:
    hand.canvas.fit_to_view.fit_all()
    hand.session.select(["loop", "draft", "exit"])
    hand.key(Qt.Key.Key_C, CONTROL)
    if action == "paste":
        visible = hand.canvas.viewer.visible_rect
        hand.move(QPointF(visible.center().x() + 300, visible.bottom() - 20))
    hand.canvas.actions_by_name[action].trigger()
    assert hand.canvas.viewer.visible_rect.contains(hand.canvas.view.content_rect)


def chain_of(count: int) -> Workflow:
    ids = [f"n{number}" for number in range(count)]
    edges = [f"{one}.output -> {other}.input" for one, other in itertools.pairwise(ids)]
    places = {name: (250 * number, 80) for number, name in enumerate(ids)}
    return workflow([node(name, "llm", prompt="{{input}}") for name in ids], edges, places)


@pytest.mark.parametrize("count", [60, 400])
@pytest.mark.parametrize("moves", [False, True])
def test_undoing_a_large_duplication_shows_what_was_visible_before_unless_the_view_was_moved(
    make_canvas: MakeCanvas, qtbot: QtBot, count: int, moves: bool
) -> None:
    hand = make_canvas(chain_of(count))
    viewer = hand.canvas.viewer
    hand.session.select([f"n{number}" for number in range(count)])
    before = (viewer.factor, viewer.center)
    hand.canvas.commands.duplicate()
    qtbot.waitUntil(lambda: hand.canvas.view.is_complete and len(hand.canvas.view.nodes) == 2 * count)
    QApplication.processEvents()
    assert viewer.factor < 0.3
    if moves:
        viewer.zoom_to(0.5)
        before = (viewer.factor, viewer.center)

    hand.session.undo()
    settle(hand, qtbot)

    assert viewer.factor == pytest.approx(before[0])
    assert (viewer.center - before[1]).manhattanLength() < 4 / viewer.factor


def view_after_duplicating(hand: Hand, count: int) -> tuple[float, float]:
    """Duplicate the first nodes of a chain; return the zoom factor before and after it."""
    before = hand.canvas.viewer.factor
    hand.session.select([f"n{number}" for number in range(count)])
    hand.canvas.commands.duplicate()
    return before, hand.canvas.viewer.factor


def test_deleting_pasted_nodes_keeps_the_view(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(chain_of(60))
    before, after = view_after_duplicating(hand, 60)
    assert after != before

    hand.canvas.commands.delete()
    assert hand.canvas.viewer.factor == after
    hand.session.undo()
    hand.session.undo()

    assert hand.canvas.viewer.factor == pytest.approx(before)


def test_undoing_a_duplication_restores_the_view_after_a_resize(make_canvas: MakeCanvas, qtbot: QtBot) -> None:
    hand = make_canvas(chain_of(60))
    before, after = view_after_duplicating(hand, 60)
    hand.canvas.resize(hand.canvas.width() - 80, hand.canvas.height() - 60)
    settle(hand, qtbot)
    assert hand.canvas.viewer.factor == after

    hand.session.undo()

    assert hand.canvas.viewer.factor == pytest.approx(before)


def test_new_nodes_are_in_view_and_cover_no_others(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(workflow([], []))
    for number in range(24):
        kind = ("llm", "router", "loop", "transform")[number % 4]
        if number % 3 == 0:
            hand.session.select([])
        added = hand.canvas.commands.add_node(kind)
        assert added is not None
        assert hand.canvas.viewer.visible_rect.contains(hand.item(added).card_rect)
    assert not overlapping(hand)
