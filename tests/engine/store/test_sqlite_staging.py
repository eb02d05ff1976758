"""What a run told last is written whole at first, and taken apart while nobody waits."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.events import AnyEvent, NodeCompleted
from engine.runner.journal import Journal
from engine.store.base import RunStatus
from engine.store.memory import MemoryStore
from engine.store.sqlite import SqliteStore, staging, writer
from engine.store.sqlite.writer import Task
from tests.architecture.project import ROOT
from tests.engine.store.kept import Watcher, completed, end, head, keep, node, started, whole, write_all
from tests.engine.store.strategies import logs

_LONG = "A text that is long enough for a blob of its own, and for a reference to it. " * 4


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "h.sqlite3"


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """The writing thread makes no pause but those that a test makes."""
    monkeypatch.setattr(writer, "_PAUSE_S", 3_600.0)


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(path)) as store:
        yield store


def _count(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def make_pause(store: SqliteStore) -> None:
    """Have the writing thread do what it does when nothing comes for a moment."""
    store._writer.do(lambda _connection: store._writer._settle(), in_transaction=False)


def begin(store: SqliteStore, told: Sequence[AnyEvent]) -> tuple[Journal, Watcher]:
    """Keep a run that makes a pause after its first event, and waits for the disk at each of them."""
    journal = store.begin(head(told[0].run_id))
    watcher = Watcher(journal)
    tell(journal, watcher, told[:1])
    make_pause(store)
    tell(journal, watcher, told[1:])
    return journal, watcher


def begin_two(store: SqliteStore, told: Sequence[AnyEvent]) -> tuple[tuple[Journal, Watcher], tuple[Journal, Watcher]]:
    """The same, and another run, `b`, beside it; all but the first event of each is staged."""
    one, other = begin(store, told[:1]), begin(store, [started("b")])
    tell(*one, told[1:])
    tell(*other, [node("b", 1, "x", "staged")])
    return one, other


def tell(journal: Journal, watcher: Watcher, told: Sequence[AnyEvent]) -> None:
    """Tell events one by one, as a run does that calls a model after each."""
    for event in told:
        journal.write(event)
        watcher.wait_for(event.seq)
    assert watcher.errors == []


def nodes(count: int, text: str = _LONG) -> list[AnyEvent]:
    return [started("a"), *(node("a", seq, f"loop[{seq}].draft", f"{seq} {text}") for seq in range(1, count))]


@pytest.mark.usefixtures("no_pause")
def test_what_a_run_waits_for_is_written_whole_and_read_like_all_else(store: SqliteStore, path: Path):
    told = nodes(4)
    begin(store, told)
    assert (_count(path, "events"), _count(path, "staged")) == (1, 3)
    assert _count(path, "blobs") == 0
    assert list(store.events("a")) == told
    kept = store.find("a")
    assert (kept.status, kept.tokens, kept.cost_usd) == (RunStatus.RUNNING, 3 * 14, 3 * 0.125)
    with closing(SqliteStore(path)) as other:
        assert list(other.events("a")) == told
        assert other.find("a") == kept


def test_it_is_taken_apart_while_nothing_comes(store: SqliteStore, path: Path):
    told, settled = nodes(4), threading.Event()

    def look(statement: str) -> None:
        if statement.startswith("DELETE FROM staged"):
            settled.set()

    journal, watcher = begin(store, told[:1])
    store._writer.do(lambda connection: connection.set_trace_callback(look))
    tell(journal, watcher, told[1:])
    assert settled.wait(10)
    store._writer.do(lambda _connection: None)  # it is done with that
    assert (_count(path, "events"), _count(path, "staged")) == (4, 0)
    assert _count(path, "blobs") == 3
    assert list(store.events("a")) == told


@pytest.mark.usefixtures("no_pause")
def test_the_end_of_a_run_leaves_nothing_staged(store: SqliteStore, path: Path):
    told = [*nodes(4), completed("a", 4)]
    journal, _watcher = begin(store, told)
    assert _count(path, "staged") == 4
    end(store, journal)
    assert (_count(path, "events"), _count(path, "staged")) == (5, 0)
    assert list(store.events("a")) == told


_FINE = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow)


@settings(suppress_health_check=_FINE, max_examples=40)
@given(data=st.data())
def test_any_events_are_read_alike_staged_and_settled(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject):
    told = [started("a"), *(event for event in data.draw(logs("a")) if event.seq > 0)]
    path = tmp_path_factory.mktemp("staging") / "h.sqlite3"
    with (
        pytest.MonkeyPatch.context() as patch,
        closing(MemoryStore()) as memory,
        closing(SqliteStore(path)) as store,
    ):
        patch.setattr(writer, "_PAUSE_S", 3_600.0)
        keep(memory, head("a"), told)
        journal, _watcher = begin(store, told)
        asked: list[dict[str, Any]] = [
            {"level": data.draw(st.sampled_from([None, "", "loop[0]", "outer[1].inner[0]"]))},
            {"kinds": data.draw(st.sets(st.sampled_from([type(event) for event in told])))},
            {"after": data.draw(st.integers(-1, told[-1].seq))},
            {"preview": data.draw(st.integers(1, 80))},
        ]
        for _ in range(2):
            assert list(store.events("a")) == told
            for question in asked:
                assert list(store.events("a", **question)) == list(memory.events("a", **question)), question
            end(store, journal)
            assert _count(path, "staged") == 0


@pytest.mark.usefixtures("no_pause")
def test_what_shows_that_a_run_has_begun_is_never_staged(store: SqliteStore, path: Path):
    keep(store, head("a"), [started("a", workflow="", models=())], close=False)
    assert (_count(path, "events"), _count(path, "staged")) == (1, 0)


_DEEP: Any = "core"
_DEEP_OBJECT: Any = "core"
for _ in range(200):
    _DEEP, _DEEP_OBJECT = [_DEEP], {"a": _DEEP_OBJECT}


@pytest.mark.usefixtures("no_pause")
@pytest.mark.parametrize(
    "value",
    [
        "\ud83d\ude00",
        {"$": 1},
        [{"$": []}],
        {"\ud83d\ude00": 1},
        _DEEP,
        _DEEP_OBJECT,
        "x" * staging.ROOM,
        ["x" * 600] * 120,
    ],
    ids=["a pair", "a mark", "a mark inside", "a key that is a pair", "deep", "deep objects", "long", "long in sum"],
)
def test_what_json_cannot_hold_and_what_is_long_is_not_staged(store: SqliteStore, path: Path, value: Any):
    told = [started("a"), node("a", 1, "x", "staged"), node("a", 2, "x", value)]
    journal, watcher = begin(store, told[:2])
    assert _count(path, "staged") == 1
    tell(journal, watcher, told[2:])
    assert (_count(path, "events"), _count(path, "staged")) == (3, 0)
    assert list(store.events("a")) == told


@pytest.mark.usefixtures("no_pause")
def test_a_run_that_makes_no_pause_stages_so_much_and_then_no_more(store: SqliteStore, path: Path):
    told = [*nodes(60, "x" * 3_000), node("a", 60, "x", "there would be room for this one")]
    journal, watcher = begin(store, told[:1])
    staged: list[int] = []
    for event in told[1:]:
        tell(journal, watcher, [event])
        staged.append(_count(path, "staged"))
    most = max(staged)
    assert 10 < most < staging.ROOM / 3_000
    assert staged == [*range(1, most + 1), *[0] * (60 - most)]
    assert list(store.events("a")) == told

    make_pause(store)
    tell(journal, watcher, [node("a", 61, "x", "after a pause")])
    assert _count(path, "staged") == 1


_KILLED_WITH_STAGED = """
import os, signal, sys
from pathlib import Path
from engine.store.sqlite import SqliteStore, writer
from tests.engine.store.test_sqlite_staging import begin, nodes

