"""Changes to whole runs: create, resume, delete, import, pin, and pending answers.

Unless stated otherwise, the functions are called inside a transaction of the writer thread.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import time
from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import Final

from engine.models.protocol import Reply
from engine.nodes.context import Answer
from engine.run_state.reducer import reduce_events
from engine.run_state.state import QUESTION_EVENTS, Detail, RunState
from engine.runner.run_storage import PostedAnswer, RunHead
from engine.store.codec import encode_reply
from engine.store.sqlite.blobs import BlobWriter
from engine.store.sqlite.journal import OpenedRun
from engine.store.sqlite.queries import (
    IMPORTING,
    STATE_COLUMNS,
    column_of,
    plain,
    read_events,
    read_state,
    search_text,
    to_bytes,
)
from engine.store.sqlite.schema import SEQ_BITS
from engine.store.sqlite.value_encoding import ValueEncoder, to_json
from engine.store.sqlite.writer_thread import Owner, live_owners
from engine.store.store_protocol import (
    OPEN,
    RunStatus,
    already_answered,
    no_such_run,
    run_exists,
    run_owned_elsewhere,
    runs_still_running,
)


def delete_run(connection: sqlite3.Connection, run: int) -> None:
    """Delete a run and the blobs that only it used."""
    blobs = [blob for (blob,) in connection.execute("SELECT blob FROM uses WHERE run = ?", (run,))]
    connection.execute("DELETE FROM answers WHERE run = ?", (run,))
    connection.execute("DELETE FROM replies WHERE run = ?", (run,))
    connection.execute("DELETE FROM uses WHERE run = ?", (run,))
    connection.execute("DELETE FROM events WHERE id >= ? AND id < ?", (run << SEQ_BITS, run + 1 << SEQ_BITS))
    connection.execute("DELETE FROM runs WHERE id = ?", (run,))
    _delete_unused(connection, blobs)


def _delete_unused(connection: sqlite3.Connection, blobs: list[int]) -> None:
    """Delete the blobs that no run and no other blob needs, and then their bases.

    A blob has a greater id than its bases. Going from the greatest id down, everything that may need a blob was checked
    before it.
    """
    waiting = [-blob for blob in blobs]
    heapify(waiting)
    previous = 0
    while waiting:
        blob = -heappop(waiting)
        if blob == previous:
            continue
        previous = blob
        is_needed = connection.execute(
            "SELECT EXISTS (SELECT 1 FROM uses WHERE blob = :blob) OR EXISTS (SELECT 1 FROM links WHERE base = :blob)",
            {"blob": blob},
        ).fetchone()[0]
        if is_needed:
            continue
        bases = connection.execute("SELECT base FROM links WHERE blob = ?", (blob,)).fetchall()
        connection.execute("DELETE FROM links WHERE blob = ?", (blob,))
        connection.execute("DELETE FROM blobs WHERE id = ?", (blob,))
        for (base,) in bases:
            heappush(waiting, -base)


def free_pages(connection: sqlite3.Connection) -> None:
    """Return free pages to the disk and truncate the WAL. Call outside transactions."""
    # Each step frees one page and returns an empty row, at which `execute` would stop.
    connection.executescript("PRAGMA incremental_vacuum")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def vacuum_file(connection: sqlite3.Connection) -> None:
    """Rewrite the file without gaps. Call outside transactions."""
    connection.execute("DELETE FROM paths WHERE id NOT IN (SELECT path FROM events)")
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def bytes_in_use(connection: sqlite3.Connection) -> int:
    """Return the used bytes of the file, without free pages."""
    pages, free, page_size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * page_size


_PREVIEW: Final = 40
"""Characters of a value that is not needed; types of nodes are shorter."""
_INSERT: Final = """
    INSERT INTO runs
        (run_id, source, search, parent, forked_at, document, options, owner, state, started, updated, cost_usd)
    VALUES (?, ?, ?, ?, ?, '', ?, ?, ?, ?, ?, ?)
"""
_LEFTOVERS: Final = f"""
    SELECT id FROM runs
    WHERE run_id GLOB '{IMPORTING}*' AND (owner IS NULL OR owner NOT IN (SELECT value FROM json_each(:live)))
        OR state = 'running' AND owner NOT IN (SELECT value FROM json_each(:live)) AND NOT EXISTS (
            SELECT 1 FROM events WHERE events.id >= runs.id << {SEQ_BITS} AND events.id < runs.id + 1 << {SEQ_BITS}
        )
