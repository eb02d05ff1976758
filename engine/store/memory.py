"""A store in memory: for tests, for library users who want no file, and to state plainly what a store does."""

from __future__ import annotations

import dataclasses
import json
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from engine.errors import EngineError
from engine.events import AnyEvent, RunStarted
from engine.models.protocol import Reply
from engine.run_state.reducer import apply
from engine.run_state.state import Detail, RunState
from engine.runner.run_storage import PostedAnswer, RunHead
from engine.store.codec import cut_event, encode_fields
from engine.store.store_protocol import (
    EVERY_RUN,
    OPEN,
    RunFilter,
    RunSummary,
    Totals,
    answered_before,
    begun_before,
    chosen,
    closed,
    held_elsewhere,
    level_of,
    no_such_run,
    still_under_way,
    summary_of,
)

Kept = Callable[[int], None]
Failed = Callable[[EngineError], None]


class MemoryStore:
    """A `Store` that forgets everything when the program ends."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._runs: dict[str, _KeptRun] = {}
        self._replies: dict[str, tuple[str, Reply]] = {}
        self._closed = False

    def begin(self, head: RunHead) -> MemoryJournal:
        """Begin to keep a run."""
        with self._lock:
            if self._closed:
                raise closed()
            if head.run_id in self._runs:
                raise begun_before(head.run_id)
            run = self._runs[head.run_id] = _KeptRun(head)
            return MemoryJournal(run, self._lock)

    def reopen(self, run_id: str) -> MemoryJournal:
        """Go on keeping a run."""
        with self._lock:
            run = self._run(run_id)
            if run.journals:
                raise held_elsewhere(run_id)
            return MemoryJournal(run, self._lock)

    def runs(self, which: RunFilter = EVERY_RUN, *, limit: int = 100, offset: int = 0) -> list[RunSummary]:
        """Runs, the newest first."""
        with self._lock:
            return self._matching(which)[offset : offset + limit]

    def totals(self, which: RunFilter = EVERY_RUN) -> Totals:
        """What those runs come to."""
        with self._lock:
            found = self._matching(which)
        costs = [summary.cost_usd for summary in found]
        known = [cost for cost in costs if cost is not None]
        return Totals(len(found), sum(summary.tokens for summary in found), sum(known), len(known) < len(costs))

    def find(self, prefix: str) -> RunSummary:
        """The one run whose id begins so."""
        with self._lock:
            found = [summary.run_id for summary in self._matching(EVERY_RUN) if summary.run_id.startswith(prefix)]
            return self._run(chosen(prefix, found)).summary()

    def is_held(self, run_id: str) -> bool:
        """Whether somebody is at work on a run, or waits with it for a person."""
        with self._lock:
            return self._run(run_id).journals > 0

    def children(self, run_id: str) -> list[RunSummary]:
        """The runs that were forked from a run, the oldest first."""
        with self._lock:
            return self._matching(RunFilter(parent=run_id))[::-1]

    def document(self, run_id: str) -> str:
        """The document as the run ran it."""
        with self._lock:
            return self._run(run_id).head.document

    def options(self, run_id: str) -> dict[str, Any]:
        """How the run was to be done."""
        with self._lock:
            return self._run(run_id).head.options

    def events(
        self,
        run_id: str,
        *,
        level: str | None = None,
        kinds: Collection[type[AnyEvent]] | None = None,
        after: int = -1,
        preview: int | None = None,
    ) -> Iterator[AnyEvent]:
        """A run's events, in order."""
        with self._lock:
            log = list(self._run(run_id).log)
        wanted = None if kinds is None else tuple(kinds)
        return (
            event if preview is None else cut_event(event, preview)
            for event in log
            if event.seq > after
            and (level is None or level_of(event.path) == level)
            and (wanted is None or isinstance(event, wanted))
        )

    def import_run(self, head: RunHead, events: Iterable[AnyEvent]) -> str:
        """Take in a run that was exported."""
        run = _KeptRun(head)
        for event in events:
            run.take(event)
        with self._lock:
            if head.run_id in self._runs:
                run.rename(secrets.token_hex(6))
            self._runs[run.head.run_id] = run
        return run.head.run_id

    def left_answers(self, run_id: str) -> list[PostedAnswer]:
        """The answers that were left for a run."""
        with self._lock:
            return list(self._run(run_id).left.values())

    def leave_answer(self, run_id: str, left: PostedAnswer) -> None:
        """Leave an answer for whoever is at work on a run."""
        with self._lock:
            if self._run(run_id).left.setdefault(left.question, left) is not left:
                raise answered_before(left.path)

    def take_answer_back(self, run_id: str, question: int) -> None:
        """Take away what was left for a question."""
        with self._lock:
            self._run(run_id).left.pop(question, None)

    def pin(self, run_id: str, *, pinned: bool) -> None:
        """Keep a run from retention, or no longer."""
        with self._lock:
            self._run(run_id).pinned = pinned

    def delete(self, run_ids: Collection[str]) -> None:
        """Delete runs."""
        with self._lock:
            busy = [run_id for run_id in run_ids if self._run(run_id).is_under_way]
            if busy:
                raise still_under_way(busy)
            for run_id in set(run_ids):
                del self._runs[run_id]
            self._replies = {key: kept for key, kept in self._replies.items() if kept[0] in self._runs}

    def retain(self, *, most_runs: int | None, most_bytes: int | None) -> int:
        """Delete the oldest runs until both limits hold."""
        with self._lock:
            oldest = [
                summary
                for summary in reversed(self._matching(EVERY_RUN))
                if not summary.pinned and summary.status not in OPEN
            ]
            deleted = 0
            for summary in oldest:
                fits = most_runs is None or len(self._runs) <= most_runs
                if fits and (most_bytes is None or self.size() <= most_bytes):
                    break
                self.delete([summary.run_id])
                deleted += 1
            return deleted

    def vacuum(self) -> int:
        """Nothing is free."""
        return 0

    def size(self) -> int:
        """Characters of all events as JSON, about."""
        with self._lock:
            return sum(run.size for run in self._runs.values())

    def cached(self, key: str) -> Reply | None:
        """The reply kept under that key."""
        with self._lock:
            kept = self._replies.get(key)
        return kept[1] if kept else None

    def keep_reply(self, key: str, run_id: str, reply: Reply) -> None:
        """Keep a reply for other runs, as long as its run is kept."""
        with self._lock:
            if run_id in self._runs:
                self._replies.setdefault(key, (run_id, reply))

    def close(self) -> None:
        """Take in no further run."""
        with self._lock:
            self._closed = True

    def _run(self, run_id: str) -> _KeptRun:
        if run_id not in self._runs:
            raise no_such_run(run_id)
        return self._runs[run_id]

    def _matching(self, which: RunFilter) -> list[RunSummary]:
        runs = (run for run in reversed(self._runs.values()) if not which.strategy or run.uses(which.strategy))
        summaries = [run.summary() for run in runs]
        found = [summary for summary in summaries if _matches(summary, which)]
        return sorted(found, key=lambda summary: summary.started, reverse=True)


