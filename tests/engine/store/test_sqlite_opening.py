"""Opening new, old, newer, foreign and damaged files; files that cannot be opened stay unchanged."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from engine.store import open_store, store_path
from engine.store.sqlite import SqliteStore
from engine.store.sqlite.schema import APPLICATION_ID, STEPS, connect, prepare
from engine.store.store_protocol import StoreError
from tests.engine.store.run_samples import complete_run, head, node, store_run


def _made(path: Path, characters: int = 20_000) -> Path:
    with closing(open_store(path)) as store:
        for number, run_id in enumerate("ab"):
            text = random.Random(number).randbytes(characters // 2).hex()
            store_run(store, head(run_id), [*complete_run(run_id), node(run_id, 9, "x", text)])
    return path


def _refused(path: Path, words: str) -> None:
    before = path.read_bytes()
    with pytest.raises(StoreError, match=words) as caught:
        open_store(path)
    assert path.read_bytes() == before
    assert str(path) in caught.value.message
    assert caught.value.remedy
    assert sorted(file.name for file in path.parent.iterdir()) == [path.name]


def test_new_file_is_created_and_opened_again(tmp_path: Path):
    path = _made(tmp_path / "h.sqlite3")
    with closing(open_store(path)) as store:
        assert [event.seq for event in store.events("a")] == [0, 1, 2, 3, 4, 9]
    with closing(sqlite3.connect(path)) as connection:
        pragmas = [
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "auto_vacuum", "application_id", "user_version", "integrity_check")
        ]
    assert pragmas == ["wal", 2, APPLICATION_ID, len(STEPS), "ok"]


def test_connections_sync_to_disk_and_check_references(tmp_path: Path):
    path = _made(tmp_path / "h.sqlite3")
    with closing(connect(path)) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert connection.execute("PRAGMA foreign_keys").fetchone() == (1,)


def test_empty_file_becomes_a_history(tmp_path: Path):
    path = tmp_path / "h.sqlite3"
    path.touch()
    with closing(open_store(path)) as store:
        assert store.runs() == []


@pytest.mark.skipif(sys.platform == "win32", reason="the limit on files is POSIX's")
@pytest.mark.parametrize("pages", [1, 2, 14, 20])
def test_history_whose_creation_was_killed_is_created_again(tmp_path: Path, pages: int):
    path = tmp_path / "h.sqlite3"
    killed = subprocess.run([sys.executable, "-c", _KILLED_WHILE_MAKING, path, str(pages * 4096)], check=False)
    assert killed.returncode == -signal.SIGXFSZ
    assert path.with_name(f"{path.name}-journal").exists(), "the tables were not all written"

    with closing(open_store(path)) as store:
        assert store.runs() == []
        store_run(store, head("a"), complete_run("a"))
        assert [run.run_id for run in store.runs()] == ["a"]


_KILLED_WHILE_MAKING = """
import resource, signal, sys
from pathlib import Path
from engine.store.sqlite.schema import prepare

signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # the system kills who writes a file beyond the limit
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
prepare(Path(sys.argv[1]))
"""


def test_older_file_is_migrated_with_its_content(tmp_path: Path):
    path = _made(tmp_path / "h.sqlite3")

    def add_note(connection: sqlite3.Connection) -> None:
        connection.execute("ALTER TABLE runs ADD COLUMN note TEXT NOT NULL DEFAULT 'none'")

    prepare(path, steps=(*STEPS, add_note))
    prepare(path, steps=(*STEPS, add_note))  # once is enough
    with closing(connect(path)) as connection:
        assert connection.execute("SELECT run_id, note FROM runs").fetchall() == [("a", "none"), ("b", "none")]
        assert connection.execute("PRAGMA user_version").fetchone() == (len(STEPS) + 1,)


def test_failed_migration_leaves_the_older_file(tmp_path: Path):
    path = _made(tmp_path / "h.sqlite3")

    def halfway(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM runs")
        connection.execute("SELECT * FROM nothing")

    with pytest.raises(StoreError):
        prepare(path, steps=(*STEPS, halfway))
    with closing(open_store(path)) as store:
        assert store.totals().count == 2


def test_newer_file_is_refused(tmp_path: Path):
    path = _made(tmp_path / "h.sqlite3")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {len(STEPS) + 1}")
    _refused(path, "newer version")


@pytest.mark.parametrize("content", [b"hello", b"{}" * 500, b"SQLite format 2\0" * 20])
def test_other_file_is_refused(tmp_path: Path, content: bytes):
    path = tmp_path / "h.sqlite3"
    path.write_bytes(content)
    _refused(path, "is not a Loopwright history")


def test_database_of_another_program_is_refused(tmp_path: Path):
    path = tmp_path / "h.sqlite3"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE runs (id INTEGER)")
    _refused(path, "is not a Loopwright history")


@pytest.mark.parametrize("part", [60, 2_000, 8_192, 0.5, 0.99])
def test_truncated_file_is_refused(tmp_path: Path, part: float):
    path = _made(tmp_path / "h.sqlite3")
    content = path.read_bytes()
    path.write_bytes(content[: int(part if part > 1 else len(content) * part)])
    _refused(path, "is damaged")


def test_damaged_page_is_reported_and_the_rest_can_be_read(tmp_path: Path):
    path = _made(tmp_path / "h.sqlite3")
    content = bytearray(path.read_bytes())
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'events'").fetchone()
    content[(page - 1) * 4096 : page * 4096] = b"\xa5" * 4096
    path.write_bytes(content)
    with closing(open_store(path)) as store:
        assert store.totals().count == 2
        with pytest.raises(StoreError, match="is damaged"):
            list(store.events("a"))


def test_folder_instead_of_a_file_is_reported(tmp_path: Path):
    with pytest.raises(StoreError, match="cannot be opened"):
        open_store(tmp_path)


def test_missing_folder_is_reported(tmp_path: Path):
    with pytest.raises(StoreError, match=r'The folder ".*nowhere" does not exist'):
        open_store(tmp_path / "nowhere" / "h.sqlite3")
    assert list(tmp_path.iterdir()) == []


def test_default_path_is_created_with_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("LOOPWRIGHT_STORE", raising=False)
    monkeypatch.setattr("platformdirs.user_data_path", lambda name, **_: tmp_path / "data" / name)
    open_store().close()
    assert store_path() == tmp_path / "data" / "loopwright" / "history.sqlite3"
    assert store_path().exists()


def test_environment_names_another_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LOOPWRIGHT_STORE", str(tmp_path / "other.sqlite3"))
    open_store().close()
    assert (tmp_path / "other.sqlite3").exists()


def test_locked_file_is_reported(tmp_path: Path):
    path = _made(tmp_path / "h.sqlite3")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError, match="locked by another program"):
            SqliteStore(path, busy_s=0.05)
