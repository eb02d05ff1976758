from __future__ import annotations

from pathlib import Path

import pytest

from app.gallery.diagram import Diagram, make_diagram
from app.gallery.gallery import bundled_templates, split_description
from engine.document.files import load
from engine.document.model import Edge, Node, Workflow
from engine.nodes.spec import Category
from tests.wording import mentions


def diagram_of(workflow: Workflow) -> Diagram:
    return make_diagram(workflow)


def template(name: str) -> Workflow:
    return next(found.workflow for found in bundled_templates()[0] if found.title == name)


def looping(layout: dict[str, object] | None = None) -> Workflow:
    """An input, a loop with a draft, a side branch that leads nowhere, its exit, and an output."""
    types = {"task": "input", "loop": "loop", "draft": "llm", "exit": "exit", "text": "output", "aside": "transform"}
    edges = [
        ("task.value", "loop.input"),
        ("loop.body", "draft.input"),
        ("draft.output", "aside.draft"),
        ("draft.output", "exit.input"),
        ("exit.output", "text.value"),
    ]
    configs = {"exit": {"loop": "loop"}, "aside": {"template": "{{draft}}"}}
    nodes = [Node(id=node_id, type=node_type, config=configs.get(node_id, {})) for node_id, node_type in types.items()]
    return Workflow(
        nodes=tuple(nodes), edges=tuple(Edge(from_=start, to=end) for start, end in edges), layout=layout or {}
    )


def test_nodes_have_position_of_the_layout_and_icon_of_their_type() -> None:
    workflow = template("Self-Refine")
    diagram = diagram_of(workflow)
    draft = diagram.boxes["draft"]
    assert {"x": draft.x, "y": draft.y} == workflow.layout["nodes"]["draft"]
    assert (draft.category, draft.icon) == (Category.AI, "mdi6.creation")
    assert len(diagram.boxes) == 7


def test_loop_is_a_region_of_loop_exit_and_body() -> None:
    [region] = diagram_of(template("Self-Refine")).regions
    assert (region.loop, region.exit) == ("loop", "exit")
    assert region.members == {"loop", "draft", "critique", "merge", "exit"}


def test_several_edges_between_two_nodes_are_one_line() -> None:
    edges = diagram_of(template("Agentic Search")).edges
    assert edges.count(("enough", "missing")) == 1
    assert len(edges) == len(set(edges))


def test_nodes_without_position_are_laid_out_from_left_to_right() -> None:
    boxes = diagram_of(looping()).boxes
    assert sorted(boxes, key=lambda node_id: boxes[node_id].x) == ["task", "loop", "draft", "aside", "exit", "text"]
    assert len({box.x for box in boxes.values()}) == len(boxes)


def test_nodes_of_one_column_are_below_each_other() -> None:
    nodes = tuple(Node(id=f"note{at}", type="transform") for at in range(3))
    boxes = diagram_of(Workflow(nodes=nodes)).boxes
    assert {box.x for box in boxes.values()} == {0}
    assert len({box.y for box in boxes.values()}) == 3


@pytest.mark.parametrize(
    "place", ["here", {"x": 1}, {"x": "1", "y": 2}, {"x": True, "y": 2}, {"x": 1e300, "y": 2}, None]
)
def test_invalid_layout_is_replaced_by_auto_layout(place: object) -> None:
    layout = {"nodes": {"task": place}}
    assert diagram_of(looping(layout)) == diagram_of(looping())
    assert diagram_of(looping({"nodes": place})) == diagram_of(looping())


def test_cycle_and_unknown_type_are_drawn() -> None:
    nodes = (Node(id="a", type="transform"), Node(id="b", type="from_the_future"))
    edges = (Edge(from_="a.output", to="b.input"), Edge(from_="b.output", to="a.input"))
    diagram = diagram_of(Workflow(nodes=nodes, edges=edges))
    assert diagram.boxes["a"].x < diagram.boxes["b"].x
    assert diagram.boxes["b"].category is None
    assert diagram.boxes["b"].icon


def test_bundled_templates_have_a_distinct_position_for_every_node() -> None:
    templates, problems = bundled_templates()
    assert problems == []
    assert templates[0].title == "Self-Refine"
    for found in templates:
        assert found.about
        assert found.when.startswith("For ")
        assert found.workflow.layout["nodes"].keys() == found.workflow.nodes_by_id.keys()
        places = {(box.x, box.y) for box in diagram_of(found.workflow).boxes.values()}
        assert len(places) == len(found.workflow.nodes)


def test_last_sentence_of_a_description_says_when_to_use_a_template() -> None:
    assert split_description("It writes. It reads! For long texts.") == ("It writes. It reads!", "For long texts.")
    assert split_description("For long texts. It writes.") == ("For long texts. It writes.", "")
    assert split_description("For long texts.") == ("For long texts.", "")
    assert split_description("  ") == ("", "")


def test_invalid_template_is_reported_and_the_others_are_loaded(tmp_path: Path) -> None:
    (tmp_path / "broken.loop.json").write_text("{", encoding="utf-8")
    (tmp_path / "unnamed.loop.json").write_text('{"format": "loopwright.workflow", "version": 1}', encoding="utf-8")
    templates, problems = bundled_templates(tmp_path)
    assert [found.title for found in templates] == ["unnamed"]
    assert templates[0].workflow == load(tmp_path / "unnamed.loop.json")
    assert len(problems) == 1
    assert "broken.loop.json" in problems[0]


def test_missing_folder_has_no_templates(tmp_path: Path) -> None:
    templates, (problem,) = bundled_templates(tmp_path / "gone")
    assert templates == []
    assert mentions(problem, f"{tmp_path / 'gone'}: … missing … Reinstall")
