"""Read queries (lists of runs, events of a run), and the columns of a run's row to and from Python.

Texts with arbitrary content are stored as bytes, because SQLite refuses lone surrogates in text.
"""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from typing import Any, Final

from engine.events import AnyEvent, RunStarted
from engine.models.protocol import Usage
from engine.plan.partial_run import Part, part_of
from engine.run_state.state import Detail, RunState, RunStatus
from engine.store.codec import KIND_CODES, KINDS, decode_event, field_index
from engine.store.sqlite.blobs import BlobReader
from engine.store.sqlite.schema import SEQ_BITS
from engine.store.sqlite.value_encoding import ValueDecoder
from engine.store.sqlite.writer_thread import live_owners
from engine.store.store_protocol import RunFilter, RunSummary, Totals, no_such_run

STATE_COLUMNS: Final = "workflow, state, updated, duration_s, iterations, exit_reason, tokens, cost_usd, models, error"
"""Columns updated with each event; `started` is written once."""


def state_row(state: RunState) -> tuple[Any, ...]:
    """Return the values of `STATE_COLUMNS`."""
    return (
        to_bytes(state.workflow),
        state.status.value,
        state.updated,
        state.duration_s,
        state.completed_iterations,
        to_bytes(state.exit_reason),
        state.usage.total_tokens,
        state.cost_usd,
        _write_models(state.models),
        to_bytes(state.error),
    )


def read_state(run_id: str, started: float, row: tuple[Any, ...]) -> RunState:
    """Restore a state (`Detail.SUMMARY`) from its columns, without its questions. Of tokens only the sum is stored."""
    workflow, status, updated, duration_s, iterations, exit_reason, tokens, cost_usd, models, error = row
    return RunState(
        run_id,
        Detail.SUMMARY,
        workflow=to_text(workflow),
        phase=RunStatus.RUNNING if status == RunStatus.WAITING else RunStatus(status),
        started=started,
        updated=updated,
        duration_s=duration_s,
        completed_iterations=iterations,
        exit_reason=to_text(exit_reason),
        usage=Usage(tokens),
        cost_usd=cost_usd,
        models=_read_models(models),
        error=to_text(error),
    )


def _read_summary(connection: sqlite3.Connection, row: tuple[Any, ...]) -> RunSummary:
    """Build a summary from `_PART` and `_SUMMARY_COLUMNS`; the status is `interrupted` if the process is gone."""
    part, *columns = row
    values = {
        name: _READERS[name](value) if name in _READERS else value
        for name, value in zip(_SUMMARY_NAMES, columns, strict=True)
    }
    return RunSummary(part=_read_part(connection, part), **values)


def _read_part(connection: sqlite3.Connection, stored: str | None) -> Part | None:
    """Return the part from its JSON; None for the whole workflow, and for a run of a version without parts."""
    extent, node = json.loads(stored or "[null,null]")
    return part_of(extent, ValueDecoder(BlobReader(connection), None).get(node)) if extent else None


@lru_cache(maxsize=64)  # constant within a run
def _write_models(models: tuple[str, ...]) -> bytes:
    return to_bytes(json.dumps(models, ensure_ascii=False))


@lru_cache(maxsize=64)  # few distinct values
def _read_models(stored: bytes) -> tuple[str, ...]:
    return tuple(json.loads(to_text(stored)))


def to_bytes(text: str) -> bytes:
    """Encode a text that may contain lone surrogates."""
    return text.encode("utf-8", "surrogatepass")


def to_text(stored: bytes) -> str:
    """Decode a text that may contain lone surrogates."""
    return stored.decode("utf-8", "surrogatepass")


def plain(text: str) -> str:
    """Replace lone surrogates, which SQLite refuses in text, by question marks."""
    return text.encode("utf-8", "replace").decode()


def search_text(workflow: str, source: str) -> str:
    """Return the case-folded text that filters search: name and source."""
    return plain(f"{workflow}\n{source}".casefold())


