"""The parts of a run that people look at and compare: results, feedback, prompts and replies, found by their place."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Final

from engine.document.files import loads
from engine.document.model import Workflow
from engine.errors import EngineError
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
    parse_place,
    with_loop_starts,
)
from engine.formatting import format_value
from engine.nodes.node_registry import Registry, builtin_registry
from engine.nodes.spec import ModelCall
from engine.run_state.reducer import end_open_nodes, reduce_events
from engine.run_state.state import NodeExecution, NodeState, RunState, RunStatus, iteration_at
from engine.store.store_protocol import OPEN, RunSummary, Store, StoreError, level_of
from engine.values import Value

_EXAMPLE: Final = 200
"""Characters of a value that are shown as an example."""

_RUN_ENDS: Final = (RunCompleted, RunFailed, RunCancelled, RunResumed)
_ITERATIONS: Final = (LoopStarted, LoopIterationStarted, LoopIterationCompleted)
_NODES: Final = (NodeStarted, NodeCalled, NodeRetrying, NodeCompleted, NodeFailed, NodeSkipped)


class Part(StrEnum):
    """What of a place: what came out, what is fed back, what a model was asked, what it answered."""

    RESULT = "result"
    FEEDBACK = "feedback"
    PROMPT = "prompt"
    REPLY = "reply"


def workflow_of(document: str) -> Workflow:
    """The document that a run ran, for showing; an empty one where it cannot be read: an import may bring anything."""
    try:
        return loads(document)
    except EngineError:
        return Workflow()


def readable(value: Value) -> str:
    """A value for people: a text as it is, nothing as nothing, anything else as indented JSON."""
    if value is None:
        return ""
    return format_value(value)


def asked(calls: Collection[ModelCall]) -> str:
    """What a model was asked, in all calls of a node: each message under who says it."""
    return "\n\n".join(f"{message.role}:\n{message.text}" for call in calls for message in call.request.messages)


def answered(calls: Collection[ModelCall]) -> str:
    """What a model answered, in all calls of a node."""
    return "\n\n".join(call.reply.text for call in calls)


def given_by(node: NodeExecution, registry: Registry | None = None) -> Value:
    """What a node gave, in the one value that `loop.last.ID` and a comparison show of it."""
    outputs = dict(node.outputs)
    spec = (registry or builtin_registry()).find(node.node_type)
    value: Value = spec.recorded(outputs) if outputs and spec is not None else outputs.get("output")
    return value if value is not None or not outputs else next(iter(outputs.values()))


def text_at(store: Store, run_id: str, place: str, part: Part = Part.RESULT) -> str:
    """The text of a part of a run.

    Args:
        store: Where it is kept.
        run_id: The run, whole.
        place: An iteration (`loop[2]`), a node (`loop[2].draft`, `draft`), or empty for the run as a whole.
        part: Which part.

    Raises:
        PlaceError: It is no place.
        StoreError: The run has nothing there, or the place has no such part.
    """
    if not place:
        return _of_run(store, run_id, part)
    parsed = parse_place(place)
    return (
        _of_node(store, run_id, parsed, part)
        if parsed.last.index is None
        else _of_iteration(store, run_id, parsed, part)
    )


def value_like(store: Store, run_id: str, place: str, text: str) -> Value:
    """A value that a person typed for a place: JSON where a run had something else than a text there.

    Args:
        store: Where the run is kept.
        run_id: The run, whole.
        place: An iteration, which starts from a value, or a node, which gives one.
        text: What was typed.

    Raises:
        PlaceError: It is no place.
        StoreError: The run had JSON there, and the text is none.
    """
    before = _value_at(store, run_id, parse_place(place))
    if before is None or isinstance(before, str):
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        raise StoreError(
            f"What stands at {place} is JSON, and the value that was given for it is none ({error}).",
            f"Write it like this: {json.dumps(before, ensure_ascii=False)[:_EXAMPLE]}",
        ) from error


def _value_at(store: Store, run_id: str, place: Place) -> Value:
    """What a node gave, or what an iteration started from; nothing where a run did not come so far."""
    if place.last.index is None:
        node = state_of(store, run_id, place.level, _NODES).nodes.get(str(place))
        return given_by(node) if node is not None else None
    ended = iteration_at(state_of(store, run_id, place.level, _ITERATIONS), str(place))
    return ended.input if ended is not None else None


def state_of(
    store: Store, run_id: str, level: str | None = None, kinds: Collection[type[AnyEvent]] | None = None
) -> RunState:
    """The state of a run after the events of one level, or of all (None)."""
    return reduce_events(store.events(run_id, level=level, kinds=kinds), run_id)


def level_state(store: Store, run: RunSummary, level: str) -> RunState:
    """The state of one level of a run; what had not ended there when the run did is cancelled or interrupted."""
    after = attempt_start(store, run.run_id, level)
    state = reduce_events(store.events(run.run_id, level=level, after=after), run.run_id)
    if run.status not in OPEN:
        is_interrupted = run.status is RunStatus.INTERRUPTED
        end_open_nodes(state, NodeState.INTERRUPTED if is_interrupted else NodeState.CANCELLED)
    return state


def attempt_start(store: Store, run_id: str, level: str) -> int:
    """The number of the event that started the last attempt of whatever a level is in; -1 where that is the first.

    What was reported on the level before is void, and the events of the level do not say so.
    """
    loops = [level[: match.start()] for match in re.finditer(r"\[", level)]
    subflows = [level[: match.start()] for match in re.finditer(r"(?<!\])(?=\.|$)", level)]
    starts = [_last(store, run_id, path, LoopStarted) for path in loops]
    for number, path in enumerate(loops):
        if starts[number] < 0:
            starts[number] = _last(store, run_id, path, LoopIterationStarted)
    return max((*starts, *(_last(store, run_id, path, NodeRetrying) for path in subflows if path)), default=-1)


def _last(store: Store, run_id: str, path: str, kind: type[AnyEvent]) -> int:
    """The number of the last event of this type that starts what is at a path over; -1 without one."""
    events = store.events(run_id, level=level_of(path), kinds={kind}, preview=1)
    starts = (
        event.seq
        for event in with_loop_starts(events)
        if event.path == path and not isinstance(event, LoopIterationStarted)
    )
    return max(starts, default=-1)


def outputs_text(outputs: Mapping[str, Value]) -> str:
    """The named results of a run as one text; of a single one only its value."""
    if len(outputs) == 1:
        return readable(next(iter(outputs.values())))
    return "\n\n".join(f"{name}:\n{readable(value)}" for name, value in outputs.items())


def _of_run(store: Store, run_id: str, part: Part) -> str:
    if part is not Part.RESULT:
        raise StoreError(f"A whole run has no {part}.", "Name an iteration (loop[2]) or a node (loop[2].draft) of it.")
    return outputs_text(state_of(store, run_id, "", _RUN_ENDS).outputs)


def _of_iteration(store: Store, run_id: str, place: Place, part: Part) -> str:
    if part not in {Part.RESULT, Part.FEEDBACK}:
        raise StoreError(f"The iteration {place} has no {part}.", f"Name a node in it: {place}.ID.")
    iteration = iteration_at(state_of(store, run_id, place.level, _ITERATIONS), str(place))
    if iteration is None:
        raise nothing_at(store, run_id, place)
    return readable(iteration.result if part is Part.RESULT else iteration.feedback)


def _of_node(store: Store, run_id: str, place: Place, part: Part) -> str:
    if part is Part.FEEDBACK:
        raise StoreError(f"The node {place} has no feedback.", "Iterations have: loop[2].")
    node = state_of(store, run_id, place.level, _NODES).nodes.get(str(place))
    if node is None:
        raise nothing_at(store, run_id, place)
    if part is Part.RESULT:
        return readable(given_by(node))
    if not node.calls:
        raise StoreError(f"The node {place} has called no model.", "Choose a node that does, or compare results.")
    return asked(node.calls) if part is Part.PROMPT else answered(node.calls)


def nothing_at(store: Store, run_id: str, place: Place) -> StoreError:
    """The error for a place at which nothing came to an end, with the places near it that there are."""
    state = state_of(store, run_id, place.level)
    found = [node.path for node in state.nodes.values()]
    found += [f"{path}[{iteration.index}]" for path, loop in state.loops.items() for iteration in loop.all_iterations]
    where = f"On that level there are: {', '.join(found[:12])}{' …' if len(found) > 12 else ''}."
    return StoreError(
        f"The run {run_id} has nothing at {place}.", where if found else f"'loopwright runs show {run_id}' shows it."
    )
