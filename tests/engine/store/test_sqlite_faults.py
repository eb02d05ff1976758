"""Errors while runs are stored: one message, nothing half written, nothing stored is lost."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from engine.errors import EngineError
from engine.store.sqlite import SqliteStore
from engine.store.sqlite.schema import to_store_error
from engine.store.store_protocol import RunStatus, StoreError
from tests.engine.store.run_samples import (
    Watcher,
    complete_run,
    completed,
    end,
    head,
    node,
    started,
    store_run,
    write_all,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "h.sqlite3"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(path, busy_s=0.2)) as store:
        yield store


def _noise(seed: int, characters: int = 200_000) -> str:
    return random.Random(seed).randbytes(characters // 2).hex()


def _no_more_room(store: SqliteStore) -> None:
    def limit(connection: sqlite3.Connection) -> None:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 4}")

    store._writer.do(limit, in_transaction=False)


def _room(store: SqliteStore) -> None:
    store._writer.do(lambda connection: connection.execute("PRAGMA max_page_count = 1000000"), in_transaction=False)


def test_full_disk_is_reported_once_and_stored_events_stay(store: SqliteStore):
    journal = store.begin(head("a"))
    watcher = write_all(journal, [started("a"), node("a", 1, "x", "small")])
    _no_more_room(store)
    journal.write(node("a", 2, "x", _noise(1)))
    error = watcher.wait_for_failure()
    assert "the disk is full" in error.message
    assert error.remedy
    journal.write(node("a", 3, "x", "small"))
    end(store, journal)
    assert (len(watcher.errors), watcher.kept[-1]) == (1, 1)
    assert [event.seq for event in store.events("a")] == [0, 1]
    _room(store)
    end(store, store_run(store, head("b"), complete_run("b")))
    assert store.find("a").status is RunStatus.INTERRUPTED
    write_all(store.reopen("a"), [node("a", 4, "x", _noise(1)), completed("a", 5)])
    assert [event.seq for event in store.events("a")] == [0, 1, 4, 5]


def test_no_room_for_the_wal_is_reported_as_full_disk(tmp_path: Path):
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
    assert "the disk is full" in to_store_error(error, tmp_path / "h.sqlite3").message
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_READ
    assert "disk I/O error" in to_store_error(error, tmp_path / "h.sqlite3").message


def test_rolled_back_values_do_not_count_as_stored(store: SqliteStore):
    # The text is written in the transaction that fails, and again after it.
    journal = store.begin(head("a"))
    watcher = write_all(journal, [started("a")])
    other = store.begin(head("b"))
    others = write_all(other, [started("b")])
    text = "shared " * 100
    unkeepable: Any = 10**5000
    with store._writer._lock:  # so that both are in one transaction
        store._writer._queue.put((journal._run, node("a", 1, "x", [text, unkeepable])))
        store._writer._queue.put((other._run, node("b", 1, "x", text)))
    watcher.wait_for_failure()
    others.wait_for(1)
    assert (watcher.kept, others.errors) == ([0], [])
    write_all(other, [node("b", 2, "x", text)])
    assert list(store.events("b")) == [started("b"), node("b", 1, "x", text), node("b", 2, "x", text)]


def test_value_that_cannot_be_stored_is_reported(store: SqliteStore):
    journal = store.begin(head("a"))
    watcher = Watcher(journal)
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    journal.write(node("a", 0, "x", deep))
    assert "nested too deeply" in watcher.wait_for_failure().message
    while deep:  # level by level, because freeing it at once may need as many frames
        deep = deep.pop()


def test_file_locked_too_long_is_reported(store: SqliteStore, path: Path):
    journal = store.begin(head("a"))
    watcher = write_all(journal, [started("a")])
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        journal.write(node("a", 1, "x", "y"))
        assert "locked by another program" in watcher.wait_for_failure().message
        with pytest.raises(StoreError, match="locked by another program"):
            store.begin(head("b"))
        assert [event.seq for event in store.events("a")] == [0], "reading still works"


def test_briefly_locked_file_is_waited_for(path: Path):
    with (
        closing(SqliteStore(path, busy_s=30)) as store,
        closing(sqlite3.connect(path, isolation_level=None)) as connection,
    ):
        journal = store.begin(head("a"))
        watcher = write_all(journal, [started("a")])
        connection.execute("BEGIN IMMEDIATE")
        journal.write(node("a", 1, "x", "y"))
        connection.execute("ROLLBACK")
        watcher.wait_for(1)
        assert watcher.errors == []


def test_run_owned_by_another_process_is_no_longer_written(store: SqliteStore, path: Path):
    journal = store.begin(head("a"))
    watcher = write_all(journal, [started("a")])
    with closing(SqliteStore(path)) as other:
        with pytest.raises(EngineError, match="running"):
            other.reopen("a")
        assert other.find("a").status is RunStatus.RUNNING
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE owners SET beat = 1000.0 WHERE id = ?", (store._owner.token,))
        assert other.find("a").status is RunStatus.INTERRUPTED
        taken = other.reopen("a")
        journal.write(node("a", 1, "x", "here"))
        assert "no longer stored" in watcher.wait_for_failure().message
        write_all(taken, [node("a", 1, "x", "there")])
        assert [event.seq for event in other.events("a")] == [0, 1]
        assert list(other.events("a"))[1] == node("a", 1, "x", "there")


def test_deleted_run_is_no_longer_written(store: SqliteStore, path: Path):
    journal = store.begin(head("a"))
    watcher = write_all(journal, [started("a")])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE owners SET beat = 1000.0")
    with closing(SqliteStore(path)) as other:
        other.delete(["a"])
    journal.write(node("a", 1, "x", "here"))
    assert "deleted" in watcher.wait_for_failure().message
    assert store.runs() == []


def test_closed_store_reports_to_its_runs(path: Path):
    store = SqliteStore(path)
    journal = store.begin(head("a"))
    watcher = write_all(journal, [started("a")])
    reading = store.events("a")
    store.close()
    journal.write(node("a", 1, "x", "y"))
    assert "closed" in watcher.wait_for_failure().message
    with pytest.raises(StoreError, match="closed"):
        next(reading)
    with closing(SqliteStore(path)) as again:
        assert again.find("a").status is RunStatus.INTERRUPTED