writer._PAUSE_S = 3600.0
begin(SqliteStore(Path(sys.argv[1])), nodes(6))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def killed(path: Path) -> Path:
    """A history whose last process was killed while five events of its run were staged."""
    process = subprocess.run([sys.executable, "-c", _KILLED_WITH_STAGED, path], cwd=ROOT, check=False)
    assert process.returncode == -signal.SIGKILL
    assert (_count(path, "events"), _count(path, "staged")) == (1, 5)
    return path


@pytest.mark.skipif(sys.platform == "win32", reason="kills as POSIX does")
def test_a_killed_process_loses_nothing_staged_and_its_run_goes_on(killed: Path):
    with closing(SqliteStore(killed)) as store:
        kept = store.find("a")
        assert (kept.status, kept.tokens, kept.cost_usd) == (RunStatus.INTERRUPTED, 5 * 14, 5 * 0.125)
        assert list(store.events("a")) == nodes(6)
        journal = store.reopen("a")
        write_all(journal, [completed("a", 6)])
        assert (_count(killed, "events"), _count(killed, "staged")) == (7, 0)
        assert list(store.events("a")) == [*nodes(6), completed("a", 6)]
        end(store, journal)
    with closing(sqlite3.connect(killed)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


@pytest.mark.skipif(sys.platform == "win32", reason="kills as POSIX does")
def test_a_run_that_is_taken_up_and_let_go_of_at_once_is_whole(killed: Path):
    with closing(SqliteStore(killed)) as store:
        end(store, store.reopen("a"))
        assert (_count(killed, "events"), _count(killed, "staged")) == (6, 0)
        assert list(store.events("a")) == nodes(6)


@pytest.mark.skipif(sys.platform == "win32", reason="kills as POSIX does")
def test_deleting_a_run_deletes_what_is_staged_of_it_alone(killed: Path):
    with closing(SqliteStore(killed)) as store:
        keep(store, head("b"), whole("b"))
        store.delete(["a"])
        assert [run.run_id for run in store.runs()] == ["b"]
        assert (_count(killed, "events"), _count(killed, "staged")) == (len(whole("b")), 0)


@pytest.mark.skipif(sys.platform == "win32", reason="kills as POSIX does")
def test_rewriting_the_file_keeps_what_is_staged(killed: Path):
    with closing(SqliteStore(killed)) as store:
        store.vacuum()
        assert list(store.events("a")) == nodes(6)


def _refuse_to_settle(store: SqliteStore, refused: threading.Event | None) -> None:
    """Let nothing be taken out of the table of what is staged, or all (None)."""

    def refuse(action: int, name: str | None, *_more: object) -> int:
        if refused is not None and action == sqlite3.SQLITE_DELETE and name == "staged":
            refused.set()
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK

    store._writer.do(lambda connection: connection.set_authorizer(refuse))


def test_what_cannot_be_taken_apart_now_is_done_later_and_nobody_is_told(store: SqliteStore, path: Path):
    refused = threading.Event()
    told = nodes(6)
    journal, watcher = begin(store, told[:1])
    _refuse_to_settle(store, refused)
    tell(journal, watcher, told[1:3])
    assert refused.wait(10)
    store._writer.do(lambda _connection: None)
    assert (_count(path, "staged"), watcher.errors) == (2, [])
    assert list(store.events("a")) == told[:3]
    assert store.find("a").tokens == 2 * 14

    _refuse_to_settle(store, None)
    tell(journal, watcher, told[3:])
    end(store, journal)
    assert (_count(path, "staged"), watcher.errors) == (0, [])
    assert list(store.events("a")) == told
    assert store.find("a").tokens == 5 * 14


@pytest.mark.usefixtures("no_pause")
def test_what_cannot_be_taken_apart_at_the_end_either_is_told_and_still_there(store: SqliteStore, path: Path):
    journal, watcher = begin(store, nodes(3))
    _refuse_to_settle(store, threading.Event())
    journal.close()
    assert watcher.wait_for_failure().message
    assert list(store.events("a")) == nodes(3)
    with closing(SqliteStore(path)) as other:
        write_all(other.reopen("a"), [completed("a", 3)])
        assert list(other.events("a")) == [*nodes(3), completed("a", 3)]
        assert _count(path, "staged") == 0


@pytest.mark.usefixtures("no_pause")
def test_a_process_that_lost_its_run_leaves_alone_what_another_staged_of_it(store: SqliteStore, path: Path):
    journal, watcher = begin(store, nodes(3))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE owners SET beat = 1000.0")
    with closing(SqliteStore(path)) as other:
        taken = other.reopen("a")
        theirs = write_all(taken, [node("a", 3, "x", "there")])
        make_pause(other)
        tell(taken, theirs, [node("a", 4, "x", "there")])
        assert _count(path, "staged") == 1
        journal.close()
        assert "another process has gone on with it" in watcher.wait_for_failure().message
        assert list(other.events("a")) == [*nodes(3), node("a", 3, "x", "there"), node("a", 4, "x", "there")]


@pytest.mark.usefixtures("no_pause")
def test_events_in_numbers_are_taken_apart_at_once(store: SqliteStore, path: Path):
    journal, watcher = begin(store, [started("a"), node("a", 1, "x", "staged")])
    many = [node("a", seq, "x", "small") for seq in range(2, 40)]
    waiting = threading.Event()
    store._writer.put(Task(lambda _connection: waiting.wait(10)), None)  # so that all are in one transaction
    for event in many:
        journal.write(event)
    waiting.set()
    watcher.wait_for(39)
    assert _count(path, "staged") == 0
    assert [event.seq for event in store.events("a") if isinstance(event, NodeCompleted)] == list(range(1, 40))


@pytest.mark.usefixtures("no_pause")
def test_what_was_taken_back_with_another_run_is_written_once(store: SqliteStore, path: Path):
    (journal, watcher), (other, others) = begin_two(store, nodes(2))
    unkeepable: Any = 10**5000
    waiting = threading.Event()
    store._writer.put(Task(lambda _connection: waiting.wait(10)), None)  # so that both are in one transaction
    journal.write(node("a", 2, "x", "more"))
    other.write(node("b", 2, "x", unkeepable))
    waiting.set()
    others.wait_for_failure()
    watcher.wait_for(2)
    assert _count(path, "staged") == 3
    end(store, journal)
    assert watcher.errors == []
    assert list(store.events("a")) == [*nodes(2), node("a", 2, "x", "more")]
    assert _count(path, "staged") == 1, "that of the other run, which came to no end here"


@pytest.mark.usefixtures("no_pause")
def test_a_pause_that_fails_for_one_run_is_made_up_for_by_the_others(store: SqliteStore, path: Path):
    (journal, watcher), _other = begin_two(store, nodes(3))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE runs SET owner = 1 WHERE run_id = 'b'")  # another process has taken it
    make_pause(store)
    assert _count(path, "staged") == 3
    end(store, journal)
    assert watcher.errors == []
    assert _count(path, "staged") == 1
    assert list(store.events("a")) == nodes(3)
