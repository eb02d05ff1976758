"""Which names a text of a node may use at its place, each with one line of help: for completion and colouring.

No Qt here. `engine.plan.names` is what finally judges; a name that is known here is one that it lets pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from engine.document.json_rules import JsonPath
from engine.document.model import Node
from engine.document.operation import OperationError, set_in
from engine.nodes.pairs import ITERATOR, LOOP
from engine.nodes.spec import AnySpec, NamedText, TextKind
from engine.plan.names import state_names
from engine.plan.structure import Structure

LOOP_HELP: Final = {
    "iteration": "Number of this iteration, from 1.",
    "index": "Number of this iteration, from 0.",
    "max_iterations": "How many iterations there are at the most.",
    "input": "What the loop started from.",
    "previous": "The result of the iteration before.",
    "history": "A record of every iteration so far, as a list.",
}
"""What `loop.…` has in every body, beside `last` and `parent`."""

RECORD_HELP: Final = {
    "index": "Number of the first iteration, from 0.",
    "input": "What the first iteration started from.",
    "result": "The result of the first iteration.",
    "feedback": "What the second iteration started from.",
    "branch": "The branch that the router chose in the first iteration.",
    "reason": "Why the router or the judge decided so in the first iteration.",
    "score": "The score of the first iteration.",
    "similarity": "How similar the result was to the one before, from 0 to 1.",
    "cost_usd": "What the first iteration cost, in US dollars.",
    "duration_s": "How long the first iteration took, in seconds.",
    "warnings": "The warnings of the first iteration, as a list.",
}
ITEM_HELP: Final = {"item": "The item of the iterator around.", "index": "The item's number, from 0."}
_NUMBERS: Final = frozenset({"iteration", "index", "max_iterations"})
_ENDED_HELP: Final = {
    "output": "The result of the iteration that has just ended.",
    "similarity": "How similar it is to the result before, from 0 to 1.",
    "cost_usd": "What the loop has spent so far, in US dollars.",
    "elapsed_s": "Seconds since the loop began.",
}


@dataclass(frozen=True, slots=True)
class Variable:
    """A name that may stand in a text.

    Attributes:
        path: Its parts as one writes them: `("loop", "last", "draft")`, `("loop", "history[0]", "result")`.
        help: One line on what it stands for.
        is_leaf: Whether nothing can be asked of it after a further dot.
        connected: False for a port that no edge leads to.
    """

    path: tuple[str, ...]
    help: str
    is_leaf: bool = False
    connected: bool = True

    @property
    def text(self) -> str:
        """As one writes it."""
        return ".".join(self.path)


def named_text(spec: AnySpec, config: dict[str, Any], path: JsonPath, kind: TextKind) -> NamedText:
    """What a text at a place of a config may name, by the node type; the usual where the config does not fit."""
    field = ".".join(map(str, path))
    try:
        filled = set_in(config, path, "1", "The config", depth=0)  # some types leave out a text that is empty
        texts = spec.texts(spec.config.model_validate(filled))
    except (OperationError, ValueError):
        texts = ()
    return next((text for text in texts if text.field == field), NamedText(field, kind, ""))


def variables_at(structure: Structure, node: Node, text: NamedText) -> list[Variable]:
    """All names that a text of a node may use, ports first."""
    names = [Variable((name,), _ENDED_HELP.get(name, "")) for name in sorted(text.names, key=_ended_order)]
    if text.ports:
        names = [*_ports(structure, node.id), *names]
    own_loop = node.id if "nodes" in text.namespaces else structure.around(node.id, LOOP)
    if "nodes" in text.namespaces:
        names.extend(_body(structure, node.id, ("nodes",), "What {} gave in this iteration."))
    if structure.around(node.id, ITERATOR) is not None:
        names.extend(Variable((name,), help_, is_leaf=name == "index") for name, help_ in ITEM_HELP.items())
    names.extend(_loop(structure, own_loop, ("loop",)))
    names.extend(_state(structure))
    return names


def variable_for(path: tuple[str, ...], names: list[Variable]) -> Variable | None:
    """The name that a path starts with; None where no name of the list fits."""
    for name in names:
        length = len(name.path)
        if path[:length] == name.path and (len(path) == length or not name.is_leaf):
            return name
    return None


def _ended_order(name: str) -> int:
    known = list(_ENDED_HELP)
    return known.index(name) if name in known else len(known)


def _ports(structure: Structure, node_id: str) -> Iterator[Variable]:
    # By the edges, not only by the ports: while a text is typed that does not compile, its node has lost ports.
    sources: dict[str, list[str]] = {}
    for edge in structure.workflow.edges_into.get(node_id, ()):
        sources.setdefault(edge.target[1], []).append(_title(structure, edge.source[0]))
    resolved = structure.resolution.nodes.get(node_id)
    ports = [] if resolved is None else [name for name in resolved.inputs if name not in sources]
    for name, titles in sources.items():
        yield Variable((name,), f"From {', '.join(titles)}.")
    for name in ports:
        yield Variable((name,), "Nothing is connected to this port.", connected=False)


def _loop(structure: Structure, loop: str | None, prefix: tuple[str, ...]) -> Iterator[Variable]:
    if loop is None:
        return
    whose = "" if len(prefix) == 1 else f" ({_title(structure, loop)})"
    for member, help_ in LOOP_HELP.items():
        yield Variable((*prefix, member), f"{help_[:-1]}{whose}.", is_leaf=member in _NUMBERS)
    yield from _body(structure, loop, (*prefix, "last"), "What {} gave in the iteration before.")
    first = (*prefix, "history[0]")
    for member, help_ in RECORD_HELP.items():
        yield Variable((*first, member), f"{help_[:-1]}{whose}.")
    yield from _body(structure, loop, (*first, "nodes"), "What {} gave in the first iteration.")
    yield from _loop(structure, structure.around(loop, LOOP), (*prefix, "parent"))


def _state(structure: Structure) -> Iterator[Variable]:
    for name, givers in state_names(structure).items():
        titles = " or ".join(_title(structure, node_id) for node_id in givers)
        yield Variable(("state", name), f"What {titles} gave last in this run.")


def _body(structure: Structure, loop: str, prefix: tuple[str, ...], words: str) -> Iterator[Variable]:
    for node_id in structure.order:
        if structure.parent.get(node_id) == loop:
            yield Variable((*prefix, node_id), words.format(_title(structure, node_id)))


def _title(structure: Structure, node_id: str) -> str:
    node = structure.workflow.nodes_by_id.get(node_id)
    return node.title or node_id if node is not None else node_id
