"""The plan of a document: levels, slots, constants, dependencies."""

from __future__ import annotations

from typing import Any

import pytest

from engine import Workflow
from engine.document.operations import SetEnabled
from engine.models.protocol import ModelChoice
from engine.nodes.node_registry import builtin_registry
from engine.nodes.spec import PortType
from engine.plan.compiler import compile_workflow
from engine.plan.execution_plan import GraphPlan, InputPlan, LoopPlan, NodePlan
from engine.plan.resolve import resolve
from tests.engine.plan.documents import CLOSE, LOOPED, OPEN, ROUTER, STEP, document, looped, of_json

LLM = ("llm", {"prompt": "{{input}} in the tone of {{tone}}"})


def node(graph: GraphPlan, node_id: str) -> NodePlan:
    return next(there for there in graph.nodes if there.id == node_id)


def inner(graph: GraphPlan, loop: str) -> LoopPlan:
    plan = node(graph, loop).loop
    assert plan is not None
    return plan


def waits(graph: GraphPlan) -> dict[str, int]:
    return {there.id: count for there, count in zip(graph.nodes, graph.waits, strict=True)}


def followers(graph: GraphPlan) -> dict[str, set[str]]:
    return {there.id: {graph.nodes[position].id for position in there.followers} for there in graph.nodes}


def slot(graph: GraphPlan, node_id: str, port: str) -> int:
    return dict(node(graph, node_id).outputs)[port]


def nested() -> Workflow:
    """An outer loop around a judged inner one; the tone comes from outside both, a dangling note from the inner."""
    return document(
        {
            "text": "input",
            "tone": "input",
            "outer": ("loop", {"max_iterations": 3}),
            "sketch": STEP,
            "inner": ("loop", {"max_iterations": 99, "exit_condition": "evaluator"}),
            "draft": LLM,
            "check": ROUTER,
            "note": STEP,
            "leave_inner": ("exit", {"loop": "inner"}),
            "leave_outer": ("exit", {"loop": "outer"}),
            "out": "output",
        },
        "text.value -> outer.input",
        "outer.body -> sketch.input",
        "sketch.output -> inner.input",
        "inner.body -> draft.input",
        "tone.value -> draft.tone",
        "draft.output -> check.input",
        "check.done -> leave_inner.input",
        "check.continue -> note.input",
        "leave_inner.output -> leave_outer.input",
        "leave_outer.output -> out.value",
    )


def test_each_level_is_a_graph_in_topological_order() -> None:
    top = compile_workflow(nested()).graph
    outer = inner(top, "outer").body
    innermost = inner(outer, "inner").body

    assert [there.id for there in top.nodes] == ["text", "tone", "outer", "leave_outer", "out"]
    assert [there.id for there in outer.nodes] == ["sketch", "inner", "leave_inner"]
    assert [there.id for there in innermost.nodes] == ["draft", "check", "note"]
    for graph in (top, outer, innermost):
        assert [there.position for there in graph.nodes] == list(range(len(graph.nodes)))


def test_a_loop_waits_for_its_input_and_for_what_its_body_needs_from_outside() -> None:
    top = compile_workflow(nested()).graph
    outer = inner(top, "outer").body
    innermost = inner(outer, "inner").body

    assert waits(top) == {"text": 0, "tone": 0, "outer": 2, "leave_outer": 1, "out": 1}
    assert followers(top) == {
        "text": {"outer"},
        "tone": {"outer"},
        "outer": {"leave_outer"},
        "leave_outer": {"out"},
        "out": set(),
    }
    assert waits(outer) == {"sketch": 0, "inner": 1, "leave_inner": 1}
    assert waits(innermost) == {"draft": 0, "check": 1, "note": 1}
    assert followers(innermost) == {"draft": {"check"}, "check": {"note"}, "note": set()}
    assert [top.first, outer.first, innermost.first] == [(0, 1), (0,), (0,)]


