"""Events as they are written first: whole, until there is time to take their texts apart.

Before a model is called, a run waits until what happened so far is safe. Few and small events are therefore first put
into the table `staged` with all their values in place, which takes less work and fewer pages than blobs do; while the
model is at work, the writing thread moves them to `events`. What is staged of a run comes after all of its other
events. It is written in the form that `skeletons` reads, and needs nothing that is not in its row.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, Final, cast

from engine.events import AnyEvent
from engine.store.codec import KIND_CODES, encode_fields
from engine.store.sqlite.schema import SEQ_BITS
from engine.store.sqlite.skeletons import is_plain, survives_json, to_json

ROOM: Final = 65_536
"""Characters of events of one run that may be staged from one pause to the next. More would be written twice for
nothing: values that grow from iteration to iteration, and runs that wait for no model."""
_MOST_EVENTS: Final = 16
"""How many events may be staged at once. A run that tells more has not waited for a model in between."""
_EVENT: Final = 64
"""Characters that an event takes beside its values, about."""
_DEEPEST: Final = 32

StagedRow = tuple[int, int, str, float, str]
"""A row of `staged`: its number, the event's kind, path and time, and its own fields as JSON."""


class _NotStagedError(Exception):
    """The events are too long, or hold what JSON alone cannot hold."""


def staged_rows(run: int, events: Sequence[AnyEvent], room: int) -> list[StagedRow] | None:
    """The rows of events; None where they are not to be staged.

    Args:
        run: The run's number in the file.
        events: Its next events.
        room: Characters that they may have.
    """
    if room <= 0 or len(events) > _MOST_EVENTS:
        return None
    values = _Whole(room)
    rows: list[StagedRow] = []
    try:
        for event in events:
            body = to_json(encode_fields(event, values.put))
            rows.append((run << SEQ_BITS | event.seq, KIND_CODES[type(event)], event.path, event.time, body))
    except _NotStagedError:
        return None
    return rows


def size_of(rows: Sequence[StagedRow]) -> int:
    """The characters that rows take, to be compared with `ROOM`."""
    return sum(len(body) + _EVENT for *_, body in rows)


def stage(connection: sqlite3.Connection, rows: Sequence[StagedRow]) -> None:
    """Write rows. Inside a transaction."""
    connection.executemany("INSERT INTO staged (id, kind, path, time, body) VALUES (?, ?, ?, ?, ?)", rows)


def clear(connection: sqlite3.Connection, run: int) -> None:
    """Take away what is staged of a run. Inside a transaction."""
    connection.execute("DELETE FROM staged WHERE id >= ? AND id < ?", (run << SEQ_BITS, run + 1 << SEQ_BITS))


class _Whole:
    """Lets values stay in their places, as long as there is room and JSON gives them back as they are."""

    def __init__(self, room: int) -> None:
        self._room = room

    def put(self, value: Any, _place: Any) -> Any:
        """The value itself.

        Raises:
            _NotStagedError: It cannot stay.
        """
        self._check(value, _DEEPEST)
        return value

    def _check(self, value: Any, levels: int) -> None:
        if isinstance(value, str):
            self._take(len(value), is_fit=survives_json(value))
        elif isinstance(value, dict):
            self._take(_EVENT, is_fit=levels > 0 and is_plain(cast(dict[str, Any], value)))
            for key, item in cast(dict[str, Any], value).items():
                self._take(len(key))
                self._check(item, levels - 1)
        elif isinstance(value, list):
            self._take(_EVENT, is_fit=levels > 0)
            for item in cast(list[Any], value):
                self._check(item, levels - 1)

    def _take(self, characters: int, *, is_fit: bool = True) -> None:
        self._room -= characters
        if self._room < 0 or not is_fit:
            raise _NotStagedError
