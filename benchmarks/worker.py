"""A process that does one contender's work on request: JSON lines in, JSON lines out.

    {"iterations": 1000, "trace": false}  →  {"wall_s": …, "cpu_s": …, "collector_s": …, "peak_bytes": …}

Standard library only, apart from the contender: it runs in the peers' environment too. What a contender prints does not
reach the answers.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import sys
import tracemalloc
from typing import Any

from benchmarks.timing import Stopwatch
from benchmarks.work import STEPS, after


def main() -> None:
    """Handle requests until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        contender = importlib.import_module(f"benchmarks.contenders.{sys.argv[1]}")
    except ImportError as error:
        _answer(answers, {"error": f"{type(error).__name__}: {error}"})
        return
    _answer(answers, {"ready": True})
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            _answer(answers, _measure(contender, asked["iterations"], trace=asked["trace"]))
        except Exception as error:
            _answer(answers, {"error": f"{type(error).__name__}: {error}"})


def _measure(contender: Any, iterations: int, *, trace: bool) -> dict[str, Any]:
    stopwatch = Stopwatch()
    peak = 0
    if trace:
        tracemalloc.start()
    text = contender.run(iterations, stopwatch)
    span = dataclasses.replace(stopwatch.span, disk_bytes=stopwatch.disk_bytes)
    if trace:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    expected = getattr(contender, "outcome", after)(len(STEPS) * iterations)
    if text != expected:
        raise RuntimeError(f"The outcome is {text!r} and should be {expected!r}.")
    return {**dataclasses.asdict(span), "peak_bytes": peak}


def _answer(answers: Any, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
