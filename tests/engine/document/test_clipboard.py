"""Copy and paste of parts of a workflow."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.document import clipboard
from engine.document.clipboard import copy_fragment, fragment_of, paste_fragment, read_fragment
from engine.document.files import dumps, loads
from engine.document.model import Edge, Node, Workflow
from engine.document.operations import OperationError
from engine.document.problems import DocumentError
from tests.engine.document.strategies import workflows
from tests.examples import examples

FLOW = Workflow(
    nodes=(
        Node(id="text", type="input"),
        Node(id="loop", type="loop", config={"evaluator": "judge", "until": "nodes.judge > 3"}),
        Node(id="judge", type="router", title="Judge", config={"prompt": "{{loop.last.judge}} {{nodes.text}}"}),
        Node(id="exit", type="exit", config={"loop": "loop"}, enabled=False),
    ),
    edges=(
        Edge(from_="text.value", to="loop.input"),
        Edge(from_="loop.body", to="judge.input"),
        Edge.model_validate({"from": "judge.done", "to": "exit.input", "colour": "red"}),
    ),
    layout={
        "nodes": {
            "text": {"x": 0, "y": 0},
            "loop": {"x": 10, "y": -5.5, "color": "red"},
            "judge": {"x": 10**400, "y": True},
        },
        "frames": {"f": 1},
    },
)


def pasted(workflow: Workflow, text: str) -> Workflow:
    operation = paste_fragment(workflow, read_fragment(text))
    done, inverse = operation.apply(workflow)
    assert dumps(inverse.apply(done)[0]) == dumps(workflow)
    return done


def test_fragment_has_nodes_edges_between_them_and_positions() -> None:
    fragment = loads(copy_fragment(FLOW, ["exit", "loop", "judge"]))
    assert fragment.nodes == FLOW.nodes[1:]
    assert fragment.edges == FLOW.edges[1:]
    assert fragment.layout == {"nodes": {key: FLOW.layout["nodes"][key] for key in ("loop", "judge")}}
    with pytest.raises(OperationError, match='no node "gone"'):
        copy_fragment(FLOW, ["text", "gone"])


def test_pasted_loop_refers_to_the_new_nodes() -> None:
    done = pasted(FLOW, copy_fragment(FLOW, ["loop", "judge", "exit"]))
    assert done.nodes[:4] == FLOW.nodes
    assert done.nodes[4:] == (
        Node(id="loop_2", type="loop", config={"evaluator": "judge_2", "until": "nodes.judge_2 > 3"}),
        Node(id="judge_2", type="router", title="Judge", config={"prompt": "{{loop.last.judge_2}} {{nodes.text}}"}),
        Node(id="exit_2", type="exit", config={"loop": "loop_2"}, enabled=False),
    )
    assert [str(edge) for edge in done.edges[3:]] == ["loop_2.body -> judge_2.input", "judge_2.done -> exit_2.input"]
    assert done.edges[4].model_extra == {"colour": "red"}
    assert done.layout["nodes"]["loop_2"] == {"x": 50, "y": 34.5, "color": "red"}
    assert done.layout["nodes"]["judge_2"] == {"x": 10**400, "y": True}
    assert done.layout["frames"] == {"f": 1}


def test_paste_title_says_what_is_pasted() -> None:
    assert paste_fragment(FLOW, read_fragment(copy_fragment(FLOW, ["judge"]))).title == "Paste judge_2"
    assert paste_fragment(FLOW, read_fragment(copy_fragment(FLOW, ["judge", "loop"]))).title == "Paste 2 nodes"


def test_chained_new_ids_rename_each_node_once() -> None:
    flow = Workflow(
        nodes=(Node(id="a", type="x", config={"p": "{{nodes.a}}{{nodes.a_2}}"}), Node(id="a_2", type="x")),
        edges=(Edge(from_="a.x", to="a_2.x"),),
    )
    done = pasted(flow, copy_fragment(flow, ["a", "a_2"]))
    assert [node.id for node in done.nodes] == ["a", "a_2", "a_3", "a_4"]
    assert done.node("a_3").config == {"p": "{{nodes.a_3}}{{nodes.a_4}}"}
    assert str(done.edges[1]) == "a_3.x -> a_4.x"


@pytest.mark.parametrize(
    ("text", "message"), [("rubbish", "clipboard: The document is not JSON"), (dumps(Workflow()), "has no nodes")]
)
def test_clipboard_without_nodes_is_refused(text: str, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        read_fragment(text)


def test_oversized_paste_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clipboard, "MAX_PASTED", 1)
    with pytest.raises(DocumentError, match="more than 1 nodes") as caught:
        paste_fragment(FLOW, fragment_of(FLOW, ["loop", "judge"]))
    assert "clipboard" not in caught.value.message  # duplicated nodes were not in it


def test_invalid_document_is_pasted_as_far_as_possible() -> None:
    text = json.dumps(
        {
            "format": "loopwright.workflow",
            "version": 1,
            "nodes": [{"id": "Bad Id", "type": "x"}, {"id": "Bad Id", "type": "y"}, {"id": "", "type": "z"}],
            "edges": [
                {"from": "Bad Id.a", "to": "Bad Id.b"},
                {"from": "Bad Id.a", "to": "Bad Id.b"},
                {"from": "Bad Id", "to": "Bad Id.b"},
                {"from": "Bad Id.a", "to": "Bad Id."},
                {"from": "gone.a", "to": "Bad Id.b"},
            ],
            "layout": {"nodes": {"Bad Id": 7, "gone": {}}},
        }
    )
    done = pasted(Workflow(), text)
    assert [(node.id, node.type) for node in done.nodes] == [("bad_id", "x"), ("bad_id_2", "y"), ("node", "z")]
    assert [str(edge) for edge in done.edges] == ["bad_id.a -> bad_id.b"]
    assert done.layout == {"nodes": {"bad_id": 7}}


def test_invalid_layout_gets_no_positions() -> None:
    flow = FLOW.model_copy(update={"layout": {"nodes": 5}})
    assert pasted(flow, copy_fragment(FLOW, ["text"])).layout == {"nodes": 5}
    assert loads(copy_fragment(flow, ["text"])).layout == {"nodes": {}}


@examples(100)
@given(workflows(max_nodes=3), workflows(max_nodes=2), st.data())
def test_pasted_copy_is_the_same_graph_with_other_ids(source: Workflow, target: Workflow, data: st.DataObject) -> None:
    chosen = [node for node in source.nodes if data.draw(st.booleans())]
    if not chosen:
        return
    ids = [node.id for node in chosen]
    done = pasted(target, copy_fragment(source, ids))
    assert dumps(paste_fragment(target, fragment_of(source, ids)).apply(target)[0]) == dumps(done)
    new = done.nodes[len(target.nodes) :]
    assert done.nodes[: len(target.nodes)] == target.nodes
    assert len({node.id for node in done.nodes}) == len(done.nodes)
    assert [(node.type, node.title, node.enabled, node.model_extra) for node in new] == [
        (node.type, node.title, node.enabled, node.model_extra) for node in chosen
    ]
    names = {old.id: copy.id for old, copy in zip(chosen, new, strict=True)}
    assert [(edge.source, edge.target, edge.model_extra) for edge in done.edges[len(target.edges) :]] == [
        ((names[edge.source[0]], edge.source[1]), (names[edge.target[0]], edge.target[1]), edge.model_extra)
        for edge in source.edges
        if edge.source[0] in names and edge.target[0] in names
    ]
    for old, copy in zip(chosen, new, strict=True):
        assert copy.config.keys() == old.config.keys()
        prompt = old.config.get("prompt")
        if isinstance(prompt, str) and "{{loop.last." in prompt:
            name = prompt.split("{{loop.last.")[1].split("}}")[0]
            assert f"{{{{loop.last.{names.get(name, name)}}}}}" in copy.config["prompt"]
