"""A store in memory: faster than a file, and a second implementation for the conformance suite."""

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
from engine.run_state.state import Detail, RunState, RunStatus
from engine.runner.run_storage import PostedAnswer, RunHead
from engine.store.codec import decode_event, encode_fields, is_container, json_start, truncate_text
from engine.store.store_protocol import (
    ACTIVE,
    EVERY_RUN,
    OPEN,
    RunFilter,
    RunSummary,
    Totals,
    already_answered,
    level_of,
    no_such_run,
    run_exists,
    run_owned_elsewhere,
    runs_still_running,
    store_closed,
    unique_run_id,
)


class MemoryStore:
    """A `Store` whose content is lost when the program ends."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._runs: dict[str, _StoredRun] = {}
        self._replies: dict[str, tuple[str, Reply]] = {}
        self._closed = False

    def begin(self, head: RunHead) -> MemoryJournal:
        """Start storing a run."""
        with self._lock:
            if self._closed:
                raise store_closed()
            if head.run_id in self._runs:
                raise run_exists(head.run_id)
            run = self._runs[head.run_id] = _StoredRun(head)
            return MemoryJournal(run, self._lock)

    def reopen(self, run_id: str) -> MemoryJournal:
        """Continue storing a run."""
        with self._lock:
            run = self._run(run_id)
            if run.journals:
                raise run_owned_elsewhere(run_id)
            return MemoryJournal(run, self._lock)

    def runs(self, which: RunFilter = EVERY_RUN, *, limit: int = 100, offset: int = 0) -> list[RunSummary]:
        """Return runs, newest first."""
        with self._lock:
            return self._matching(which)[offset : offset + limit]

    def totals(self, which: RunFilter = EVERY_RUN) -> Totals:
        """Return the totals of runs."""
        with self._lock:
            found = self._matching(which)
        costs = [summary.cost_usd for summary in found]
        known = [cost for cost in costs if cost is not None]
        return Totals(len(found), sum(summary.tokens for summary in found), sum(known), len(known) < len(costs))

    def find(self, prefix: str) -> RunSummary:
        """Return the run whose id has that prefix."""
        with self._lock:
            found = [summary.run_id for summary in self._matching(EVERY_RUN) if summary.run_id.startswith(prefix)]
            return self._run(unique_run_id(prefix, found)).summary()

    def is_owned(self, run_id: str) -> bool:
        """Return whether a journal of the run is open."""
        with self._lock:
            return self._run(run_id).journals > 0

    def children(self, run_id: str) -> list[RunSummary]:
        """Return the forks of a run, oldest first."""
        with self._lock:
            return self._matching(RunFilter(parent=run_id))[::-1]

    def document(self, run_id: str) -> str:
        """Return the workflow document of a run."""
        with self._lock:
            return self._run(run_id).head.document

    def options(self, run_id: str) -> dict[str, Any]:
        """Return the options of a run."""
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
        """Iterate over the events of a run in order."""
        with self._lock:
            log = list(self._run(run_id).log)
        wanted = None if kinds is None else tuple(kinds)
        return (
            event if preview is None else truncate_event(event, preview)
            for event in log
            if event.seq > after
            and (level is None or level_of(event.path) == level)
            and (wanted is None or isinstance(event, wanted))
        )

    def import_run(self, head: RunHead, events: Iterable[AnyEvent]) -> str:
        """Import an exported run."""
        run = _StoredRun(head)
        for event in events:
            run.add(event)
        with self._lock:
            if head.run_id in self._runs:
                run.rename(secrets.token_hex(6))
            self._runs[run.head.run_id] = run
        return run.head.run_id

    def pending_answers(self, run_id: str) -> list[PostedAnswer]:
        """Return the pending answers for a run."""
        with self._lock:
            return list(self._run(run_id).answers.values())

    def post_answer(self, run_id: str, posted: PostedAnswer) -> None:
        """Post an answer for the owner of a run."""
        with self._lock:
            if self._run(run_id).answers.setdefault(posted.question, posted) is not posted:
                raise already_answered(posted.path)

    def withdraw_answer(self, run_id: str, question: int) -> None:
        """Remove a pending answer."""
        with self._lock:
            self._run(run_id).answers.pop(question, None)

    def pin(self, run_id: str, *, pinned: bool) -> None:
        """Protect a run from retention, or stop protecting it."""
        with self._lock:
            self._run(run_id).pinned = pinned

    def set_source(self, run_ids: Collection[str], source: str) -> None:
        """Set the workflow file of runs that have none."""
        with self._lock:
            for run in (self._runs[run_id] for run_id in run_ids if run_id in self._runs):
                run.head = dataclasses.replace(run.head, source=run.head.source or source)

    def delete(self, run_ids: Collection[str]) -> None:
        """Delete runs."""
        with self._lock:
            busy = [run_id for run_id in run_ids if self._run(run_id).is_running]
            if busy:
                raise runs_still_running(busy)
            for run_id in set(run_ids):
                del self._runs[run_id]
            self._replies = {key: entry for key, entry in self._replies.items() if entry[0] in self._runs}

    def retain(self, *, most_runs: int | None, most_bytes: int | None) -> int:
        """Delete the oldest runs until both limits hold. Return their number."""
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
        """Return 0, because no space is ever free."""
        return 0

    def size(self) -> int:
        """Return the approximate number of characters of all events as JSON."""
        with self._lock:
            return sum(run.size for run in self._runs.values())

    def cached_reply(self, key: str) -> Reply | None:
        """Return the cached reply for a key, or None."""
        with self._lock:
            entry = self._replies.get(key)
        return entry[1] if entry else None

    def cache_reply(self, key: str, run_id: str, reply: Reply) -> None:
        """Cache a reply for other runs while its run is stored."""
        with self._lock:
            if run_id in self._runs:
                self._replies.setdefault(key, (run_id, reply))

    def close(self) -> None:
        """Refuse further runs."""
        with self._lock:
            self._closed = True

    def _run(self, run_id: str) -> _StoredRun:
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
        and which.source in {"", summary.source}
    )


class MemoryJournal:
    """The log of one run."""

    def __init__(self, run: _StoredRun, lock: threading.RLock) -> None:
        self._run = run
        self._lock = lock
        self._on_stored: Callable[[int], None] | None = None
        run.journals += 1

    def watch(self, stored: Callable[[int], None], failed: Callable[[EngineError], None]) -> None:
        """Set the callback for stored events; nothing fails here."""
        self._on_stored = stored

    def write(self, event: AnyEvent) -> None:
        """Write the next event of the run."""
        with self._lock:
            self._run.add(event)
        if self._on_stored is not None:
            self._on_stored(event.seq)

    def close(self) -> None:
        """End the log and release the run."""
        with self._lock:
            self._run.journals = 0


class _StoredRun:
    def __init__(self, head: RunHead) -> None:
        self.head = head
        self.state = RunState(head.run_id, Detail.SUMMARY, started=time.time())
        self.log: list[AnyEvent] = []
        self.answers: dict[int, PostedAnswer] = {}
        self.pinned = False
        self.size = len(head.document)
        self.journals = 0

    @property
    def is_running(self) -> bool:
        return self.journals > 0 and self.state.status in OPEN

    def add(self, event: AnyEvent) -> None:
        self.log.append(event)
        apply(self.state, event)
        self.size += len(json.dumps(encode_fields(event, lambda value, _place: value)))

    def rename(self, run_id: str) -> None:
        self.head = dataclasses.replace(self.head, run_id=run_id)
        self.log = [dataclasses.replace(event, run_id=run_id) for event in self.log]

    def uses(self, strategy: str) -> bool:
        """Return whether one of its agents has that turn strategy."""
        first = self.log[0] if self.log else None
        return isinstance(first, RunStarted) and strategy in first.strategies

    def summary(self) -> RunSummary:
        state, head = self.state, self.head
        has_lost_process = state.status in ACTIVE and not self.journals
        return RunSummary(
            head.run_id,
            state.workflow,
            head.source,
            RunStatus.INTERRUPTED if has_lost_process else state.status,
            state.started,
            state.updated,
            state.duration_s,
            state.completed_iterations,
            state.exit_reason,
            state.usage.total_tokens,
            state.cost_usd,
            state.models,
            state.error,
            head.parent,
            head.forked_at,
            state.part,
            self.pinned,
            self.size,
        )


def truncate_value(value: Any, limit: int) -> Any:
    """Truncate a long text; a list or object with long JSON becomes the truncated text of it."""
    if isinstance(value, str):
        return truncate_text(value, limit)
    if is_container(value):
        start = json_start(value, limit + 1, lambda item: item)
        return value if len(start) <= limit else truncate_text(start, limit)
    return value


def truncate_event(event: AnyEvent, limit: int) -> AnyEvent:
    """Truncate all values in an event."""
    fields = encode_fields(event, lambda value, _place: value)
    return decode_event(
        type(event), event.run_id, event.seq, event.time, event.path, fields, lambda value: truncate_value(value, limit)
    )
