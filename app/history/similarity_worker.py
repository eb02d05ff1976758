"""Similarity of each result of a loop to the previous one, computed if the run has not recorded it.

A pair takes a few milliseconds, so a thread computes small batches, and only for displayed loops.
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

MAX_BATCH: Final = 200
"""Maximum number of pairs in a batch."""

BATCH_S: Final = 0.05
"""Seconds after which the thread delivers what it has, so that the first values appear soon."""


class _Loop:
    def __init__(self, path: str, loop: LoopExecution) -> None:
        self.path = path
        self.loop = loop
        self.found: dict[int, float | None] = {}
        self.first_unknown = 1


class Similarities(QObject):
    """Computes the similarities of the loops of a run.

    Signals:
        found: Similarities of the displayed loop were computed: the first and last index.
    """

    found = Signal(int, int)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._read_results: ReadResults | None = None
        self._worker = Worker(self)
        self._known: dict[int, _Loop] = {}
        self._displayed: _Loop | None = None

    @property
    def is_busy(self) -> bool:
        """Whether similarities are being computed."""
        return self._worker.is_busy

    def forget(self, read_results: ReadResults | None) -> None:
        """Forget all similarities, because another run is displayed.

        Args:
            read_results: Reads complete results if the view model has only previews.
        """
        self._read_results = read_results
        self._known.clear()
        self._displayed = None

    def look_at(self, path: str, loop: LoopExecution) -> None:
        """Compute the missing similarities of a loop. Call it again when the loop has more iterations."""
        known = self._displayed
        if known is None or known.loop is not loop:
            # A reference to the loop, so that its id is not reused.
            known = self._displayed = self._known.setdefault(id(loop), _Loop(path, loop))
        if not self._worker.is_busy:
            self._ask(known)

    def of(self, loop: LoopExecution, index: int) -> float | None:
        """Return the similarity of a result to the previous one; None for the first, or if unknown."""
        recorded = loop.iterations[index].similarity
        if recorded is not None or index == 0:
            return recorded
        known = self._known.get(id(loop))
        return None if known is None else known.found.get(index)

    def _ask(self, known: _Loop) -> None:
        iterations = known.loop.iterations
        while known.first_unknown < len(iterations) and iterations[known.first_unknown].similarity is not None:
            known.first_unknown += 1
        first = known.first_unknown
        wanted = iterations[first - 1 : first + MAX_BATCH]
        if len(wanted) < 2:
            return
        read, path = self._read_results, known.path
        results = [iteration.result for iteration in wanted] if read is None else None

        def work() -> list[float | None]:
            in_full = results if results is not None or read is None else read(path, first - 1, first + len(wanted) - 2)
            return _compute(in_full or ())

        def give_up(_error: EngineError) -> None:
            self._store(known, first, [None] * (len(wanted) - 1))

        self._worker.ask(work, lambda found: self._store(known, first, found), give_up)

    def _store(self, known: _Loop, first: int, found: list[float | None]) -> None:
        found = found or [None]  # the results no longer exist
        known.found.update(enumerate(found, first))
        known.first_unknown = first + len(found)
        if known is self._displayed:
            self.found.emit(first, known.first_unknown - 1)
        if self._displayed is not None and not self._worker.is_busy:
            self._ask(self._displayed)


def _compute(results: Sequence[Value]) -> list[float | None]:
    end = time.perf_counter() + BATCH_S
    found: list[float | None] = []
    for before, after in pairwise(results):
        try:
            found.append(similarity(before, after))
        except EngineError:  # nested too deeply to be written as text
            found.append(None)
        if time.perf_counter() > end:
            break
    return found
