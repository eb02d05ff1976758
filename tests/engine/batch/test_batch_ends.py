"""A batch that ends early, because something failed or it was cancelled."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from engine.batch.results_file import ResultsFile
from engine.batch.rows import RowResult
from engine.batch.table import TableError
from engine.store.store_protocol import StoreError
from tests.engine.batch.test_batch import Models, longer, play
from tests.engine.semantics.models import Call
from tests.engine.store.memory_store import MemoryStore

MANY = [{"text": str(number)} for number in range(20)]


async def test_no_row_starts_after_a_failed_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    others_started, never = asyncio.Event(), asyncio.Event()

    async def answer(call: Call) -> str:
        if set(models.asked) == {"0", "1", "2"}:
            others_started.set()
        await (others_started if call.prompt == "0" else never).wait()
        return "long enough"

    def write_not(_file: ResultsFile, _result: RowResult) -> None:
        raise TableError("The disk is full.", "Make room.")

    monkeypatch.setattr(ResultsFile, "write", write_not)
    models = Models(answer)
    with pytest.raises(TableError, match="disk is full"):
        await play(models, rows=MANY, concurrency=3, out=tmp_path / "out.csv")
    assert set(models.asked) == {"0", "1", "2"}


async def test_cancelled_batch_starts_no_further_row():
    reached, never = asyncio.Event(), asyncio.Event()

    async def answer(_call: Call) -> str:
        reached.set()
        await never.wait()
        return "long enough"

    models = Models(answer)
    running = asyncio.create_task(play(models, rows=MANY, concurrency=1))
    await reached.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 20)
    assert set(models.asked) == {"0"}


async def test_unreadable_stored_run_fails_only_its_row(monkeypatch: pytest.MonkeyPatch):
    store, models = MemoryStore(), Models(longer)
    first = await play(models, store=store)
    broken, events = first.rows[1].run_id, store.events

    def read(run_id: str, **which: Any) -> Any:
        if run_id == broken:
            raise StoreError("The run cannot be read.", "Delete it.")
        return events(run_id, **which)

    monkeypatch.setattr(store, "events", read)
    again = await play(models, store=store)
    assert [row.status for row in again.rows] == ["completed", "failed", "completed", "completed"]
    assert ["cannot be read" in row.error for row in again.rows] == [False, True, False, False]
    assert [row.error for row in again.rows if row.status == "completed"] == [""] * 3
