"""This engine with three nodes that are instant functions."""

from __future__ import annotations

from benchmarks.contenders.ours import run_loop
from benchmarks.timing import Stopwatch


def run(iterations: int, stopwatch: Stopwatch) -> str:
    """Do the work."""
    return run_loop("step", iterations, stopwatch)
