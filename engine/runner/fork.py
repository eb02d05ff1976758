"""Forks: which events of a run a fork reuses, given the place from which it runs again.

Everything that depends on the place runs again: the nodes after it in its graph; in the loops around it, the iterations
after it and everything that depends on those loops; of an iterator only the one item, since items do not depend on each
other. Everything else is reused, including parallel branches. The reused events are copied in order, with new numbers
and without cost, because a fork pays only for what it runs itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from engine.events import (
    AnyEvent,
    LoopCompleted,
    LoopIterationCompleted,
    LoopIterationStarted,
    LoopStarted,
    NodeAnswered,
    NodeCompleted,
    NodeFailed,
    NodeNoted,
    NodeRetrying,
    NodeSkipped,
    NodeStarted,
    NodeWaiting,
    NotePosted,
    Place,
    PlaceError,
    RunStarted,
    Step,
    parse_place,
    with_loop_starts,
)
from engine.models.protocol import Usage
from engine.nodes.spec import AnySpec, Outputs
from engine.plan.execution_plan import GraphPlan, NodePlan, Plan
from engine.runner.named_state import READ, REUSED_WRITE, WRITE, StateOrder
from engine.values import Value


@dataclass(slots=True)
class _SentNote:
    """A posted note, and the event of its reception; None if nobody received it."""

    posted: NotePosted
    noted: NodeNoted | None = None


def with_notes(
    kept: Sequence[AnyEvent], past: Sequence[AnyEvent], place: Place | None, *, reuses_node: bool
) -> list[AnyEvent]:
    """Add the events of notes that stay valid to the reused events, in their original order.

    Args:
        kept: The reused events.
        past: All events of the run.
        place: The place of the fork; None if all notes stay valid.
        reuses_node: Whether the output of the node at the place is reused.
    """
    over = {event.path for event in kept if isinstance(event, (NodeCompleted, NodeSkipped))}
    end = None if place is None else _reached_at(past, str(place), reuses_node=reuses_node)
    notes = iter(sorted(_notes_to_keep(past, over, end), key=lambda event: event.seq))
    merged: list[AnyEvent] = []
    note = next(notes, None)
    for event in kept:
        while note is not None and note.seq < event.seq:
            merged.append(note)
            note = next(notes, None)
        merged.append(event)
    return [*merged, *([note] if note is not None else []), *notes]


def _notes_to_keep(
    past: Sequence[AnyEvent], over: Collection[str], end: int | None
) -> Iterator[NotePosted | NodeNoted]:
    """Yield the notes that stay valid, and their reception by nodes that are reused."""
    for sent in _sent_notes(past):
        posted, noted = sent.posted, sent.noted
        if posted.path not in over if posted.path else end is not None and posted.seq > end:
            continue
        if noted is None:
            yield posted
        elif noted.path in over:
            yield posted
            yield noted
        elif not any(_restarts(event, noted.path) for event in past if event.seq > noted.seq):
            yield posted


def _sent_notes(past: Sequence[AnyEvent]) -> list[_SentNote]:
    found: list[_SentNote] = []
    for event in past:
        if isinstance(event, NotePosted):
            found.append(_SentNote(event))
        elif isinstance(event, NodeNoted):
            what = (event.to, event.text, event.sender)
            for sent in found:
                if sent.noted is None and (sent.posted.to, sent.posted.text, sent.posted.path) == what:
                    sent.noted = event
                    break
    return found


def _reached_at(past: Sequence[AnyEvent], place: str, *, reuses_node: bool) -> int | None:
    """Return the number of the event at which the run reached the place (or completed its node), or None."""
    reached: int | None = None
    for event in past:
        if _restarts(event, place):
            reached = None
        if reuses_node:
            reached = event.seq if isinstance(event, NodeCompleted) and event.path == place else reached
        elif reached is None and (
            event.path == place
            or event.path.startswith((f"{place}.", f"{place}["))
            or (isinstance(event, LoopIterationStarted) and f"{event.path}[{event.index}]" == place)
        ):
            reached = event.seq
    return reached


def _restarts(event: AnyEvent, path: str) -> bool:
    """Whether this event restarts a loop or a subflow around a path."""
    if isinstance(event, LoopStarted):
        return path.startswith(f"{event.path}[")
    return isinstance(event, NodeRetrying) and not event.goes_on and path.startswith(f"{event.path}.")


@dataclass(frozen=True, slots=True)
class ForkPoint:
    """The place of a fork in a plan.

    Attributes:
        place: The place; None if only unfinished nodes run again.
        nodes: The node of each of its steps, outermost first.
        graphs: The graph of each node; for a judge, the body that it judges.
        after: For each step, the ids of the nodes that depend on its node, and of the judge.
        reuses_node: Whether the output of the node at the place is reused, and only its dependents run again.
    """

    place: Place | None
    nodes: tuple[NodePlan, ...] = ()
    graphs: tuple[GraphPlan, ...] = ()
    after: tuple[frozenset[str], ...] = ()
    reuses_node: bool = False

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of the place; none without one."""
        return () if self.place is None else self.place.steps

    def is_reused(self, steps: Sequence[Step]) -> bool:
        """Whether a node's output or a completed iteration is reused."""
        if self.place is None:
            return True
        for node, step, wanted, after in zip(self.nodes, steps, self.place.steps, self.after, strict=False):
            if step.node != wanted.node:
                return step.node not in after
            if wanted is self.place.last and wanted.index is None:
                return self.reuses_node
            if wanted.index is not None and step.index != wanted.index:
                return step.index is not None and (node.iterator is not None or step.index < wanted.index)
        return False

    def keeps_edit(self, steps: Sequence[Step]) -> bool:
        """Whether an earlier edit by a person stays valid, including the input of an iteration that runs again."""
        is_start = steps[-1].index is not None
        return self.is_reused(steps) or (is_start and tuple(steps) == self.steps[: len(steps)])

    def reuses_start(self, steps: Sequence[Step]) -> bool:
        """Whether the start of an iteration is reused: also if the place is inside the iteration.

        The start of an item is always reused, because all items start with the iterator.
        """
        if self.place is None or tuple(steps) != self.place.steps[: len(steps)]:
            return self.is_reused(steps)
        return len(steps) < len(self.place.steps) or self.nodes[-1].iterator is not None


