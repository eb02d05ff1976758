"""Which notes of a run hold before a place from which it is to be run anew.

A person's note holds where it was posted before the run came to the place, a node's where the node stays as it was: one
that is run anew posts its notes itself. A note that was received by what is run anew is received once more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from engine.events import (
    AnyEvent,
    LoopIterationStarted,
    LoopStarted,
    NodeCompleted,
    NodeNoted,
    NodeRetrying,
    NodeSkipped,
    NotePosted,
)
from engine.runner.places import Place


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