def _matches(summary: RunSummary, which: RunFilter) -> bool:
    part = which.workflow.casefold()
    return (
        (part in summary.workflow.casefold() or part in summary.source.casefold())
        and (not which.statuses or summary.status in which.statuses)
        and (which.since is None or summary.started >= which.since)
        and (which.until is None or summary.started < which.until)
        and (not which.parent or summary.parent == which.parent)
        and (not which.pinned or summary.pinned)
    )


class MemoryJournal:
    """Where one run is kept."""

    def __init__(self, run: _KeptRun, lock: threading.RLock) -> None:
        self._run = run
        self._lock = lock
        self._kept: Kept | None = None
        run.journals += 1

    def watch(self, kept: Kept, failed: Failed) -> None:
        """Name who is told of progress; nothing fails here."""
        self._kept = kept

    def write(self, event: AnyEvent) -> None:
        """Take the run's next event."""
        with self._lock:
            self._run.take(event)
        if self._kept is not None:
            self._kept(event.seq)

    def close(self) -> None:
        """Say that nothing more comes."""
        with self._lock:
            self._run.journals = 0


class _KeptRun:
    """One run: what was known before, its events, and what they come to."""

    def __init__(self, head: RunHead) -> None:
        self.head = head
        self.state = RunState(head.run_id, Detail.SUMMARY, started=time.time())
        self.log: list[AnyEvent] = []
        self.left: dict[int, PostedAnswer] = {}
        self.pinned = False
        self.size = len(head.document)
        self.journals = 0

    @property
    def is_under_way(self) -> bool:
        """Whether somebody is at work on it."""
        return self.journals > 0 and self.state.status in OPEN

    def take(self, event: AnyEvent) -> None:
        self.log.append(event)
        apply(self.state, event)
        self.size += len(json.dumps(encode_fields(event, lambda value, _place: value)))

    def rename(self, run_id: str) -> None:
        self.head = dataclasses.replace(self.head, run_id=run_id)
        self.log = [dataclasses.replace(event, run_id=run_id) for event in self.log]

    def uses(self, strategy: str) -> bool:
        """Whether one of its agents takes its turns by that strategy."""
        first = self.log[0] if self.log else None
        return isinstance(first, RunStarted) and strategy in first.strategies

    def summary(self) -> RunSummary:
        return summary_of(self.state, self.head, is_held=self.journals > 0, pinned=self.pinned, size=self.size)
