"""How alike each result of a loop is to the one before, worked out where the run has not recorded it.

That takes a few milliseconds a pair, so it is done in a thread, a handful of pairs at a time, and only for loops that
somebody looks at.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from PySide6.QtCore import QObject, Signal

from app.run_view_state import ReadResults
from app.worker import Worker
from engine.errors import EngineError
from engine.exits.similarity import similarity
from engine.run_state.state import LoopExecution
from engine.values import Value

BATCH: Final = 200
"""The most that is worked out at once."""

BATCH_S: Final = 0.05
"""After so many seconds the thread hands on what it has, so that the first figures are there soon."""


class _Loop:
    """What is known of one run of a loop."""

    def __init__(self, path: str, loop: LoopExecution) -> None:
        self.path = path
        self.loop = loop
        self.found: dict[int, float | None] = {}
        self.first_unknown = 1


class Similarities(QObject):
    """The similarities of the loops of a run.

    Signals:
        found: More are known of the loop that is looked at: the index of the first and of the last.
    """

    found = Signal(int, int)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._read_results: ReadResults | None = None
        self._worker = Worker(self)
        self._known: dict[int, _Loop] = {}
        self._looked_at: _Loop | None = None

    @property
    def is_busy(self) -> bool:
        """Whether some are being worked out."""
        return self._worker.is_busy

    def forget(self, read_results: ReadResults | None) -> None:
        """Forget everything: another run is looked at.

        Args:
            read_results: Reads its results in full, where its loop has only their beginnings.
        """
        self._read_results = read_results
        self._known.clear()
        self._looked_at = None

    def look_at(self, path: str, loop: LoopExecution) -> None:
        """Work out what is not known of this loop, now and whenever it is called again with more iterations."""
        there = self._looked_at
        if there is None or there.loop is not loop:
            # The loop is kept, so that no other object takes on its identity.
            there = self._looked_at = self._known.setdefault(id(loop), _Loop(path, loop))
        if not self._worker.is_busy:
            self._ask(there)

    def of(self, loop: LoopExecution, index: int) -> float | None:
        """The similarity of a result to the one before; None for the first, and as long as it is not known."""
        recorded = loop.iterations[index].similarity
        if recorded is not None or index == 0:
            return recorded
        there = self._known.get(id(loop))
        return None if there is None else there.found.get(index)

    def _ask(self, there: _Loop) -> None:
        iterations = there.loop.iterations
        while there.first_unknown < len(iterations) and iterations[there.first_unknown].similarity is not None:
            there.first_unknown += 1
        first = there.first_unknown
        wanted = iterations[first - 1 : first + BATCH]
        if len(wanted) < 2:
            return
        read, path = self._read_results, there.path
        results = [iteration.result for iteration in wanted] if read is None else None

        def work() -> list[float | None]:
            in_full = results if results is not None or read is None else read(path, first - 1, first + len(wanted) - 2)
            return _worked_out(in_full or ())

        def give_up(_error: EngineError) -> None:
            self._take_up(there, first, [None] * (len(wanted) - 1))

        self._worker.ask(work, lambda found: self._take_up(there, first, found), give_up)

    def _take_up(self, there: _Loop, first: int, found: list[float | None]) -> None:
        found = found or [None]  # what was to be read is not there any more
        there.found.update(enumerate(found, first))
        there.first_unknown = first + len(found)
        if there is self._looked_at:
            self.found.emit(first, there.first_unknown - 1)
        if self._looked_at is not None and not self._worker.is_busy:
            self._ask(self._looked_at)


def _worked_out(results: Sequence[Value]) -> list[float | None]:
    """The similarities of results to those before, from the second on; at least one."""
    end = time.perf_counter() + BATCH_S
    found: list[float | None] = []
    for before, after in pairwise(results):
        try:
            found.append(similarity(before, after))
        except EngineError:  # nested too deep to be written as text
            found.append(None)
        if time.perf_counter() > end:
            break
    return found
