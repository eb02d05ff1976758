"""The `subflow` node: another workflow as a node of the same run."""

from __future__ import annotations

from typing import Any

import pytest

from engine import Workflow
from engine.events import NodeCompleted, NodeFailed, NodeStarted
from engine.models.protocol import ModelChoice
from engine.nodes.subflow import SPEC, SubflowConfig
from engine.plan.compiler import compile_workflow
from engine.plan.structure import node_at
from engine.plan.validation import validate
from tests.engine.semantics.documents import entry, flow, leave, llm, loop, part, result, rules, transform
from tests.engine.semantics.kit import play
from tests.engine.semantics.models import FunctionModel


def nested(inner: Workflow, **config: Any) -> Any:
    """A subflow `part` with that workflow."""
    return part("part", "subflow", file="part.loop.json", workflow=inner.to_json(), **config)


def around_part(inner: Workflow, port: str = "made", **config: Any) -> Workflow:
    """text -> part -> out"""
    return flow(entry(), nested(inner, **config), result(), edges=f"text -> part.given\npart.{port} -> out")


def one(*body: Any, edges: str, **entry_config: Any) -> Workflow:
    return flow(entry("given", **entry_config), *body, result("made"), edges=edges)


DRAFT = one(llm("draft", "Draft {{input}}"), edges="given -> draft -> made")


async def test_a_subflow_runs_within_the_run_and_outputs_its_results() -> None:
    played = await play(around_part(DRAFT), "drafted")
    assert played.out == "drafted"
    assert [(call.path, call.request.messages[-1].text) for call in played.model.calls] == [
        ("part.draft", "Draft seed")
    ]
    assert played.output_of("part", "made") == "drafted"
    assert played.ran == {"text", "part.given", "part.draft", "part.made", "part", "out"}
    assert played.result.outputs == {"out": "drafted"}


async def test_inputs_and_outputs_are_the_ports() -> None:
    inner = flow(
        entry("topic"),
        entry("length", type="number", default=3, description="In words."),
        transform("both", "{{input}} in {{length}}"),
        result("made"),
        result("as_given", name="given back"),
        edges="topic -> both -> made\nlength -> both.length\ntopic -> as_given",
    )
    config = SubflowConfig(file="x.loop.json", workflow=inner.to_json())
    topic, length = SPEC.inputs(config)
    assert (topic.name, topic.type, topic.required, topic.gate) == ("topic", "text", True, False)
    assert (length.name, length.type, length.required, length.gate) == ("length", "number", False, True)
    assert length.help == "In words."
    assert [port.name for port in SPEC.outputs(config)] == ["made", "given back"]
    played = await play(flow(entry(), nested(inner), result(), edges="text -> part.topic\npart.made -> out"), "unused")
    assert played.out == "seed in 3"


@pytest.mark.parametrize(("rule", "out"), [("true", "<1seed>"), ("false", "<2seed>")])
async def test_branches_join_at_an_input_of_a_subflow(rule: str, out: str) -> None:
    inner = one(transform("say", "<{{input}}>"), edges="given -> say -> made")
    workflow = flow(
        entry(),
        rules("way", {"left": rule, "right": "else"}),
        transform("first", "1{{input}}"),
        transform("second", "2{{input}}"),
        nested(inner),
        result(),
        edges="text -> way\nway.left -> first -> part.given\nway.right -> second -> part.given\npart.made -> out",
    )
    assert (await play(workflow)).out == out


@pytest.mark.parametrize("workflow", [None, {}, {"nodes": 3}, {"nodes": [None, {"type": "input"}, {"type": "output"}]}])
def test_an_embedded_copy_that_is_not_a_workflow_has_no_ports(workflow: Any) -> None:
    config = SubflowConfig(file="x.loop.json", workflow=workflow)
    assert (SPEC.inputs(config), SPEC.outputs(config)) == ((), ())


async def test_loops_work_inside_and_around_a_subflow() -> None:
    inner = one(
        loop(max_iterations=2), transform("more", "{{input}}+"), leave(), edges="given -> loop -> more -> exit -> made"
    )
    outer = flow(
        entry(),
        loop("outer", max_iterations=2),
        nested(inner),
        leave("outer_exit", "outer"),
        result(),
        edges="text -> outer -> part.given\npart.made -> outer_exit -> out",
    )
    played = await play(outer)
    assert played.out == "seed++++"
    assert set(played.result.loops) == {"outer", "outer[0].part.loop", "outer[1].part.loop"}
    assert "outer[1].part.loop[0].more" in played.ran


