"""Whether time and memory are linear in the number of iterations."""

from __future__ import annotations

from functools import partial

from benchmarks.effort import Effort
from benchmarks.processes import Contender
from benchmarks.tables import Table, aim, microseconds, times
from benchmarks.timing import take_turns

_MOST_GROWTH = 1.25


def tables(effort: Effort) -> list[Table]:
    """Measure the loop over three `llm` nodes at each count."""
    with Contender("ours_llm") as contender:
        contender.wait_until_ready()
        contender.measure(effort.growth[0])  # loads and caches what the first run needs
        turns = {str(count): partial(contender.measure, count) for count in effort.growth}
        spans = take_turns(turns, max(effort.rounds // 2, 1))
        peaks = {count: contender.peak_bytes(count) / count for count in effort.growth}
    table = Table(
        "Linearity: a loop over three llm nodes, per iteration",
        ("Iterations", "CPU, best, µs", "without garbage collection, µs", "wall, best, µs", "memory, peak, kB"),
    )
    for count in effort.growth:
        there = spans[str(count)]
        times_us = (microseconds(time_s, count) for time_s in (there.cpu_s, there.without_collector_s, there.wall_s))
        table.add(f"{count:,}", *times_us, f"{peaks[count] / 1e3:.2f}")
    first, last = effort.growth[0], effort.growth[-1]
    least, most = spans[str(first)], spans[str(last)]
    share = last / first
    time, alone = most.cpu_s / least.cpu_s / share, most.without_collector_s / least.without_collector_s / share
    memory = peaks[last] / peaks[first]
    table.add(f"{last:,} to {first:,}", times(time), times(alone), "–", times(memory))
    table.notes.append(
        f"Target for CPU time {aim(round(time, 2), _MOST_GROWTH, ' ×')}, "
        f"without Python's cyclic collector {aim(round(alone, 2), _MOST_GROWTH, ' ×')}, "
        f"for memory {aim(round(memory, 2), _MOST_GROWTH, ' ×')}."
    )
    table.notes.append(
        "Events and iteration records stay in memory until a run ends, and the collector scans all of "
        "them each time that a quarter has been added. "
        "Memory is the peak of Python objects (tracemalloc), in a separate round."
    )
    return [table]