def fork_point(plan: Plan, place: Place | None, *, reuses_node: bool = False) -> ForkPoint:
    """Find a place in a plan.

    Raises:
        PlaceError: There is no such node, or no loop where the place has an index.
    """
    if place is None:
        return ForkPoint(None)
    nodes: list[NodePlan] = []
    graphs: list[GraphPlan] = []
    after: list[frozenset[str]] = []
    graph, judge = plan.graph, None
    for number, step in enumerate(place.steps, 1):
        node = _find(graph, judge, step.node)
        if node is None:
            ids = ", ".join(node.id for node in graph.nodes)
            raise PlaceError(f'There is no node "{step.node}" at the place {place}.', f"There are: {ids}.")
        if step.index is not None and not node.is_repeated:
            raise PlaceError(f'"{step.node}" is not a loop, and has no iterations ({place}).', f"Write {step.node}.")
        if step.index is None and number < len(place.steps) and (node.is_repeated or node.body is None):
            raise PlaceError(f"{place} is not a place in a run.", f"Name the iteration, as in {step.node}[0].")
        nodes.append(node)
        graphs.append(graph)
        judged = frozenset({judge.id}) if judge is not None and judge is not node else frozenset[str]()
        after.append(_dependents(graph, node) | judged)
        if node.body is not None:
            graph, judge = node.body, node.loop.judge if node.loop is not None else None
    return ForkPoint(place, tuple(nodes), tuple(graphs), tuple(after), reuses_node)


def _find(graph: GraphPlan, judge: NodePlan | None, node_id: str) -> NodePlan | None:
    """Return the node with an id: one of the graph, or the judge of its loop."""
    if judge is not None and judge.id == node_id:
        return judge
    return next((node for node in graph.nodes if node.id == node_id), None)


def _dependents(graph: GraphPlan, start: NodePlan) -> frozenset[str]:
    """Return the ids of all nodes that depend on a node."""
    found: set[int] = set()
    open_ends = [start]
    while open_ends:
        for position in open_ends.pop().followers:
            if position not in found:
                found.add(position)
                open_ends.append(graph.nodes[position])
    return frozenset(graph.nodes[position].id for position in found)


def events_before(
    past: Iterable[AnyEvent], plan: Plan, point: ForkPoint, run_id: str, first_seq: int = 1
) -> list[AnyEvent]:
    """Return the events that a fork reuses, as its own past.

    Args:
        past: Events of the parent.
        plan: Plan of the fork; events of nodes that it does not have are left out.
        point: The place of the fork in its plan.
        run_id: The fork.
        first_seq: Number of the first event.
    """
    events = list(with_loop_starts(past))
    kept = _reused_events(events, plan, point)
    return _copied(with_notes(kept, events, point.place, reuses_node=point.reuses_node), run_id, first_seq)


