"""Which part of a run's past holds before a place from which it is to be run anew.

What hangs on the place is run anew: in its own graph the nodes that it leads to, in the loops around it the iterations
after it and whatever those loops lead to; of an iterator the one item, since no item knows of another. Everything else
stays as it was, parallel branches too. The events that stay are copied, in order and numbered anew, with what was paid
for them taken off: a fork pays for what it does itself.
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
class _Sent:
    """A note, and who received it; None: nobody has."""

    posted: NotePosted
    noted: NodeNoted | None = None


def with_notes(
    kept: Sequence[AnyEvent], past: Sequence[AnyEvent], place: Place | None, *, keeps_node: bool
) -> list[AnyEvent]:
    """The events that stay of a run, and those of its notes that hold, each where it was told.

    Args:
        kept: The events that stay.
        past: All events of the run.
        place: The place; None: all that was posted holds.
        keeps_node: Whether the node at the place keeps what it gave.
    """
    over = {event.path for event in kept if isinstance(event, (NodeCompleted, NodeSkipped))}
    end = None if place is None else _reached(past, str(place), keeps_node=keeps_node)
    notes = iter(sorted(_holding(past, over, end), key=lambda event: event.seq))
    merged: list[AnyEvent] = []
    note = next(notes, None)
    for event in kept:
        while note is not None and note.seq < event.seq:
            merged.append(note)
            note = next(notes, None)
        merged.append(event)
    return [*merged, *([note] if note is not None else []), *notes]


def _holding(past: Sequence[AnyEvent], over: Collection[str], end: int | None) -> Iterator[NotePosted | NodeNoted]:
    """The postings that hold, and the receptions of those that were received by what stays."""
    for sent in _sent(past):
        posted, noted = sent.posted, sent.noted
        if posted.path not in over if posted.path else end is not None and posted.seq > end:
            continue
        if noted is None:
            yield posted
        elif noted.path in over:
            yield posted
            yield noted
        elif not any(_begins_anew(event, noted.path) for event in past if event.seq > noted.seq):
            yield posted


def _sent(past: Sequence[AnyEvent]) -> list[_Sent]:
    found: list[_Sent] = []
    for event in past:
        if isinstance(event, NotePosted):
            found.append(_Sent(event))
        elif isinstance(event, NodeNoted):
            what = (event.to, event.text, event.sender)
            for sent in found:
                if sent.noted is None and (sent.posted.to, sent.posted.text, sent.posted.path) == what:
                    sent.noted = event
                    break
    return found


def _reached(past: Sequence[AnyEvent], place: str, *, keeps_node: bool) -> int | None:
    """The number of the event with which the run came to the place, or was done with it; None where it never did."""
    reached: int | None = None
    for event in past:
        if _begins_anew(event, place):
            reached = None
        if keeps_node:
            reached = event.seq if isinstance(event, NodeCompleted) and event.path == place else reached
        elif reached is None and (
            event.path == place
            or event.path.startswith((f"{place}.", f"{place}["))
            or (isinstance(event, LoopIterationStarted) and f"{event.path}[{event.index}]" == place)
        ):
            reached = event.seq
    return reached


def _begins_anew(event: AnyEvent, path: str) -> bool:
    """Whether a loop or a subflow around a path begins anew with this event."""
    if isinstance(event, LoopStarted):
        return path.startswith(f"{event.path}[")
    return isinstance(event, NodeRetrying) and not event.goes_on and path.startswith(f"{event.path}.")


@dataclass(frozen=True, slots=True)
class ForkPoint:
    """A place in a plan.

    Attributes:
        place: The place; None: nothing is run anew but what had not come to its end.
        nodes: The node of each of its steps, outermost first.
        graphs: The graph that each of them stands in; a judge stands in none, and has the body that it judges.
        after: For each step, the ids of the nodes of that graph that its node leads to, and of the judge.
        keeps_node: Whether the node at the place keeps what it gave, and only what hangs on it is run anew.
    """

    place: Place | None
    nodes: tuple[NodePlan, ...] = ()
    graphs: tuple[GraphPlan, ...] = ()
    after: tuple[frozenset[str], ...] = ()
    keeps_node: bool = False

    def holds(self, steps: Sequence[Step]) -> bool:
        """Whether what a node gave, or an iteration that ended, comes before the place."""
        if self.place is None:
            return True
        for node, step, wanted, after in zip(self.nodes, steps, self.place.steps, self.after, strict=False):
            if step.node != wanted.node:
                return step.node not in after
            if wanted is self.place.last and wanted.index is None:
                return self.keeps_node
            if wanted.index is not None and step.index != wanted.index:
                return step.index is not None and (node.iterator is not None or step.index < wanted.index)
        return False

    def keeps_edit(self, steps: Sequence[Step]) -> bool:
        """Whether what a person gave by hand before holds on: also what an iteration starts from that is run anew."""
        is_start = steps[-1].index is not None
        return self.holds(steps) or (
            is_start and self.place is not None and tuple(steps) == self.place.steps[: len(steps)]
        )

    def has_begun(self, steps: Sequence[Step]) -> bool:
        """Whether an iteration's beginning comes before the place: it does where the place lies in the iteration.

        An item's always does: all items had started with the iterator.
        """
        if self.place is None or tuple(steps) != self.place.steps[: len(steps)]:
            return self.holds(steps)
        return len(steps) < len(self.place.steps) or self.nodes[-1].iterator is not None


def fork_point(plan: Plan, place: Place | None, *, keeps_node: bool = False) -> ForkPoint:
    """Find a place in a plan.

    Raises:
        PlaceError: The plan has no such node, or no loop where the place says one is.
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
            raise PlaceError(f'There is no node "{step.node}" at that place ({place}).', f"There are: {ids}.")
        if step.index is not None and not node.is_repeated:
            raise PlaceError(f'"{step.node}" is no loop, and has no iterations ({place}).', f"Write {step.node}.")
        if step.index is None and number < len(place.steps) and (node.is_repeated or node.body is None):
            raise PlaceError(f"{place} is no place in a run.", f"In which iteration? Write {step.node}[0].")
        nodes.append(node)
        graphs.append(graph)
        judged = frozenset({judge.id}) if judge is not None and judge is not node else frozenset[str]()
        after.append(_led_to(graph, node) | judged)
        if node.body is not None:
            graph, judge = node.body, node.loop.judge if node.loop is not None else None
    return ForkPoint(place, tuple(nodes), tuple(graphs), tuple(after), keeps_node)