_SUMMARY_NAMES: Final = tuple(field.name for field in dataclasses.fields(RunSummary) if field.name != "part")
_SUMMARY_COLUMNS: Final = ", ".join(_SUMMARY_NAMES)
_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(("workflow", "source", "exit_reason", "error"), to_text),
    "status": RunStatus,
    "models": _read_models,
    "pinned": bool,
}
"""Functions that read the columns of a summary; the other columns are stored unchanged."""
_PAGE: Final = 256
IMPORTING: Final = "importing:"
"""Prefix of the ids of runs whose import has not finished."""
_STRATEGIES: Final = field_index(RunStarted, "strategies")
"""Index of the turn strategies in the body of a run's first event."""
_PART: Final = f"""
    (SELECT json_extract(body, '$[{field_index(RunStarted, "extent")}]', '$[{field_index(RunStarted, "target")}]')
    FROM events WHERE events.id = number << {SEQ_BITS} AND kind = {KIND_CODES[RunStarted]})
"""  # noqa: S608 - constants
_SEEN: Final = """
    SELECT *, id AS number,
        CASE WHEN state IN ('running', 'paused')
                AND (owner IS NULL OR owner NOT IN (SELECT value FROM json_each(:live)))
            THEN 'interrupted' ELSE state END AS status
    FROM runs
"""
# Lists leave out runs whose process died before their first event was stored, and unfinished imports.
_WHERE: Final = f"""
    WHERE (:part = '' OR instr(search, :part) > 0)
        AND run_id NOT GLOB '{IMPORTING}*'
        AND (status <> 'interrupted' OR EXISTS (SELECT 1 FROM events WHERE events.id = number << {SEQ_BITS}))
        AND (:statuses IS NULL OR status IN (SELECT value FROM json_each(:statuses)))
        AND (:since IS NULL OR started >= :since)
        AND (:until IS NULL OR started < :until)
        AND (:parent = '' OR parent = :parent)
        AND (NOT :pinned OR pinned)
        AND (:source = x'' OR source = :source)
        AND (:strategy = '' OR EXISTS (
            SELECT 1 FROM events, json_each(json_extract(events.body, '$[{_STRATEGIES}]'))
            WHERE events.id = number << {SEQ_BITS} AND value = :strategy
        ))
"""  # noqa: S608 - constants
_RUNS: Final = f"""
    SELECT {_PART}, {_SUMMARY_COLUMNS} FROM ({_SEEN}) {_WHERE}
    ORDER BY started DESC, id DESC LIMIT :limit OFFSET :offset
"""  # noqa: S608 - constants
_TOTALS: Final = f"""
    SELECT count(*), coalesce(sum(tokens), 0), coalesce(sum(cost_usd), 0.0), count(*) - count(cost_usd)
    FROM ({_SEEN}) {_WHERE}
"""  # noqa: S608 - constants
_ONE: Final = f"SELECT {_PART}, {_SUMMARY_COLUMNS} FROM ({_SEEN}) WHERE run_id = :run_id"  # noqa: S608 - constants
# The body is the last column, so it is not read for events that are filtered out.
_EVENTS: Final = """
    SELECT events.id, events.kind, events.time, paths.path, events.body
    FROM events CROSS JOIN paths ON paths.id = events.path
    WHERE events.id >= :first AND events.id < :end
        AND (:kinds IS NULL OR events.kind IN (SELECT value FROM json_each(:kinds)))
        AND (:level IS NULL OR events.path IN (
            SELECT id FROM paths
            WHERE CASE :level
                WHEN '' THEN instr(path, '.') = 0
                ELSE path > :level || '.' AND path < :level || '/'
                    AND instr(substr(path, length(:level) + 2), '.') = 0
            END
        ))
    ORDER BY events.id LIMIT :page
"""


