"""Where in a run of nested loops one is: `outer › iteration 2 › inner`. No Qt here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.runs.picture import RunPicture
from engine.document.model import Workflow
from engine.nodes.pairs import ITERATOR, PAIR_BY_START


@dataclass(frozen=True, slots=True)
class Crumb:
    """One part of the way.

    Attributes:
        text: What it says.
        loop_id: The loop that is shown when it is clicked.
        index: The iteration that is looked at then; None for a part that names a loop.
        others: The loops beside it, by id and title, itself included; empty where it stands alone.
        is_here: Whether it is the loop that is shown.
        is_deeper: Whether it is a loop in the body of the one that is shown.
    """

    text: str
    loop_id: str
    index: int | None = None
    others: tuple[tuple[str, str], ...] = ()
    is_here: bool = False
    is_deeper: bool = False


def loops_of(workflow: Workflow, parents: Mapping[str, str], around: str | None) -> list[tuple[str, str]]:
    """The loops right inside another, or outside all (None), by id and title, in the order of the document."""
    return [
        (node.id, node.title or node.id)
        for node in workflow.nodes
        if node.type in PAIR_BY_START and parents.get(node.id) == around
    ]


def crumbs(workflow: Workflow, picture: RunPicture, chosen: Mapping[str, int], loop_id: str) -> list[Crumb]:
    """The way to a loop from outside, with the iterations that are looked at, and the loops in its body."""
    way: list[Crumb] = []
    there: str | None = loop_id
    while there is not None:
        around = picture.parents.get(there)
        beside = loops_of(workflow, picture.parents, around)
        title = dict(beside).get(there, there)
        others = tuple(beside) if len(beside) > 1 else ()
        way.insert(0, Crumb(title, there, others=others, is_here=there == loop_id))
        if around is not None:
            index = picture.index_of(around, chosen)
            unit = "item" if workflow.node(around).type == ITERATOR.start else "iteration"
            way.insert(0, Crumb(f"{unit} {index + 1}", around, index))
        there = around
    if picture.loop(loop_id, chosen).current >= 0:
        inside = loops_of(workflow, picture.parents, loop_id)
        way += [Crumb(title, inner, is_deeper=True) for inner, title in inside]
    return way