async def test_subflows_nest() -> None:
    middle = flow(entry("given"), nested(DRAFT), result("made"), edges="given -> part.given\npart.made -> made")
    played = await play(around_part(middle), "deep")
    assert (played.out, [call.path for call in played.model.calls]) == ("deep", ["part.part.draft"])


def test_a_subflow_keeps_its_default_model_and_node_models_take_precedence() -> None:
    inner = flow(
        entry("given"),
        llm("draft"),
        llm("last", model="third"),
        result("made"),
        edges="given -> draft -> last -> made",
        settings={"model": "second"},
    )
    outer = around_part(inner)
    outer = outer.model_copy(update={"settings": {"model": "first"}})
    assert compile_workflow(outer).models == (ModelChoice("second"), ModelChoice("third"))


async def test_a_subflow_can_be_retried_and_its_failure_handled() -> None:
    inner = one(part("odd", "validator", mode="expression", expression="1 / 0 == 1"), edges="given -> odd -> made")
    played = await play(around_part(inner), ends="failed")
    assert (played.result.node, [event.path for event in played.of(NodeFailed)]) == ("part.odd", ["part.odd", "part"])

    again = await play(around_part(inner, retries=2, retry_delay_s=0), ends="failed")
    assert len(again.of(NodeStarted, "part.odd")) == 3

    soft = await play(around_part(inner, "error", on_error="branch"))
    assert "part.odd" in [event.path for event in soft.of(NodeFailed)]
    assert str(soft.out).startswith(soft.of(NodeCompleted, "part")[0].error)


async def test_the_budget_of_the_run_covers_subflows() -> None:
    outer = around_part(DRAFT).model_copy(update={"settings": {"budget_tokens": 1}})
    played = await play(outer, "x", ends="failed")
    assert played.result.node == "part.draft"
    assert played.model.calls == []


async def test_a_money_budget_of_a_loop_in_a_subflow_needs_a_known_price_too() -> None:
    inner = one(loop(budget_usd=25), llm("draft"), leave(), edges="given -> loop -> draft -> exit -> made")
    played = await play(around_part(inner), FunctionModel("x", price=None), ends="failed")
    assert played.model.calls == []
    assert "price" in played.result.remedy


def test_problems_in_a_subflow_are_reported_at_the_node() -> None:
    broken = flow(entry("given"), llm("draft", "{{nowhere}}"), result("made"), edges="given -> draft -> made")
    (problem,) = validate(around_part(broken))
    assert (problem.code, problem.node, problem.field) == ("unconnected-port", "part", "file")
    assert problem.message.startswith('In "part.loop.json": node "draft", port "nowhere": Nothing')


def test_an_unread_file_is_a_problem() -> None:
    unread = flow(entry(), part("part", "subflow", file="part.loop.json"), result())
    codes = {(problem.code, problem.node) for problem in validate(unread)}
    assert ("subflow-not-read", "part") in codes
    nameless = flow(entry(), part("part", "subflow"), result())
    assert ("no-subflow", "part") in {(problem.code, problem.node) for problem in validate(nameless)}


def test_subflows_nested_too_deeply_are_a_problem() -> None:
    inner = DRAFT
    for _ in range(20):
        inner = flow(entry("given"), nested(inner), result("made"), edges="given -> part.given\npart.made -> made")
    assert "nested-too-deep" in {problem.code for problem in validate(around_part(inner))}


def test_a_node_is_found_by_its_run_path_through_subflows() -> None:
    inner = one(loop(max_iterations=2), transform("more"), leave(), edges="given -> loop -> more -> exit -> made")
    outer = around_part(inner)
    found = node_at(outer, "part.loop")
    assert found is not None
    assert found.config["max_iterations"] == 2
    assert node_at(outer, "part.loop[1].more") is not None
    assert node_at(outer, "part") is outer.node("part")
    assert node_at(outer, "more") is None
    assert node_at(outer, "nowhere.more") is None
