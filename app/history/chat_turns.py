"""The runs of a document as a chat: for each run the text that it was given, and its answer. Independent of Qt."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from app.history.run_labels import STATUS_LABELS, time_label
from app.runs.run_view_model import RunViewModel, node_of
from engine.document.model import Workflow
from engine.errors import EngineError
from engine.events import RunCancelled, RunCompleted, RunFailed, RunStarted
from engine.formatting import format_duration, format_money
from engine.nodes.spec import PortType
from engine.run_state.reducer import reduce_events
from engine.run_state.state import Detail, RunState, RunStatus
from engine.runner.declared_inputs import DeclaredInput, declared_inputs
from engine.store.store_protocol import RunFilter, RunSummary, Store
from engine.values import Value, to_text

PAGE: Final = 20
"""Number of runs that are read at once."""

_KINDS: Final = frozenset({RunStarted, RunCompleted, RunFailed, RunCancelled})


def chat_input(workflow: Workflow) -> DeclaredInput | None:
    """Return the input that a chat fills in: the only text, or the only one that must be given; None for no chat."""
    texts = [item for item in declared_inputs(workflow) if item.type in {PortType.TEXT, PortType.ANY}]
    required = [item for item in texts if item.default is None]
    candidates = required if len(texts) > 1 else texts
    return candidates[0] if len(candidates) == 1 else None


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """One run.

    Attributes:
        run_id: Its id; empty before its first event.
        text: The text that it was given.
        status: Its status.
        outputs: Its outputs by name.
        error: What failed and why; empty if nothing did.
        node: The node that failed; empty if none did.
        iterations: Number of completed iterations.
        facts: Cost, duration and time in one line.
    """

    run_id: str
    text: str
    status: RunStatus
    outputs: Mapping[str, Value] = field(default_factory=dict[str, Value])
    error: str = ""
    node: str = ""
    iterations: int = 0
    facts: str = ""

    @property
    def is_over(self) -> bool:
        """Whether nothing of it runs any more."""
        return self.status not in {RunStatus.RUNNING, RunStatus.PAUSED}

    @property
    def label(self) -> str:
        """Its status and facts in one line; a finished run needs no status."""
        status = "" if self.status is RunStatus.COMPLETED else STATUS_LABELS[self.status]
        return " · ".join(filter(None, (status, self.facts)))


def turn_of_run(run_id: str, view_model: RunViewModel, given: DeclaredInput) -> ChatTurn:
    """Return the turn of a displayed run."""
    iterations = sum(len(loop.iterations) for loop in view_model.loops.values())
    status = RunStatus(view_model.status)
    return _turn(run_id, view_model.state, given, status, iterations, view_model.cost_usd)


def _turn(
    run_id: str, state: RunState, given: DeclaredInput, status: RunStatus, iterations: int, cost_usd: float | None
) -> ChatTurn:
    facts: list[str] = []
    if state.duration_s is not None:
        facts = [*([format_money(cost_usd)] if cost_usd != 0 else []), format_duration(state.duration_s)]
        facts.append(time_label(state.started))
    return ChatTurn(
        run_id,
        to_text(state.inputs.get(given.name, given.default)),
        status,
        dict(state.outputs),
        f"{state.error} {state.remedy}".strip(),
        node_of(state.failed_node) if state.failed_node else "",
        iterations,
        " · ".join(facts),
    )


@dataclass(frozen=True, slots=True)
class ChatPage:
    """Some turns, the oldest first.

    Attributes:
        turns: The turns.
        offset: Where the next page starts.
        has_more: Whether there are older ones.
    """

    turns: list[ChatTurn]
    offset: int
    has_more: bool


def read_chat(store: Store, source: str, given: DeclaredInput, known: Collection[str], offset: int = 0) -> ChatPage:
    """Read whole runs of a document, the newest ones of those that are not known.

    Args:
        store: The history.
        source: The file of the document.
        given: The input that the chat fills in.
        known: Runs to leave out.
        offset: Where to start, counted from the newest run.

    Raises:
        StoreError: They cannot be read.
    """
    found = store.runs(RunFilter(source=source), limit=PAGE, offset=offset)
    wanted = [summary for summary in found if summary.run_id not in known]
    turns = [turn for summary in reversed(wanted) if (turn := _stored_turn(store, summary, given)) is not None]
    return ChatPage(turns, offset + len(found), len(found) == PAGE)


def _stored_turn(store: Store, summary: RunSummary, given: DeclaredInput) -> ChatTurn | None:
    try:
        events = store.events(summary.run_id, kinds=_KINDS)
        state = reduce_events(events, summary.run_id, Detail.LOOPS)
    except EngineError:  # deleted meanwhile, or damaged: the list of runs says so
        return None
    if state.part is not None:  # it has no answer
        return None
    return _turn(summary.run_id, state, given, summary.status, summary.iterations, summary.cost_usd)
