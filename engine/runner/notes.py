"""Notes to nodes of a running run: who may get one, and which wait to be received."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from engine.errors import EngineError
from engine.formatting import format_count
from engine.models.base import Message
from engine.plan.execution_plan import GraphPlan, NodePlan
from engine.runner.run_path import PlaceError, parse_place
from engine.text_sanitizing import shown

LONGEST_NOTE: Final = 100_000
"""Characters of a note."""


class NoteError(EngineError):
    """A note that nobody can receive."""


@dataclass(frozen=True, slots=True)
class Note:
    """A note.

    Attributes:
        to: A node's id, or its place in the run (`loop[0].worker`).
        text: What it says; plain text.
        sender: The path of the node that posted it; empty for a person.
    """

    to: str
    text: str
    sender: str = ""

    @property
    def message(self) -> Message:
        """The note as the model gets it."""
        whose = f'the node "{self.sender}"' if self.sender else "a person"
        return Message("user", f"[Note from {whose}, while you are at work]\n{self.text}")

    def is_for(self, path: str) -> bool:
        """Whether the node at a path is meant."""
        return self.to == path or self.to == path.rpartition(".")[2]


def check_note(graph: GraphPlan, note: Note) -> None:
    """Refuse a note that no model call of the workflow can receive.

    Raises:
        NoteError: There is no such node, it calls no model, or there is nothing to say.
    """
    if not note.text.strip():
        raise NoteError("The note is empty.", "Write what the node is to know.")
    if len(note.text) > LONGEST_NOTE:
        raise NoteError(
            f"The note has {format_count(len(note.text), 'character')}.", f"At most {LONGEST_NOTE:,} can be sent."
        )
    try:
        steps = parse_place(note.to).steps
    except PlaceError as error:
        raise NoteError(f"{shown(note.to, 60)} names no node.", _remedy(graph)) from error
    nodes = _all_nodes(graph) if len(steps) == 1 else graph.nodes
    for number, step in enumerate(steps):
        node = next((node for node in nodes if node.id == step.node), None)
        is_last = number == len(steps) - 1
        if (
            node is None
            or (step.index is None) != (is_last or node.subflow is not None)
            or (not is_last and node.body is None)
        ):
            raise NoteError(f'There is no node "{shown(note.to, 60)}".', _remedy(graph))
        if is_last and node.spec.model(node.config) is None:
            raise NoteError(f'"{node.title}" calls no model, and so receives no notes.', _remedy(graph))
        nodes = node.body.nodes if node.body is not None else ()


def _all_nodes(graph: GraphPlan) -> tuple[NodePlan, ...]:
    inner = (node for outer in graph.nodes if outer.body is not None for node in _all_nodes(outer.body))
    return (*graph.nodes, *inner)


def _remedy(graph: GraphPlan) -> str:
    names = [node.id for node in _all_nodes(graph) if node.spec.model(node.config) is not None]
    return f"Notes can be sent to: {', '.join(names)}." if names else "No node of this workflow calls a model."
