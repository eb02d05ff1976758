from __future__ import annotations

import pytest
from PySide6.QtCore import QPointF
from pytestqt.qtbot import QtBot

from app.canvas.canvas_style import fonts
from app.canvas.node_card import CardViewModel, card_geometry, card_view_model
from app.theme.style import elide_two_lines, first_line
from engine.document.model import Edge, Workflow
from engine.document.operations import SetConfig, SetLayout, SetTitle
from engine.nodes.node_names import node_name
from engine.nodes.node_registry import builtin_registry
from engine.nodes.spec import Category
from engine.plan.structure import analyse
from tests.app.canvas.conftest import Hand, MakeCanvas, settle
from tests.app.canvas.documents import nested, node, refine, workflow


def test_card_shows_title_summary_and_ports(hand: Hand) -> None:
    content = hand.item("draft").content
    assert content.title == "Draft"
    assert content.category is Category.AI
    assert "default model" in content.summary
    assert [port.name for port in hand.item("draft").inputs] == ["input"]
    assert hand.item("draft").outputs[0].content.type == "text"
    assert (hand.item("draft").x(), hand.item("draft").y()) == (480, 80)


def test_card_without_title_shows_the_title_of_its_type(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(workflow([node("a", "llm")], []))
    assert hand.item("a").content.title == "LLM"


def test_cards_without_a_title_are_numbered_like_in_messages(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(workflow([node("a", "llm"), node("b", "llm"), node("c", "llm", "LLM 2")], []))
    titles = [hand.item(item).content.title for item in "abc"]
    assert titles == ["LLM", "LLM 3", "LLM 2"] == [node_name(hand.session.workflow, item) for item in "abc"]


def test_unknown_types_and_invalid_configs_show_the_ports_that_edges_name(make_canvas: MakeCanvas) -> None:
    document = workflow(
        [node("a", "nosuch"), node("b", "llm", temperature="hot"), node("c", "llm", prompt="{{input}}")],
        ["a.some -> b.where", "b.output -> c.nowhere"],
    )
    hand = make_canvas(document)
    assert hand.item("a").content.summary == "unknown type"
    assert hand.item("a").content.category is None
    assert [port.name for port in hand.item("b").inputs] == ["where"]
    port = hand.item("c").port("nowhere", is_input=True)
    assert port is not None
    assert not port.content.known
    assert set(hand.canvas.view.edge_items) == {("a.some", "b.where"), ("b.output", "c.nowhere")}


def test_invalid_edges_and_layout_entries_are_ignored(make_canvas: MakeCanvas) -> None:
    document = refine()
    edges = (
        *document.edges,
        Edge(from_="ghost.x", to="draft.input"),
        Edge(from_="draft", to="exit.input"),
        document.edges[0],
    )
    layout = {
        "nodes": {"task": {"x": "left", "y": 0}, "loop": 7, "draft": {"x": 1e300, "y": 0}, "exit": {"x": True, "y": 0}},
        "frames": {"one": {"x": 0}, "two": []},
        "notes": "none",
    }
    hand = make_canvas(document.model_copy(update={"edges": edges, "layout": layout}))
    assert len(hand.canvas.view.nodes) == 5
    assert len(hand.canvas.view.edge_items) == 4
    assert hand.canvas.view.annotations.items == {}
    assert len({(item.x(), item.y()) for item in hand.canvas.view.nodes.values()}) == 5


def test_loop_regions_are_nested(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(nested())
    regions = hand.canvas.view.regions.items
    assert [regions[f"loop_{depth}"].depth for depth in range(3)] == [0, 1, 2]
    for depth in range(3):
        region = regions[f"loop_{depth}"]
        for member in (f"loop_{depth}", f"step_{depth}", f"exit_{depth}"):
            assert region.rect.contains(hand.item(member).card_rect)
    assert regions["loop_0"].rect.contains(regions["loop_1"].rect)
    assert regions["loop_1"].rect.contains(regions["loop_2"].rect)
    assert regions["loop_2"].zValue() > regions["loop_1"].zValue() > regions["loop_0"].zValue()
    assert not regions["loop_0"].rect.intersects(hand.item("text").card_rect)


def test_feedback_arrow_leads_from_exit_to_loop(hand: Hand) -> None:
    arrow = hand.canvas.view.regions.items["loop"].arrow
    exit_, loop = hand.item("exit").card_rect, hand.item("loop").card_rect
    start, end = arrow.pointAtPercent(0), arrow.pointAtPercent(1)
    assert (start.x(), start.y()) == (exit_.center().x(), exit_.bottom())
    assert end.x() == pytest.approx(loop.center().x(), abs=1)
    assert loop.bottom() < end.y() < loop.bottom() + 8
    assert hand.canvas.view.regions.items["loop"].arrow_label == "feedback: replace"


def test_feedback_arrow_label_follows_the_feedback_mode(hand: Hand) -> None:
    hand.session.do(SetConfig(("feedback_mode",), {"loop": "append"}))
    assert hand.canvas.view.regions.items["loop"].arrow_label == "feedback: append"


def test_changed_title_updates_one_card_and_keeps_all_items(hand: Hand) -> None:
    items, edge_items = dict(hand.canvas.view.nodes), dict(hand.canvas.view.edge_items)
    hand.session.do(SetTitle("loop", "Improve"))
    assert hand.item("loop").content.title == "Improve"
    assert hand.canvas.view.regions.items["loop"].label.content.title == "Improve"
    assert hand.canvas.view.nodes == items
    assert hand.canvas.view.edge_items == edge_items


def test_new_placeholder_in_a_prompt_adds_a_port_and_keeps_edges(hand: Hand) -> None:
    pipe = hand.canvas.view.edge_items["loop.body", "draft.input"]
    hand.session.do(SetConfig(("prompt",), {"draft": "{{input}} {{above}}"}))
    assert [port.name for port in hand.item("draft").inputs] == ["input", "above"]
    hand.session.do(SetConfig(("prompt",), {"draft": "no names"}))
    assert [port.name for port in hand.item("draft").inputs] == ["input"]
    assert hand.canvas.view.edge_items["loop.body", "draft.input"] is pipe
    assert (pipe.path().currentPosition() - hand.port("draft.input")).manhattanLength() < 1


def test_loop_without_exit_has_no_region(hand: Hand, qtbot: QtBot) -> None:
    hand.session.do(SetConfig(("loop",), {"exit": "ghost"}))
    settle(hand, qtbot)
    qtbot.waitUntil(lambda: hand.canvas.view.regions.items == {})


def test_titles_are_elided_at_the_edge_of_the_card(qapp: object) -> None:
    structure = analyse(Workflow())
    registry = builtin_registry()
    short = card_view_model(refine().node("draft"), registry, structure, (), ())
    assert card_geometry(short).title == "Draft"
    long_title = (
        refine().node("draft").model_copy(update={"title": "A title that goes on and on and never ends at all"})
    )
    shape = card_geometry(card_view_model(long_title, registry, structure, (), ()))
    assert shape.title.endswith("…")
    assert fonts().title_metrics.horizontalAdvance(shape.title) <= shape.title_rect.width()


def test_title_wraps_onto_two_lines_when_zoomed_out(qapp: object) -> None:
    metrics = fonts().title_metrics
    width = metrics.horizontalAdvance("Polish the wording")
    assert elide_two_lines(metrics, "Draft", width) == ["Draft"]
    assert elide_two_lines(metrics, "Polish the wording of", width) == ["Polish the wording", "of"]
    assert elide_two_lines(metrics, "Unbreakableunbreakableunbreakable", width)[0].endswith("…")


def test_frames_and_notes_are_drawn_from_the_layout(hand: Hand) -> None:
    hand.session.do(
        SetLayout(("frames", "f"), {"x": 10, "y": 300, "width": 200, "height": 100, "title": "Ideas", "own": 1})
    )
    hand.session.do(SetLayout(("notes", "n"), {"x": 300, "y": 300, "text": "Mind this"}))
    frame = hand.canvas.view.annotations.items["frames", "f"]
    assert frame.scene_rect.topLeft() == QPointF(10, 300)
    assert hand.canvas.view.annotations.items["notes", "n"].annotation.text == "Mind this"
    hand.session.undo()
    assert ("notes", "n") not in hand.canvas.view.annotations.items
    hand.canvas.commands.change_annotation(frame, frame.annotation.moved(20, 300), "Move")
    assert hand.session.workflow.layout["frames"]["f"]["own"] == 1


def test_only_the_visible_part_of_a_long_title_is_measured(qapp: object) -> None:
    long, longest = (card_geometry(_named("word " * count)) for count in (100, 1_000_000))
    assert (longest.width, longest.title) == (long.width, long.title)
    assert len(first_line("word " * 1_000_000)) < 1_000


def _named(title: str) -> CardViewModel:
    return CardViewModel("task", "input", title, title, "mdi6.login", None, (), ())