def test_a_value_from_outside_is_a_constant_of_each_level() -> None:
    top = compile_workflow(nested()).graph
    outer = inner(top, "outer").body
    innermost = inner(outer, "inner").body

    ((from_top, in_outer),) = outer.constants
    ((from_outer, in_innermost),) = innermost.constants
    (tone,) = [port for port in node(innermost, "draft").inputs if port.name == "tone"]
    assert from_top == slot(top, "tone", "value")
    assert from_outer == in_outer
    assert tone.slots == (in_innermost,)
    assert top.constants == ()


def test_an_iteration_has_an_input_slot_and_the_exits_result() -> None:
    top = compile_workflow(nested()).graph
    outer = inner(top, "outer").body
    innermost = inner(outer, "inner").body

    (draft_input,) = [port for port in node(innermost, "draft").inputs if port.name == "input"]
    assert top.input_slot is None
    assert (top.result, top.feedback) == (None, None)
    assert draft_input.slots == (innermost.input_slot,)
    assert innermost.result == InputPlan("input", (slot(innermost, "check", "done"),), False, None)
    assert innermost.feedback is None
    assert outer.result == InputPlan("input", (slot(outer, "leave_inner", "output"),), False, None)


def test_the_ports_into_a_body_have_no_value_around_it() -> None:
    top = compile_workflow(
        document(
            {**looped(), "each": ("iterator", {}), "b": STEP, "all": "aggregator"},
            *LOOPED[:-1],
            "loop.iterations -> each.items",
            "each.item -> b.input",
            "each.index -> all.input",
            "b.output -> all.input",
            "all.output -> out.value",
        )
    ).graph

    assert [port for port, _ in node(top, "loop").outputs] == ["iterations"]
    assert node(top, "each").outputs == ()


def test_every_value_of_a_level_has_a_slot_of_its_own() -> None:
    top = compile_workflow(nested()).graph
    for graph in (top, inner(top, "outer").body):
        used = [place for there in graph.nodes for _, place in there.outputs]
        used += [place for _, place in graph.constants]
        used += [] if graph.input_slot is None else [graph.input_slot]
        assert sorted(used) == list(range(graph.slots))


def test_a_loop_has_its_exit_router_and_feedback_ends() -> None:
    top = compile_workflow(nested()).graph
    outer = inner(top, "outer")
    innermost = inner(outer.body, "inner")

    assert top.nodes[outer.exit].id == "leave_outer"
    assert node(top, "leave_outer").exit_of == node(top, "outer").position
    assert outer.evaluator is None
    assert innermost.evaluator is not None
    assert innermost.body.nodes[innermost.evaluator].id == "check"
    assert [innermost.body.nodes[end].id for end in innermost.feedback_ends] == ["note"]


@pytest.mark.parametrize(
    ("asked", "cap", "runs", "noted"), [(99, 50, 50, True), (50, 50, 50, False), (0, 50, 1, True), (99, 100, 99, False)]
)
def test_a_count_outside_the_range_is_clamped_and_noted(asked: int, cap: int, runs: int, noted: bool) -> None:
    plan = compile_workflow(document(looped({"max_iterations": asked}), *LOOPED), max_iterations_cap=cap)

    loop = inner(plan.graph, "loop")
    assert (loop.max_iterations, bool(loop.notes)) == (runs, noted)


def test_only_the_first_model_node_of_a_body_gets_the_iteration_note() -> None:
    def problem_texts(**loop: Any) -> list[str]:
        nodes = {**looped(loop), "a": ("llm", {}), "b": ("llm", {})}
        workflow = document(nodes, *OPEN, "a.output -> b.input", "b.output -> exit.input", *CLOSE)
        return [
            there.id for there in inner(compile_workflow(workflow).graph, "loop").body.nodes if there.tells_iteration
        ]

    assert problem_texts() == ["a"]
    assert problem_texts(inject_feedback=False) == []
    assert [there.id for there in compile_workflow(nested()).graph.nodes if there.tells_iteration] == []


