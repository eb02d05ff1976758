"""Past of a resumed run, reduced from its events, and the calls that were in flight when it stopped.

A resumed run executes the same plan again. A node that had finished passes on its earlier outputs without running or
reporting again. A completed iteration stays as it was, and a finished model call of an unfinished node is not repeated.
Everything else runs. A fork works in the same way: its log starts with the events of its parent before the fork
(`engine.runner.fork`).

`loop.started` voids everything that was reported inside the loop before. An iterator counts as a loop here, and its
items as iterations that may have completed in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.events import (
    AnyEvent,
    LoopIterationCompleted,
    LoopIterationStarted,
    LoopStarted,
    NodeAnswered,
    NodeCalled,
    NodeCalling,
    NodeCompleted,
    NodeFailed,
    NodeNoted,
    NodeRetrying,
    NodeSkipped,
    NodeStarted,
    NodeToolCalled,
    NodeToolCalling,
    NotePosted,
    RunStarted,
    parse_place,
    with_loop_starts,
)
from engine.models.protocol import ModelCall, Request, Usage, add_costs, clean_request
from engine.nodes.context import Answer
from engine.nodes.spec import PAIR_BY_START, Outputs
from engine.runner.budget import Budget
from engine.runner.human_input import Note
from engine.runner.named_state import State, StateView
from engine.values import Value


@dataclass(slots=True)
class Spending:
    """Cost of the executions of a node, unfinished ones included."""

    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = 0.0

    def add(self, usage: Usage | None, cost_usd: float | None) -> None:
        """Add the cost of an execution; None for an unknown price."""
        if usage is not None:
            self.usage += usage
        self.cost_usd = add_costs(self.cost_usd, cost_usd)


@dataclass(frozen=True, slots=True)
class Attempts:
    """Failed attempts of an execution.

    Attributes:
        made: Number of failed attempts.
        failed: Number of used retries: failed attempts since the last change of the model.
        fallback: The fallback model in use; empty for the node's own model.
    """

    made: int = 0
    failed: int = 0
    fallback: str = ""


@dataclass(slots=True)
class NodeProgress:
    """Progress of an unfinished execution of a node, apart from its model calls.

    Attributes:
        state: The named state at its start.
        tool_calls: Finished tool calls.
        answers: Answers of people that no tool call has used.
        notes: Received notes, each with the number of model calls finished before.
        attempts: Failed attempts.
        failed_after: Number of finished model calls at each failure after which the execution continued.
    """

    state: StateView | None = None
    tool_calls: list[NodeToolCalled] = field(default_factory=list[NodeToolCalled])
    answers: list[Answer] = field(default_factory=list[Answer])
    notes: list[tuple[int, Note]] = field(default_factory=list[tuple[int, Note]])
    attempts: Attempts = field(default_factory=Attempts)
    failed_after: list[int] = field(default_factory=list[int])

    def fail(self, *, goes_on: bool) -> None:
        """Record a failed attempt; unless the next one continues there, it receives all notes at its first call."""
        self.answers.clear()  # the next attempt asks again
        if not goes_on:
            self.tool_calls.clear()
            self.failed_after.clear()
            self.notes = [(0, note) for _, note in self.notes]


class Replay:
    """The past of a run.

    Args:
        past: Its events in order.

    Attributes:
        state: The named state.
        pending_notes: Notes that nobody had received.
    """

    def __init__(self, past: Iterable[AnyEvent]) -> None:
        self.state = State()
        self.pending_notes: list[Note] = []
        self._finished: dict[str, Outputs | None] = {}
        self._finished_calls: dict[str, tuple[ModelCall, ...]] = {}
        self._spent: dict[str, Spending] = {}
        self._calls: dict[str, list[ModelCall]] = {}
        self._failed_attempts: dict[str, Spending] = {}
        self._loops_spent: dict[str, Spending] = {}
        self._charged: set[str] = set()
        self._progress: dict[str, NodeProgress] = {}
        self._exits: set[str] = set()
        self._with_error: set[str] = set()
        self._iterations: dict[str, dict[int, LoopIterationCompleted]] = {}
        self._started: set[str] = set()
        self._last_started: dict[str, int] = {}
        self._fork_iterations: dict[str, int] = {}
        self._edits: dict[str, Value] = {}
        handlers: dict[type[AnyEvent], Callable[[Any], None]] = {
            RunStarted: self._run_started,
            NodeStarted: self._node_started,
            NodeCalled: self._node_called,
            NodeToolCalled: self._node_tool_called,
            NotePosted: self._note_posted,
            NodeNoted: self._node_noted,
            NodeRetrying: self._node_retrying,
            NodeAnswered: self._node_answered,
            NodeCompleted: self._node_completed,
            NodeFailed: self._node_failed,
            NodeSkipped: self._node_skipped,
            LoopStarted: self._loop_started,
            LoopIterationStarted: self._iteration_started,
            LoopIterationCompleted: self._iteration_completed,
        }
        for event in with_loop_starts(past):
            handler = handlers.get(type(event))
            if handler is not None:
                handler(event)

    def has_finished(self, path: str) -> bool:
        """Whether a node had completed or had been skipped."""
        return path in self._finished

    def outputs(self, path: str) -> Outputs | None:
        """Return the outputs of a node that had completed; None for other nodes."""
        return self._finished.get(path)

    def calls_of(self, path: str) -> tuple[ModelCall, ...]:
        """Return the model calls of a node that had completed."""
        return self._finished_calls.get(path, ())

    def charge(self, path: str, budget: Budget) -> None:
        """Charge the past cost of a node to a budget; each amount is charged once."""
        whole_loop = self._loops_spent.pop(path, None) if path in self._finished else None
        spent = whole_loop or self._take_uncharged(path)
        if spent is not None:
            budget.charge(spent.usage, spent.cost_usd)

    def call(self, path: str, number: int, model: str, request: Request) -> ModelCall | None:
        """Return a finished model call if it equals the call that is about to be made."""
        calls = self._calls.get(path, ())
        if number >= len(calls) or calls[number].model != model or clean_request(calls[number].request) != request:
            return None
        return calls[number]

    def answer(self, path: str) -> Answer | None:
        """Take the oldest unused answer of a person to a node."""
        progress = self._progress.get(path)
        return progress.answers.pop(0) if progress is not None and progress.answers else None

    def tool_call(self, path: str, number: int, tool: str, arguments: Value) -> NodeToolCalled | None:
        """Return a finished tool call if it equals the call that is about to be made."""
        calls = self._progress[path].tool_calls if path in self._progress else []
        if number >= len(calls) or (calls[number].tool, calls[number].arguments) != (tool, arguments):
            return None
        return calls[number]

    def notes(self, path: str, calls: int) -> list[Note]:
        """Return the notes that a node had received after that many finished calls."""
        progress = self._progress.get(path)
        return [] if progress is None else [note for number, note in progress.notes if number == calls]

    def state_at_start(self, path: str) -> StateView | None:
        """Return the state at the start of an unfinished node; None if it had not started."""
        progress = self._progress.get(path)
        return None if progress is None else progress.state

    def attempts(self, path: str) -> Attempts:
        """Return the failed attempts of an unfinished node."""
        progress = self._progress.get(path)
        return Attempts() if progress is None else progress.attempts

    def take_failure_after(self, path: str, calls: int) -> bool:
        """Take a failure after that many finished calls, if the next attempt had continued from there."""
        progress = self._progress.get(path)
        if progress is None or calls not in progress.failed_after:
            return False
        progress.failed_after.remove(calls)
        return True

    def exited_loop(self, path: str) -> bool:
        """Whether a node had ended the loop around it."""
        return path in self._exits

    def has_started(self, loop: str) -> bool:
        """Whether the current attempt of a loop had started."""
        return loop in self._started

    def iteration_started(self, loop: str, index: int) -> bool:
        """Whether an iteration had started."""
        return self._last_started.get(loop, -1) >= index

    def continued_after(self, loop: str, index: int) -> bool:
        """Whether the loop had continued after an iteration."""
        return max(self._last_started.get(loop, -1), self._fork_iterations.get(loop, -1)) > index

    def iteration(self, loop: str, index: int) -> LoopIterationCompleted | None:
        """Return an iteration if it had completed."""
        return self._iterations.get(loop, {}).get(index)

    def charge_iterations(self, loop: str, budgets: Mapping[int, Budget]) -> None:
        """Charge the past cost of the nodes of some iterations to `budgets`, by index; each amount is charged once."""
        inside = f"{loop}["
        for path in self._paths_to_charge(inside):
            budget = budgets.get(int(path[len(inside) : path.index("]", len(inside))]))
            owed = self._take_uncharged(path) if budget is not None else None
            if budget is not None and owed is not None:
                budget.charge(owed.usage, owed.cost_usd)

    def exited_iterations(self) -> set[str]:
        """Return the iterations (`each[2]`) in which a node had ended the loop around it."""
        return {path.rpartition(".")[0] for path in self._exits}

    def edited_input(self, loop: str, index: int, value: Value) -> Value:
        """Return the input of an iteration as edited by a person, or else `value`."""
        return self._edits.get(f"{loop}[{index}]", value)

    def discard_attempt(self, path: str) -> None:
        """Discard what an attempt of a loop, an iterator or a subflow reported; its cost stays spent."""
        self._discard_iterations(path)
        self._discard_inside(path, f"{path}.")

    def completed_with_error(self, path: str) -> bool:
        """Whether a node had completed although it failed."""
        return path in self._with_error

    def _discard_iterations(self, loop: str) -> None:
        begun = self._last_started.pop(loop, None)
        self._started.discard(loop)
        self._iterations.pop(loop, None)
        self._fork_iterations.pop(loop, None)
        if begun is None:
            return
        self._discard_inside(loop, f"{loop}[")

    def _discard_inside(self, owner: str, inside: str) -> None:
        nodes = (self._finished, self._finished_calls, self._calls, self._progress)
        loops = (self._iterations, self._last_started, self._loops_spent)
        all_by_path: tuple[dict[str, Any], ...] = (*nodes, *loops)
        self.state.discard(inside)
        for path in self._paths_to_charge(inside):
            owed = self._take_uncharged(path)
            if owed is not None:
                self._spent.setdefault(owner, Spending()).add(owed.usage, owed.cost_usd)
        for by_path in all_by_path:
            for path in [path for path in by_path if path.startswith(inside)]:
                del by_path[path]
        for paths in (self._exits, self._with_error, self._charged, self._started):
            paths.difference_update([path for path in paths if path.startswith(inside)])

    def _paths_to_charge(self, inside: str) -> set[str]:
        """Return the paths with a prefix whose cost may not have been charged completely."""
        amounts = (self._spent, self._failed_attempts, self._calls)
        return {path for by_path in amounts for path in by_path if path.startswith(inside)}

    def _take_uncharged(self, path: str) -> Spending | None:
        """Take the cost of a node that no budget has been charged with; None if there is none."""
        spent, unended = self._spent.pop(path, None), self._failed_attempts.pop(path, None)
        calls = self._calls.get(path, []) if path not in self._charged else []
        if spent is None and unended is None and not calls:
            return None
        owed = spent or Spending()
        if unended is not None:
            owed.add(unended.usage, unended.cost_usd)
        for call in calls:
            owed.add(call.reply.usage, call.cost_usd)
        self._charged.add(path)
        return owed

    # Event handlers

    def _run_started(self, event: RunStarted) -> None:
        self._edits = dict(event.edits)
        self.state = State(event.state_order)
        if event.forked_at:
            for loop, index in parse_place(event.forked_at).iterations():
                self._fork_iterations[loop] = index

    def _node_started(self, event: NodeStarted) -> None:
        # This execution continues an interrupted one: its figures include the finished calls, but not failed attempts.
        unended = self._failed_attempts.pop(event.path, None)
        if unended is not None:
            self._spent.setdefault(event.path, Spending()).add(unended.usage, unended.cost_usd)
        self._finished.pop(event.path, None)
        progress = self._progress_at(event.path)
        progress.state = progress.state or self.state.at(event.path)

    def _node_called(self, event: NodeCalled) -> None:
        self._calls.setdefault(event.path, []).append(event.call)

    def _node_tool_called(self, event: NodeToolCalled) -> None:
        progress = self._progress_at(event.path)
        progress.tool_calls.append(event)
        progress.answers.clear()  # the questions were about this call

    def _note_posted(self, event: NotePosted) -> None:
        self.pending_notes.append(Note(event.to, event.text, event.path))

    def _node_noted(self, event: NodeNoted) -> None:
        note = Note(event.to, event.text, event.sender)
        if note in self.pending_notes:
            self.pending_notes.remove(note)
        self._progress_at(event.path).notes.append((len(self._calls.get(event.path, ())), note))

    def _node_retrying(self, event: NodeRetrying) -> None:
        progress = self._progress_at(event.path)
        progress.fail(goes_on=event.goes_on)
        before = progress.attempts
        fallback, failed = event.fallback or before.fallback, 0 if event.fallback else before.failed + 1
        progress.attempts = Attempts(event.attempt, failed, fallback)
        if event.goes_on:
            progress.failed_after.append(len(self._calls.get(event.path, ())))
            return
        self.discard_attempt(event.path)
        # Calls of a failed attempt are not reused, but were paid for.
        for call in self._calls.pop(event.path, ()):
            self._failed_attempts.setdefault(event.path, Spending()).add(call.reply.usage, call.cost_usd)

    def _node_answered(self, event: NodeAnswered) -> None:
        self._progress_at(event.path).answers.append(Answer(event.choice, event.value, event.comment))

    def _node_completed(self, event: NodeCompleted) -> None:
        self._end(event)
        self._finished[event.path] = event.outputs
        self._progress.pop(event.path, None)
        self.state.set(event.path, event.output_key, event.outputs)
        if event.exits_loop:
            self._exits.add(event.path)
        if event.error:
            self._with_error.add(event.path)
        self._finished_calls[event.path] = event.calls
        if event.node_type in PAIR_BY_START:
            self._loops_spent[event.path] = Spending(event.usage or Usage(), event.cost_usd)

    def _node_failed(self, event: NodeFailed) -> None:
        self._end(event)
        progress = self._progress_at(event.path)
        progress.fail(goes_on=False)
        progress.attempts = Attempts()
        progress.state = None  # another attempt is another execution

    def _progress_at(self, path: str) -> NodeProgress:
        return self._progress.setdefault(path, NodeProgress())

    def _end(self, event: NodeCompleted | NodeFailed) -> None:
        """Replace the figures of an execution by those that it reported at its end, failed attempts included."""
        for by_path in (self._calls, self._failed_attempts):
            by_path.pop(event.path, None)
        if event.node_type not in PAIR_BY_START:  # the nodes of a loop report its cost
            self._spent.setdefault(event.path, Spending()).add(event.usage, event.cost_usd)

    def _node_skipped(self, event: NodeSkipped) -> None:
        self._finished[event.path] = None

    def _loop_started(self, event: LoopStarted) -> None:
        self._discard_iterations(event.path)
        self._started.add(event.path)

    def _iteration_started(self, event: LoopIterationStarted) -> None:
        self._last_started[event.path] = max(self._last_started.get(event.path, 0), event.index)

    def _iteration_completed(self, event: LoopIterationCompleted) -> None:
        self._iterations.setdefault(event.path, {})[event.index] = event


@dataclass(frozen=True, slots=True)
class UnknownCall:
    """A call that was in flight when its run stopped: nobody knows whether it finished.

    Attributes:
        path: The node that made it.
        model: The model; empty for a tool call.
        tool: The tool; empty for a model call.
        arguments: The tool's arguments as JSON text, truncated.
    """

    path: str
    model: str = ""
    tool: str = ""
    arguments: str = ""


@dataclass(slots=True)
class _ModelCall:
    """A model call that was begun; histories of older versions have the request only of a finished call."""

    model: str
    request: Request | None


class CallLog:
    """The calls in a run's past.

    Args:
        past: The run's events, in order.
    """

    def __init__(self, past: Iterable[AnyEvent]) -> None:
        self._last_started: list[_ModelCall] = []
        self._models: dict[str, _ModelCall] = {}
        self._tools: dict[str, UnknownCall] = {}
        self._repeated: dict[str, _ModelCall] = {}
        handlers: dict[type[AnyEvent], Callable[[Any], object]] = {
            NodeStarted: self._node_started,
            NodeCalling: self._node_calling,
            NodeCalled: self._node_called,
            NodeToolCalling: self._node_tool_calling,
            NodeToolCalled: lambda event: self._tools.pop(event.path, None),
            NodeRetrying: self._node_retrying,
            NodeCompleted: self._node_completed,
            NodeFailed: lambda event: self._end(event.path),
            LoopStarted: lambda event: self._end_inside(event.path),
        }
        for event in with_loop_starts(past):
            handler = handlers.get(type(event))
            if handler is not None:
                handler(event)

    @property
    def in_flight(self) -> dict[str, UnknownCall]:
        """The calls in flight, by the path of their node; a node makes one at a time."""
        return {path: UnknownCall(path, call.model) for path, call in self._models.items()} | self._tools

    def requests(self, model: str) -> list[Request]:
        """The requests of all calls of that model, in the order in which they were begun; each once."""
        return [call.request for call in self._last_started if call.model == model and call.request is not None]

    def paths_in_flight(self, model: str) -> set[str]:
        """The nodes with a call of that model in flight whose request is known."""
        calls = {**self._repeated, **self._models}
        return {path for path, call in calls.items() if call.model == model and call.request is not None}

    def _node_started(self, event: NodeStarted) -> None:
        call = self._models.get(event.path)
        self._end(event.path)
        if call is not None:  # the run was resumed: this execution makes the call again
            self._repeated[event.path] = call

    def _node_calling(self, event: NodeCalling) -> None:
        call = self._repeated.pop(event.path, None)
        if call is None or call.model != event.model:
            call = _ModelCall(event.model, event.request)
            self._last_started.append(call)
        self._models[event.path] = call

    def _node_called(self, event: NodeCalled) -> None:
        call = self._models.pop(event.path, None)  # none for a cached reply
        if call is not None and call.request is None:
            call.request = event.call.request

    def _node_tool_calling(self, event: NodeToolCalling) -> None:
        self._tools[event.path] = UnknownCall(event.path, "", event.tool, event.arguments)

    def _node_retrying(self, event: NodeRetrying) -> None:
        self._end(event.path)
        self._end_inside(event.path)

    def _node_completed(self, event: NodeCompleted) -> None:
        self._end(event.path)
        self._end_inside(event.path)  # a loop that timed out may complete with calls in flight

    def _end_inside(self, path: str) -> None:
        inside = (f"{path}[", f"{path}.")
        for other in [*self._models, *self._tools, *self._repeated]:
            if other.startswith(inside):
                self._end(other)

    def _end(self, path: str) -> None:
        for by_path in (self._models, self._tools, self._repeated):
            by_path.pop(path, None)
