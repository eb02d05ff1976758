"""Results of a stored run in full, read from one iteration to another. No Qt here: it is done in a thread."""

from __future__ import annotations

from collections.abc import Mapping

from engine.events import LoopIterationCompleted
from engine.store.base import Store
from engine.store.words import level_of
from engine.values import Value


def read_results(
    store: Store, run_id: str, numbers: Mapping[tuple[str, int], int], path: str, first: int, last: int
) -> list[Value]:
    """Read results.

    Args:
        store: Where the run is kept.
        run_id: The run.
        numbers: For each iteration that ended, by loop path and index, the number of the event that says so.
        path: The path of the run of the loop.
        first: The first iteration wanted; one that has ended.
        last: The last one.

    Raises:
        StoreError: They cannot be read.
    """
    found: list[Value] = []
    since = numbers.get((path, first), 0) - 1
    for event in store.events(run_id, level=level_of(path), kinds={LoopIterationCompleted}, after=since):
        if isinstance(event, LoopIterationCompleted) and event.path == path:
            found.append(event.result)
            if event.index >= last:
                break
    return found
