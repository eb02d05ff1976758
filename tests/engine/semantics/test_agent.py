"""The `agent` node: turns, tools, and how it ends."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine import Workflow
from engine.events import NodeCompleted, NodeFailed, NodeRetrying, NodeToolCalled
from engine.models.protocol import ModelError, ModelErrorKind, Reply
from engine.nodes.agent import MAX_CALLS_PER_TURN
from engine.nodes.json_values import compile_schema
from tests.engine.semantics.agents import Tools, agent, results, said_by_people, script, tools_fixture, wants
from tests.engine.semantics.documents import entry, flow, result
from tests.engine.semantics.kit import Played, play
from tests.engine.semantics.models import Call
from tests.engine.semantics.virtual_time import virtually
from tests.wording import mentions

__all__ = ["tools_fixture"]

SUM = {"a": 15, "b": 27}


def alone(**config: Any) -> Workflow:
    """A workflow of one agent."""
    parts = (entry(), agent(**config), result(), result("how"))
    return flow(*parts, edges="text -> agent -> out\nagent.status -> how")


def steps(played: Played) -> Any:
    return played.output_of("agent", "steps")


async def test_a_tool_result_is_sent_to_the_model(tools: Tools) -> None:
    answers = script(wants(("add", SUM), text="I add them."), "15 + 27 = 42")

    played = await play(alone(tools=["add"]), answers)

    assert played.result.outputs == {"out": "15 + 27 = 42", "how": "finished"}
    assert tools.called == [("add", {"a": 15, "b": 27})]
    first, second = played.model.calls
    assert [tool.name for tool in first.request.tools] == ["add", "finish"]
    assert set(first.request.tools[0].parameters["properties"]) == {"a", "b"}  # type: ignore[arg-type]
    assert results(second) == ["42.0"]
    assert second.request.messages[1].tool_calls[0].arguments == SUM
    assert steps(played) == [
        {"turn": 1, "thought": "I add them.", "tool": "add", "arguments": SUM, "result": 42, "error": ""}
    ]
    (call,) = played.of(NodeToolCalled)
    assert (call.path, call.number, call.tool, call.arguments, call.result) == ("agent", 0, "add", SUM, 42)


async def test_finish_ends_the_agent_after_the_calls_before_it(tools: Tools) -> None:
    answers = script(wants(("add", SUM), ("finish", {"answer": "42"}), ("add", {"a": 1})))

    played = await play(alone(tools=["add"]), answers)

    assert played.result.outputs == {"out": "42", "how": "finished"}
    assert tools.called == [("add", {"a": 15, "b": 27})]


async def test_an_agent_without_tools_answers_immediately() -> None:
    played = await play(alone(system="Be brief."), "done")

    assert played.result.outputs == {"out": "done", "how": "finished"}
    assert [message.role for message in played.model.calls[0].request.messages] == ["system", "user"]
    assert steps(played) == []


@pytest.mark.parametrize("choice", ["return_last", "flag"])
async def test_max_turns_returns_the_last_text(tools: Tools, choice: str) -> None:
    answers = script(wants(("add", SUM), text="thinking"), wants(("add", SUM)), wants(("add", SUM)))

    played = await play(alone(tools=["add"], max_turns=3, on_max_turns=choice), answers)

    assert played.result.outputs == {"out": "thinking", "how": "max_turns"}
    assert len(played.model.calls) == 3
    assert len(tools.called) == 3
    (completed,) = played.of(NodeCompleted, "agent")
    assert ["within 3 turns" in warning for warning in completed.warnings] == ([True] if choice == "flag" else [])


async def test_max_turns_can_fail_the_agent(tools: Tools) -> None:
    config = {"tools": ["add"], "max_turns": 2, "on_max_turns": "fail"}

    played = await play(alone(**config), script(*[wants(("add", SUM))] * 2), ends="failed")

    (failed,) = played.of(NodeFailed, "agent")
    assert "within 2 turns" in failed.error
    assert len(tools.called) == 2


@pytest.mark.parametrize(
    ("name", "arguments", "parts"),
    [
        ("ad", SUM, 'no tool "ad" … mean "add"? … : add, finish.'),
        ("hang", SUM, 'no tool "hang" … : add, finish.'),
        ("", {}, 'no tool "" … : add, finish.'),
        ("add", "{broken", "not a JSON object: “{broken”"),
        ("add", {"b": 1}, '"add" cannot be called: "a"'),
        ("add", {"a": "x"}, '"add" cannot be called: … "a" is "x"'),
        ("finish", {}, '"answer" is missing'),
    ],
)
async def test_malformed_calls_are_reported_to_the_model(tools: Tools, name: str, arguments: Any, parts: str) -> None:
    played = await play(alone(tools=["add"]), script(wants((name, arguments)), "sorry"))

    (first,) = results(played.model.calls[1])
    assert mentions(first, f"Error: … {parts}"), first
    assert played.out == "sorry"
    assert tools.called == []
    assert steps(played)[0]["error"] == first.removeprefix("Error: ")


async def test_a_tool_error_is_reported_to_the_model(tools: Tools) -> None:
    played = await play(alone(tools=["break"]), script(wants(("break", SUM)), "It is broken."))

    assert results(played.model.calls[1]) == ["Error: It is broken. Mend it."]
    assert played.out == "It is broken."
    assert len(tools.called) == 1


async def test_a_tool_that_crashes_does_not_end_the_agent(tools: Tools) -> None:
    played = await play(alone(tools=["crash"]), script(wants(("crash", SUM)), "without it"))

    (error,) = results(played.model.calls[1])
    assert mentions(error, "Error: … internal error: KeyError: 'sum'"), error
    assert played.out == "without it"
    assert len(tools.called) == 1


def test_a_tool_that_hangs_is_cancelled_and_the_agent_continues(tools: Tools) -> None:
    answers = script(wants(("hang", SUM), ("add", SUM)), "42, without the other")

    played = virtually(play(alone(tools=["add", "hang"], tool_timeout_s=30.0), answers))

    stopped, added = results(played.model.calls[1])
    assert stopped.startswith("Error: ")
    assert "30 s" in stopped
    assert added == "42.0"
    assert tools.stopped == 1
    assert played.model.calls[1].time == 30
    assert played.out == "42, without the other"


async def test_a_hundred_calls_in_one_reply_are_answered_but_not_all_made(tools: Tools) -> None:
    answers = script(wants(*[("add", {"a": number}) for number in range(100)]), "enough")

    played = await play(alone(tools=["add"]), answers)

    assert len(tools.called) == MAX_CALLS_PER_TURN
    contents = results(played.model.calls[1])
    assert len(contents) == 100
    left = contents[MAX_CALLS_PER_TURN:]
    assert [mentions(content, f"Error: … at most {MAX_CALLS_PER_TURN} tools") for content in left] == [True] * len(left)
    assert played.out == "enough"


async def test_an_empty_reply_is_retried() -> None:
    replies = iter([" \n", "well"])

    played = await play(alone(retries=1, retry_delay_s=0), lambda _: next(replies))

    assert len(said_by_people(played.model.calls[1])) == len(said_by_people(played.model.calls[0])) + 1
    assert played.out == "well"
    assert [event.attempt for event in played.of(NodeRetrying, "agent")] == [1]


@pytest.mark.parametrize("choice", ["return_last", "flag"])
async def test_an_agent_that_only_called_tools_has_no_answer_at_max_turns(tools: Tools, choice: str) -> None:
    config = {"tools": ["add"], "max_turns": 2, "on_max_turns": choice}
    answers = script(wants(("add", SUM)), wants(("add", SUM)))

    played = await play(alone(**config), answers, ends="failed")

    assert "without a text" in played.result.error
    assert len(tools.called) == 2
    assert (await play(alone(allow_empty=True, **config), answers)).out is None


async def test_an_empty_final_answer_is_refused_like_any_other_bad_call() -> None:
    played = await play(alone(), script(wants(("finish", {"answer": " "})), wants(("finish", {"answer": "well"}))))

    assert "empty" in results(played.model.calls[1])[0]
    assert played.out == "well"


SCHEMA = {"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]}


@pytest.mark.parametrize(
    "last", [wants(("finish", {"answer": {"sum": 42}})), 'Here: ```json\n{"sum": 42}\n```', '{"sum": 42}']
)
async def test_a_structured_answer_follows_its_schema(last: Reply | str) -> None:
    answers = script(wants(("finish", {"answer": {"sum": "many"}})), "no JSON", last)

    played = await play(alone(reply_schema=SCHEMA), answers)

    assert played.out == {"sum": 42}
    assert mentions(results(played.model.calls[1])[0], 'Error: … schema: … "many"')
    assert mentions(said_by_people(played.model.calls[2])[-1], "not be read: … no JSON")
    assert played.model.calls[0].request.tools[-1].parameters["properties"] == {"answer": SCHEMA}


async def test_a_reply_schema_with_definitions_works_in_finish() -> None:
    form = {"$defs": {"sum": {"type": "number"}}, "type": "object", "properties": {"sum": {"$ref": "#/$defs/sum"}}}

    played = await play(alone(reply_schema=form), wants(("finish", {"answer": {"sum": 42}})))

    assert played.out == {"sum": 42}
    offered = compile_schema(played.model.calls[0].request.tools[-1].parameters)
    assert offered.errors({"answer": {"sum": 42}}) == []
    assert offered.errors({"answer": {"sum": "many"}}) != []


async def test_a_failed_call_is_retried_without_repeating_finished_calls(tools: Tools) -> None:
    failures = iter([ModelError(ModelErrorKind.SERVER, "down"), ModelError(ModelErrorKind.SERVER, "down")])
    answers = script(wants(("add", SUM)), wants(("add", {"a": 1})), "done")

    def answer(call: Call) -> Any:
        failure = next(failures, None) if len(results(call)) == 1 else None
        return failure or answers(call)

    played = await play(alone(tools=["add"], retries=2, retry_delay_s=0), answer)

    assert played.out == "done"
    assert [arguments["a"] for _, arguments in tools.called] == [15, 1]
    assert [event.goes_on for event in played.of(NodeRetrying)] == [True, True]
    assert [len(call.request.messages) for call in played.model.calls] == [1, 3, 3, 3, 5]


def test_a_timed_out_attempt_continues_with_the_cancelled_call(tools: Tools) -> None:
    answers = script(wants(("add", SUM), ("hang", SUM)), "never")

    config = {"tools": ["add", "hang"], "timeout_s": 10.0, "retries": 1, "retry_delay_s": 0}
    played = virtually(play(alone(**config), answers, ends="failed"))

    assert [name for name, _ in tools.called] == ["add", "hang", "hang"]
    assert len(played.model.calls) == 1


async def test_single_call_makes_one_call_without_tools() -> None:
    played = await play(alone(turn_strategy="single_call"), "positive")

    assert played.result.outputs == {"out": "positive", "how": "finished"}
    assert played.model.calls[0].request.tools == ()
    assert steps(played) == []
    assert played.events[0].strategies == ("single_call",)  # type: ignore[union-attr]


async def test_a_single_call_can_be_structured() -> None:
    played = await play(alone(turn_strategy="single_call", reply_schema=SCHEMA), json.dumps({"sum": 1}))

    assert played.out == {"sum": 1}
    assert played.model.calls[0].request.schema == SCHEMA


async def test_a_single_call_refuses_tool_calls() -> None:
    played = await play(alone(turn_strategy="single_call"), wants(("add", SUM)), ends="failed")

    assert mentions(str(played.result.error), 'requested … "add"')
