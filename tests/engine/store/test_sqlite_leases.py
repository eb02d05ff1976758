"""Which processes count as alive."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from engine.store.sqlite import SqliteStore, writer_thread
from engine.store.sqlite.schema import connect, prepare
from engine.store.sqlite.writer_thread import BEAT_S, STALE_S, Owner, live_owners
from tests.engine.store.run_samples import end, head, started, store_run


class Clock:
    now = 1_000_000.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(writer_thread.time, "time", lambda: clock.now)
    return clock


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    prepare(tmp_path / "h.sqlite3")
    with closing(connect(tmp_path / "h.sqlite3")) as connection:
        yield connection


def _enter(connection: sqlite3.Connection, token: int, host: str, pid: int, beat: float) -> None:
    connection.execute("INSERT INTO owners (id, host, pid, beat) VALUES (?, ?, ?, ?)", (token, host, pid, beat))


def test_owner_is_alive_while_its_heartbeat_is_recent(connection: sqlite3.Connection, clock: Clock):
    owner = Owner()
    owner.beat(connection)
    assert live_owners(connection) == [owner.token]
    clock.now += STALE_S - 1
    assert live_owners(connection) == [owner.token]
    clock.now += 1
    assert live_owners(connection) == []
    owner.beat(connection)
    assert live_owners(connection) == [owner.token]


def test_heartbeat_is_written_only_when_due(connection: sqlite3.Connection, clock: Clock):
    def beat_at() -> float:
        return connection.execute("SELECT beat FROM owners").fetchone()[0]

    owner = Owner()
    owner.beat(connection)
    clock.now += BEAT_S - 1
    owner.beat(connection)
    assert beat_at() == clock.now - BEAT_S + 1
    owner.forget_beat()
    owner.beat(connection)
    assert beat_at() == clock.now
    clock.now -= 100  # the clock was put back
    owner.beat(connection)
    assert beat_at() == clock.now


def test_ended_process_of_this_machine_is_dead_at_once(connection: sqlite3.Connection, clock: Clock):
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    _enter(connection, 1, socket.gethostname(), os.getpid(), clock.now)
    _enter(connection, 2, socket.gethostname(), process.pid, clock.now)
    _enter(connection, 3, "another machine", process.pid, clock.now)
    _enter(connection, 4, "another machine", process.pid, clock.now - STALE_S)
    gone_is_seen = [] if sys.platform != "win32" else [2]
    assert live_owners(connection) == [1, *gone_is_seen, 3]


def test_expired_owners_are_deleted(connection: sqlite3.Connection, clock: Clock):
    _enter(connection, 1, "another machine", 1, clock.now - 30 * 86_400)
    owner = Owner()
    owner.beat(connection)
    assert connection.execute("SELECT id FROM owners").fetchall() == [(owner.token,)]


def test_heartbeat_is_written_while_a_run_has_no_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    beaten = threading.Semaphore(0)
    beat = Owner.beat

    def counted(self: Owner, connection: sqlite3.Connection) -> None:
        beat(self, connection)
        beaten.release()

    monkeypatch.setattr(Owner, "beat", counted)
    monkeypatch.setattr(writer_thread, "BEAT_S", 0.01)
    with closing(SqliteStore(tmp_path / "h.sqlite3")) as store:
        journal = store_run(store, head("a"), [started("a")], close=False)
        while beaten.acquire(blocking=False):
            pass
        for _ in range(3):
            assert beaten.acquire(timeout=10)
        end(store, journal)
