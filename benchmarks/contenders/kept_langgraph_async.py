"""LangGraph as in `kept_langgraph`, but in its default mode: the next step does not wait until the last one is safe."""

# pyright: basic
from __future__ import annotations

from benchmarks.contenders import kept_langgraph
from benchmarks.contenders.kept_langgraph import outcome
from benchmarks.timing import Stopwatch

__all__ = ["outcome", "run"]


def run(iterations: int, stopwatch: Stopwatch) -> str:
    """Do the work."""
    return kept_langgraph.run(iterations, stopwatch, durability="async")
