"""Disabled nodes: they need no values, and their problems do not stop a run."""

from __future__ import annotations

from typing import Any

import pytest

from engine import Workflow, validate
from engine.document.model import Node
from engine.document.problems import Problem, Severity
from engine.events import NodeSkipped
from engine.runner.declared_inputs import InputError, declared_inputs
from engine.runner.options import RunOptions
from engine.runner.run import prepare
from tests.engine.semantics.documents import (
    Part,
    around,
    each,
    entry,
    flow,
    formula,
    gather,
    judge,
    leave,
    llm,
    loop,
    off,
    part,
    result,
    transform,
)
from tests.engine.semantics.kit import play


def within(inner: Workflow) -> Part:
    """A subflow with that workflow."""
    return part("part", "subflow", file="part.loop.json", workflow=inner.to_json())


def problems_of(workflow: Workflow, node: str) -> list[Problem]:
    return [problem for problem in validate(workflow) if problem.node == node]


def with_node(workflow: Workflow, node_id: str, **changes: Any) -> Workflow:
    """The workflow with a node that the builder would refuse."""
    nodes = tuple(node.model_copy(update=changes) if node.id == node_id else node for node in workflow.nodes)
    return workflow.model_copy(update={"nodes": nodes})


# Inputs


async def test_a_disabled_input_needs_no_value() -> None:
    workflow = flow(
        entry(),
        off(entry("tone")),
        result(),
        result("aside"),
        edges="text -> out\ntone -> aside",
    )

    played = await play(workflow)

    assert [item.name for item in declared_inputs(workflow)] == ["text"]
    assert played.result.outputs == {"out": "seed"}
    assert {event.path for event in played.of(NodeSkipped)} == {"tone", "aside"}


async def test_a_value_for_a_disabled_input_is_refused_as_unknown() -> None:
    workflow = flow(entry(), off(entry("tone")), result(), edges="text -> out")

    with pytest.raises(InputError, match="tone"):
        prepare(workflow, {"text": "seed", "tone": "warm"}, RunOptions())


async def test_a_disabled_input_can_share_its_name_with_its_replacement() -> None:
    workflow = flow(entry(), off(entry("old", name="text")), result(), edges="text -> out")

    assert validate(workflow) == []
    assert (await play(workflow)).out == "seed"


async def test_a_disabled_output_can_share_its_name_with_its_replacement() -> None:
    workflow = flow(entry(), result(), off(result("old", name="out")), edges="text -> out\ntext -> old")

    assert validate(workflow) == []
    assert (await play(workflow)).out == "seed"


async def test_a_subflow_needs_no_value_for_its_disabled_input() -> None:
    inner = flow(entry(), off(entry("tone")), result(), edges="text -> out")

    open_port = flow(entry(), within(inner), result(), edges="text -> part.text\npart.out -> out")
    drawn_port = flow(entry(), within(inner), result(), edges="text -> part.text\ntext -> part.tone\npart.out -> out")

    assert (await play(open_port)).out == "seed"
    assert (await play(drawn_port)).out == "seed"


# Problems of a node

FAULTY: dict[str, tuple[Part, str]] = {
    "a setting of the wrong kind": (llm("n", temperature="warm"), "bad-config"),
    "a template that cannot be read": (transform("n", "{{input"), "bad-template"),
    "an expression that cannot be read": (formula("n", "1 +"), "bad-expression"),
    "a name that is not there": (transform("n", "{{input}} {{loop.index}}"), "unknown-name"),
    "the end of a loop that is not there": (llm("n", may_exit_loop=True), "exit-loop-outside"),
}


@pytest.mark.parametrize(("node", "code"), FAULTY.values(), ids=list(FAULTY))
async def test_problems_of_a_disabled_node_do_not_stop_a_run(node: Part, code: str) -> None:
    def workflow(node: Part) -> Workflow:
        return flow(entry(), node, result(), edges="text -> n -> out")

    assert [(p.code, p.severity) for p in problems_of(workflow(node), "n")] == [(code, Severity.ERROR)]
    assert [(p.code, p.severity) for p in problems_of(workflow(off(node)), "n")] == [(code, Severity.WARNING)]
    played = await play(workflow(off(node)))
    assert played.out == "seed"
    assert [event.path for event in played.of(NodeSkipped)] == ["n"]


async def test_a_disabled_nodes_output_key_stays_valid_whatever_its_problems() -> None:
    draft = off(llm("draft", temperature="warm", output_key="draft"))
    workflow = flow(entry(), draft, transform("n", "{{input}}{{state.draft}}"), result(), edges="text -> n -> out")

    assert {p.severity for p in validate(workflow)} == {Severity.WARNING}
    assert (await play(workflow)).out == "seed"


