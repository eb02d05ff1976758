"""A raising callback does not end the writer thread of all runs."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from engine.errors import EngineError
from engine.store.sqlite import SqliteStore
from tests.engine.cli.kit import Events
from tests.engine.store.run_samples import head, store_run


def test_raising_callback_is_logged_and_other_runs_are_stored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = SqliteStore(tmp_path / "history.sqlite3")
    event = Events()
    started = event("RunStarted", workflow="Sample", inputs={}, models=())

    def stored(_seq: int) -> None:
        raise ZeroDivisionError

    def failed(_error: EngineError) -> None:
        raise ZeroDivisionError

    journal = store.begin(head("first"))
    journal.watch(stored, failed)
    with caplog.at_level(logging.ERROR, "loopwright"):
        journal.write(started)
        journal.close()
        store_run(store, head("second"), [started])
    kept_runs = {run.run_id for run in store.runs()}
    store.close()

    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert kept_runs == {"first", "second"}
