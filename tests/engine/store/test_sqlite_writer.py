"""The writer thread: checkpoints in pauses, and pauses that let other threads run."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.store import open_store
from engine.store.sqlite.schema import connect, prepare
from engine.store.sqlite.writer_thread import Owner, WriterThread
from tests.engine.store.run_samples import complete_run, head, node, store_run

_MORE_THAN_A_FEW = 40


def test_wal_is_checkpointed_in_a_pause(tmp_path: Path):
    path, copy = tmp_path / "history.sqlite3", tmp_path / "copy.sqlite3"
    prepare(path)
    with closing(connect(path)) as reader:  # the last connection that is closed would empty the log too
        connection = connect(path)
        emptied = threading.Event()
        connection.set_trace_callback(lambda statement: emptied.set() if "wal_checkpoint" in statement else None)
        writer = WriterThread(path, connection, Owner())
        for number in range(_MORE_THAN_A_FEW):
            _add_path(writer, number)
        assert emptied.wait(10)
        writer.do(lambda _there: None)  # it is done with that
        shutil.copyfile(path, copy)
        assert _paths(reader) == _MORE_THAN_A_FEW
        writer.close()

    with closing(sqlite3.connect(copy)) as alone:
        assert _paths(alone) > _MORE_THAN_A_FEW / 2  # the pause may have come before the last of them


def test_failed_checkpoint_stops_nothing(tmp_path: Path):
    path = tmp_path / "history.sqlite3"
    prepare(path)
    connection = connect(path)
    refused = threading.Event()

    def refuse(action: int, name: str | None, *_more: object) -> int:
        if action == sqlite3.SQLITE_PRAGMA and name == "wal_checkpoint":
            refused.set()
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK

    connection.set_authorizer(refuse)
    writer = WriterThread(path, connection, Owner())
    for number in range(_MORE_THAN_A_FEW):
        _add_path(writer, number)
    assert refused.wait(10)
    _add_path(writer, _MORE_THAN_A_FEW)
    found = writer.do(_paths)
    writer.close()

    assert found == _MORE_THAN_A_FEW + 1


def _add_path(writer: WriterThread, number: int) -> None:
    writer.do(lambda connection: connection.execute("INSERT INTO paths (path) VALUES (?)", (f"n{number}",)))


def _paths(connection: sqlite3.Connection) -> int:
    return connection.execute("SELECT count(*) FROM paths").fetchone()[0]


@pytest.mark.parametrize(("iterations", "pauses"), [(10, 0), (1_000, 10)])
def test_long_list_is_encoded_with_pauses_for_the_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, iterations: int, pauses: int
):
    paused: list[float] = []
    monkeypatch.setattr("engine.store.sqlite.value_encoding.time", SimpleNamespace(sleep=paused.append))
    records = [{"index": number, "result": f"draft {number}"} for number in range(iterations)]
    with closing(open_store(tmp_path / "history.sqlite3")) as store:
        store_run(store, head("a"), [*complete_run("a"), node("a", 9, "loop", records)])
        *_, last = store.events("a")
        assert last.to_json()["outputs"] == {"output": records}
    assert pauses <= len(paused) <= 2 * pauses
