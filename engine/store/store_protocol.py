"""The `Store` protocol, its data and its errors.

A store has an append-only event log for each run. Everything else that it says about a run, such as its status or cost,
is selected from the state to which the log reduces.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from engine.errors import EngineError, Fix
from engine.events import AnyEvent
from engine.models.protocol import Reply
from engine.plan.partial_run import Part
from engine.run_state.state import RunStatus
from engine.runner.run_storage import PostedAnswer, RunHead, RunStorage
from engine.text_sanitizing import shown


class StoreError(EngineError):
    """An operation on the history failed: the file, the disk, a missing run."""


class RunOwnedError(StoreError):
    """A live process owns the run."""


def no_such_run(name: str) -> StoreError:
    """Return the error for an unknown run id."""
    return StoreError(
        f'There is no run "{name}" in the history.', "Look for it in the list of runs.", fix=Fix.LIST_RUNS
    )


def unique_run_id(prefix: str, found: Sequence[str]) -> str:
    """Return the only run id with a prefix.

    Args:
        prefix: The prefix.
        found: The ids that have it, the newest run's first. An id that equals the prefix wins.

    Raises:
        StoreError: There is none, or there are several.
    """
    if not prefix or not found:
        raise no_such_run(prefix)
    if prefix in found:
        return prefix
    if len(found) > 1:
        listed = ", ".join(found[:10]) + (" …" if len(found) > 10 else "")
        raise StoreError(f'Several runs begin with "{prefix}": {listed}.', "Give more characters of the id.")
    return found[0]


def runs_still_running(run_ids: Collection[str]) -> StoreError:
    """Return the error for runs that cannot be deleted yet."""
    return StoreError(f"A run that is still running cannot be deleted: {', '.join(sorted(run_ids))}.", "Stop it first.")


def run_owned_elsewhere(run_id: str) -> RunOwnedError:
    """Return the error for a run that a live process owns."""
    return RunOwnedError(
        f'The run "{run_id}" is running in another window or program.', "Wait until it ends, or stop it there first."
    )


def run_exists(run_id: str) -> StoreError:
    """Return the error for an id that is in use."""
    return StoreError(f'The history already has a run "{run_id}".', "Start it again; it gets another id.")


def already_answered(path: str) -> StoreError:
    """Return the error for a question that somebody else has answered."""
    return StoreError(f'The question at "{shown(path, 60)}" was already answered.', "Check how the run continues.")


def store_closed() -> StoreError:
    """Return the error for a store that was closed."""
    return StoreError("The history was closed.", "Open it again.")


def level_of(path: str) -> str:
    """The level of an event with this path: `loop[2]` for `loop[2].draft`, "" for `loop`."""
    return path.rpartition(".")[0]


ACTIVE: Final = frozenset({RunStatus.RUNNING, RunStatus.PAUSED})
"""Statuses of a run that has a process."""
OPEN: Final = ACTIVE | {RunStatus.WAITING}
"""Statuses of a run that has not ended and continues, or waits for a person."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run, as lists show it.

    Attributes:
        run_id: Id of the run.
        workflow: Name of the workflow.
        source: File of the workflow; empty if it was never saved.
        status: Its status.
        started: Start in seconds since the epoch (UTC).
        updated: Time of its last event.
        duration_s: Seconds that it ran; None before its end.
        iterations: Number of completed iterations, nested ones included.
        exit_reason: Exit reason of its outermost loop, or of the last one to end; empty before.
        tokens: Input and output tokens.
        cost_usd: Cost in US dollars; None if a price is unknown.
        models: The models that it may call.
        error: What failed and why; empty if nothing did.
        parent: The run that it was forked from, or whose outputs a partial run reuses; empty if there is none.
        forked_at: The path in the parent.
        part: The part of the workflow that ran; None for all of it.
        pinned: Whether it is protected from retention.
        size: Approximate number of bytes that only this run takes in the store.
    """

    run_id: str
    workflow: str
    source: str
    status: RunStatus
    started: float
    updated: float
    duration_s: float | None
    iterations: int
    exit_reason: str
    tokens: int
    cost_usd: float | None
    models: tuple[str, ...]
    error: str
    parent: str
    forked_at: str
    part: Part | None
    pinned: bool
    size: int

    @property
    def is_fork(self) -> bool:
        """Whether it is a fork of its parent, and not a partial run that only reuses outputs."""
        return bool(self.parent) and (self.part is None or self.forked_at != self.part.node)

    @property
    def origin(self) -> str:
        """Where the run comes from: `Forked from 3fa2b1 at loop[2]`, `Up to draft, with outputs of 3fa2b1`."""
        if self.is_fork:
            return f"Forked from {self.parent}{f' at {self.forked_at}' if self.forked_at else ''}"
        if self.part is None:
            return ""
        text = str(self.part)
        return f"{text[:1].upper()}{text[1:]}{f', with outputs of {self.parent}' if self.parent else ''}"


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Selects runs; the default of a field matches all.

    Attributes:
        workflow: Part of the workflow's name or file, case-insensitive.
        statuses: Their statuses; empty for any.
        since: Started at this time or later, in seconds since the epoch.
        until: Started before this time.
        parent: Forked from this run.
        pinned: Only pinned ones.
        strategy: With an agent of this turn strategy.
        source: Of exactly this workflow file.
    """

    workflow: str = ""
    statuses: frozenset[RunStatus] = frozenset()
    since: float | None = None
    until: float | None = None
    parent: str = ""
    pinned: bool = False
    strategy: str = ""
    source: str = ""


