"""No engine at all: a Python `while` loop."""

from __future__ import annotations

from benchmarks.timing import Stopwatch
from benchmarks.work import START, STEPS, step


def run(iterations: int, stopwatch: Stopwatch) -> str:
    """Do the work."""
    text, done = START, 0
    with stopwatch.running():
        while done < iterations:
            for _name in STEPS:
                text = step(text)
            done += 1
    return text
