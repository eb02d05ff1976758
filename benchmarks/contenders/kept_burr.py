"""Burr: three actions with fresh texts, its state with all results stored in SQLite after each."""

# pyright: basic
from __future__ import annotations

import tempfile
from pathlib import Path

from burr.core import ApplicationBuilder, State, action, default, expr
from burr.core.persistence import SQLitePersister

from benchmarks import work
from benchmarks.timing import Stopwatch

CHARACTERS = 1_000


def outcome(steps: int) -> str:
    """The last text."""
    return work.fresh(steps, CHARACTERS)


def _step(state: State) -> State:
    number = state["number"] + 1
    return state.update(text=work.fresh(number, CHARACTERS), number=number)


@action(reads=["number"], writes=["text", "number"])
def draft(state: State) -> State:
    return _step(state)


@action(reads=["number"], writes=["text", "number"])
def critique(state: State) -> State:
    return _step(state)


@action(reads=["number", "iterations", "count"], writes=["text", "number", "iterations", "count"])
def merge(state: State) -> State:
    state = _step(state)
    return state.update(iterations=[*state["iterations"], state["text"]], count=state["count"] + 1)


@action(reads=["text"], writes=[])
def finish(state: State) -> State:
    return state


def run(iterations: int, stopwatch: Stopwatch) -> str:
    """Do the work."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "burr.sqlite3"
        persister = SQLitePersister(db_path=str(path))
        persister.connection.execute("PRAGMA synchronous = FULL")
        persister.initialize()
        application = (
            ApplicationBuilder()
            .with_actions(draft=draft, critique=critique, merge=merge, finish=finish)
            .with_transitions(
                ("draft", "critique"),
                ("critique", "merge"),
                ("merge", "draft", expr(f"count < {iterations}")),
                ("merge", "finish", default),
            )
            .with_state(text="", number=0, count=0, iterations=[])
            .with_entrypoint("draft")
            .with_identifiers(app_id="run")
            .with_state_persister(persister)
            .build()
        )
        with stopwatch.running():
            *_, state = application.run(halt_after=["finish"])
        persister.connection.close()
        stopwatch.disk_bytes = work.disk_bytes(path)
    if len(state["iterations"]) != iterations:
        raise RuntimeError(f"Burr kept {len(state['iterations'])} iterations of {iterations}.")
    return state["text"]
