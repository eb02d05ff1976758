"""Each operation on a document, and its inverse."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.document.files import dumps, loads
from engine.document.model import Edge, Node, Workflow
from engine.document.operations import (
    UNSET,
    AddNodes,
    Batch,
    Connect,
    Disconnect,
    Operation,
    OperationError,
    RemoveNodes,
    RenameNode,
    SetConfig,
    SetEnabled,
    SetLayout,
    SetPinned,
    SetSettings,
    SetText,
    SetTitle,
)
from tests.engine.document.strategies import configs, ids, keys, texts, values, workflows
from tests.examples import examples
from tests.wording import mentions

FLOW = Workflow(
    nodes=(
        Node(id="text", type="input"),
        Node(id="loop", type="loop", config={"evaluator": "judge"}),
        Node(id="draft", type="llm", config={"prompt": "{{input}}"}),
        Node(id="judge", type="router", config={"branches": [{"name": "done", "when": "a"}]}),
        Node(id="exit", type="exit", config={"loop": "loop"}),
    ),
    edges=(
        Edge(from_="text.value", to="loop.input"),
        Edge(from_="loop.body", to="draft.input"),
        Edge(from_="draft.output", to="judge.input"),
        Edge(from_="judge.done", to="exit.input"),
    ),
    layout={"nodes": {"text": {"x": 0, "y": 0}, "draft": {"x": 1, "y": 2}, "exit": {"x": 3, "y": 4}}, "frames": {}},
)


def after(operation: Operation, workflow: Workflow = FLOW) -> Workflow:
    """The changed workflow, once it is sure that the way back and forth again is exact to the letter."""
    done, inverse = operation.apply(workflow)
    back, again = inverse.apply(done)
    assert dumps(back) == dumps(workflow)
    assert dumps(again.apply(back)[0]) == dumps(done)
    return done


def refusal(operation: Operation, workflow: Workflow = FLOW) -> str:
    with pytest.raises(OperationError) as caught:
        operation.apply(workflow)
    assert caught.value.remedy
    return caught.value.message


def test_node_is_added_at_the_end() -> None:
    node = Node(id="new", type="llm", config={"a": [1]})
    assert after(AddNodes((node,))).nodes == (*FLOW.nodes, node)


def test_node_that_cannot_be_saved_is_refused() -> None:
    assert 'already a node "draft"' in refusal(AddNodes((Node(id="draft", type="llm"),)))
    assert '"Not ok\\n"' in refusal(AddNodes((Node(id="Not ok\n", type="llm"),)))
    endless: dict[str, Any] = {}
    endless["x"] = endless
    assert "more than 200 levels deep" in refusal(AddNodes((Node(id="a", type="b", config=endless),)))
    assert refusal(AddNodes((Node(id="a", type="b", config={"x": [float("nan")]}),))).startswith(
        'The config of node "a", "x.0": '
    )
    with_key = Node.model_validate({"id": "a", "type": "b", "more": {1, 2}})
    assert mentions(refusal(AddNodes((with_key,))), 'Node "a", "more": … Python type set')


def test_node_is_removed_with_edges_and_position_and_restored_in_order() -> None:
    done = after(RemoveNodes(("draft",)))
    assert [node.id for node in done.nodes] == ["text", "loop", "judge", "exit"]
    assert [str(edge) for edge in done.edges] == ["text.value -> loop.input", "judge.done -> exit.input"]
    assert done.layout == {"nodes": {"text": {"x": 0, "y": 0}, "exit": {"x": 3, "y": 4}}, "frames": {}}
    assert 'no node "gone\\n"' in refusal(RemoveNodes(("gone\n",)))


def test_removing_many_nodes_equals_removing_each() -> None:
    gone = ("judge", "text", "draft")
    done, back = RemoveNodes(gone).apply(FLOW)
    one_by_one = FLOW
    for node_id in gone:
        one_by_one = after(RemoveNodes((node_id,)), one_by_one)
    assert done == one_by_one
    assert [node.id for node in done.nodes] == ["loop", "exit"]
    assert done.layout == {"nodes": {"exit": {"x": 3, "y": 4}}, "frames": {}}
    assert back.apply(done)[0] == FLOW
    assert 'no node "gone"' in refusal(RemoveNodes(("draft", "gone")))


def test_adding_many_nodes_and_edges_equals_adding_each() -> None:
    nodes = (Node(id="one", type="llm"), Node(id="two", type="llm"))
    edges = (Edge.between("draft.output", "one.input"), Edge.between("one.output", "two.input", {"colour": "red"}))
    both = Batch("both", (AddNodes(nodes), Connect(edges)))
    assert after(both) == after(
        Batch("each", (*(AddNodes((node,)) for node in nodes), *(Connect((edge,)) for edge in edges)))
    )
    assert both.apply(FLOW)[1].apply(after(both))[0] == FLOW
    assert 'already a node "one"' in refusal(AddNodes((*nodes, nodes[0])))
    assert 'already a node "draft"' in refusal(AddNodes((Node(id="draft", type="llm"),)))
    twice = Edge.between("draft.output", "exit.feedback")
    assert mentions(refusal(Connect((twice, twice))), 'already … "draft.output" to "exit.feedback"')


def test_first_of_two_nodes_with_one_id_is_removed_and_edges_stay() -> None:
    twin = Node(id="draft", type="transform")
    done = after(RemoveNodes(("draft",)), FLOW.model_copy(update={"nodes": (*FLOW.nodes, twin)}))
    assert done.node("draft") == twin
    assert done.edges == FLOW.edges


def test_undone_node_leaves_edges_that_already_named_it() -> None:
    dangling = Workflow(edges=(Edge(from_="new.a", to="new.b"),), layout={"nodes": {"new": 1}})
    assert after(AddNodes((Node(id="new", type="x"),)), dangling).edges == dangling.edges


def test_edge_is_added_at_the_end_with_other_keys() -> None:
    done = after(Connect((Edge.between("draft.output", "exit.feedback", {"colour": "red"}),)))
    assert done.edges[:-1] == FLOW.edges
    assert done.edges[-1].model_dump(by_alias=True) == {"from": "draft.output", "to": "exit.feedback", "colour": "red"}


def test_cached_properties_follow_nodes_and_edges() -> None:
    assert FLOW.node("judge") is FLOW.nodes[3]
    assert FLOW.edges_into["judge"] == [FLOW.edges[2]]

    done = after(Batch("both", (AddNodes((Node(id="new", type="llm"),)), Connect.between("draft.output", "new.input"))))

    assert done.node("new") is done.nodes[-1]
    assert done.edges_into["new"] == [done.edges[-1]]
    assert "new" not in after(RemoveNodes(("new",)), done).edges_into


def test_existing_or_dangling_edge_is_refused() -> None:
    assert mentions(
        refusal(Connect.between("draft.output", "judge.input")), 'already … "draft.output" to "judge.input"'
    )
    assert refusal(Connect.between("draft", "judge.input")) == '"draft" is not a port.'
    assert refusal(Connect.between("draft.output", "judge.")) == '"judge." is not a port.'
    assert 'no node "gone"' in refusal(Connect.between("draft.output", "gone.input"))
    assert "infinite" in refusal(Connect((Edge.between("draft.output", "exit.feedback", {"x": float("inf")}),)))


def test_edge_is_removed_at_any_position() -> None:
    done = after(Disconnect("loop.body", "draft.input"))
    assert done.edges == (FLOW.edges[0], *FLOW.edges[2:])
    assert mentions(refusal(Disconnect("loop.body", "exit.input")), 'no edge … "loop.body" to "exit.input"')


@pytest.mark.parametrize(
    ("path", "value", "config"),
    [
        (("branches", 0, "when"), "b", {"branches": [{"name": "done", "when": "b"}]}),
        (("branches", 0, "when"), UNSET, {"branches": [{"name": "done"}]}),
        (("branches", 1), {"name": "else"}, {"branches": [{"name": "done", "when": "a"}, {"name": "else"}]}),
        (("branches", 1, "name"), "else", {"branches": [{"name": "done", "when": "a"}, {"name": "else"}]}),
        (("branches", 0), UNSET, {"branches": []}),
        (("branches", 1), UNSET, {"branches": [{"name": "done", "when": "a"}]}),
        (("branches", 1, "name"), UNSET, {"branches": [{"name": "done", "when": "a"}]}),
        (("branches",), UNSET, {}),
        (("branches",), None, {"branches": None}),
        (("gone", "deep"), UNSET, {"branches": [{"name": "done", "when": "a"}]}),
        (("judge", "texts", 0), "x", {"branches": [{"name": "done", "when": "a"}], "judge": {"texts": ["x"]}}),
    ],
)
def test_config_value_is_set_or_removed(path: tuple[str | int, ...], value: Any, config: dict[str, Any]) -> None:
    done = after(SetConfig(path, {"judge": value}))
    assert done.node("judge").config == config
    assert done.node("draft") is FLOW.node("draft")


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ((), "the path is empty"),
        (("branches", "name"), '"name" needs an object around it'),
        (("branches", 0, 0), '"0" needs a list around it'),
        (("branches", 0, "name", "x"), '"x" needs an object around it'),
        (("branches", 2), "1 entries … index 2 … out of range"),
        (("branches", -1), "1 entries … index -1 … out of range"),
        (("new", 1), "0 entries … index 1 … out of range"),
    ],
)
def test_invalid_config_path_is_refused(path: tuple[str | int, ...], parts: str) -> None:
    assert mentions(refusal(SetConfig(path, {"judge": 1})), f'"judge" … : … {parts}')


def test_one_config_value_is_set_in_several_nodes_or_in_none() -> None:
    done = after(SetConfig(("x",), {"judge": 1, "draft": UNSET}))
    assert done.node("judge").config == {**FLOW.node("judge").config, "x": 1}
    assert done.node("draft").config == FLOW.node("draft").config
    assert 'no node "gone"' in refusal(SetConfig(("x",), {"judge": 1, "gone": 1}))
    assert refusal(SetConfig(("x",), {"draft": float("nan")})).startswith('The config of node "draft", "x": The number')


def test_invalid_config_value_or_missing_node_is_refused() -> None:
    assert refusal(SetConfig(("x",), {"judge": float("nan")})).startswith('The config of node "judge", "x": The number')
    assert "200 levels deep" in refusal(SetConfig(("x",) * 300, {"judge": 1}))
    assert 'no node "gone"' in refusal(SetConfig(("x",), {"gone": 1}))


def test_deepest_accepted_config_can_be_saved_and_opened() -> None:
    done = after(SetConfig(("x",) * 197, {"judge": 1}))
    assert loads(dumps(done)) == done
    assert "200 levels deep" in refusal(SetConfig(("x",) * 198, {"judge": 1}))
    done = after(SetLayout(("x",) * 199, 1))
    assert loads(dumps(done)) == done
    assert "200 levels deep" in refusal(SetLayout(("x",) * 200, 1))


def test_title_enabled_name_and_description_are_set() -> None:
    assert after(SetTitle("draft", "Write")).node("draft").title == "Write"
    assert after(SetEnabled("draft", False)).node("draft").enabled is False
    assert after(SetText("name", "n")).name == "n"
    assert after(SetText("description", "d")).description == "d"


def test_settings_and_layout_are_set_by_path() -> None:
    assert after(SetSettings(("budget_usd",), 0.5)).settings == {"budget_usd": 0.5}
    assert "infinite" in refusal(SetSettings(("budget_usd",), float("inf")))
    done = after(SetLayout(("nodes", "judge"), {"x": 9, "y": 9}))
    assert done.layout["nodes"]["judge"] == {"x": 9, "y": 9}
    assert done.nodes is FLOW.nodes
    assert after(SetLayout(("frames", "one"), UNSET)).layout == FLOW.layout


def test_invalid_layout_elsewhere_does_not_prevent_a_move() -> None:
    flow = FLOW.model_copy(update={"layout": {"nodes": {"draft": {"x": float("nan")}}}})
    done, _ = SetLayout(("nodes", "judge"), {"x": 9, "y": 9}).apply(flow)
    assert done.layout["nodes"]["judge"] == {"x": 9, "y": 9}
    assert "half of a surrogate pair" in refusal(SetLayout(("nodes", "\ud800"), 1))
    assert '"nodes.judge.x": The number' in refusal(SetLayout(("nodes", "judge"), {"x": float("nan")}))


def test_renaming_a_node_updates_edges_position_pair_and_texts() -> None:
    texts = {
        "prompt": "{{loop.last.draft}} {{ loop.parent.last.draft.output + nodes.draft }} \\{{nodes.draft}} nodes.a",
        "until": "nodes.draft.score > 3 && has(loop.last.draft) || nodes.drafts == nodes.draftX + other.nodes.draft",
        "list": ["loop.last.draft", {"deep": "{{nodes.draft}} {{nodes.draft"}, 3, None],
        "loop": "draft",
    }
    flow = after(AddNodes((Node(id="other", type="llm", config=texts),)))
    done = after(RenameNode("draft", "sketch"), flow)
    assert done.node("other").config == {
        "prompt": "{{loop.last.sketch}} {{ loop.parent.last.sketch.output + nodes.sketch }} \\{{nodes.draft}} nodes.a",
        "until": "nodes.sketch.score > 3 && has(loop.last.sketch) || nodes.drafts == nodes.draftX + other.nodes.draft",
        "list": ["loop.last.sketch", {"deep": "{{nodes.sketch}} {{nodes.draft"}, 3, None],
        "loop": "draft",
    }
    assert [str(edge) for edge in done.edges][1:3] == ["loop.body -> sketch.input", "sketch.output -> judge.input"]
    assert list(done.layout["nodes"]) == ["text", "sketch", "exit"]
    assert [node.id for node in done.nodes][2] == "sketch"


def test_renamed_loop_or_router_is_still_named_by_its_partner() -> None:
    assert after(RenameNode("loop", "turns")).node("exit").config == {"loop": "turns"}
    assert after(RenameNode("judge", "critic")).node("loop").config == {"evaluator": "critic"}


def test_nodes_of_a_nested_workflow_are_not_renamed() -> None:
    inner = Workflow(nodes=(Node(id="draft", type="llm", config={"prompt": "{{loop.last.draft}}"}),)).to_json()
    part = Node(id="part", type="subflow", config={"file": "part.loop.json", "workflow": inner})
    assert after(RenameNode("draft", "sketch"), after(AddNodes((part,)))).node("part") == part


def test_renamed_node_takes_its_position_instead_of_a_leftover() -> None:
    places = {"draft": {"x": 1, "y": 2}, "sketch": {"x": 900, "y": 900}}
    flow = FLOW.model_copy(update={"layout": {"nodes": places}})
    assert after(RenameNode("draft", "sketch"), flow).layout["nodes"] == {"sketch": {"x": 1, "y": 2}}


def test_rename_to_an_invalid_or_used_id_is_refused() -> None:
    assert 'already a node "judge"' in refusal(RenameNode("draft", "judge"))
    assert '"a.b" is not a valid' in refusal(RenameNode("draft", "a.b"))
    assert 'no node "gone"' in refusal(RenameNode("gone", "b"))


def test_rename_with_many_unclosed_templates_is_fast() -> None:
    flow = Workflow(nodes=(Node(id="a", type="x", config={"p": "{{" * 500_000 + "nodes.a" * 100_000}),))
    assert after(RenameNode("a", "b"), flow).node("b").config == flow.nodes[0].config


def test_invalid_layout_stays_unchanged() -> None:
    flow = FLOW.model_copy(update={"layout": {"nodes": 5}})
    assert after(RemoveNodes(("draft",)), flow).layout == {"nodes": 5}
    assert '"draft" needs an object around it' in refusal(SetLayout(("nodes", "draft"), {}), flow)


def test_batch_is_applied_completely_or_not_at_all() -> None:
    good = Batch("Two", (AddNodes((Node(id="new", type="x"),)), Connect.between("draft.output", "new.input")))
    assert str(after(good).edges[-1]) == "draft.output -> new.input"
    bad = Batch("Two", (*good.operations, RemoveNodes(("gone",))))
    assert 'no node "gone"' in refusal(bad)


def test_inverse_changes_no_other_field() -> None:
    done, inverse = SetTitle("draft", "x").apply(FLOW)
    renamed, _ = SetText("name", "n").apply(done)
    assert inverse.apply(renamed)[0] == FLOW.model_copy(update={"name": "n"})


@pytest.mark.parametrize(
    ("operation", "title"),
    [
        (AddNodes((Node(id="a", type="x"),)), "Add a"),
        (AddNodes((Node(id="a", type="x"), Node(id="b", type="x"))), "Add 2 nodes"),
        (Connect((Edge.between("a.output", "b.input"), Edge.between("a.output", "c.input"))), "Connect nodes"),
        (RemoveNodes(("a",)), "Remove a"),
        (RemoveNodes(("a", "b")), "Remove 2 nodes"),
        (Connect.between("draft.output", "critique.input"), "Connect draft → critique"),
        (Disconnect("draft.output", "critique.input"), "Disconnect draft → critique"),
        (SetConfig(("branches", 0, "when"), {"a": 1}), "Change branches.0.when of a"),
        (SetConfig(("prompt",), {"a": UNSET}), "Clear prompt of a"),
        (SetConfig(("prompt",), {"a": 1, "b": UNSET}), "Change prompt of 2 nodes"),
        (SetTitle("a", "b"), "Change the title of a"),
        (SetEnabled("a", True), "Enable a"),
        (SetEnabled("a", False), "Disable a"),
        (SetPinned("a", {"output": "x"}), "Pin a"),
        (SetPinned("a", {}), "Unpin a"),
        (RenameNode("a", "b"), "Rename a to b"),
        (SetSettings(("budget_usd",), 1), "Change the setting budget_usd"),
        (SetText("name", "n"), "Change the name"),
        (SetText("description", "n"), "Change the description"),
        (SetLayout(("nodes", "a"), {}), "Move a"),
        (SetLayout(("frames", "a"), {}), "Change the layout"),
        (SetLayout(("nodes",), {}), "Change the layout"),
        (Batch("Paste 2 nodes", ()), "Paste 2 nodes"),
    ],
)
def test_each_operation_has_a_title_for_the_undo_menu(operation: Operation, title: str) -> None:
    assert operation.title == title


@st.composite
def operations(draw: st.DrawFn, workflow: Workflow) -> Operation:
    """Any operation on a workflow; some do not fit it."""
    name = st.sampled_from([node.id for node in workflow.nodes] or ["a"]) | ids()
    ends = st.builds(lambda node, port: f"{node}.{port}", name, st.sampled_from(["a", "b"]))
    edge = st.sampled_from([(edge.from_, edge.to) for edge in workflow.edges] or [("a.a", "b.b")])
    value = values() | st.just(UNSET)
    path = st.lists(keys() | st.integers(0, 2), min_size=1, max_size=3).map(tuple)
    node = st.builds(Node, id=ids(), type=st.just("x"), title=texts(), config=configs())
    return draw(
        st.one_of(
            st.builds(AddNodes, st.lists(node, max_size=3).map(tuple)),
            st.builds(Connect, st.lists(st.builds(Edge.between, ends, ends), max_size=3).map(tuple)),
            st.builds(RemoveNodes, st.lists(name, unique=True, max_size=3).map(tuple)),
            edge.map(lambda both: Disconnect(*both)),
            st.builds(SetConfig, path, st.dictionaries(name, value, max_size=3)),
            st.builds(SetTitle, name, texts()),
            st.builds(SetEnabled, name, st.booleans()),
            st.builds(SetPinned, name, st.dictionaries(keys(), values(), max_size=2)),
            st.builds(RenameNode, name, ids()),
            st.builds(SetSettings, path, value),
            st.builds(SetText, st.just("name"), texts()),
            st.builds(SetText, st.just("description"), texts()),
            st.builds(SetLayout, path, value),
        )
    )


@examples(50)
@given(workflows(max_nodes=2), st.data())
def test_undo_restores_the_document_exactly(workflow: Workflow, data: st.DataObject) -> None:
    start, now = dumps(workflow), workflow
    inverses: list[Operation] = []
    for _ in range(data.draw(st.integers(1, 5))):
        before = dumps(now)
        try:
            now, inverse = data.draw(operations(now)).apply(now)
        except OperationError:
            assert dumps(now) == before
        else:
            inverses.append(inverse)
            assert loads(dumps(now)) == now
    for inverse in reversed(inverses):
        now, _ = inverse.apply(now)
    assert dumps(now) == start
