"""Sections of stored runs to show and compare: results, feedback, prompts and replies by path."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Final

from engine.document.files import loads
from engine.document.model import Workflow
from engine.errors import EngineError, Fix
from engine.events import (
    AnyEvent,
    LoopIterationCompleted,
    LoopIterationStarted,
    LoopStarted,
    NodeCalled,
    NodeCompleted,
    NodeFailed,
    NodeRetrying,
    NodeSkipped,
    NodeStarted,
    Place,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunResumed,
    RunStarted,
    parse_place,
    with_loop_starts,
)
from engine.formatting import format_value
from engine.models.protocol import ModelCall
from engine.nodes.node_registry import builtin_registry
from engine.plan.structure import Structure, analyse
from engine.run_state.reducer import end_open_nodes, reduce_events
from engine.run_state.result import run_outputs
from engine.run_state.state import NodeExecution, NodeState, RunState, RunStatus, iteration_at
from engine.store.store_protocol import OPEN, RunSummary, Store, StoreError, level_of
from engine.values import Value

_EXAMPLE: Final = 200
"""Characters of an example value in an error."""

_RUN_ENDS: Final = (RunCompleted, RunFailed, RunCancelled, RunResumed)
_ITERATIONS: Final = (LoopStarted, LoopIterationStarted, LoopIterationCompleted)
_NODES: Final = (NodeStarted, NodeCalled, NodeRetrying, NodeCompleted, NodeFailed, NodeSkipped)


class Section(StrEnum):
    """A section of an iteration or node."""

    RESULT = "result"
    FEEDBACK = "feedback"
    PROMPT = "prompt"
    REPLY = "reply"


def workflow_or_empty(document: str) -> Workflow:
    """Parse the document of a run for display; empty if it is invalid, as in an imported run."""
    try:
        return loads(document)
    except EngineError:
        return Workflow()


def structure_or_empty(document: str) -> Structure:
    """Analyze the document of a run; empty if it is invalid."""
    return analyse(workflow_or_empty(document), builtin_registry())


def display_text(value: Value) -> str:
    """Format a value for display: texts unchanged, None as an empty text, others as indented JSON."""
    return "" if value is None else format_value(value)


def prompts_text(calls: Collection[ModelCall]) -> str:
    """Join the prompts of all calls of a node, each message under its role."""
    return "\n\n".join(f"{message.role}:\n{message.text}" for call in calls for message in call.request.messages)


def node_result(node: NodeExecution) -> Value:
    """Return the one value of a node that `loop.last.ID` and a comparison show."""
    outputs = dict(node.outputs)
    spec = builtin_registry().find(node.node_type)
    value: Value = spec.recorded(outputs) if outputs and spec is not None else outputs.get("output")
    return value if value is not None or not outputs else next(iter(outputs.values()))


def section_text(store: Store, run_id: str, place: str, part: Section = Section.RESULT) -> str:
    """Return the text of a section of a run.

    Args:
        store: The history.
        run_id: The complete run id.
        place: An iteration (`loop[2]`), a node (`loop[2].draft`, `draft`), or empty for the whole run.
        part: The section.

    Raises:
        PlaceError: The path is invalid.
        StoreError: The run has nothing there, or not this section.
    """
    if not place:
        return _of_run(store, run_id, part)
    parsed = parse_place(place)
    find = _of_node if parsed.last.index is None else _of_iteration
    return find(store, run_id, parsed, part)


def parse_like_stored(store: Store, run_id: str, place: str, text: str) -> Value:
    """Parse a value that the user typed to replace a stored one: as JSON unless the stored value is a text.

    Args:
        store: The history.
        run_id: The complete run id.
        place: An iteration, for its input, or a node, for its output.
        text: The typed text.

    Raises:
        PlaceError: The path is invalid.
        StoreError: The stored value is JSON and the text is not.
    """
    before = _value_at(store, run_id, parse_place(place))
    if before is None or isinstance(before, str):
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        raise StoreError(
            f"The value at {place} is JSON, but the new value is not ({error}).",
            f"Write it like this: {json.dumps(before, ensure_ascii=False)[:_EXAMPLE]}",
        ) from error


def _value_at(store: Store, run_id: str, place: Place) -> Value:
    """Return the output of a node or the input of an iteration; None if the run did not reach it."""
    if place.last.index is None:
        node = state_of(store, run_id, place.level, _NODES).nodes.get(str(place))
        return node_result(node) if node is not None else None
    ended = iteration_at(state_of(store, run_id, place.level, _ITERATIONS), str(place))
    return ended.input if ended is not None else None


def state_of(
    store: Store, run_id: str, level: str | None = None, kinds: Collection[type[AnyEvent]] | None = None
) -> RunState:
    """Return the state of a run from the events of one level, or of all (None)."""
    return reduce_events(store.events(run_id, level=level, kinds=kinds), run_id)


def level_state(store: Store, run: RunSummary, level: str) -> RunState:
    """Return the state of one level. If the run has ended, unfinished nodes are cancelled or interrupted."""
    after = attempt_start(store, run.run_id, level)
    state = reduce_events(store.events(run.run_id, level=level, after=after), run.run_id)
    if run.status not in OPEN:
        is_interrupted = run.status is RunStatus.INTERRUPTED
        end_open_nodes(state, NodeState.INTERRUPTED if is_interrupted else NodeState.CANCELLED)
    return state


def attempt_start(store: Store, run_id: str, level: str) -> int:
    """Return the number of the event that started the last attempt of what contains a level; -1 for the first attempt.

    Earlier events of the level are void, which the level's own events do not show.
    """
    loops = [level[: match.start()] for match in re.finditer(r"\[", level)]
    subflows = [level[: match.start()] for match in re.finditer(r"(?<!\])(?=\.|$)", level)]
    starts = [_last(store, run_id, path, LoopStarted) for path in loops]
    for number, path in enumerate(loops):
        if starts[number] < 0:
            starts[number] = _last(store, run_id, path, LoopIterationStarted)
    return max((*starts, *(_last(store, run_id, path, NodeRetrying) for path in subflows if path)), default=-1)


def _last(store: Store, run_id: str, path: str, kind: type[AnyEvent]) -> int:
    """Return the number of the last event of this type that restarts a path; -1 if there is none."""
    events = store.events(run_id, level=level_of(path), kinds={kind}, preview=1)
    starts = (
        event.seq
        for event in with_loop_starts(events)
        if event.path == path and not isinstance(event, LoopIterationStarted)
    )
    return max(starts, default=-1)


def outputs_text(outputs: Mapping[str, Value]) -> str:
    """Join the named results of a run; a single one without its name."""
    if len(outputs) == 1:
        return display_text(next(iter(outputs.values())))
    return "\n\n".join(f"{name}:\n{display_text(value)}" for name, value in outputs.items())


def _of_run(store: Store, run_id: str, part: Section) -> str:
    if part is not Section.RESULT:
        raise StoreError(f"A whole run has no {part}.", "Name an iteration (loop[2]) or a node (loop[2].draft) of it.")
    state = state_of(store, run_id, "", (RunStarted, *_RUN_ENDS))
    if state.outputs or state.part is None:
        return outputs_text(state.outputs)
    return outputs_text(run_outputs(state_of(store, run_id, ""), structure_or_empty(store.document(run_id))))


def _of_iteration(store: Store, run_id: str, place: Place, part: Section) -> str:
    if part not in {Section.RESULT, Section.FEEDBACK}:
        raise StoreError(f"The iteration {place} has no {part}.", f"Name a node in it: {place}.ID.")
    iteration = iteration_at(state_of(store, run_id, place.level, _ITERATIONS), str(place))
    if iteration is None:
        raise nothing_stored_at(store, run_id, place)
    return display_text(iteration.result if part is Section.RESULT else iteration.feedback)


def _of_node(store: Store, run_id: str, place: Place, part: Section) -> str:
    if part is Section.FEEDBACK:
        raise StoreError(f"The node {place} has no feedback.", "Iterations have: loop[2].")
    node = state_of(store, run_id, place.level, _NODES).nodes.get(str(place))
    if node is None:
        raise nothing_stored_at(store, run_id, place)
    if part is Section.RESULT:
        return display_text(node_result(node))
    if not node.calls:
        raise StoreError(f"The node {place} has called no model.", "Choose a node that does, or compare results.")
    return prompts_text(node.calls) if part is Section.PROMPT else "\n\n".join(call.reply.text for call in node.calls)


def nothing_stored_at(store: Store, run_id: str, place: Place) -> StoreError:
    """Return the error for a path at which nothing has completed, with the paths on its level."""
    state = state_of(store, run_id, place.level)
    found = [node.path for node in state.nodes.values()]
    found += [f"{path}[{iteration.index}]" for path, loop in state.loops.items() for iteration in loop.all_iterations]
    where = f"On that level there are: {', '.join(found[:12])}{' …' if len(found) > 12 else ''}."
    return StoreError(
        f"The run {run_id} has nothing at {place}.", where if found else "Look at the run.", fix=Fix.SHOW_RUN.of(run_id)
    )
