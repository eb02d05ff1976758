"""This engine with three `llm` nodes and a callback that reads every event."""

from __future__ import annotations

from collections import Counter

from benchmarks.contenders.ours import run_loop
from benchmarks.timing import Stopwatch
from engine.events import AnyEvent


def run(iterations: int, stopwatch: Stopwatch) -> str:
    """Do the work."""
    seen: Counter[str] = Counter()

    def count(event: AnyEvent) -> None:
        seen[event.type] += 1

    text = run_loop("llm", iterations, stopwatch, count)
    if seen["loop.iteration.completed"] != iterations:
        raise RuntimeError(f"The callback saw {seen['loop.iteration.completed']} iterations of {iterations}.")
    return text
