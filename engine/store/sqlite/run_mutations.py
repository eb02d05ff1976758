"""What is changed about runs as wholes, each inside a transaction of the writing thread."""

from __future__ import annotations

import json
import secrets
import sqlite3
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Final

from engine.models.base import Reply
from engine.nodes.context import Answer
from engine.runner.journal import LeftAnswer, RunHead
from engine.runner.questions import TELLING, open_questions
from engine.store.base import RunStatus
from engine.store.codec import encode_reply
from engine.store.fold import OPEN, RunFold
from engine.store.sqlite.blobs import BlobWriter
from engine.store.sqlite.journal import RunWriter
from engine.store.sqlite.leases import Owner, live_owners
from engine.store.sqlite.queries import IMPORTING, number_of, read_events
from engine.store.sqlite.rows import FOLD_COLUMNS, plain, read_fold, search_text, to_bytes, to_text
from engine.store.sqlite.schema import SEQ_BITS
from engine.store.sqlite.value_encoding import SkeletonWriter, to_json
from engine.store.sqlite.writer_thread import Writer
from engine.store.words import answered_before, begun_before, held_elsewhere, no_such_run, still_under_way


def delete_run(connection: sqlite3.Connection, run: int) -> None:
    """Delete a run and the blobs that nobody else needs. Inside a transaction."""
    blobs = [blob for (blob,) in connection.execute("SELECT blob FROM uses WHERE run = ?", (run,))]
    connection.execute("DELETE FROM answers WHERE run = ?", (run,))
    connection.execute("DELETE FROM replies WHERE run = ?", (run,))
    connection.execute("DELETE FROM uses WHERE run = ?", (run,))
    connection.execute("DELETE FROM events WHERE id >= ? AND id < ?", (run << SEQ_BITS, run + 1 << SEQ_BITS))
    connection.execute("DELETE FROM runs WHERE id = ?", (run,))
    _delete_unneeded(connection, blobs)


def _delete_unneeded(connection: sqlite3.Connection, blobs: list[int]) -> None:
    """Delete those of the blobs that neither a run nor another blob needs, and then those that these were told by.

    A blob has a greater number than those that it is told by. So the greatest first: whoever may still need one has had
    its turn before.
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


def give_space_back(connection: sqlite3.Connection) -> None:
    """Give free pages back to the disk, and empty the log beside the file. Outside transactions."""
    # One step frees one page and gives a row without columns, after which `execute` would stop.
    connection.executescript("PRAGMA incremental_vacuum")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def rewrite(connection: sqlite3.Connection) -> None:
    """Write the file anew without any gaps. Outside transactions."""
    connection.execute("DELETE FROM paths WHERE id NOT IN (SELECT path FROM events)")
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def bytes_in_use(connection: sqlite3.Connection) -> int:
    """Bytes that the file needs, without those that are free."""
    pages, free, page_size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * page_size


_INSERT: Final = """
    INSERT INTO runs
        (run_id, source, search, parent, forked_at, document, options, owner, state, started, updated, cost_usd)
    VALUES (?, ?, ?, ?, ?, '', ?, ?, ?, ?, ?, ?)
"""
_REMAINS: Final = f"""
    SELECT id FROM runs
    WHERE run_id GLOB '{IMPORTING}*' AND (owner IS NULL OR owner NOT IN (SELECT value FROM json_each(:live)))
        OR state = 'running' AND owner NOT IN (SELECT value FROM json_each(:live)) AND NOT EXISTS (
            SELECT 1 FROM events WHERE events.id >= runs.id << {SEQ_BITS} AND events.id < runs.id + 1 << {SEQ_BITS}
        )
