"""Pinned nodes: runs use their pinned values instead of running them."""

from __future__ import annotations

import pytest

from engine import RunOptions, dumps, loads, validate
from engine.document.model import Node, Workflow
from engine.document.problems import has_errors
from engine.events import LoopStarted, NodeCompleted, NodeSkipped, NodeStarted
from engine.models.catalog import Models
from engine.run_state.reducer import reduce_events
from engine.run_state.state import NodeState
from engine.runner.run import prepare
from engine.store.resume import Changes, fork, plan_fork
from tests.engine.semantics.documents import (
    Part,
    around,
    each,
    entry,
    flow,
    gather,
    held,
    judge,
    leave,
    llm,
    loop,
    off,
    part,
    result,
    rules,
    transform,
)
from tests.engine.semantics.kit import Played, begin, finish, options, play
from tests.engine.store.memory_store import MemoryStore

TWO = flow(
    entry(),
    held(llm("draft", "Write: {{input}}"), output="as pinned"),
    llm("polish", "Polish: {{input}}"),
    result(),
    edges="text -> draft -> polish -> out",
)


def called(played: Played) -> list[str]:
    return [call.path for call in played.model.calls]


async def test_a_pinned_value_is_used_and_the_node_is_not_called() -> None:
    played = await play(TWO, lambda call: call.prompt)
    assert played.out == "Polish: as pinned"
    assert called(played) == ["polish"]


async def test_a_pinned_node_costs_nothing_and_says_so_in_the_run() -> None:
    played = await play(TWO, "polished")
    (event,) = played.of(NodeCompleted, "draft")
    assert (event.pinned, event.usage, event.cost_usd, event.calls) == (True, None, 0.0, ())
    assert not any(event.pinned for event in played.of(NodeCompleted) if event.path != "draft")
    assert reduce_events(played.events).nodes["draft"].state is NodeState.PINNED


async def test_a_pinned_node_is_in_the_file_and_a_file_without_pins_is_unchanged() -> None:
    text = dumps(TWO)
    assert loads(text).node("draft").pinned == {"output": "as pinned"}
    assert text.count('"pinned"') == 1


def test_only_models_of_nodes_that_run_are_needed() -> None:
    def workflow(draft: Part) -> Workflow:
        return flow(entry(), draft, result(), edges="text -> draft -> out")

    draft, given = llm("draft", model="openai/gpt-4o"), RunOptions(models=Models())
    assert prepare(workflow(draft), {"text": ""}, given).model_names == ("openai/gpt-4o",)
    assert prepare(workflow(held(draft, output="x")), {"text": ""}, given).model_names == ()


async def test_a_pinned_node_has_the_same_value_in_each_iteration() -> None:
    workflow = around(
        held(llm("draft"), output="same"), llm("polish"), edges="loop -> draft -> polish -> exit", max_iterations=3
    )
    played = await play(workflow, lambda call: call.prompt)
    assert played.results == ["same", "same", "same"]
    assert called(played) == ["loop[0].polish", "loop[1].polish", "loop[2].polish"]


async def test_the_body_of_a_pinned_loop_does_not_run() -> None:
    workflow = flow(
        entry(),
        held(loop(max_iterations=3), output="result", count=7),
        llm("draft"),
        leave(),
        transform("tell", "{{input}} after {{count}}"),
        result(),
        edges="text -> loop -> draft -> exit -> tell -> out\nloop.count -> tell.count",
    )
    played = await play(workflow)
    assert played.out == "result after 7"
    assert called(played) == []
    assert played.of(LoopStarted) == []


async def test_an_iterator_with_a_pinned_aggregator_does_not_run() -> None:
    workflow = flow(
        entry("items", type="json", default=["a", "b"]),
        each(),
        llm("draft"),
        held(gather(), output=["x", "y"]),
        result(),
        edges="items -> each -> draft -> gather -> out",
    )
    played = await play(workflow)
    assert played.out == ["x", "y"]
    assert called(played) == []


async def test_a_pinned_router_takes_its_pinned_branch() -> None:
    workflow = flow(
        entry(),
        held(judge("check"), done="kept"),
        result("yes"),
        result("no"),
        edges="text -> check\ncheck.done -> yes\ncheck.continue -> no",
    )
    played = await play(workflow)
    assert played.result.outputs == {"yes": "kept"}
    assert [event.path for event in played.of(NodeSkipped)] == ["no"]


async def test_a_pinned_node_on_a_dead_branch_is_skipped() -> None:
    workflow = flow(
        entry(),
        rules("way", {"left": "false", "right": "true"}),
        held(transform("one"), output="pinned"),
        result("out"),
        edges="text -> way\nway.left -> one -> out",
    )
    played = await play(workflow)
    assert played.result.outputs == {}
    assert played.of(NodeStarted, "one") == []


