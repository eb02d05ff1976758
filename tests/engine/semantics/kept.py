"""A keeper of runs for tests of what a run does with one: it keeps lists of events, at once or when told to."""

from __future__ import annotations

from collections.abc import Callable

from engine.errors import EngineError
from engine.events import AnyEvent
from engine.runner.run_storage import PostedAnswer, RunHead


class ListJournal:
    """Keeps events in a list; with `by_hand` nothing is safe before `keep` is called."""

    def __init__(self, *, by_hand: bool = False) -> None:
        self.events: list[AnyEvent] = []
        self.closed = False
        self._by_hand = by_hand
        self._kept: Callable[[int], None] = lambda _seq: None
        self._failed: Callable[[EngineError], None] = lambda _error: None

    def watch(self, kept: Callable[[int], None], failed: Callable[[EngineError], None]) -> None:
        self._kept, self._failed = kept, failed

    def write(self, event: AnyEvent) -> None:
        assert not self.closed
        self.events.append(event)
        if not self._by_hand:
            self._kept(event.seq)

    def keep(self) -> None:
        """Say that everything so far is safe."""
        self._kept(self.events[-1].seq)

    def fail(self, error: EngineError) -> None:
        """Say that nothing more is kept."""
        self._failed(error)

    def close(self) -> None:
        self.closed = True


class ListKeeper:
    """Hands out one journal for the next run."""

    def __init__(self, journal: ListJournal | None = None) -> None:
        self.journal = journal or ListJournal()
        self.heads: list[RunHead] = []

    def begin(self, head: RunHead) -> ListJournal:
        self.heads.append(head)
        return self.journal

    def reopen(self, run_id: str) -> ListJournal:
        raise NotImplementedError(run_id)

    def left_answers(self, run_id: str) -> list[PostedAnswer]:
        return []
