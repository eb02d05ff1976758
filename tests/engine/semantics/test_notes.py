"""Notes to a running run: the next model call of a node receives them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine import EngineError, Run
from engine.events import NodeCompleted, NodeNoted, NotePosted
from engine.models.protocol import ModelError, ModelErrorKind
from tests.engine.semantics.agents import Tools, agent, results, said_by_people, script, tools_fixture, wants
from tests.engine.semantics.documents import around, entry, flow, llm, result, transform
from tests.engine.semantics.kit import begin, finish, play
from tests.engine.semantics.models import Call, Gate
from tests.wording import mentions

__all__ = ["tools_fixture"]

LOOP = around(llm("worker"), edges="loop -> worker -> exit", max_iterations=3)
MARK = "[Note from a person, sent during this run]\n"


async def at_gate(workflow: Any, gate: Gate) -> tuple[Run, Any]:
    run, models = begin(workflow, gate)
    await asyncio.wait_for(gate.reached.wait(), 30)
    return run, models


@pytest.mark.parametrize(("to", "receiver"), [("worker", "loop[1].worker"), ("loop[2].worker", "loop[2].worker")])
async def test_a_note_is_received_by_the_next_call_of_the_node_or_at_the_given_path(to: str, receiver: str) -> None:
    gate = Gate("loop[0].worker")
    run, models = await at_gate(LOOP, gate)

    run.post_note(to, "Make it rhyme.")
    gate.open.set()
    played = await finish(run, models)

    noted = {call.path: said_by_people(call)[1:] for call in played.model.calls}
    assert noted == {path: [f"{MARK}Make it rhyme."] if path == receiver else [] for path in noted}
    (posted,) = played.of(NotePosted)
    assert (posted.path, posted.to, posted.text) == ("", to, "Make it rhyme.")
    (event,) = played.of(NodeNoted)
    assert (event.path, event.to, event.text, event.sender) == (receiver, to, "Make it rhyme.", "")


async def test_notes_keep_their_order_and_arrive_once() -> None:
    gate = Gate("loop[0].worker")
    run, models = await at_gate(LOOP, gate)

    for text in ("one", "two"):
        run.post_note("worker", text)
    gate.open.set()
    played = await finish(run, models)

    assert said_by_people(played.model.calls[1])[1:] == [f"{MARK}one", f"{MARK}two"]
    assert said_by_people(played.model.calls[2])[1:] == []


async def test_a_note_stays_in_the_conversation_of_an_agent(tools: Tools) -> None:
    asked, posted = asyncio.Event(), asyncio.Event()
    answers = script(wants(("add", {"a": 1})), wants(("add", {"a": 2})), "done")

    async def answer(call: Call) -> Any:
        asked.set()
        await posted.wait()
        return answers(call)

    run, models = begin(flow(entry(), agent(tools=["add"]), result(), edges="text -> agent -> out"), answer)
    await asyncio.wait_for(asked.wait(), 30)
    run.post_note("agent", "Hurry.")
    posted.set()
    played = await finish(run, models)

    roles = [[message.role for message in call.request.messages] for call in played.model.calls]
    assert roles == [
        ["user"],
        ["user", "assistant", "tool", "user"],
        ["user", "assistant", "tool", "user", "assistant", "tool"],
    ]
    assert said_by_people(played.model.calls[2])[-1] == f"{MARK}Hurry."


async def test_a_note_is_not_lost_with_a_failed_attempt() -> None:
    gate, failures = Gate("loop[0].worker"), iter([ModelError(ModelErrorKind.SERVER, "down")])

    async def answer(call: Call) -> Any:
        reply = await gate(call)
        return next(failures, reply) if call.path == "loop[1].worker" else reply

    workflow = around(llm("worker", retries=1, retry_delay_s=0), edges="loop -> worker -> exit", max_iterations=2)
    run, models = begin(workflow, answer)
    await asyncio.wait_for(gate.reached.wait(), 30)
    run.post_note("worker", "Rhyme.")
    gate.open.set()
    played = await finish(run, models)

    assert [len(said_by_people(call)) for call in played.model.calls] == [1, 2, 2]
    assert len(played.of(NodeNoted)) == 1


async def test_an_agent_sends_another_node_a_note() -> None:
    send = ("send_note", {"to": "worker", "text": "Keep it short."})
    workflow = flow(
        entry(),
        agent("boss", tools=["send_note"]),
        llm("worker"),
        result(),
        edges="text -> boss -> worker -> out",
    )

    def answer(call: Call) -> Any:
        return script(wants(send), "told")(call) if call.node == "boss" else "short"

    played = await play(workflow, answer)

    assert said_by_people(played.model.calls[-1]) == [
        "told",
        '[Note from the node "boss", sent during this run]\nKeep it short.',
    ]
    assert results(played.model.calls[1]) == ["sent"]


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ({"to": "nobody", "text": "x"}, 'no node "nobody" … : boss, worker.'),
        ({"to": "text", "text": "x"}, '"text" calls no model … : boss, worker.'),
        ({"to": "worker", "text": " "}, '"text" must be a text'),
        ({"to": 3, "text": "x"}, '"to" must be a text'),
    ],
)
async def test_a_note_that_cannot_be_sent_is_reported_to_the_agent(arguments: Any, parts: str) -> None:
    nodes = (entry(), agent("boss", tools=["send_note"]), llm("worker"), result())
    workflow = flow(*nodes, edges="text -> boss -> worker -> out")

    def answer(call: Call) -> Any:
        return script(wants(("send_note", arguments)), "well")(call) if call.node == "boss" else "done"

    played = await play(workflow, answer)

    assert mentions(results(played.model.calls[1])[0], f"Error: … {parts}")
    assert played.of(NotePosted) == []


@pytest.mark.parametrize(
    ("to", "text", "message"),
    [
        ("nobody", "x", 'There is no node "nobody"'),
        ("loop[0].nobody", "x", "There is no node"),
        ("loop[0]", "x", "There is no node"),
        ("worker[1]", "x", "There is no node"),
        ("not a place", "x", "not the path of"),
        ("exit", "x", "calls no model"),
        ("worker", " ", "The note is empty"),
        ("worker", "x" * 100_001, "has 100,001 characters"),
    ],
)
async def test_a_note_that_nobody_can_receive_is_refused(to: str, text: str, message: str) -> None:
    gate = Gate("loop[0].worker")
    run, models = await at_gate(LOOP, gate)

    with pytest.raises(EngineError, match=message):
        run.post_note(to, text)

    gate.open.set()
    played = await finish(run, models)
    assert played.of(NotePosted) == []
    with pytest.raises(EngineError, match="The run is over"):
        run.post_note("worker", "too late")


async def test_an_unreceived_note_delays_nothing() -> None:
    gate = Gate("worker")
    parts = (entry(), llm("worker"), transform("after"), result())
    run, models = await at_gate(flow(*parts, edges="text -> worker -> after -> out"), gate)

    run.post_note("worker", "too late")
    gate.open.set()
    played = await finish(run, models)

    assert played.out == "worker"
    assert played.of(NodeNoted) == []
    assert [event.path for event in played.of(NodeCompleted)] == ["text", "worker", "after", "out"]
