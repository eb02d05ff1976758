"""A run storage for tests that stores events in lists, immediately or on demand."""

from __future__ import annotations

from collections.abc import Callable

from engine.errors import EngineError
from engine.events import AnyEvent
from engine.runner.run_storage import PostedAnswer, RunHead


class ListJournal:
    """Stores events in a list; with `by_hand` nothing is safe before `keep` is called."""

    def __init__(self, *, by_hand: bool = False) -> None:
        self.events: list[AnyEvent] = []
        self.closed = False
        self._by_hand = by_hand
        self._on_stored: Callable[[int], None] = lambda _seq: None
        self._failed: Callable[[EngineError], None] = lambda _error: None

    def watch(self, stored: Callable[[int], None], failed: Callable[[EngineError], None]) -> None:
        self._on_stored, self._failed = stored, failed

    def write(self, event: AnyEvent) -> None:
        assert not self.closed
        self.events.append(event)
        if not self._by_hand:
            self._on_stored(event.seq)

    def keep(self) -> None:
        """Report that all events so far are safe."""
        self._on_stored(self.events[-1].seq)

    def fail(self, error: EngineError) -> None:
        """Report that no more events can be stored."""
        self._failed(error)

    def close(self) -> None:
        self.closed = True


class ListStore:
    """Returns one journal for the next run."""

    def __init__(self, journal: ListJournal | None = None) -> None:
        self.journal = journal or ListJournal()
        self.heads: list[RunHead] = []

    def begin(self, head: RunHead) -> ListJournal:
        self.heads.append(head)
        return self.journal

    def reopen(self, run_id: str) -> ListJournal:
        raise NotImplementedError(run_id)

    def pending_answers(self, run_id: str) -> list[PostedAnswer]:
        return []