def _find(graph: GraphPlan, judge: NodePlan | None, node_id: str) -> NodePlan | None:
    """The node of that id: one of the graph, or the judge of the loop whose body it is."""
    if judge is not None and judge.id == node_id:
        return judge
    return next((node for node in graph.nodes if node.id == node_id), None)


def _led_to(graph: GraphPlan, start: NodePlan) -> frozenset[str]:
    """Ids of the nodes that a node leads to, itself not among them."""
    found: set[int] = set()
    open_ends = [start]
    while open_ends:
        for position in open_ends.pop().followers:
            if position not in found:
                found.add(position)
                open_ends.append(graph.nodes[position])
    return frozenset(graph.nodes[position].id for position in found)


def past_before(
    past: Iterable[AnyEvent], plan: Plan, point: ForkPoint, run_id: str, first_seq: int = 1
) -> list[AnyEvent]:
    """The events of a run that hold before a place, as the past of another run.

    Args:
        past: The run's events.
        plan: The plan of the other run; what its graphs do not have is left out.
        point: The place in it.
        run_id: The other run.
        first_seq: The number of the first event.
    """
    told = list(with_loop_starts(past))
    kept = _kept(told, plan, point)
    return [
        replace(_unpaid(event), run_id=run_id, seq=seq)  # pyright: ignore[reportArgumentType] - each stays its own type
        for seq, event in enumerate(with_notes(kept, told, point.place, keeps_node=point.keeps_node), first_seq)
    ]


def state_order(past: Iterable[AnyEvent], plan: Plan, point: ForkPoint) -> tuple[str, ...]:
    """The marks of the `StateOrder` of a fork; empty where all reused values were set before anything that runs again.

    Args:
        past: The events of the parent.
        plan: The plan of the fork.
        point: The place of the fork in it.
    """
    events = list(past)
    if not any(isinstance(event, NodeCompleted) and event.output_key for event in events):
        return ()
    kept = _kept(events, plan, point)
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
    again = next((place for place, mark in enumerate(marks) if not mark.startswith(REUSED_WRITE)), len(marks))
    return tuple(marks[again:]) if again < len(reused_marks) else ()


