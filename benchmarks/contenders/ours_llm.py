"""This engine with three `llm` nodes whose model is an instant function."""

from __future__ import annotations

from benchmarks.contenders.ours import run_loop
from benchmarks.timing import Stopwatch


def run(iterations: int, stopwatch: Stopwatch) -> str:
    """Do the work."""
    return run_loop("llm", iterations, stopwatch)
