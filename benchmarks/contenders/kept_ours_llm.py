"""This engine with three `llm` nodes with fresh texts, every event stored, `iterations` connected to an output."""

from __future__ import annotations

from benchmarks import work
from benchmarks.kept import keep_run, new_store
from benchmarks.timing import Stopwatch

CHARACTERS = 1_000


def outcome(steps: int) -> str:
    """The last text."""
    return work.fresh(steps, CHARACTERS)


def run(iterations: int, stopwatch: Stopwatch) -> str:
    """Do the work."""
    with new_store() as (store, path):
        stored = keep_run(store, path, iterations, CHARACTERS, "wired")
    stopwatch.span, stopwatch.disk_bytes = stored.span, stored.span.disk_bytes
    return stored.text
