"""Several processes with one history, and processes killed at random moments."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from engine.errors import EngineError
from engine.store.sqlite import SqliteStore
from engine.store.store_protocol import RunStatus, StoreError
from tests.architecture.project import ROOT
from tests.engine.store.run_samples import complete_run, end, head, node, store_run, write_all

_KILLED = 12
_EVENTS = 120


@contextmanager
def _child(path: Path, run_id: str, count: int, *more: object) -> Iterator[subprocess.Popen[str]]:
    command = [
        sys.executable,
        "-m",
        "tests.engine.store.writing_process",
        str(path),
        run_id,
        str(count),
        *map(str, more),
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, encoding="utf-8") as process:
        try:
            yield process
        finally:
            process.kill()


def _check(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


_KILLED_WHILE_IMPORTING = """
import os, signal, sys
from pathlib import Path
from engine.store.sqlite import SqliteStore
from tests.engine.store.run_samples import head, node, started

def events():
    yield started("a")
    yield from (node("a", seq, "x", "text") for seq in range(1, 1500))
    os.kill(os.getpid(), signal.SIGKILL)

SqliteStore(Path(sys.argv[1])).import_run(head("a"), events())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="kills as POSIX does")
def test_killed_import_leaves_no_part_of_a_run(tmp_path: Path):
    path = tmp_path / "h.sqlite3"
    killed = subprocess.run([sys.executable, "-c", _KILLED_WHILE_IMPORTING, path], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM events").fetchone() == (1000,), "a part was safe already"

    with closing(SqliteStore(path)) as store:
        assert store.runs() == []
        assert store.totals().count == 0
        for prefix in ("", "a", "importing"):
            with pytest.raises(StoreError, match="no run"):
                store.find(prefix)
        assert store.import_run(head("a"), complete_run("a")) == "a"
        assert list(store.events("a")) == complete_run("a")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT run_id FROM runs").fetchall() == [("a",)]
        assert connection.execute("SELECT count(*) FROM events").fetchone() == (len(complete_run("a")),)


_KILLED_BEFORE_THE_FIRST_EVENT = """
import os, signal, sys
from pathlib import Path
from engine.store.sqlite import SqliteStore
from tests.engine.store.run_samples import head

SqliteStore(Path(sys.argv[1])).begin(head("gone"))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="kills as POSIX does")
@pytest.mark.parametrize("tidy", [lambda store: store.vacuum(), lambda store: store.delete(["old"])])
def test_runs_without_events_are_deleted_with_others(tmp_path: Path, tidy: Callable[[SqliteStore], object]):
    path = tmp_path / "h.sqlite3"
    with closing(SqliteStore(path)) as store:
        store_run(store, head("old"), complete_run("old"))
        living = store.begin(head("begun"))
        killed = subprocess.run([sys.executable, "-c", _KILLED_BEFORE_THE_FIRST_EVENT, path], cwd=ROOT, check=False)
        assert killed.returncode == -signal.SIGKILL
        assert _run_ids(path) >= {"begun", "gone"}

        tidy(store)

        assert _run_ids(path) - {"old"} == {"begun"}
        living.close()


def _run_ids(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {run_id for (run_id,) in connection.execute("SELECT run_id FROM runs")}


@pytest.mark.slow
def test_killed_process_leaves_all_acknowledged_events(tmp_path: Path):
    path = tmp_path / "h.sqlite3"
    for number in range(_KILLED):
        run_id = f"run{number}"
        with _child(path, run_id, _EVENTS) as process:
            assert process.stdout is not None
            heard = [int(next(process.stdout)) for _ in range(random.Random(number).randrange(1, _EVENTS - 10))]
            process.kill()
            heard += [int(line) for line in process.stdout if line.strip().isdecimal() and line.endswith("\n")]
        with closing(SqliteStore(path)) as store:
            stored = list(store.events(run_id))
            assert [event.seq for event in stored] == list(range(len(stored)))
            assert len(stored) > heard[-1]
            assert store.find(run_id).status in {RunStatus.INTERRUPTED, RunStatus.COMPLETED}
            write_all(store.reopen(run_id), [node(run_id, 1000, "after", "gone on")])
        _check(path)


@pytest.mark.slow
def test_two_processes_store_runs_in_parallel_and_a_third_reads_them(tmp_path: Path):
    path = tmp_path / "h.sqlite3"
    with (
        closing(SqliteStore(path)) as store,
        _child(path, "one", 60) as one,
        _child(path, "two", 60) as two,
    ):
        assert one.stdout is not None
        assert two.stdout is not None
        next(one.stdout)
        next(two.stdout)
        journal = store_run(store, head("here"), complete_run("here")[:3], close=False)
        assert {run.run_id for run in store.runs()} == {"one", "two", "here"}
        with pytest.raises(EngineError, match="running"):
            store.delete(["here"])
        heard = [int(line) for line in one.stdout], [int(line) for line in two.stdout]
        assert (heard[0][-1], heard[1][-1]) == (59, 59)
        one.wait()
        two.wait()
        end(store, journal)
        assert {run.status for run in store.runs() if run.run_id != "here"} == {RunStatus.COMPLETED}
        assert [len(list(store.events(run_id))) for run_id in ("one", "two", "here")] == [60, 60, 3]
    _check(path)


@pytest.mark.slow
def test_run_of_another_process_is_running_until_that_process_ends(tmp_path: Path):
    path = tmp_path / "h.sqlite3"
    with closing(SqliteStore(path)) as store, _child(path, "a", 100_000) as process:
        assert process.stdout is not None
        next(process.stdout)
        assert store.find("a").status is RunStatus.RUNNING
        with pytest.raises(EngineError, match="running"):
            store.reopen("a")
        process.kill()
        process.wait()
        assert store.find("a").status is RunStatus.INTERRUPTED
        store.delete(["a"])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of a file")
def test_refusing_disk_is_reported_and_stored_events_stay(tmp_path: Path):
    path = tmp_path / "h.sqlite3"
    with _child(path, "a", 100_000, 400_000) as process:
        assert process.stdout is not None
        *heard, last = process.stdout.read().splitlines()
    assert last.startswith("failed: The history"), last
    with closing(SqliteStore(path)) as store:
        assert len(list(store.events("a"))) > int(heard[-1])
        assert store.find("a").status is RunStatus.INTERRUPTED
        end(store, store_run(store, head("b"), complete_run("b")))
    _check(path)
