"""Deleting runs: what only they take goes with them, what others share stays."""

from __future__ import annotations

import sqlite3
from heapq import heapify, heappop, heappush

from engine.store.sqlite.schema import SEQ_BITS


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