def events_of_nodes(past: Iterable[AnyEvent], nodes: Collection[str], run_id: str) -> list[AnyEvent]:
    """Return the events of some outermost nodes, and of everything in them, as the past of another run.

    Args:
        past: Events of the run that executed them.
        nodes: Their ids.
        run_id: The other run; its first event is its start.
    """
    kept = (event for event in latest_executions(past) if parse_place(event.path).steps[0].node in nodes)
    return _copied(kept, run_id, 1)


def _copied(events: Iterable[AnyEvent], run_id: str, first_seq: int) -> list[AnyEvent]:
    return [
        replace(_without_cost(event), run_id=run_id, seq=seq)  # pyright: ignore[reportArgumentType] - the type stays
        for seq, event in enumerate(events, first_seq)
    ]


def state_order(past: Iterable[AnyEvent], plan: Plan, point: ForkPoint) -> tuple[str, ...]:
    """Return the marks of a fork's `StateOrder`; empty if all reused values were set before anything that runs again.

    Args:
        past: The events of the parent.
        plan: The plan of the fork.
        point: The place of the fork in it.
    """
    events = list(past)
    if not any(isinstance(event, NodeCompleted) and event.output_key for event in events):
        return ()
    kept = _reused_events(events, plan, point)
    reused = {event.path for event in kept if isinstance(event, NodeCompleted)}
    reused |= {f"{event.path}[{event.index}]" for event in kept if isinstance(event, LoopIterationCompleted)}
    first = events[0]
    parent = StateOrder(first.state_order) if isinstance(first, RunStarted) and first.state_order else None
    found: dict[str, tuple[int, int]] = {}
    for event in events:
        if isinstance(event, NodeStarted):
            rank = parent.read(event.path) if parent is not None else 0
            if event.path not in reused:
                found[READ + event.path] = rank, event.seq
        elif isinstance(event, LoopIterationCompleted):
            path = f"{event.path}[{event.index}]"
            if path not in reused:
                found[READ + path] = parent.read(path) if parent is not None else 0, event.seq
        elif isinstance(event, NodeCompleted) and event.output_key:
            rank = parent.write(event.path) if parent is not None else 0
            mark = REUSED_WRITE if event.path in reused else WRITE
            found[mark + event.path] = rank, event.seq
    marks = sorted(found, key=found.__getitem__)
    reused_marks = [mark for mark in marks if mark.startswith(REUSED_WRITE)]
    if reused_marks != sorted(reused_marks, key=lambda mark: found[mark][1]):  # a fork of a fork, whose log differs
        return tuple(marks)
    first_rerun = next((place for place, mark in enumerate(marks) if not mark.startswith(REUSED_WRITE)), len(marks))
    return tuple(marks[first_rerun:]) if first_rerun < len(reused_marks) else ()


def _reused_events(past: Iterable[AnyEvent], plan: Plan, point: ForkPoint) -> list[AnyEvent]:
    return [event for event in latest_executions(past) if _is_kept(event, plan, point)]


_NODE_EVENTS: Final = (NodeStarted, NodeCompleted, NodeFailed, NodeSkipped, LoopCompleted, NodeWaiting, NodeAnswered)


def latest_executions(past: Iterable[AnyEvent]) -> list[AnyEvent]:
    """Return the events of the last completed execution of each node, and of the last attempt of each loop.

    The failure of a node counts if a loop or subflow around it continued.
    """
    found: dict[tuple[str, ...], AnyEvent] = {}
    finished: set[str] = set()
    begun: set[str] = set()
    ended: set[str] = set()
    for event in with_loop_starts(past):
        path = event.path
        if isinstance(event, LoopStarted):
            if path in begun:
                _drop_attempt(found, path)
                ended = {place for place in ended if not place.startswith(f"{path}[")}
            found.pop((event.type, path), None)
            found[event.type, path] = event
        elif isinstance(event, LoopIterationStarted):
            begun.add(path)
            found[f"iteration started {event.index}", path] = event
        elif isinstance(event, LoopIterationCompleted):
            ended.add(f"{path}[{event.index}]")
            found[f"iteration completed {event.index}", path] = event
        elif isinstance(event, NodeRetrying):  # a new attempt of a subflow
            for key in [key for key in found if key[1].startswith(f"{path}.")]:
                del found[key]
        elif isinstance(event, _NODE_EVENTS):
            found.pop((event.type, path), None)
            found[event.type, path] = event
            if isinstance(event, NodeStarted):
                finished.discard(path)
                found.pop((NodeCompleted.type, path), None)
                found.pop((NodeFailed.type, path), None)
            elif isinstance(event, (NodeCompleted, NodeSkipped)):
                finished.add(path)
    loops = begun | {event.path for event in found.values() if isinstance(event, LoopCompleted)}
    return [
        event
        for event in found.values()
        if isinstance(event, (LoopIterationStarted, LoopIterationCompleted))
        or event.path in finished
        or (isinstance(event, LoopCompleted) and _is_inside_completed(event.path, finished, ended))
        or ((NodeFailed.type, event.path) in found and _is_inside_completed(event.path, finished, ended))
        or (isinstance(event, (NodeStarted, LoopStarted)) and event.path in loops)
    ]


