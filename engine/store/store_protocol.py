"""What a store of runs is, for whoever reads it: command line, window, resume and fork.

A store has an append-only log of events for each run. Everything else that it says of a run (its status, its cost, how
many iterations it made) is selected from the state that the log reduces to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from engine.errors import EngineError
from engine.events import AnyEvent
from engine.models.protocol import Reply
from engine.run_state.state import RunState, RunStatus
from engine.runner.run_storage import PostedAnswer, RunHead, RunStorage
from engine.text_sanitizing import shown


class StoreError(EngineError):
    """Something about the history cannot be done: the file, the disk, a run that is not there."""


class RunHeldError(StoreError):
    """A process is at work on the run."""


def level_of(path: str) -> str:
    """The level of an event with this path: `loop[2]` for `loop[2].draft`, "" for `loop`."""
    return path.rpartition(".")[0]


ACTIVE: Final = frozenset({RunStatus.RUNNING, RunStatus.PAUSED})
"""The statuses of a run that has a process."""
OPEN: Final = ACTIVE | {RunStatus.WAITING}
"""The statuses of a run that has not ended and continues, or waits for a person."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run, as lists show it.

    Attributes:
        run_id: The run.
        workflow: The document's name.
        source: The file that the document came from; empty where it never was saved.
        status: How it stands.
        started: When it began, in seconds since the epoch (UTC).
        updated: When its last event was told.
        duration_s: Seconds at work, as the run itself told; None before its end.
        iterations: How many iterations its loops have made, nested ones included.
        exit_reason: Why its outermost loop stopped, of several the one that ended last; empty before.
        tokens: Tokens used, in and out together.
        cost_usd: US dollars; None where a price is unknown.
        models: The models that it may call.
        error: What failed and why; empty where nothing did.
        parent: The run that it was forked from; empty for any other.
        forked_at: The place in the parent.
        pinned: Whether retention leaves it alone.
        size: Bytes that only this run takes in the store, as far as known.
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
    pinned: bool
    size: int


def summary_of(state: RunState, head: RunHead, *, is_held: bool, pinned: bool, size: int) -> RunSummary:
    """The summary of a run in this state.

    Args:
        state: The state, of any detail.
        head: What was known of the run before its first event.
        is_held: Whether a process holds it.
        pinned: Whether retention leaves it alone.
        size: Bytes that it takes.
    """
    return RunSummary(
        head.run_id,
        state.workflow,
        head.source,
        status_seen(state.status, is_held=is_held),
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
        pinned,
        size,
    )