"""  # noqa: S608 - constants
_OWNED: Final = f"SELECT id, owner, size, started, {STATE_COLUMNS} FROM runs WHERE run_id = ?"  # noqa: S608 - constants


def begin_run(connection: sqlite3.Connection, owner: Owner, head: RunHead) -> OpenedRun:
    """Create a run.

    Raises:
        StoreError: The id is in use.
    """
    if connection.execute("SELECT 1 FROM runs WHERE run_id = ?", (head.run_id,)).fetchone():
        raise run_exists(head.run_id)
    owner.beat(connection)
    now = time.time()
    state = RunState(head.run_id, Detail.SUMMARY, started=now, updated=now)
    options = to_json(head.options)
    row = (
        head.run_id,
        to_bytes(head.source),
        search_text("", head.source),
        head.parent,
        head.forked_at,
        options,
        owner.token,
        state.status.value,
        now,
        now,
        state.cost_usd,
    )
    run = int(connection.execute(_INSERT, row).lastrowid or 0)
    blobs = BlobWriter(run)
    values = ValueEncoder(blobs)
    values.begin(connection, "")
    document = to_json(values.put(head.document, ("document",)))
    size = len(document) + len(options) + blobs.take_written()
    blobs.write_uses(connection)
    connection.execute("UPDATE runs SET document = ?, size = ? WHERE id = ?", (document, size, run))
    return OpenedRun(run, head.run_id, state, size)


def reopen_run(connection: sqlite3.Connection, owner: Owner, run_id: str) -> OpenedRun:
    """Take ownership of a stored run.

    Raises:
        StoreError: There is no such run, or a live process owns it.
    """
    row = connection.execute(_OWNED, (plain(run_id),)).fetchone()
    if row is None:
        raise no_such_run(run_id)
    run, holder, size, started, *columns = row
    if holder is not None and holder in live_owners(connection):
        raise run_owned_elsewhere(run_id)
    owner.beat(connection)
    connection.execute("UPDATE runs SET owner = ? WHERE id = ?", (owner.token, run))
    state = read_state(run_id, started, tuple(columns))
    if columns[1] == RunStatus.WAITING:
        events = read_events(connection, run_id, level=None, kinds=QUESTION_EVENTS, after=-1, preview=_PREVIEW)
        state.questions = reduce_events(events, detail=Detail.SUMMARY).questions
    return OpenedRun(run, run_id, state, size)


def delete_if_stopped(connection: sqlite3.Connection, run_id: str) -> None:
    """Delete a run. An unknown run is no error.

    Raises:
        StoreError: A live process is executing it.
    """
    row = connection.execute("SELECT id, owner, state FROM runs WHERE run_id = ?", (plain(run_id),)).fetchone()
    if row is None:
        return
    run, holder, state = row
    if state in OPEN and holder is not None and holder in live_owners(connection):
        raise runs_still_running([run_id])
    delete_run(connection, run)


def delete_leftovers(connection: sqlite3.Connection) -> None:
    """Delete runs without a first event and unfinished imports whose process is gone."""
    remains = connection.execute(_LEFTOVERS, {"live": json.dumps(live_owners(connection))}).fetchall()
    for (run,) in remains:
        delete_run(connection, run)


def publish_import(connection: sqlite3.Connection, imported: str, run_id: str) -> str:
    """Make an imported run visible.

    Args:
        connection: Connection of the writer thread.
        imported: Temporary id of the run.
        run_id: Its id in the imported file.

    Returns:
        The final id: `run_id`, or a new one if that is in use.
    """
    if connection.execute("SELECT 1 FROM runs WHERE run_id = ?", (run_id,)).fetchone():
        run_id = secrets.token_hex(6)
    connection.execute("UPDATE runs SET run_id = ? WHERE run_id = ?", (run_id, imported))
    return run_id


def pin_run(connection: sqlite3.Connection, run_id: str, *, pinned: bool) -> None:
    """Protect a run from retention, or stop protecting it.

    Raises:
        StoreError: There is no such run.
    """
    connection.execute("UPDATE runs SET pinned = ? WHERE id = ?", (pinned, column_of(connection, run_id, "id")))


def set_source(connection: sqlite3.Connection, run_ids: Iterable[str], source: str) -> None:
    """Set the workflow file of runs that have none."""
    name = search_text("", source).removeprefix("\n")
    connection.executemany(
        "UPDATE runs SET source = ?, search = search || ? WHERE run_id = ? AND source = x''",
        [(to_bytes(source), name, plain(run_id)) for run_id in run_ids],
    )


def cache_reply(connection: sqlite3.Connection, key: str, run_id: str, reply: Reply) -> None:
    """Cache a reply for other runs, if its run is stored."""
    row = connection.execute("SELECT id FROM runs WHERE run_id = ?", (plain(run_id),)).fetchone()
    if row is None:
        return
    blobs = BlobWriter(row[0])
    values = ValueEncoder(blobs)
    values.begin(connection, "")
    body = to_json(encode_reply(reply, values.put, ()))
    blobs.write_uses(connection)
    connection.execute("INSERT OR IGNORE INTO replies (key, run, body) VALUES (?, ?, ?)", (plain(key), row[0], body))


def post_answer(connection: sqlite3.Connection, run_id: str, posted: PostedAnswer) -> None:
    """Post an answer for the process that owns the run.

    Raises:
        StoreError: There is no such run, or the question already has a pending answer.
    """
    body = to_json([posted.answer.choice, posted.answer.value, posted.answer.comment])
    cursor = connection.execute(
        "INSERT OR IGNORE INTO answers (run, question, path, body) VALUES (?, ?, ?, ?)",
        (column_of(connection, run_id, "id"), posted.question, posted.path, body),
    )
    if cursor.rowcount == 0:
        raise already_answered(posted.path)


def remove_answer(connection: sqlite3.Connection, run_id: str, question: int) -> None:
    """Remove the pending answer to a question."""
    run = column_of(connection, run_id, "id")
    connection.execute("DELETE FROM answers WHERE run = ? AND question = ?", (run, question))


def read_answers(connection: sqlite3.Connection, run_id: str) -> list[PostedAnswer]:
    """Return the pending answers for a run."""
    rows = connection.execute(
        "SELECT path, question, body FROM answers WHERE run = (SELECT id FROM runs WHERE run_id = ?)", (run_id,)
    )
    return [PostedAnswer(path, question, Answer(*json.loads(body))) for path, question, body in rows]