EVERY_RUN: Final = RunFilter()


@dataclass(frozen=True, slots=True)
class Totals:
    """Totals of runs; `price_unknown` says that the cost is incomplete."""

    count: int
    tokens: int
    cost_usd: float
    price_unknown: bool


class Store(RunStorage, Protocol):
    """A store of runs. Methods can be called from any thread, and raise `StoreError`."""

    def runs(self, which: RunFilter = EVERY_RUN, *, limit: int = 100, offset: int = 0) -> list[RunSummary]:
        """Return runs, newest first."""
        ...

    def totals(self, which: RunFilter = EVERY_RUN) -> Totals:
        """Return the totals of runs."""
        ...

    def find(self, prefix: str) -> RunSummary:
        """Return the only run whose id has that prefix.

        Raises:
            StoreError: There is none, or there are several, which the message lists.
        """
        ...

    def is_owned(self, run_id: str) -> bool:
        """Return whether a live process owns the run: it executes it, or waits with it for a person.

        Raises:
            StoreError: There is no such run.
        """
        ...

    def children(self, run_id: str) -> list[RunSummary]:
        """Return the forks of a run, oldest first."""
        ...

    def document(self, run_id: str) -> str:
        """Return the workflow of a run as the text of a workflow file."""
        ...

    def options(self, run_id: str) -> dict[str, Any]:
        """Return the options of a run (`RunHead.options`)."""
        ...

    def events(
        self,
        run_id: str,
        *,
        level: str | None = None,
        kinds: Collection[type[AnyEvent]] | None = None,
        after: int = -1,
        preview: int | None = None,
    ) -> Iterator[AnyEvent]:
        """Iterate over the events of a run in order, reading them lazily.

        Args:
            run_id: The run.
            level: Only events directly on this level: "" for the outermost, `loop[2]`, `outer[1].inner[0]`; None for
                all. An event of the loop itself (`loop.iteration.completed`, path `loop`) is on the level around it.
            kinds: Only events of these types.
            after: Only events with a greater number (`seq`).
            preview: Truncate texts to this many characters and "…"; lists and objects become the truncated text of
                their JSON. None for whole values.
        """
        ...

    def import_run(self, head: RunHead, events: Iterable[AnyEvent]) -> str:
        """Import an exported run.

        Returns:
            Its id; a new one if the id is in use.
        """
        ...

    def post_answer(self, run_id: str, posted: PostedAnswer) -> None:
        """Post an answer for the process that owns a run.

        Raises:
            StoreError: There is no such run, or the question already has a pending answer.
        """
        ...

    def withdraw_answer(self, run_id: str, question: int) -> None:
        """Remove the pending answer to a question, if there is one."""
        ...

    def pin(self, run_id: str, *, pinned: bool) -> None:
        """Protect a run from retention, or stop protecting it."""
        ...

    def set_source(self, run_ids: Collection[str], source: str) -> None:
        """Set the workflow file of runs whose document had none; it was saved after they started."""
        ...

    def delete(self, run_ids: Collection[str]) -> None:
        """Delete runs and return their space to the disk. Running runs are refused."""
        ...

    def retain(self, *, most_runs: int | None, most_bytes: int | None) -> int:
        """Delete the oldest runs that are neither pinned nor running until both limits hold. Return their number."""
        ...

    def vacuum(self) -> int:
        """Return all free space to the disk. Return the bytes gained."""
        ...

    def size(self) -> int:
        """Return the bytes on disk."""
        ...

    def cached_reply(self, key: str) -> Reply | None:
        """Return the cached reply for a key, or None."""
        ...

    def cache_reply(self, key: str, run_id: str, reply: Reply) -> None:
        """Cache a reply for other runs while its run is stored. Returns at once."""
        ...

    def close(self) -> None:
        """Write what is pending and close the file."""
        ...
