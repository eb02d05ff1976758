"""The named state of a run: the latest output of each node with an `output_key`.

The state lasts for the whole run, across iterations. A loop that restarts drops the values that were set inside it.

A fork reuses outputs of nodes that the original run executed at the same time as, or after, the place of the fork:
other items of an iterator, parallel branches. A node that the fork runs again reads the state that it read in the
original run, apart from values that the fork has changed. `StateOrder` holds the order in which that happened.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

from engine.nodes.spec import Outputs
from engine.values import Value

NAMED_PORT: Final = "output"
"""The port whose value is named. A node without an output there leaves the state unchanged."""

REUSED_WRITE: Final = "="
"""Mark of a value that a fork reuses, before the path of its node."""
READ: Final = ">"
"""Mark of the moment at which a node that a fork runs again reads the state."""
WRITE: Final = "<"
"""Mark of the moment at which such a node sets its value."""


class StateView:
    """The state at one moment, immutable. Names without a value are null."""

    __slots__ = ("values",)

    def __init__(self, values: dict[str, Value]) -> None:
        self.values = values

    def member(self, name: str) -> Value:
        """The value of that name; validation checks that some node sets it."""
        return self.values.get(name)


class StateOrder:
    """The order in which the original run of a fork read and set its state.

    Ranks count from 1. Values that no mark names come before all of them (rank 0).

    Args:
        marks: `REUSED_WRITE`, `READ` or `WRITE`, each followed by a path.
    """

    __slots__ = ("_end", "_latest", "_ranks")

    def __init__(self, marks: Iterable[str]) -> None:
        self._ranks = {mark: rank for rank, mark in enumerate(marks, 1)}
        self._end = len(self._ranks) + 1
        self._latest = 0

    def read(self, path: str) -> int:
        """The rank up to which values are visible at a path."""
        rank = self._ranks.get(READ + path)
        if rank is None:
            return max(self._latest, self._last_beside(path))
        self._latest = max(self._latest, rank)
        return rank

    def write(self, path: str) -> int:
        """The rank of a value that the node at a path sets."""
        rank = self._ranks.get(REUSED_WRITE + path)
        if rank is not None:
            return rank
        rank = self._ranks.get(WRITE + path)
        if rank is None:  # a node that the original run did not complete completes after everything in it
            rank = self._end if READ + path in self._ranks else self._latest
        self._latest = max(self._latest, rank)
        return rank

    def _last_beside(self, path: str) -> int:
        """The rank of the last reused value from the same item or iteration as the path, nested ones included."""
        prefix = REUSED_WRITE + path[: path.rfind("]") + 1]
        return max((rank for mark, rank in self._ranks.items() if mark.startswith(prefix)), default=0)


class State:
    """The state of a run as it progresses.

    Args:
        order: The marks of a fork's `StateOrder`.

    Attributes:
        now: The state after everything so far; replaced by another object at every change.
    """

    __slots__ = ("_order", "_ranks", "_writes", "now")

    def __init__(self, order: Iterable[str] = ()) -> None:
        marks = tuple(order)
        self._order = StateOrder(marks) if marks else None
        self._ranks: list[int] = []
        self._writes: list[tuple[str, str, Value]] = []
        self.now = StateView({})

    def at(self, path: str) -> StateView:
        """The state as the node or the iteration at a path reads it now."""
        if self._order is None:
            return self.now
        visible = bisect_right(self._ranks, self._order.read(path))
        return self.now if visible == len(self._writes) else _view(self._writes[:visible])

    def set(self, path: str, key: str, outputs: Outputs) -> None:
        """Record the outputs of a node under its `output_key`, if it has one."""
        if not key or NAMED_PORT not in outputs:
            return
        value = outputs[NAMED_PORT]
        rank = 0 if self._order is None else self._order.write(path)
        place = bisect_right(self._ranks, rank)
        self._ranks.insert(place, rank)
        self._writes.insert(place, (path, key, value))
        is_last = place == len(self._writes) - 1
        self.now = StateView({**self.now.values, key: value}) if is_last else _view(self._writes)

    def discard(self, *prefixes: str) -> None:
        """Drop the values of nodes whose paths begin with one of these prefixes."""
        kept = [
            (rank, write)
            for rank, write in zip(self._ranks, self._writes, strict=True)
            if not write[0].startswith(prefixes)
        ]
        if len(kept) < len(self._writes):
            self._ranks = [rank for rank, _ in kept]
            self._writes = [write for _, write in kept]
            self.now = _view(self._writes)


def _view(writes: Iterable[tuple[str, str, Value]]) -> StateView:
    return StateView({key: value for _, key, value in writes})
