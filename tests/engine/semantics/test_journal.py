"""A stored run waits for its journal where it must, emits only safe events, and continues if the journal fails."""

from __future__ import annotations

import asyncio
import json

from engine import EngineError
from engine.events import (
    AnyEvent,
    NodeCalled,
    NodeCalling,
    NodeCompleted,
    NodeStreaming,
    RunCompleted,
    RunNotKept,
    RunStarted,
)
from engine.runner.run_storage import RunHead
from tests.engine.semantics.documents import around, llm, transform
from tests.engine.semantics.kit import begin, finish, play, settle
from tests.engine.semantics.list_journal import ListJournal, ListStore
from tests.engine.semantics.models import Gate

LOOP = around(llm("draft"), llm("polish"), edges="loop -> draft -> polish -> exit", max_iterations=2)


async def test_everything_except_reply_chunks_is_stored_in_order() -> None:
    storage = ListStore()

    played = await play(LOOP, "a text", store=storage, source="letters.loop.json")

    emitted = [event for event in played.events if not isinstance(event, NodeStreaming)]
    assert storage.journal.events == emitted
    assert storage.journal.closed
    (head,) = storage.heads
    assert (head.run_id, head.source, head.parent) == (played.result.run_id, "letters.loop.json", "")
    assert json.loads(head.document)["nodes"][0]["id"] == "text"
    assert head.options["model"] is None


async def test_a_model_call_is_recorded_before_and_after_it_is_made() -> None:
    played = await play(LOOP, "a text", store=ListStore())

    calls = [event for event in played.events if isinstance(event, (NodeCalling, NodeCalled))]
    assert [(type(event), event.path, event.number) for event in calls[:4]] == [
        (NodeCalling, "loop[0].draft", 0),
        (NodeCalled, "loop[0].draft", 0),
        (NodeCalling, "loop[0].polish", 0),
        (NodeCalled, "loop[0].polish", 0),
    ]
    completed = played.of(NodeCompleted, "loop[0].draft")[0]
    assert completed.calls == (calls[1].call,)  # type: ignore[union-attr]


async def test_no_call_is_made_before_its_record_is_safe() -> None:
    journal = ListJournal(by_hand=True)
    gate = Gate("loop[0].draft")
    run, models = begin(LOOP, gate, store=ListStore(journal))
    await settle()

    assert isinstance(journal.events[-1], NodeCalling)
    assert models.model.calls == []

    journal.keep()
    await asyncio.wait_for(gate.reached.wait(), 30)
    assert models.model.paths == ["loop[0].draft"]
    run.cancel()
    await settle()
    journal.keep()
    assert (await run.result()).status == "cancelled"


async def test_no_event_is_emitted_before_it_is_safe() -> None:
    journal = ListJournal(by_hand=True)
    seen: list[AnyEvent] = []
    run, _ = begin(LOOP, "a text", store=ListStore(journal))

    async def read() -> None:
        async for event in run.events():
            seen.append(event)  # noqa: PERF401 - it is looked at meanwhile

    reader = asyncio.create_task(read())
    await settle()
    assert seen == []
    assert run.events_since(0, 1000) == []

    while not reader.done():
        saved = len(journal.events)
        journal.keep()
        await settle()
        stored = [event for event in seen if not isinstance(event, NodeStreaming)]
        assert stored == journal.events[:saved]
    assert isinstance(seen[-1], RunCompleted)
    assert run.is_over


async def test_a_run_ends_only_when_its_end_is_safe() -> None:
    journal = ListJournal(by_hand=True)
    run, _ = begin(around(transform("same"), edges="loop -> same -> exit"), store=ListStore(journal))
    await settle()

    assert isinstance(journal.events[-1], RunCompleted)
    assert not run.is_over
    run.cancel()  # too late: the run has ended and only waits for its journal
    journal.keep()
    assert (await run.result()).status == "completed"
    assert run.is_over


async def test_a_history_failure_does_not_stop_the_run_and_is_reported() -> None:
    journal = ListJournal(by_hand=True)
    run, models = begin(LOOP, "a text", store=ListStore(journal))
    await settle()
    written = len(journal.events)

    journal.fail(EngineError("The disk is full.", "Make room."))
    played = await finish(run, models)

    assert played.result.status == "completed"
    (lost,) = played.of(RunNotKept)
    assert (lost.error, lost.remedy) == ("The disk is full.", "Make room.")
    assert len(journal.events) == written
    assert [event.seq for event in played.events] == list(range(len(played.events)))


async def test_a_run_that_cannot_be_stored_runs_and_says_so() -> None:
    class Full(ListStore):
        def begin(self, head: RunHead) -> ListJournal:
            raise EngineError(f"The history cannot keep {head.document[:1]}.", "Make room.")

    played = await play(LOOP, "a text", store=Full())

    assert [type(event) for event in played.events[:2]] == [RunStarted, RunNotKept]
    assert played.result.status == "completed"


async def test_a_run_of_fast_nodes_waits_for_its_journal() -> None:
    journal = ListJournal(by_hand=True)
    body = [transform(f"t{number}") for number in range(20)]
    edges = " -> ".join(["loop", *(node.id for node in body), "exit"])
    run, models = begin(around(*body, edges=edges, max_iterations=30), store=ListStore(journal), max_iterations_cap=30)
    await settle()

    assert 256 <= len(journal.events) < 300

    ended = asyncio.create_task(finish(run, models))
    while not ended.done():
        journal.keep()
        await settle()
    assert ended.result().result.status == "completed"