def test_a_disabled_model_node_is_not_the_first() -> None:
    workflow = document(
        {**looped(), "a": ("llm", {}), "b": ("llm", {})}, *OPEN, "a.output -> b.input", "b.output -> exit.input", *CLOSE
    )
    nodes = [there.model_copy(update={"enabled": there.id != "a"}) for there in workflow.nodes]

    body = inner(compile_workflow(workflow.model_copy(update={"nodes": tuple(nodes)})).graph, "loop").body

    assert {there.id: (there.enabled, there.tells_iteration) for there in body.nodes} == {
        "a": (False, False),
        "b": (True, True),
    }


def test_several_edges_into_a_port_keep_the_files_order() -> None:
    nodes = {"b": "input", "a": "input", "n": STEP, "out": "output"}

    graph = compile_workflow(document(nodes, "a.value -> n.input", "b.value -> n.input", "n.output -> out.value")).graph

    (port,) = node(graph, "n").inputs
    assert port.slots == (slot(graph, "a", "value"), slot(graph, "b", "value"))


def test_only_typed_ports_convert_and_only_nodes_with_texts_have_variables() -> None:
    nodes = {"text": "input", "find": ("tool", {"tool": "search_files"}), "n": STEP, "out": "output"}

    graph = compile_workflow(
        document(nodes, "text.value -> find.query", "find.output -> n.input", "n.output -> out.value")
    ).graph

    assert [port.convert for port in node(graph, "find").inputs] == [PortType.TEXT]
    assert (node(graph, "find").converts, node(graph, "n").converts) == (True, False)
    assert (node(graph, "find").blank, node(graph, "n").blank) == (None, {"input": None})


def test_models_and_parameters_are_listed_once() -> None:
    nodes = {
        "text": ("input", {"name": "topic"}),
        "other": "input",
        "a": ("llm", {"model": "openai/x"}),
        "b": ("llm", {"model": "openai/x"}),
        "c": ("llm", {"model": "openai/x", "api_base": "http://localhost/v1"}),
        "d": "llm",
        "r": ("router", {"mode": "rules", "branches": [{"name": "yes", "when": "else"}]}),
        "out": ("output", {"name": "answer"}),
    }
    edges = ["text.value -> a.input", "other.value -> b.input", "a.output -> c.input", "b.output -> d.input"]

    plan = compile_workflow(
        document(nodes, *edges, "c.output -> r.input", "r.yes -> out.value", "d.output -> out.value")
    )

    assert plan.models == (
        ModelChoice("openai/x"),
        ModelChoice("openai/x", "http://localhost/v1"),
        ModelChoice(),
    )
    assert list(plan.parameters) == ["topic", "other"]
    assert node(plan.graph, "out").result_name == "answer"


def test_only_models_of_enabled_nodes_are_listed() -> None:
    nodes = looped({"judge": {"model": "openai/judge", "criteria": "?"}, "exit_condition": "judge"})
    nodes |= {"a": ("llm", {"model": "openai/a"}), "b": ("llm", {"model": "openai/b"})}
    workflow = document(nodes, *LOOPED, "exit.output -> b.input")

    assert {choice.name for choice in compile_workflow(workflow).models} == {"openai/judge", "openai/a", "openai/b"}
    off, _ = SetEnabled("loop", False).apply(workflow)
    assert [choice.name for choice in compile_workflow(off).models] == ["openai/b"]


def test_the_name_of_a_node_defaults_to_the_label_of_its_type() -> None:
    nodes = [{"id": "text", "type": "input", "title": "Your text"}, {"id": "out", "type": "output"}]

    resolution = resolve(of_json(nodes, []), builtin_registry())
    resolved = resolution.nodes

    assert (resolution.name("text"), resolution.name("out")) == ("Your text", "Output")
    assert (resolved["text"].type, list(resolved["text"].outputs), list(resolved["out"].inputs)) == (
        "input",
        ["value"],
        ["value"],
    )
