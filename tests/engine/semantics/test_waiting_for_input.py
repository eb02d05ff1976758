"""Nodes that wait for input from a person."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine import EngineError, Run
from engine.events import NodeAnswered, NodeCompleted, NodeWaiting
from engine.nodes.context import Answer, NodeContext
from engine.nodes.node_registry import Registry, builtin_registry
from engine.nodes.spec import Category, NodeConfig, NodeSpec, Outputs, Port
from tests.engine.semantics.documents import entry, flow, llm, part, result
from tests.engine.semantics.kit import begin, finish


async def _ask(context: NodeContext[NodeConfig]) -> Outputs:
    value = context.inputs["input"]
    answer = await context.ask("approval", "Is it right?", value=value, choices=("approve", "reject"))
    return {"output": f"{answer.choice}: {answer.value} ({answer.comment})"}


ASKING = NodeSpec(
    type="asking",
    title="Asking",
    category=Category.LOGIC,
    help="Asks a person.",
    icon="mdi6.account",
    config=NodeConfig,
    inputs=lambda _config: (Port("input", required=True),),
    outputs=lambda _config: (Port("output"),),
    run=_ask,
)


def registry() -> Registry:
    return builtin_registry().with_types([ASKING])


async def waiting(run: Run) -> NodeWaiting:
    async for event in run.events():
        if isinstance(event, NodeWaiting):
            return event
    raise AssertionError("nobody was asked")


PARTS: tuple[Any, ...] = (entry(), part("ask", "asking"), llm("other"), result(), result("second"))
EDGES = "text -> ask -> out\ntext -> other -> second"
FLOW = flow(*PARTS, edges=EDGES)


async def test_a_person_is_asked_and_the_answer_is_passed_on() -> None:
    run, models = begin(FLOW, "reply", registry=registry())

    question = await asyncio.wait_for(waiting(run), 30)
    run.answer("ask", Answer("approve", "seed!", "well done"))
    played = await finish(run, models)

    assert (question.path, question.node_type, question.kind) == ("ask", "asking", "approval")
    assert (question.message, question.value, question.choices) == ("Is it right?", "seed", ("approve", "reject"))
    assert played.result.outputs == {"out": "approve: seed! (well done)", "second": "reply"}
    (answered,) = played.of(NodeAnswered)
    assert (answered.choice, answered.value, answered.comment) == ("approve", "seed!", "well done")


async def test_a_waiting_node_takes_no_concurrency_slot() -> None:
    one_at_a_time = flow(*PARTS, edges=EDGES, settings={"max_concurrency": 1})
    run, models = begin(one_at_a_time, "reply", registry=registry())
    await asyncio.wait_for(waiting(run), 30)

    async for event in run.events():
        if isinstance(event, NodeCompleted) and event.path == "other":
            break
    run.answer("ask", Answer("reject"))
    played = await finish(run, models)

    assert played.result.outputs["out"] == "reject: None ()"


async def test_an_answer_without_a_question_is_refused() -> None:
    run, models = begin(FLOW, "reply", registry=registry())
    await asyncio.wait_for(waiting(run), 30)

    with pytest.raises(EngineError, match=r'No question .* at "other"'):
        run.answer("other", Answer("approve"))
    run.answer("ask", Answer("approve"))
    with pytest.raises(EngineError, match="No question is open"):
        run.answer("ask", Answer("reject"))
    await finish(run, models)


async def test_a_waiting_run_can_be_cancelled() -> None:
    run, _ = begin(FLOW, "reply", registry=registry())
    await asyncio.wait_for(waiting(run), 30)

    run.cancel()

    assert (await asyncio.wait_for(run.result(), 30)).status == "cancelled"