async def test_a_disabled_node_is_disabled_even_if_it_is_pinned() -> None:
    workflow = flow(entry(), off(held(transform("one"), output="pinned")), result(), edges="text -> one -> out")
    assert (await play(workflow)).out == "seed"


async def test_a_pinned_value_sets_the_named_state() -> None:
    workflow = flow(
        entry(),
        held(llm("draft", output_key="topic"), output="tides"),
        transform("tell", "{{input}}: {{state.topic}}"),
        result(),
        edges="text -> draft -> tell -> out",
    )
    assert (await play(workflow)).out == "tides: tides"


async def test_a_pinned_subflow_does_not_run() -> None:
    inner = flow(entry(), llm("draft"), result(), edges="text -> draft -> out")
    subflow = held(part("part", "subflow", file="part.loop.json", workflow=inner.to_json()), out="short")
    workflow = flow(entry(), subflow, result(), edges="text -> part.text\npart.out -> out")
    played = await play(workflow)
    assert (played.out, called(played)) == ("short", [])


async def test_a_fork_uses_the_pins_of_its_document_where_nodes_run_again() -> None:
    store = MemoryStore()
    plain = flow(entry(), llm("draft"), llm("polish"), result(), edges="text -> draft -> polish -> out")
    parent = await finish(*begin(plain, lambda call: call.path, store=store))
    both = plain.model_copy(update={"nodes": tuple(pinned(node, "pinned") for node in plain.nodes)})
    plan = plan_fork(store, parent.result.run_id, "polish", Changes(document=both))
    models = parent.models
    forked = await finish(fork(store, plan, options(models)), models)
    assert forked.output_of("draft") == "draft"  # reused: it ran before the fork point
    assert (forked.out, forked.of(NodeCompleted, "polish")[0].pinned) == ("pinned", True)


def pinned(node: Node, value: str) -> Node:
    """A model node with a pinned value; other nodes unchanged."""
    return node.model_copy(update={"pinned": {"output": value}}) if node.type == "llm" else node


@pytest.mark.parametrize(
    ("node", "port"),
    [
        (held(llm("draft"), output=3), "output"),
        (held(llm("draft"), nothing="x"), "nothing"),
        (held(loop("draft"), body="x"), "body"),
        (held(part("draft", "validator", mode="expression", expression="true"), valid="x", invalid="y"), None),
        (held(entry("draft"), value="x"), None),
        (held(leave("draft"), output="x"), None),
        (held(each("draft"), count=1), None),
    ],
)
def test_a_pinned_value_that_does_not_fit_is_an_error(node: Part, port: str | None) -> None:
    found = [problem for problem in validate(flow(node)) if problem.code == "bad-pin"]
    assert [(problem.node, problem.port, problem.field) for problem in found] == [("draft", port, "pinned")]
    assert has_errors(found)


@pytest.mark.parametrize(
    ("pinned", "ports"),
    [
        ({"output": "r"}, ["count"]),
        ({"count": 2}, ["output"]),
        ({"output": "r", "count": 2}, []),
    ],
)
def test_a_connected_port_of_a_pinned_loop_without_a_value_is_a_warning(
    pinned: dict[str, object], ports: list[str]
) -> None:
    workflow = flow(
        entry(),
        held(loop(), **pinned),
        llm("draft"),
        leave(),
        transform("tell", "{{input}} after {{count}}"),
        result(),
        edges="text -> loop -> draft -> exit -> tell -> out\nloop.count -> tell.count",
    )
    found = validate(workflow)
    assert [(problem.code, problem.node, problem.port) for problem in found] == [
        ("unpinned-port", "loop", port) for port in ports
    ]
    assert not has_errors(found)


@pytest.mark.parametrize(
    "node",
    [
        held(rules("n", {"left": "true", "right": "true"}), left="x"),
        off(held(part("n", "approval"), approved="x")),
    ],
)
def test_a_branch_or_a_disabled_node_needs_no_pinned_value(node: Part) -> None:
    ports = ("left", "right") if node.type == "router" else ("approved", "comment")
    edges = "\n".join(f"n.{port} -> out_{port}" for port in ports)
    workflow = flow(entry(), node, *(result(f"out_{port}") for port in ports), edges=f"text -> n\n{edges}")
    assert "unpinned-port" not in {problem.code for problem in validate(workflow)}


def test_a_pinned_value_that_fits_is_no_problem() -> None:
    assert [problem.code for problem in validate(TWO)] == []
