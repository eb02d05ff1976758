"""The answers that other processes leave for the one that is at work on a run.

Each lies there until whoever left it takes it away.
"""

from __future__ import annotations

import json
import sqlite3

from engine.nodes.context import Answer
from engine.runner.journal import LeftAnswer
from engine.store.sqlite.queries import number_of
from engine.store.sqlite.skeletons import to_json
from engine.store.words import answered_before


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
