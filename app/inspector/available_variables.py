"""The variables that a template or expression of a node may use, each with a line of help.

Used for completion and highlighting. `engine.plan` does the authoritative check; it accepts every variable listed here.
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
from engine.plan.structure import Structure
from engine.plan.variable_check import state_names

LOOP_HELP: Final = {
    "iteration": "Number of this iteration, starting at 1.",
    "index": "Index of this iteration, starting at 0.",
    "max_iterations": "Maximum number of iterations.",
    "input": "Initial input of the loop.",
    "previous": "Result of the previous iteration.",
    "history": "List with a record of every iteration so far.",
}
"""Members of `loop` in every loop body, besides `last` and `parent`."""

RECORD_HELP: Final = {
    "index": "Index of the first iteration, starting at 0.",
    "input": "Input of the first iteration.",
    "result": "Result of the first iteration.",
    "feedback": "Feedback from the first iteration, the input of the second.",
    "branch": "Branch chosen by the router in the first iteration.",
    "reason": "Reason given by the router or judge in the first iteration.",
    "score": "Score of the first iteration.",
    "similarity": "Similarity of the result to the previous one, from 0 to 1.",
    "cost_usd": "Cost of the first iteration in US dollars.",
    "duration_s": "Duration of the first iteration in seconds.",
    "warnings": "List of warnings of the first iteration.",
}
"""Members of an entry of `loop.history`."""

ITEM_HELP: Final = {"item": "Current item of the iterator.", "index": "Index of the item, starting at 0."}
_NUMBERS: Final = frozenset({"iteration", "index", "max_iterations"})
_ENDED_HELP: Final = {
    "output": "Result of the iteration that just ended.",
    "similarity": "Similarity of the result to the previous one, from 0 to 1.",
    "cost_usd": "Cost of the loop so far in US dollars.",
    "elapsed_s": "Seconds since the loop started.",
}


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable that a text may use.

    Attributes:
        path: Its parts as written: `("loop", "last", "draft")`, `("loop", "history[0]", "result")`.
        help: One line of help.
        is_leaf: Whether it has no members.
        connected: False for an input port without an edge.
    """

    path: tuple[str, ...]
    help: str
    is_leaf: bool = False
    connected: bool = True

    @property
    def text(self) -> str:
        """The variable as written in a template."""
        return ".".join(self.path)


def named_text(spec: AnySpec, config: dict[str, Any], path: JsonPath, kind: TextKind) -> NamedText:
    """Return how the node type evaluates the text at a path of a config; a default if the config is invalid."""
    field = ".".join(map(str, path))
    try:
        filled = set_in(config, path, "1", "The config", depth=0)  # some types do not list empty texts
        texts = spec.texts(spec.config.model_validate(filled))
    except (OperationError, ValueError):
        texts = ()
    return next((text for text in texts if text.field == field), NamedText(field, kind, ""))


def variables_at(structure: Structure, node: Node, text: NamedText) -> list[Variable]:
    """Return all variables that a text of a node may use, ports first."""
    variables = [Variable((name,), _ENDED_HELP.get(name, "")) for name in sorted(text.names, key=_ended_order)]
    if text.ports:
        variables = [*_ports(structure, node.id), *variables]
    own_loop = node.id if "nodes" in text.namespaces else structure.around(node.id, LOOP)
    if "nodes" in text.namespaces:
        variables.extend(_body(structure, node.id, ("nodes",), "Output of {} in this iteration."))
    if structure.around(node.id, ITERATOR) is not None:
        variables.extend(Variable((name,), help_, is_leaf=name == "index") for name, help_ in ITEM_HELP.items())
    variables.extend(_loop(structure, own_loop, ("loop",)))
    variables.extend(_state(structure))
    return variables


def variable_for(path: tuple[str, ...], variables: list[Variable]) -> Variable | None:
    """Return the variable that a path starts with, or None."""
    for variable in variables:
        length = len(variable.path)
        if path[:length] == variable.path and (len(path) == length or not variable.is_leaf):
            return variable
    return None


def _ended_order(name: str) -> int:
    known = list(_ENDED_HELP)
    return known.index(name) if name in known else len(known)


def _ports(structure: Structure, node_id: str) -> Iterator[Variable]:
    # From the edges and not only the ports: while a text does not compile, its node has no ports for its placeholders.
    sources: dict[str, list[str]] = {}
    for edge in structure.workflow.edges_into.get(node_id, ()):
        sources.setdefault(edge.target[1], []).append(_title(structure, edge.source[0]))
    resolved = structure.resolution.nodes.get(node_id)
    ports = [] if resolved is None else [name for name in resolved.inputs if name not in sources]
    for name, titles in sources.items():
        yield Variable((name,), f"From {', '.join(titles)}.")
    for name in ports:
        yield Variable((name,), "No edge is connected to this port.", connected=False)


def _loop(structure: Structure, loop: str | None, prefix: tuple[str, ...]) -> Iterator[Variable]:
    if loop is None:
        return
    suffix = "" if len(prefix) == 1 else f" ({_title(structure, loop)})"
    for member, help_ in LOOP_HELP.items():
        yield Variable((*prefix, member), f"{help_[:-1]}{suffix}.", is_leaf=member in _NUMBERS)
    yield from _body(structure, loop, (*prefix, "last"), "Output of {} in the previous iteration.")
    first = (*prefix, "history[0]")
    for member, help_ in RECORD_HELP.items():
        yield Variable((*first, member), f"{help_[:-1]}{suffix}.")
    yield from _body(structure, loop, (*first, "nodes"), "Output of {} in the first iteration.")
    yield from _loop(structure, structure.around(loop, LOOP), (*prefix, "parent"))


def _state(structure: Structure) -> Iterator[Variable]:
    for name, writers in state_names(structure).items():
        titles = " or ".join(_title(structure, node_id) for node_id in writers)
        yield Variable(("state", name), f"Latest output of {titles} in this run.")


def _body(structure: Structure, loop: str, prefix: tuple[str, ...], help_: str) -> Iterator[Variable]:
    for node_id in structure.order:
        if structure.parent.get(node_id) == loop:
            yield Variable((*prefix, node_id), help_.format(_title(structure, node_id)))


def _title(structure: Structure, node_id: str) -> str:
    node = structure.workflow.nodes_by_id.get(node_id)
    return node.title or node_id if node is not None else node_id
