"""LangGraph as in `kept_langgraph`, but in its default mode, in which no step waits for the disk."""

# pyright: basic
from __future__ import annotations

from benchmarks.contenders import kept_langgraph
from benchmarks.contenders.kept_langgraph import outcome
from benchmarks.timing import Stopwatch

__all__ = ["outcome", "run"]


def run(iterations: int, stopwatch: Stopwatch) -> str:
    """Do the work."""
    return kept_langgraph.run(iterations, stopwatch, durability="async")
