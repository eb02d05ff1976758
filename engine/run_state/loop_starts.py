"""Logs without `loop.started`: where older versions started a loop.

Versions before 1.3 did not report `loop.started`; there, iteration 0 says that a loop starts, or starts over. This is
the only place that knows: every reader of events sees a `loop.started` in front of each iteration 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.events import AnyEvent, LoopIterationStarted, LoopStarted

UNKNOWN_ATTEMPT = 0
"""The attempt of a start that was not reported; readers count it."""


def missing_start(announced: set[str], event: LoopIterationStarted) -> LoopStarted | None:
    """The `loop.started` that is missing before an iteration; None where nothing is.

    Args:
        announced: The loops whose start was reported and whose iteration 0 has not started yet; updated.
        event: The iteration.
    """
    if event.index > 0:
        return None
    if event.path in announced:
        announced.discard(event.path)
        return None
    return LoopStarted(event.run_id, event.seq, event.time, event.path, UNKNOWN_ATTEMPT, event.total)


def with_loop_starts(events: Iterable[AnyEvent]) -> Iterator[AnyEvent]:
    """The events of a log, with the missing `loop.started` put in; each has the number of the event after it."""
    announced: set[str] = set()
    for event in events:
        if isinstance(event, LoopStarted):
            announced.add(event.path)
        elif isinstance(event, LoopIterationStarted):
            start = missing_start(announced, event)
            if start is not None:
                yield start
        yield event
