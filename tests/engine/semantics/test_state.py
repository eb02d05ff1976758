"""Named state: the output of a node with an output key is `state.NAME` from then on, in the whole run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine import validate
from engine.events import NodeCompleted
from engine.models.protocol import ModelError, ModelErrorKind
from tests.engine.semantics.agents import agent
from tests.engine.semantics.documents import around, entry, flow, formula, leave, llm, loop, result, rules, transform
from tests.engine.semantics.kit import begin, finish, play
from tests.engine.semantics.models import Call, by_node, numbered


async def test_later_prompts_can_name_a_nodes_output() -> None:
    parts = (
        entry(),
        llm("writer", output_key="draft"),
        llm("critic", "Read: {{state.draft}}"),
        transform("both", "{{state.draft}}/{{input}}"),
        result(),
    )
    workflow = flow(*parts, edges="text -> writer -> critic -> both -> out")

    played = await play(workflow, by_node(writer="once", critic="hm"))

    assert played.model.prompts("critic") == ["Read: once\n\nonce"]
    assert played.out == "once/hm"
    assert {event.path: event.output_key for event in played.of(NodeCompleted)} == {
        "text": "",
        "writer": "draft",
        "critic": "",
        "both": "",
        "out": "",
    }


@pytest.mark.parametrize("kind", ["llm", "agent", "transform"])
async def test_models_agents_and_transforms_can_set_named_state(kind: str) -> None:
    make: Any = {"llm": llm, "agent": agent, "transform": transform}[kind]
    parts = (entry(), make("giver", output_key="x"), formula("after", "[state.x, size(state.x)]"), result())

    played = await play(flow(*parts, edges="text -> giver -> after -> out"), "seed")

    assert played.out == ["seed", 4]


async def test_state_survives_iterations_and_crosses_loop_boundaries() -> None:
    workflow = flow(
        entry(),
        transform("first", "first", output_key="doc"),
        loop(max_iterations=3),
        llm("refine", "{{state.doc}}", output_key="doc"),
        llm("look", "{{state.doc}}"),
        transform("exit_value", "{{input}}"),
        result(),
        transform("after", "{{state.doc}}{{input}}"),
        leave(),
        edges="text -> first -> loop -> refine -> look -> exit_value -> exit -> after -> out",
    )

    played = await play(workflow, numbered)

    assert played.model.prompts("refine") == ["first\n\nfirst", "refine 0\n\nlook 0", "refine 1\n\nlook 1"]
    assert played.model.prompts("look") == [f"refine {n}\n\nrefine {n}" for n in range(3)]
    assert played.out == "refine 2look 2"


async def test_state_is_null_and_empty_before_it_is_set() -> None:
    workflow = around(
        llm("read", "<{{state.said}}>{{input}}"),
        formula("null", "state.said == null"),
        transform("say", "said", output_key="said"),
        edges="loop -> read -> null -> say -> exit",
        max_iterations=2,
    )

    played = await play(workflow, "reply")

    assert played.model.prompts("read") == ["<>seed", "<said>said"]
    assert [played.output_of(f"loop[{n}].null") for n in (0, 1)] == [True, False]


async def test_expressions_everywhere_can_read_the_state() -> None:
    workflow = around(
        llm("write", output_key="doc"),
        rules("route", {"left": "state.doc == 'write 1'", "right": "else"}),
        transform("join"),
        edges="loop -> write -> route\nroute.left -> join\nroute.right -> join\njoin -> exit",
        max_iterations=5,
        until="state.doc == 'write 2'",
        score="size(state.doc)",
        condition="state.doc == null",
    )

    played = await play(workflow, numbered)

    assert played.loop.exit_reason == "until"
    assert played.results == ["write 0", "write 1", "write 2"]
    assert [record.score for record in played.loop.iterations] == [7, 7, 7]


async def test_a_skipped_node_leaves_the_state_unchanged() -> None:
    failing = ModelError(ModelErrorKind.BAD_REQUEST, "no")
    workflow = flow(
        entry(),
        transform("first", "kept", output_key="x"),
        llm("second", output_key="x", on_error="branch"),
        transform("after", "{{state.x}}{{input}}"),
        result(),
        edges="text -> first -> second\nsecond.error -> after -> out",
    )

    played = await play(workflow, lambda _call: failing)

    assert played.out == "keptno"


async def test_a_node_sees_the_state_as_of_its_start() -> None:
    """Parallel nodes do not change it: here a retry runs after the name was set."""
    named = asyncio.Event()
    attempts = iter([ModelError(ModelErrorKind.SERVER, "down"), "done"])

    async def answer(call: Call) -> Any:
        if call.path == "slow":
            await named.wait()
            return next(attempts)
        return "given"

    workflow = flow(
        entry(),
        llm("slow", "<{{state.x}}>", retries=1, retry_delay_s=0),
        llm("fast", output_key="x"),
        formula("after", "[input, state.x]"),
        result(),
        result("second"),
        edges="text -> slow -> after -> out\ntext -> fast -> second",
    )
    run, models = begin(workflow, answer)
    async for event in run.events():
        if isinstance(event, NodeCompleted) and event.path == "fast":
            named.set()
    played = await finish(run, models)

    assert [prompt.split("\n")[0] for prompt in played.model.prompts("slow")] == ["<>", "<>"]
    assert played.out == ["done", "given"]


async def test_a_restarted_loop_reverts_its_named_state() -> None:
    failures = iter([ModelError(ModelErrorKind.BAD_REQUEST, "no")])
    workflow = flow(
        entry(),
        transform("before", "before", output_key="x"),
        loop(max_iterations=1, retries=1, retry_delay_s=0),
        llm("look", "{{state.x}}"),
        transform("name", "inside", output_key="x"),
        llm("fail"),
        leave(),
        result(),
        edges="text -> before -> loop -> look -> name -> fail -> exit -> out",
    )

    played = await play(workflow, by_node(look="x", fail=lambda _call: next(failures, "x")))

    assert played.model.prompts("look") == ["before\n\nbefore"] * 2


def test_an_output_key_that_no_node_sets_is_a_problem() -> None:
    parts = (entry(), transform("a", "{{state.drift}}", output_key="draft"), result())

    (problem,) = validate(flow(*parts, edges="text -> a -> out"))

    assert (problem.code, problem.node, problem.field) == ("unknown-name", "a", "template")
    assert "`state.drift`" in problem.message
    assert "draft" in problem.message


@pytest.mark.parametrize("key", ["two words", "1st", "a.b", "x" * 65])
def test_an_output_key_must_be_an_identifier(key: str) -> None:
    problems = validate(flow(entry(), transform("a", output_key=key), result(), edges="text -> a -> out"))

    assert [(problem.code, problem.field) for problem in problems] == [("bad-config", "output_key")]