def status_seen(status: RunStatus, *, is_held: bool) -> RunStatus:
    """The status of a run: one that should have a process and has none is interrupted."""
    return RunStatus.INTERRUPTED if status in ACTIVE and not is_held else status


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs are meant; a field that is left as it is leaves all.

    Attributes:
        workflow: Part of the document's name or source, in any case.
        statuses: Their states; empty for any.
        since: Started at that time or later, in seconds since the epoch.
        until: Started before that time.
        parent: Forked from that run.
        pinned: Only pinned ones.
        strategy: With an agent of that turn strategy.
    """

    workflow: str = ""
    statuses: frozenset[RunStatus] = frozenset()
    since: float | None = None
    until: float | None = None
    parent: str = ""
    pinned: bool = False
    strategy: str = ""


EVERY_RUN: Final = RunFilter()


@dataclass(frozen=True, slots=True)
class Totals:
    """What runs come to: their number, tokens and cost, and whether prices unknown are left out of it."""

    count: int
    tokens: int
    cost_usd: float
    price_unknown: bool


class Store(RunStorage, Protocol):
    """A store of runs. Its methods may be called from any thread, and each raises `StoreError` in one sentence."""

    def runs(self, which: RunFilter = EVERY_RUN, *, limit: int = 100, offset: int = 0) -> list[RunSummary]:
        """Runs, the newest first."""
        ...

    def totals(self, which: RunFilter = EVERY_RUN) -> Totals:
        """What those runs come to."""
        ...

    def find(self, prefix: str) -> RunSummary:
        """The one run whose id begins so.

        Raises:
            StoreError: There is none, or there are several (the sentence lists them).
        """
        ...

    def is_held(self, run_id: str) -> bool:
        """Whether a process is at work on a run, or waits with it for a person.

        Raises:
            StoreError: There is no such run.
        """
        ...

    def children(self, run_id: str) -> list[RunSummary]:
        """The runs that were forked from a run, the oldest first."""
        ...

    def document(self, run_id: str) -> str:
        """The document as the run ran it, as the text of a workflow file."""
        ...

    def options(self, run_id: str) -> dict[str, Any]:
        """How the run was to be done (`RunHead.options`)."""
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
        """A run's events, in order, read as they are asked for.

        Args:
            run_id: The run.
            level: Only what lies directly on that level: "" for the outermost, `loop[2]`, `outer[1].inner[0]`; None for
                all. An event of the loop itself (`loop.iteration.completed`, path `loop`) lies on the level around it.
            kinds: Only events of these types.
            after: Only those with a greater number (`seq`).
            preview: Texts longer than that many characters come cut to that length with "…" at their end, lists and
                objects cut likewise as the text of their JSON; None: values come whole.
        """
        ...

    def import_run(self, head: RunHead, events: Iterable[AnyEvent]) -> str:
        """Take in a run that was exported, as it was.

        Returns:
            Its id; a new one where the store has another run of the same id.
        """
        ...

    def leave_answer(self, run_id: str, left: PostedAnswer) -> None:
        """Leave an answer for the process that is at work on a run.

        Raises:
            StoreError: There is no such run, or somebody has left an answer to that question already.
        """
        ...

    def take_answer_back(self, run_id: str, question: int) -> None:
        """Take away what was left for a question, taken up or not; nothing there is no error."""
        ...

    def pin(self, run_id: str, *, pinned: bool) -> None:
        """Keep a run from retention, or no longer."""
        ...

    def delete(self, run_ids: Collection[str]) -> None:
        """Delete runs and give the space that only they took back to the disk. Runs under way are refused."""
        ...

    def retain(self, *, most_runs: int | None, most_bytes: int | None) -> int:
        """Delete the oldest runs that are neither pinned nor under way until both limits hold; how many were."""
        ...

    def vacuum(self) -> int:
        """Give all free space back to the disk; bytes won."""
        ...

    def size(self) -> int:
        """Bytes on disk."""
        ...

    def cached(self, key: str) -> Reply | None:
        """The reply kept under that key by `keep_reply`; None where there is none."""
        ...

    def keep_reply(self, key: str, run_id: str, reply: Reply) -> None:
        """Keep a reply for other runs, as long as its run is kept. Returns at once."""
        ...

    def close(self) -> None:
        """Write what is still to be written, and let go of the file."""
        ...


def no_such_run(name: str) -> StoreError:
    """No run has that id."""
    return StoreError(f'There is no run "{name}" in the history.', "'loopwright runs' lists the runs.")


def chosen(prefix: str, found: Sequence[str]) -> str:
    """The one id of those that begin with the prefix.

    Args:
        prefix: What was asked for.
        found: The ids that begin so, the newest run's first; an id that is the whole prefix counts alone.

    Raises:
        StoreError: There is none, or there are several.
    """
    if not prefix or not found:
        raise no_such_run(prefix)
    if prefix in found:
        return prefix
    if len(found) > 1:
        listed = ", ".join(found[:10]) + (" …" if len(found) > 10 else "")
        raise StoreError(f'Several runs begin with "{prefix}": {listed}.', "Give more letters of the id.")
    return found[0]


def still_under_way(run_ids: Collection[str]) -> StoreError:
    """Runs that cannot be deleted yet."""
    listed = ", ".join(sorted(run_ids))
    return StoreError(f"A run that is under way cannot be deleted: {listed}.", "Stop it first.")


def held_elsewhere(run_id: str) -> RunHeldError:
    """A run on which a process is at work."""
    return RunHeldError(
        f'The run "{run_id}" is under way in another window or program.', "Wait for its end, or stop it there first."
    )


def begun_before(run_id: str) -> StoreError:
    """A run whose id is taken."""
    return StoreError(f'The history has a run "{run_id}" already.', "Start it again; it gets another id.")


def answered_before(path: str) -> StoreError:
    """Somebody else was faster."""
    return StoreError(
        f'Somebody else has answered the question at "{shown(path, 60)}" already.', "Look how the run goes on."
    )


def closed() -> StoreError:
    """The store is used after its end."""
    return StoreError("The history was closed.", "Open it again.")