def _drop_attempt(found: dict[tuple[str, ...], AnyEvent], path: str) -> None:
    """Remove the events of an earlier attempt of a loop."""
    for kind, place in list(found):
        if place.startswith(f"{path}[") or (place == path and kind.startswith("iteration")):
            del found[kind, place]


def _is_inside_completed(path: str, finished: set[str], ended: set[str]) -> bool:
    """Whether a completed iteration, loop or subflow contains the path."""
    while path := path.rpartition(".")[0]:
        if path in ended or path in finished or path.rpartition("[")[0] in finished:
            return True
    return False


def _is_kept(event: AnyEvent, plan: Plan, point: ForkPoint) -> bool:
    if isinstance(event, (LoopStarted, LoopIterationStarted, LoopIterationCompleted)):
        index = 0 if isinstance(event, LoopStarted) else event.index
        steps = parse_place(f"{event.path}[{index}]").steps
        if not _exists_in(plan.graph, steps):
            return False
        return point.is_reused(steps) if isinstance(event, LoopIterationCompleted) else point.reuses_start(steps)
    steps = parse_place(event.path).steps
    if not _exists_in(plan.graph, steps, getattr(event, "node_type", None)):
        return False
    if point.is_reused(steps):
        return True
    leads_there = point.place is not None and _is_around(steps, point.place)
    return isinstance(event, NodeStarted) and leads_there


def _exists_in(graph: GraphPlan, steps: Sequence[Step], node_type: str | None = None) -> bool:
    """Whether a plan has the node of an event, with the same type."""
    judge: NodePlan | None = None
    for number, step in enumerate(steps):
        node = _find(graph, judge, step.node)
        if node is None or (step.index is not None and not node.is_repeated):
            return False
        if node.body is not None:
            graph, judge = node.body, node.loop.judge if node.loop is not None else None
        if number == len(steps) - 1 and node_type is not None:
            return node.spec.type == node_type
    return True


def _is_around(steps: Sequence[Step], place: Place) -> bool:
    """Whether these steps lead to a loop around the place."""
    around = place.steps[: len(steps)]
    return (
        tuple(steps[:-1]) == around[:-1]
        and steps[-1].node == around[-1].node
        and around[-1].index is not None
        and steps[-1].index is None
    )


def _without_cost(event: AnyEvent) -> AnyEvent:
    if isinstance(event, NodeCompleted):
        return replace(event, cached=True, usage=None, cost_usd=0.0)
    if isinstance(event, NodeFailed):
        return replace(event, usage=None, cost_usd=0.0)
    if isinstance(event, LoopIterationCompleted):
        return replace(event, usage=Usage(), cost_usd=0.0)
    return replace(event, cost_usd=0.0) if isinstance(event, LoopCompleted) else event


def with_edited_output(
    past: Iterable[AnyEvent], place: Place, spec: AnySpec, config: object, value: Value
) -> list[AnyEvent]:
    """Replace the output of a node in events by a value from a person.

    Raises:
        PlaceError: The node has no output there.
    """
    path, is_there = str(place), False
    changed: list[AnyEvent] = []
    for event in past:
        if isinstance(event, NodeCompleted) and event.path == path:
            is_there = True
            changed.append(replace(event, outputs=_edited(spec, config, event.outputs, value)))
        else:
            changed.append(event)
    if not is_there:
        raise PlaceError(f"The node at {path} has no output in that run.", "Choose a place where it completed.")
    return changed


def _edited(spec: AnySpec, config: object, outputs: Outputs, value: Value) -> Outputs:
    """Return the outputs with another value at the first live port."""
    port = next((port.name for port in spec.all_outputs(config) if port.name in outputs), "output")
    return {**outputs, port: value}
