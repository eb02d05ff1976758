"""Rows whose runs ask a person: the batch ends without answers, and uses them when it starts again."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine import BatchOptions, RunOptions, run_batch
from engine.nodes.context import Answer
from engine.store.answers import find_question
from engine.store.resume import resume
from engine.store.store_protocol import RunStatus
from tests.engine.batch.test_batch import CENTS, Models, play
from tests.engine.batch.test_cluster import script
from tests.engine.semantics.documents import entry, flow, llm, part, result
from tests.engine.store.memory_store import MemoryStore
from tests.wording import mentions


def checked() -> Any:
    return flow(
        entry(),
        llm("draft", max_tokens=5),
        part("check", "approval", message="May it go out?"),
        result(),
        edges="text -> draft -> check\ncheck.approved -> out",
    )


ROWS = [{"text": "a"}, {"text": "b"}]


async def approve(store: MemoryStore, run_id: str, models: Models) -> None:
    asked = find_question(store, run_id, None)
    catalog = models()
    run = resume(store, run_id, RunOptions(models=catalog))
    async for event in run.events():
        if event.path == asked.path and type(event).__name__ == "NodeWaiting" and event.seq > asked.seq:
            run.answer(asked.path, Answer("approve"))
    await catalog.close()


async def test_batch_with_questions_ends_and_resumes_with_the_answers():
    store, models = MemoryStore(), Models("fine", **CENTS)
    outcome = await play(models, checked(), ROWS, store=store, concurrency=1)
    run_id = outcome.rows[0].run_id
    assert [(row.status, row.cost_usd, row.tokens) for row in outcome.rows] == [("failed", pytest.approx(0.05), 15)] * 2
    assert "answer at check." in outcome.rows[0].error
    assert run_id in outcome.rows[0].error
    assert {run.status for run in store.runs()} == {"waiting"}
    await approve(store, run_id, models)
    again = await play(models, checked(), ROWS, store=store)
    assert [(row.status, row.outputs) for row in again.rows] == [("completed", {"out": "fine"}), ("failed", {})]
    assert len(models.model.calls) == 2, "no call is paid for twice"


async def test_unstored_row_with_a_question_fails():
    outcome = await play(Models("fine", **CENTS), checked(), ROWS)
    assert [(row.status, row.cost_usd) for row in outcome.rows] == [("failed", pytest.approx(0.05))] * 2
    assert mentions(outcome.rows[0].error, "at check, … not stored")


@pytest.mark.parametrize("store", [MemoryStore(), None], ids=["stored", "not stored"])
async def test_executor_row_with_a_question_returns_and_does_not_run_again(tmp_path: Path, store: MemoryStore | None):
    with ThreadPoolExecutor(1) as executor:
        how = BatchOptions(run=RunOptions(model=script(tmp_path)), executor=executor, store=store)
        async with asyncio.timeout(20):
            outcome = await run_batch(checked(), ROWS[:1], how)
            again = await run_batch(checked(), ROWS[:1], how)
    for row in (*outcome.rows, *again.rows):
        assert (row.status, row.tokens > 0 or store is None) == ("failed", True)
        assert f"at check{'.' if store is not None else ', and is not stored.'}" in row.error
    if store is not None:
        (run,) = store.runs()
        assert (run.status, run.run_id) == ("waiting", outcome.rows[0].run_id)


async def test_row_that_is_running_here_does_not_run_on_an_executor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    store = MemoryStore()
    how = {"run": RunOptions(model=script(tmp_path)), "store": store}
    await run_batch(checked(), ROWS[:1], BatchOptions(**how))
    find = store.find
    monkeypatch.setattr(store, "find", lambda run_id: replace(find(run_id), status=RunStatus.RUNNING))
    with ThreadPoolExecutor(1) as executor:
        outcome = await run_batch(checked(), ROWS[:1], BatchOptions(executor=executor, **how))
    assert outcome.rows[0].status == "failed"
    assert "is running in another process" in outcome.rows[0].error
