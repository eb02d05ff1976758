"""Whoever follows a run and raises does not end the one thread on which all runs are written."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from engine.errors import EngineError
from engine.store.sqlite import SqliteStore
from tests.engine.cli.kit import Events
from tests.engine.store.kept import head, keep


def test_a_callback_that_raises_is_logged_and_other_runs_are_kept_all_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = SqliteStore(tmp_path / "history.sqlite3")
    event = Events()
    started = event("RunStarted", workflow="Sample", inputs={}, models=())

    def kept(_seq: int) -> None:
        raise ZeroDivisionError

    def failed(_error: EngineError) -> None:
        raise ZeroDivisionError

    journal = store.begin(head("first"))
    journal.watch(kept, failed)
    with caplog.at_level(logging.ERROR, "loopwright"):
        journal.write(started)
        journal.close()
        keep(store, head("second"), [started])
    kept_runs = {run.run_id for run in store.runs()}
    store.close()

    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert kept_runs == {"first", "second"}
