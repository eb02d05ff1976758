"""Space on disk grows with new content only, and is returned."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from engine.events import AnyEvent
from engine.store.sqlite import SqliteStore
from engine.store.store_protocol import Store
from tests.engine.store.run_samples import call, complete_run, head, iteration, node, started, store_run


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "h.sqlite3"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(path)) as store:
        yield store


def _new_text(seed: int, characters: int = 1_000) -> str:
    """A text that compresses badly."""
    return random.Random(seed).randbytes(characters * 3 // 4 + 1).hex()[:characters]


def _appending(iterations: int) -> list[AnyEvent]:
    """A run in `append` mode, its model's requests kept, that hands its growing history on to a node as well."""
    log: list[AnyEvent] = [started("a")]
    body, records = "The task.", []
    for index in range(iterations):
        reply = _new_text(index)
        made = call(f"Improve what follows, and answer with the text only.\n\n{body}\n\nNothing else, please.", reply)
        log.append(node("a", len(log), f"loop[{index}].draft", reply, calls=(made,)))
        nodes = {"draft": reply, "check": {"selected_branch": "continue", "value": reply, "reason": None}}
        log.append(iteration("a", len(log), index, input=body, result=reply, feedback=reply, nodes=nodes))
        records = [*records, {"index": index, "input": body, "result": reply, "feedback": reply, "score": None}]
        log.append(node("a", len(log), f"loop[{index}].collect", records))
        body += "\n---\n" + reply
    return log


def _blobs(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT count(*) FROM blobs").fetchone()[0]


def test_growing_texts_and_lists_take_only_the_space_of_new_parts(store: SqliteStore):
    log = _appending(120)
    empty = store._bytes_in_use()
    store_run(store, head("a"), log)
    taken = store._bytes_in_use() - empty
    assert taken <= 2 * 120 * 1_000, f"{taken} bytes for 120,000 characters"
    assert list(store.events("a")) == log


def test_chain_of_thousands_of_deltas_is_read_from_its_end(store: SqliteStore):
    text, log = "", []
    for index in range(3_000):
        text += f"remark number {index}, a little more than the least that is worth a reference to a text before it\n"
        log.append(node("a", index, f"loop[{index}].draft", text))
    store_run(store, head("a"), log)
    (last,) = store.events("a", after=2_998)
    assert last == log[-1]
    (cut,) = store.events("a", after=2_998, preview=10)
    assert cut == node("a", 2_999, "loop[2999].draft", "remark num…")


def test_same_run_again_stores_no_texts(store: SqliteStore, path: Path):
    store_run(store, head("a"), [started("a"), node("a", 1, "x", _new_text(1, 50_000))])
    blobs, taken = _blobs(path), store._bytes_in_use()
    store_run(store, head("b"), [started("b"), node("b", 1, "y", [_new_text(1, 50_000)])])
    assert _blobs(path) == blobs
    assert store._bytes_in_use() - taken < 8_192
    assert store.find("b").size < 2_000 < 25_000 < store.find("a").size


def test_delta_base_of_a_deleted_run_stays_until_its_last_use(store: SqliteStore, path: Path):
    first = _new_text(1, 5_000)
    second, third = first + _new_text(2, 500), first + _new_text(2, 500) + _new_text(3, 500)
    store_run(store, head("a"), [started("a"), node("a", 1, "x", first)])
    store_run(store, head("b"), [node("b", 0, "x", first), node("b", 1, "x", second)])
    store_run(store, head("c"), [node("c", 0, "x", second), node("c", 1, "x", third)])
    store.delete(["a"])
    store.delete(["b"])
    assert list(store.events("c")) == [node("c", 0, "x", second), node("c", 1, "x", third)]
    store.delete(["c"])
    assert _blobs(path) == 0
    with closing(sqlite3.connect(path)) as connection:
        for table in ("runs", "events", "uses", "links", "replies"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def test_deletion_returns_space_to_the_disk(store: SqliteStore):
    store_run(store, head("a"), complete_run("a"))
    store.delete([])
    before = store.size()
    store_run(store, head("b"), [node("b", 0, "x", _new_text(1, 2_000_000))])
    assert store.size() > before + 900_000
    store.delete(["b"])
    assert store.size() <= before + 8_192


def test_vacuum_returns_the_bytes_gained(store: SqliteStore):
    def fill(stored: Store) -> None:
        for number in range(6):
            store_run(stored, head(f"r{number}"), [node(f"r{number}", 0, "x", _new_text(number, 60_000))])

    fill(store)
    with closing(sqlite3.connect(store._path)) as connection, connection:
        connection.execute("DELETE FROM events")  # free pages that nobody gave back
    before = store.size()
    won = store.vacuum()
    assert won == before - store.size() > 0
    assert store.vacuum() == 0


@pytest.mark.slow
def test_output_of_50_megabytes_is_stored(store: SqliteStore):
    text = ("é\ud83d\0" + _new_text(1, 1_000_000)) * 50
    value: Any = {"text": text, "again": [text]}
    store_run(store, head("a"), [node("a", 0, "x", value)])
    assert list(store.events("a")) == [node("a", 0, "x", value)]
    (cut,) = store.events("a", preview=30)
    assert len(str(cut.outputs["output"])) == 31  # type: ignore[union-attr]