def find_runs(connection: sqlite3.Connection, which: RunFilter, limit: int, offset: int) -> list[RunSummary]:
    """Return runs, newest first."""
    rows = connection.execute(_RUNS, {**_parameters(connection, which), "limit": limit, "offset": offset})
    return [_read_summary(connection, row) for row in rows]


def sum_runs(connection: sqlite3.Connection, which: RunFilter) -> Totals:
    """Return the totals of runs."""
    count, tokens, cost_usd, unknown = connection.execute(_TOTALS, _parameters(connection, which)).fetchone()
    return Totals(count, tokens, cost_usd, unknown > 0)


def summary_of(connection: sqlite3.Connection, run_id: str) -> RunSummary:
    """Return the summary of a run.

    Raises:
        StoreError: There is no such run.
    """
    parameters = {"run_id": plain(run_id), "live": json.dumps(live_owners(connection))}
    row = connection.execute(_ONE, parameters).fetchone()
    if row is None:
        raise no_such_run(run_id)
    return _read_summary(connection, row)


def ids_with_prefix(connection: sqlite3.Connection, prefix: str, most: int) -> list[str]:
    """Return the run ids with a prefix, newest first."""
    rows = connection.execute(
        "SELECT run_id FROM runs WHERE substr(run_id, 1, length(:prefix)) = :prefix AND run_id NOT GLOB :importing "
        "ORDER BY run_id <> :prefix, started DESC, id DESC LIMIT :most",
        {"prefix": plain(prefix), "importing": f"{IMPORTING}*", "most": most},
    )
    return [run_id for (run_id,) in rows]


def column_of(connection: sqlite3.Connection, run_id: str, column: str) -> Any:
    """Return a column of a run; `id` is its row.

    Raises:
        StoreError: There is no such run.
    """
    query = f"SELECT {column} FROM runs WHERE run_id = ?"  # noqa: S608 - constants
    row = connection.execute(query, (plain(run_id),)).fetchone()
    if row is None:
        raise no_such_run(run_id)
    return row[0]


def reply_of(connection: sqlite3.Connection, key: str) -> str | None:
    """Return the stored body of a cached reply, or None."""
    row = connection.execute("SELECT body FROM replies WHERE key = ?", (plain(key),)).fetchone()
    return None if row is None else row[0]


def read_events(
    connection: sqlite3.Connection,
    run_id: str,
    *,
    level: str | None,
    kinds: Collection[type[AnyEvent]] | None,
    after: int,
    preview: int | None,
) -> Iterator[AnyEvent]:
    """Yield the events of a run, page by page. No transaction is open between two events."""
    run: int = column_of(connection, run_id, "id")
    values = ValueDecoder(BlobReader(connection), preview)
    parameters = {
        "first": (run << SEQ_BITS) + after + 1,
        "end": run + 1 << SEQ_BITS,
        "kinds": None if kinds is None else json.dumps([KIND_CODES[kind] for kind in kinds]),
        "level": None if level is None else plain(level),
        "page": _PAGE,
    }
    while rows := connection.execute(_EVENTS, parameters).fetchall():
        for row in rows:
            yield _event(run_id, row, values)
        parameters["first"] = rows[-1][0] + 1


def _event(run_id: str, row: tuple[int, int, float, str, str], values: ValueDecoder) -> AnyEvent:
    key, kind, time, path, body = row
    return decode_event(KINDS[kind], run_id, key & (1 << SEQ_BITS) - 1, time, path, json.loads(body), values.get)


def _parameters(connection: sqlite3.Connection, which: RunFilter) -> dict[str, Any]:
    return {
        "live": json.dumps(live_owners(connection)),
        "part": plain(which.workflow.casefold()),
        "statuses": json.dumps([status.value for status in which.statuses]) if which.statuses else None,
        "since": which.since,
        "until": which.until,
        "parent": plain(which.parent),
        "pinned": which.pinned,
        "strategy": plain(which.strategy),
        "source": to_bytes(which.source),
    }
