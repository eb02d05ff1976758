"""Forks keep notes that were posted before the fork point."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine.events import NodeCompleted
from engine.models.protocol import ModelError, ModelErrorKind
from engine.store.resume import Changes, fork, plan_fork
from tests.engine.semantics.agents import agent, said_by_people, script, wants
from tests.engine.semantics.documents import around, entry, flow, llm, result
from tests.engine.semantics.kit import Played, begin, finish, options, play
from tests.engine.semantics.models import Call, FakeModels, FunctionModel
from tests.engine.store.memory_store import MemoryStore
from tests.engine.store.test_resume import play_to_end

LOOP = around(llm("worker"), edges="loop -> worker -> exit", max_iterations=4)


async def noted(*notes: tuple[str, str, str], workflow: Any = LOOP) -> tuple[MemoryStore, Played]:
    """A run into which notes are posted: while a node is running (its path), to a node, a text."""
    store, posting = MemoryStore(), asyncio.Queue[tuple[Call, asyncio.Event]]()

    async def answer(call: Call) -> Any:
        posted = asyncio.Event()
        await posting.put((call, posted))
        await posted.wait()
        return call.path

    run, models = begin(workflow, answer, store=store)
    finished = asyncio.create_task(finish(run, models))
    while not finished.done():
        waiting = asyncio.create_task(posting.get())
        await asyncio.wait({waiting, finished}, return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            waiting.cancel()
            break
        call, posted = waiting.result()
        for path, to, text in notes:
            if path == call.path:
                run.post_note(to, text)
        posted.set()
    return store, await finished


async def forked(store: MemoryStore, run_id: str, at: str, **changes: Any) -> dict[str, list[str]]:
    """The notes in the calls of a fork, by path."""
    models = FakeModels(FunctionModel("anew"))
    played = await play_to_end(fork(store, plan_fork(store, run_id, at, Changes(**changes)), options(models)), models)
    return {call.path: [text.partition("]\n")[2] for text in said_by_people(call)[1:]] for call in played.model.calls}


NOTES = (
    ("loop[0].worker", "worker", "early"),
    ("loop[1].worker", "worker", "in time"),
    ("loop[1].worker", "loop[3].worker", "for later"),
    ("loop[2].worker", "worker", "too late"),
)


@pytest.mark.parametrize(
    ("at", "prompts"),
    [
        ("loop[2]", {"loop[2].worker": ["in time"], "loop[3].worker": ["for later"]}),
        ("loop[2].worker", {"loop[2].worker": ["in time"], "loop[3].worker": ["for later"]}),
        ("loop[3]", {"loop[3].worker": ["for later", "too late"]}),
        ("loop[1]", {"loop[1].worker": ["early"], "loop[2].worker": [], "loop[3].worker": []}),
        ("loop[0]", {f"loop[{index}].worker": [] for index in range(4)}),
    ],
)
async def test_fork_has_notes_posted_before_its_fork_point(at: str, prompts: dict[str, list[str]]) -> None:
    store, parent = await noted(*NOTES)
    assert await forked(store, parent.result.run_id, at) == prompts


async def test_note_posted_while_an_edited_node_ran_is_kept() -> None:
    store, parent = await noted(("loop[1].worker", "worker", "in time"))
    prompts = await forked(store, parent.result.run_id, "loop[1].worker", value="edited", has_value=True)
    assert prompts == {"loop[2].worker": ["in time"], "loop[3].worker": []}


async def test_reused_node_has_sent_its_note_and_rerun_node_sends_it_again() -> None:
    workflow = flow(
        entry(), agent("boss", tools=["send_note"]), llm("worker"), result(), edges="text -> boss -> worker -> out"
    )
    store = MemoryStore()

    def answer(call: Call) -> Any:
        sends = script(wants(("send_note", {"to": "worker", "text": "Be brief."})), "told")
        return sends(call) if call.node == "boss" else "short"

    parent = await play(workflow, answer, store=store)

    for at in ("worker", "boss"):
        models = FakeModels(FunctionModel(answer))
        played = await play_to_end(fork(store, plan_fork(store, parent.result.run_id, at), options(models)), models)
        worker = next(call for call in played.model.calls if call.node == "worker")
        assert [text for text in said_by_people(worker) if "Be brief." in text] == [
            '[Note from the node "boss", sent during this run]\nBe brief.'
        ]


async def test_note_received_by_an_earlier_attempt_is_not_received_again() -> None:
    failures = iter([ModelError(ModelErrorKind.AUTHENTICATION, "no")])
    store, gate = MemoryStore(), asyncio.Event()
    workflow = around(llm("worker"), edges="loop -> worker -> exit", max_iterations=2, retries=1, retry_delay_s=0)
    posted = asyncio.Event()

    async def answer(call: Call) -> Any:
        if not posted.is_set():
            gate.set()
            await posted.wait()
            return "first"
        return next(failures, "again") if call.path == "loop[1].worker" else "again"

    run, models = begin(workflow, answer, store=store)
    await gate.wait()
    run.post_note("loop[1].worker", "Rhyme.")
    posted.set()
    parent = await finish(run, models)
    assert [event.path for event in parent.of(NodeCompleted) if event.path.startswith("loop[")].count(
        "loop[0].worker"
    ) == 2

    assert await forked(store, parent.result.run_id, "loop[1]") == {"loop[1].worker": []}
