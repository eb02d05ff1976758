from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPointF, QUrl
from pytestqt.qtbot import QtBot

from app.canvas.viewer import NODE_MIME, TEMPLATE_MIME
from tests.app.canvas.conftest import Hand, MakeCanvas, settle
from tests.app.canvas.documents import node, workflow
from tests.app.drag_and_drop import drag_and_drop


def drop(hand: Hand, data: QMimeData, place: QPointF) -> bool:
    return drag_and_drop(hand.canvas.viewer.viewport(), data, hand.at(place))


def of(kind: str, text: str) -> QMimeData:
    data = QMimeData()
    data.setData(kind, text.encode())
    return data


def test_dropped_node_type_is_added_at_the_drop_position(hand: Hand) -> None:
    assert drop(hand, of(NODE_MIME, "transform"), QPointF(320, 480))
    assert hand.place("transform") == (320, 480)
    assert hand.session.selection == ("transform",)


def test_node_type_dropped_on_an_edge_is_inserted(hand: Hand) -> None:
    middle = (hand.port("draft.output") + hand.port("exit.input")) / 2
    drop(hand, of(NODE_MIME, "transform"), middle)
    assert "draft.output -> transform.input" in hand.edges()
    assert "transform.output -> exit.input" in hand.edges()
    assert "draft.output -> exit.input" not in hand.edges()
    hand.session.undo()
    assert "transform" not in hand.canvas.view.nodes
    assert "draft.output -> exit.input" in hand.edges()


def test_loop_dropped_on_an_edge_wraps_the_nodes_at_its_ends(make_canvas: MakeCanvas, qtbot: QtBot) -> None:
    hand = make_canvas(
        workflow(
            [node("task", "input"), node("draft", "llm"), node("review", "llm"), node("text", "output")],
            ["task.value -> draft.input", "draft.output -> review.input", "review.output -> text.value"],
        )
    )
    drop(hand, of(NODE_MIME, "loop"), (hand.port("draft.output") + hand.port("review.input")) / 2)
    settle(hand, qtbot)
    assert hand.session.structure.bodies["loop"].nodes == {"draft", "review"}
    assert {"task.value -> loop.input", "exit.output -> text.value"} <= set(hand.edges())


@pytest.mark.parametrize("kind", ["loop", "iterator"])
@pytest.mark.parametrize("target", ["card", "edge"])
def test_loop_dropped_on_a_selection_wraps_all_of_it(
    make_canvas: MakeCanvas, qtbot: QtBot, kind: str, target: str
) -> None:
    steps = ["one", "two", "three"]
    chain = ["task.value", *(f"{step}.{port}" for step in steps for port in ("input", "output")), "text.value"]
    hand = make_canvas(
        workflow(
            [node("task", "input"), *(node(step, "llm") for step in steps), node("text", "output")],
            [f"{chain[at]} -> {chain[at + 1]}" for at in range(0, len(chain), 2)],
        )
    )
    hand.session.select(steps)
    edge = (hand.port("one.output") + hand.port("two.input")) / 2
    drop(hand, of(NODE_MIME, kind), edge if target == "edge" else hand.title("two"))
    settle(hand, qtbot)
    assert hand.session.structure.bodies[kind].nodes == set(steps)
    assert hand.session.undo_title == f"Wrap 3 nodes in {'an' if kind == 'iterator' else 'a'} {kind}"


@pytest.mark.parametrize(
    ("offset", "before", "after"),
    [(QPointF(-60, 60), "loop.body", "draft.input"), (QPointF(120, 60), "draft.output", "exit.input")],
)
def test_node_type_dropped_into_a_region_goes_between_the_nodes_there(
    hand: Hand, offset: QPointF, before: str, after: str
) -> None:
    place = hand.item("draft").card_rect.center() + offset
    assert hand.canvas.viewer.edge_at(place) is None
    assert hand.canvas.view.regions.items["loop"].rect.contains(place)
    drop(hand, of(NODE_MIME, "transform"), place)
    assert {f"{before} -> transform.input", f"transform.output -> {after}"} <= set(hand.edges())


@pytest.mark.parametrize("kind", ["input", "output"])
def test_what_cannot_be_in_a_loop_is_put_below_its_region(hand: Hand, kind: str) -> None:
    region, edges = hand.canvas.view.regions.items["loop"].rect, hand.edges()
    drop(hand, of(NODE_MIME, kind), QPointF(region.center().x(), region.bottom() - 8))
    (added,) = hand.session.selection
    assert hand.item(added).card_rect.top() > region.bottom()
    assert hand.edges() == edges


def test_loop_dropped_on_an_edge_between_input_and_output_is_inserted(make_canvas: MakeCanvas) -> None:
    nodes = [node("task", "input"), node("text", "output")]
    hand = make_canvas(workflow(nodes, ["task.value -> text.value"], {"task": (0, 80), "text": (600, 80)}))
    drop(hand, of(NODE_MIME, "loop"), (hand.port("task.value") + hand.port("text.value")) / 2)
    assert {"task.value -> loop.input", "exit.output -> text.value"} <= set(hand.edges())


@pytest.mark.parametrize("kind", ["transform", "loop", "llm"])
def test_dropped_nodes_cover_no_others(hand: Hand, kind: str) -> None:
    before = {node_id: hand.item(node_id).card_rect for node_id in hand.canvas.view.nodes}
    drop(hand, of(NODE_MIME, kind), hand.item("task").card_rect.bottomLeft() + QPointF(0, 4))
    drop(hand, of(NODE_MIME, kind), hand.item("task").card_rect.topLeft() - QPointF(20, 30))
    cards = {node_id: item.card_rect for node_id, item in hand.canvas.view.nodes.items()}
    assert cards.items() >= before.items()
    for one, other in itertools.combinations(cards, 2):
        assert not cards[one].intersects(cards[other]), f"{one} covers {other}"


def test_node_without_input_or_output_is_added_without_inserting_it(hand: Hand) -> None:
    middle = (hand.port("exit.output") + hand.port("text.value")) / 2
    drop(hand, of(NODE_MIME, "output"), middle)
    assert "output" in hand.canvas.view.nodes
    assert "exit.output -> text.value" in hand.edges()


def test_dropped_templates_and_files_are_reported(hand: Hand, tmp_path: Path) -> None:
    templates: list[str] = []
    files: list[list[Path]] = []
    hand.canvas.template_dropped.connect(templates.append)
    hand.canvas.files_dropped.connect(files.append)
    drop(hand, of(TEMPLATE_MIME, "self-refine"), QPointF(300, 400))
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(tmp_path / "a.loop.json")), QUrl("https://example.org/b")])
    drop(hand, data, QPointF(300, 400))
    assert templates == ["self-refine"]
    assert files == [[tmp_path / "a.loop.json"]]
    assert hand.session.undo_title is None


def test_other_drops_are_rejected(hand: Hand) -> None:
    assert not drop(hand, of("application/x-other", "x"), QPointF(300, 400))
