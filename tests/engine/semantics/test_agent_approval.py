"""Agents and people: tools that need approval, and questions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from engine import Workflow
from engine.errors import EngineError
from engine.events import NodeCompleted, NodeToolCalled, NodeWaiting
from engine.nodes.agent_tools import tool_definition
from engine.nodes.context import Answer
from tests.engine.semantics.agents import Tools, agent, results, script, tools_fixture, wants
from tests.engine.semantics.documents import entry, flow, result
from tests.engine.semantics.kit import Played, begin, finish
from tests.engine.semantics.models import Answer as Said
from tests.wording import mentions

__all__ = ["tools_fixture"]

ADD = ("add", {"a": 15, "b": 27})


def alone(**config: Any) -> Workflow:
    return flow(entry(), agent(**config), result(), edges="text -> agent -> out")


async def talk(workflow: Workflow, says: Said, answers: Sequence[Answer]) -> Played:
    """Run a workflow, answering its questions in order."""
    run, models = begin(workflow, says)
    remaining = list(answers)
    async for event in run.events():
        if isinstance(event, NodeWaiting):
            run.answer(event.path, remaining.pop(0))
    assert remaining == [], "nobody asked"
    return await finish(run, models)


async def test_a_tool_that_needs_approval_is_called_after_it(tools: Tools) -> None:
    says = script(wants(ADD), "42")

    played = await talk(alone(tools=["add"], require_approval=["add"]), says, [Answer("approve")])

    (asked,) = played.of(NodeWaiting)
    assert (asked.node_type, asked.kind, asked.choices) == ("agent", "approval", ("approve", "reject"))
    assert mentions(asked.message, '"add" … called … ?')
    assert asked.value == {"a": 15, "b": 27}
    assert tools.called == [("add", {"a": 15, "b": 27})]
    assert played.out == "42"


async def test_the_approver_can_change_the_arguments(tools: Tools) -> None:
    says = script(wants(ADD), "done")

    played = await talk(alone(tools=["add"], require_approval=["add"]), says, [Answer("approve", {"a": 1, "b": 2})])

    assert tools.called == [("add", {"a": 1, "b": 2})]
    assert results(played.model.calls[1]) == ["3.0"]
    (call,) = played.of(NodeToolCalled)
    assert (call.arguments, call.used_arguments) == ({"a": 15, "b": 27}, {"a": 1, "b": 2})
    (completed,) = (event for event in played.of(NodeCompleted) if event.node_type == "agent")
    assert [step["arguments"] for step in completed.outputs["steps"]] == [{"a": 1, "b": 2}]


async def test_unchanged_arguments_are_recorded_once(tools: Tools) -> None:
    says = script(wants(ADD), "done")
    answer = Answer("approve", {"a": 15, "b": 27})

    played = await talk(alone(tools=["add"], require_approval=["add"]), says, [answer])

    (call,) = played.of(NodeToolCalled)
    assert (call.arguments, call.edited_arguments) == ({"a": 15, "b": 27}, None)


@pytest.mark.parametrize("misfit", [["x"], "x", 7, True, {}, {"b": 2}, {"a": "many"}, {"a": None}, [{"a": 1, "b": 2}]])
async def test_invalid_arguments_are_refused_and_the_original_call_is_not_made(tools: Tools, misfit: Any) -> None:
    run, models = begin(alone(tools=["add"], require_approval=["add"]), script(wants(ADD), "done"))
    async for event in run.events():
        if isinstance(event, NodeWaiting):
            with pytest.raises(EngineError, match='"agent" does not fit'):
                run.answer(event.path, Answer("approve", misfit))
            assert tools.called == []
            run.answer(event.path, Answer("approve", {"a": 2, "b": 3}))
    played = await finish(run, models)

    assert tools.called == [("add", {"a": 2, "b": 3})]
    assert len(played.of(NodeWaiting)) == 1
    assert played.of(NodeWaiting)[0].value_schema == tool_definition("add").parameters


@pytest.mark.parametrize("comment", ["Too dear.", ""])
async def test_a_rejection_and_its_reason_reach_the_model(tools: Tools, comment: str) -> None:
    says = script(wants(ADD, ("break", {"a": 1})), "I do without.")

    played = await talk(
        alone(tools=["add", "break"], require_approval=["add"]), says, [Answer("reject", None, comment)]
    )

    assert [name for name, _ in tools.called] == ["break"]
    parts = f"person refused … {comment}" if comment else "person refused"
    assert mentions(results(played.model.calls[1])[0], f"Error: … {parts}")
    assert mentions(played.of(NodeToolCalled)[0].error, parts)
    assert played.out == "I do without."


async def test_tools_without_approval_and_unknown_tools_ask_nobody(tools: Tools) -> None:
    says = script(wants(("break", {"a": 1}), ("gone", {}), ("add", "{")), "done")

    played = await talk(alone(tools=["add", "break"], require_approval=["add"]), says, [])

    assert played.of(NodeWaiting) == []


@pytest.mark.parametrize(
    ("answer", "content"),
    [
        (Answer("", "blue"), "blue"),
        (Answer("", None, "blue"), "blue"),
        (Answer("", "blue", "I think"), "blue\nI think"),
        (Answer(), "(nothing)"),
    ],
)
async def test_a_question_is_asked_and_the_answer_reaches_the_model(answer: Answer, content: str) -> None:
    says = script(wants(("ask_person", {"question": "Which colour?"})), "done")

    played = await talk(alone(tools=["ask_person"]), says, [answer])

    (asked,) = played.of(NodeWaiting)
    assert (asked.kind, asked.message, asked.choices) == ("question", "Which colour?", ())
    assert results(played.model.calls[1]) == [content]


async def test_an_agent_without_ask_person_asks_nobody() -> None:
    says = script(wants(("ask_person", {"question": "Which colour?"})), "done")

    played = await talk(alone(), says, [])

    (error,) = results(played.model.calls[1])
    assert mentions(error, 'Error: … no tool "ask_person" … : finish.'), error


async def test_an_unanswered_question_blocks_nothing_else_and_the_run_can_be_cancelled() -> None:
    workflow = flow(
        entry(),
        agent(tools=["ask_person"]),
        agent("other"),
        result(),
        result("second"),
        edges="text -> agent -> out\ntext -> other -> second",
        settings={"max_concurrency": 1},
    )
    says = script(wants(("ask_person", {"question": "Which?"})), "never")
    run, models = begin(workflow, lambda call: says(call) if call.node == "agent" else "here")

    async for event in run.events():
        if event.path == "second" and event.type == "node.completed":
            break
    run.cancel()
    played = await asyncio.wait_for(finish(run, models), 30)

    assert played.result.status == "cancelled"
    assert played.result.outputs == {"second": "here"}
