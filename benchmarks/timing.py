"""Measure wall and CPU time, in rounds in which contenders take turns.

Other load on the machine affects wall time, but hardly CPU time, and taking turns spreads what remains over all
contenders. The best of several rounds says most about the program, the median about the machine.
Standard library only: the peers' workers import this.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """A duration in seconds: wall time, CPU time, and the garbage collector's part of it.

    `disk_bytes` is what it left on disk, where that is looked at.
    """

    wall_s: float
    cpu_s: float
    collector_s: float = 0.0
    disk_bytes: int = 0


class Stopwatch:
    """Measures the relevant part of a contender's work; the result is in `span`."""

    def __init__(self) -> None:
        self.span = Span(0.0, 0.0)
        self.disk_bytes = 0
        self._collected_s = 0.0
        self._collecting_since = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Measure the code inside, after a garbage collection."""
        gc.collect()
        self._collected_s = 0.0
        gc.callbacks.append(self._collect)
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            self.span = Span(time.perf_counter() - wall, time.process_time() - cpu, self._collected_s)
            gc.callbacks.remove(self._collect)

    def _collect(self, phase: str, _info: Mapping[str, int]) -> None:
        now = time.process_time()
        if phase == "start":
            self._collecting_since = now
        else:
            self._collected_s += now - self._collecting_since


@dataclass(frozen=True)
class Spans:
    """The rounds of one contender."""

    rounds: tuple[Span, ...]

    @property
    def cpu_s(self) -> float:
        """CPU time of the best round."""
        return min(span.cpu_s for span in self.rounds)

    @property
    def without_collector_s(self) -> float:
        """CPU time of the best round without garbage collection."""
        return min(span.cpu_s - span.collector_s for span in self.rounds)

    @property
    def wall_s(self) -> float:
        """Wall time of the best round."""
        return min(span.wall_s for span in self.rounds)

    @property
    def median_cpu_s(self) -> float:
        """Median CPU time."""
        return statistics.median(span.cpu_s for span in self.rounds)

    @property
    def median_wall_s(self) -> float:
        """Median wall time."""
        return statistics.median(span.wall_s for span in self.rounds)


def take_turns(contenders: Mapping[str, Callable[[], Span]], rounds: int) -> dict[str, Spans]:
    """Measure each contender once per round: A B C, A B C, and so on."""
    measured: dict[str, list[Span]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, contender in contenders.items():
            measured[name].append(contender())
    return {name: Spans(tuple(spans)) for name, spans in measured.items()}


def measured(work: Callable[[], object]) -> Span:
    """Measure the time of one call."""
    stopwatch = Stopwatch()
    with stopwatch.running():
        work()
    return stopwatch.span