async def test_a_disabled_node_of_an_unknown_type_passes_its_input_on() -> None:
    workflow = flow(entry(), transform("n"), result(), edges="text -> n -> out")
    workflow = with_node(workflow, "n", type="of_a_plugin", enabled=False)

    assert [(p.code, p.severity) for p in problems_of(workflow, "n")] == [("unknown-type", Severity.WARNING)]
    assert (await play(workflow)).out == "seed"


async def test_a_disabled_node_with_an_unknown_tool_passes_its_input_on() -> None:
    workflow = flow(entry(), part("n", "tool", tool="of_a_server"), result(), edges="text -> n.query\nn -> out")

    assert {p.code for p in problems_of(workflow, "n")} == {"unknown-tool", "unknown-port"}
    workflow = with_node(workflow, "n", enabled=False)
    assert [(p.code, p.severity) for p in problems_of(workflow, "n")] == [("unknown-tool", Severity.WARNING)]
    assert (await play(workflow)).out == "seed"


async def test_a_disabled_router_passes_nothing_on_whatever_its_problems() -> None:
    router = off(judge("n", criteria="", branches=[{"name": "left", "when": 7}]))
    workflow = flow(entry(), router, result(), result("other"), edges="text -> n\nn.left -> out\ntext -> other")

    played = await play(workflow)

    assert played.result.outputs == {"other": "seed"}


async def test_an_unconnected_port_of_a_disabled_node_does_not_stop_a_run() -> None:
    workflow = flow(entry(), off(transform("n", "{{left}}")), off(judge("r")), result(), edges="text -> out")

    assert [(p.code, p.severity) for p in problems_of(workflow, "r")] == [("unconnected-port", Severity.WARNING)]
    assert (await play(workflow)).out == "seed"


async def test_problems_in_a_disabled_subflow_do_not_stop_a_run() -> None:
    inner = flow(entry(), transform("say", "{{input"), result(), edges="text -> say -> out")
    workflow = flow(entry(), off(within(inner)), result(), edges="text -> part.text\npart.out -> out")

    assert {p.severity for p in problems_of(workflow, "part")} == {Severity.WARNING}
    assert (await play(workflow)).out == "seed"


async def test_structural_problems_stop_a_run_even_at_a_disabled_node() -> None:
    workflow = flow(entry(), off(transform("n")), result(), edges="text -> n -> out")
    other = workflow.model_copy(update={"nodes": (*workflow.nodes, Node(id="n", type="transform"))})
    edges = (*workflow.edges, workflow.edges[0].model_copy(update={"to": "n.nowhere"}))

    assert [(p.code, p.severity) for p in problems_of(other, "n")] == [("duplicate-id", Severity.ERROR)]
    wrong = problems_of(workflow.model_copy(update={"edges": edges}), "n")
    assert [(p.code, p.severity) for p in wrong] == [("unknown-port", Severity.ERROR)]


# Loops and iterators


@pytest.mark.parametrize(
    "settings",
    [
        {"until": "1 +"},
        {"score": "output >"},
        {"exit_condition": "evaluator"},
        {"exit_condition": "judge", "judge": {"criteria": "{{"}},
        {"max_iterations": "many"},
    ],
)
async def test_problems_of_a_disabled_loop_do_not_stop_a_run(settings: dict[str, Any]) -> None:
    workflow = flow(
        entry(),
        off(loop(**settings)),
        transform("n"),
        leave(),
        result(),
        edges="text -> loop -> n -> exit -> out",
    )

    assert {p.severity for p in problems_of(workflow, "loop")} == {Severity.WARNING}
    played = await play(workflow)
    assert played.out == "seed"
    assert played.result.loops["loop"].exit_reason == "disabled"


async def test_problems_in_the_body_of_a_disabled_loop_do_not_stop_a_run() -> None:
    body = (llm("draft", temperature="warm"), transform("n", "{{input"))
    workflow = around(*body, edges="loop -> draft -> n -> exit")

    assert {p.severity for p in validate(workflow)} == {Severity.ERROR}
    workflow = with_node(workflow, "loop", enabled=False)
    assert {p.severity for p in validate(workflow)} == {Severity.WARNING}
    assert (await play(workflow)).out == "seed"


async def test_problems_of_a_disabled_iterator_do_not_stop_a_run() -> None:
    parts = (entry(type="list"), off(each(source="expression", expression="1 +")), transform("n", "{{input"))
    workflow = flow(*parts, gather(), result(), edges="text -> each -> n -> gather -> out")

    assert {p.severity for p in validate(workflow)} == {Severity.WARNING}
    assert (await play(workflow, inputs={"text": ["a", "b"]})).out == ["a", "b"]


async def test_a_disabled_exit_still_works_so_its_problems_count() -> None:
    workflow = around(transform("n"), edges="loop -> n -> exit")
    workflow = with_node(workflow, "exit", enabled=False, config={"loop": "loop", "retries": "many"})

    assert [(p.code, p.severity) for p in problems_of(workflow, "exit")] == [("bad-config", Severity.ERROR)]