def _kept(past: Iterable[AnyEvent], plan: Plan, point: ForkPoint) -> list[AnyEvent]:
    return [event for event in latest(past) if _stays(event, plan, point)]


_OF_NODES: Final = (NodeStarted, NodeCompleted, NodeFailed, NodeSkipped, LoopCompleted, NodeWaiting, NodeAnswered)


def latest(past: Iterable[AnyEvent]) -> list[AnyEvent]:
    """Of each node's executions the last, if it came to its end, and of each loop its last attempt.

    A node that failed counts where a loop or subflow around it went on all the same.
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
        elif isinstance(event, NodeRetrying):  # a subflow that is attempted anew
            for key in [key for key in found if key[1].startswith(f"{path}.")]:
                del found[key]
        elif isinstance(event, _OF_NODES):
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
        or (isinstance(event, LoopCompleted) and _lies_in_what_is_over(event.path, finished, ended))
        or ((NodeFailed.type, event.path) in found and _lies_in_what_is_over(event.path, finished, ended))
        or (isinstance(event, (NodeStarted, LoopStarted)) and event.path in loops)
    ]


def _drop_attempt(found: dict[tuple[str, ...], AnyEvent], path: str) -> None:
    """Drop what an earlier attempt of a loop reported."""
    for kind, place in list(found):
        if place.startswith(f"{path}[") or (place == path and kind.startswith("iteration")):
            del found[kind, place]


def _lies_in_what_is_over(path: str, finished: set[str], ended: set[str]) -> bool:
    """Whether an iteration around has ended, or what is around has come to its end although what is in it failed."""
    while path := path.rpartition(".")[0]:
        if path in ended or path in finished or path.rpartition("[")[0] in finished:
            return True
    return False


def _stays(event: AnyEvent, plan: Plan, point: ForkPoint) -> bool:
    if isinstance(event, (LoopStarted, LoopIterationStarted, LoopIterationCompleted)):
        index = 0 if isinstance(event, LoopStarted) else event.index
        steps = parse_place(f"{event.path}[{index}]").steps
        if not _is_in(plan.graph, steps):
            return False
        return point.holds(steps) if isinstance(event, LoopIterationCompleted) else point.has_begun(steps)
    steps = parse_place(event.path).steps
    if not _is_in(plan.graph, steps, getattr(event, "node_type", None)):
        return False
    if point.holds(steps):
        return True
    leads_there = point.place is not None and _leads_to(steps, point.place)
    return isinstance(event, NodeStarted) and leads_there


def _is_in(graph: GraphPlan, steps: Sequence[Step], node_type: str | None = None) -> bool:
    """Whether a plan still has what the event is about, of the same type."""
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


def _leads_to(steps: Sequence[Step], place: Place) -> bool:
    """Whether these steps are those of a loop around the place."""
    around = place.steps[: len(steps)]
    return (
        tuple(steps[:-1]) == around[:-1]
        and steps[-1].node == around[-1].node
        and around[-1].index is not None
        and steps[-1].index is None
    )


def _unpaid(event: AnyEvent) -> AnyEvent:
    if isinstance(event, NodeCompleted):
        return replace(event, cached=True, usage=None, cost_usd=0.0)
    if isinstance(event, NodeFailed):
        return replace(event, usage=None, cost_usd=0.0)
    if isinstance(event, LoopIterationCompleted):
        return replace(event, usage=Usage(), cost_usd=0.0)
    return replace(event, cost_usd=0.0) if isinstance(event, LoopCompleted) else event


def with_given_output(
    past: Iterable[AnyEvent], place: Place, spec: AnySpec, config: object, value: Value
) -> list[AnyEvent]:
    """The events, with what a node gave replaced by what a person gives instead.

    Raises:
        PlaceError: The node gave nothing there.
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
        raise PlaceError(f"The node at {path} gave nothing in that run.", "Choose a place where it came to its end.")
    return changed


def _edited(spec: AnySpec, config: object, outputs: Outputs, value: Value) -> Outputs:
    """The outputs with another value at the first port that is live."""
    port = next((port.name for port in spec.all_outputs(config) if port.name in outputs), "output")
    return {**outputs, port: value}
