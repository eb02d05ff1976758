"""Opening a file while another process creates, opens or truncates it."""

from __future__ import annotations

import random
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from engine.store import open_store
from engine.store.sqlite import schema
from engine.store.sqlite.run_mutations import free_pages
from engine.store.sqlite.schema import connect, mark_closed, mark_open, open_lock, prepare
from engine.store.store_protocol import StoreError
from tests.engine.store.run_samples import complete_run, head, node, store_run


def test_tables_can_be_created_while_the_file_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "h.sqlite3"
    path.touch()
    _between_statements(monkeypatch, "sqlite_master", lambda: prepare(path, busy_s=0))

    prepare(path)

    with closing(open_store(path)) as store:
        assert store.runs() == []


def test_second_of_two_first_openings_waits_for_the_other(tmp_path: Path):
    path = tmp_path / "h.sqlite3"
    prepare(path)
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        held = mark_open(path)  # as by another process: its locks stay, whatever is read here
        other.execute("BEGIN IMMEDIATE")
        done = threading.Timer(0.1, other.rollback)
        done.start()

        prepare(path)

        done.join()
        mark_closed(held)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_no_other_thread_reads_a_file_before_it_is_marked_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "h.sqlite3"
    seen: list[bool] = []

    def connect_watched(file: Path, **options: Any) -> sqlite3.Connection:
        seen.append(open_lock.acquire(blocking=False))
        return connect(file, **options)

    monkeypatch.setattr("engine.store.sqlite.store.connect", connect_watched)
    open_store(path).close()
    assert seen == [False]
    assert open_lock.acquire(blocking=False), "another may look once it is open"
    open_lock.release()


def test_file_that_shrinks_while_it_is_checked_is_not_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "h.sqlite3"
    with closing(open_store(path)) as store:
        store_run(store, head("a"), [*complete_run("a"), node("a", 9, "x", random.Random(1).randbytes(50_000).hex())])
    has_log, others = schema._has_journal, []

    def look_for_log(file: Path) -> bool:
        if not others:
            others.append(connect(path))
            others[0].executescript("DELETE FROM uses; DELETE FROM blobs")
            free_pages(others[0])
        return has_log(file)

    monkeypatch.setattr(schema, "_has_journal", look_for_log)

    with closing(open_store(path)) as store:
        assert [run.run_id for run in store.runs()] == ["a"]
    others[0].close()


def _between_statements(monkeypatch: pytest.MonkeyPatch, word: str, act: Callable[[], object]) -> None:
    """Do something just before the first statement that contains a word."""
    acts = [act]
    plain = sqlite3.connect

    def connect(*arguments: object, **options: object) -> sqlite3.Connection:
        connection = plain(*arguments, **options)  # type: ignore[call-overload]

        def note(statement: str) -> None:
            if word in statement and acts:
                with suppress(StoreError):
                    acts.pop()()

        connection.set_trace_callback(note)
        return connection

    monkeypatch.setattr(schema.sqlite3, "connect", connect)