"""  # noqa: S608 - constants
_HELD: Final = f"SELECT id, owner, source, size, started, {FOLD_COLUMNS} FROM runs WHERE run_id = ?"  # noqa: S608 - constants


@dataclass(frozen=True, slots=True)
class Begun:
    """A run that this process may write from now on."""

    run: int
    run_id: str
    source: str
    fold: RunFold
    size: int

    def writer(self, writer: Writer, owner: int) -> RunWriter:
        """What writes it."""
        return RunWriter(writer, self.run, self.run_id, self.source, owner, self.fold, self.size)


def begin(connection: sqlite3.Connection, owner: Owner, head: RunHead, now: float) -> Begun:
    """Enter a run.

    Raises:
        StoreError: The id is taken.
    """
    if connection.execute("SELECT 1 FROM runs WHERE run_id = ?", (head.run_id,)).fetchone():
        raise begun_before(head.run_id)
    owner.beat(connection)
    fold = RunFold(started=now, updated=now)
    options = to_json(head.options)
    row = (
        head.run_id,
        to_bytes(head.source),
        search_text("", head.source),
        head.parent,
        head.forked_at,
        options,
        owner.token,
        fold.state.value,
        now,
        now,
        fold.cost_usd,
    )
    run = int(connection.execute(_INSERT, row).lastrowid or 0)
    blobs = BlobWriter(run)
    document = to_json(_written(connection, blobs, head.document))
    size = len(document) + len(options) + blobs.take_written()
    blobs.write_uses(connection)
    connection.execute("UPDATE runs SET document = ?, size = ? WHERE id = ?", (document, size, run))
    return Begun(run, head.run_id, head.source, fold, size)


def reopen(connection: sqlite3.Connection, owner: Owner, run_id: str) -> Begun:
    """Take over a run on which nobody is at work.

    Raises:
        StoreError: There is no such run, or a process is at work on it.
    """
    row = connection.execute(_HELD, (plain(run_id),)).fetchone()
    if row is None:
        raise no_such_run(run_id)
    run, holder, source, size, started, *fold_columns = row
    if holder is not None and holder in live_owners(connection):
        raise held_elsewhere(run_id)
    owner.beat(connection)
    connection.execute("UPDATE runs SET owner = ? WHERE id = ?", (owner.token, run))
    fold = read_fold(started, tuple(fold_columns))
    if fold.state is RunStatus.WAITING:
        told = read_events(connection, run_id, level=None, kinds=TELLING, after=-1, preview=1)
        fold.asking = set(open_questions(told))
    return Begun(run, run_id, to_text(source), fold, size)


def delete(connection: sqlite3.Connection, run_id: str) -> None:
    """Delete a run; one that is gone already is no error.

    Raises:
        StoreError: A process is at work on it.
    """
    row = connection.execute("SELECT id, owner, state FROM runs WHERE run_id = ?", (plain(run_id),)).fetchone()
    if row is None:
        return
    run, holder, state = row
    if state in OPEN and holder is not None and holder in live_owners(connection):
        raise still_under_way([run_id])
    delete_run(connection, run)


def delete_remains(connection: sqlite3.Connection) -> None:
    """Delete what no list shows and nobody goes on with: runs that never began, and those that came in but in part."""
    remains = connection.execute(_REMAINS, {"live": json.dumps(live_owners(connection))}).fetchall()
    for (run,) in remains:
        delete_run(connection, run)


def import_is_whole(connection: sqlite3.Connection, imported: str, run_id: str) -> str:
    """Let everybody see a run that came in: under its id, or under another where that is taken.

    Args:
        connection: The writer's.
        imported: What it was called meanwhile.
        run_id: Its id.

    Returns:
        The id that it has.
    """
    if connection.execute("SELECT 1 FROM runs WHERE run_id = ?", (run_id,)).fetchone():
        run_id = secrets.token_hex(6)
    connection.execute("UPDATE runs SET run_id = ? WHERE run_id = ?", (run_id, imported))
    return run_id


def pin(connection: sqlite3.Connection, run_id: str, *, pinned: bool) -> None:
    """Keep a run from retention, or no longer.

    Raises:
        StoreError: There is no such run.
    """
    connection.execute("UPDATE runs SET pinned = ? WHERE id = ?", (pinned, number_of(connection, run_id)))


def keep_reply(connection: sqlite3.Connection, key: str, run_id: str, reply: Reply) -> None:
    """Keep a reply for other runs, if its run is kept."""
    row = connection.execute("SELECT id FROM runs WHERE run_id = ?", (plain(run_id),)).fetchone()
    if row is None:
        return
    blobs = BlobWriter(row[0])
    values = SkeletonWriter(blobs)
    values.begin(connection, "")
    body = to_json(encode_reply(reply, values.put, ()))
    blobs.write_uses(connection)
    connection.execute("INSERT OR IGNORE INTO replies (key, run, body) VALUES (?, ?, ?)", (plain(key), row[0], body))


def _written(connection: sqlite3.Connection, blobs: BlobWriter, document: str) -> object:
    values = SkeletonWriter(blobs)
    values.begin(connection, "")
    return values.put(document, ("document",))


def leave(connection: sqlite3.Connection, run_id: str, left: LeftAnswer) -> None:
    """Leave an answer. Inside a transaction.

    Raises:
        StoreError: There is no such run, or an answer to that question lies there already.
    """
    body = to_json([left.answer.choice, left.answer.value, left.answer.comment])
    done = connection.execute(
        "INSERT OR IGNORE INTO answers (run, question, path, body) VALUES (?, ?, ?, ?)",
        (number_of(connection, run_id), left.question, left.path, body),
    )
    if done.rowcount == 0:
        raise answered_before(left.path)


def take_back(connection: sqlite3.Connection, run_id: str, question: int) -> None:
    """Take away what was left for a question. Inside a transaction."""
    run = number_of(connection, run_id)
    connection.execute("DELETE FROM answers WHERE run = ? AND question = ?", (run, question))


def read(connection: sqlite3.Connection, run_id: str) -> list[LeftAnswer]:
    """What lies there for a run."""
    rows = connection.execute(
        "SELECT path, question, body FROM answers WHERE run = (SELECT id FROM runs WHERE run_id = ?)", (run_id,)
    )
    return [LeftAnswer(path, question, Answer(*json.loads(body))) for path, question, body in rows]
