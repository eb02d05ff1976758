"""The names that texts use: one that cannot exist is a problem before the run, not an empty text in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from engine.document.problems import Problem
from engine.nodes.pairs import ITERATOR, LOOP
from engine.nodes.spec import NamedText
from engine.nodes.texts import paths_of
from engine.plan.resolve import Resolved
from engine.plan.structure import Structure

LOOP_MEMBERS: Final = frozenset(
    {"index", "iteration", "max_iterations", "input", "previous", "last", "history", "parent"}
)
"""What `loop.…` has in a body."""

_NUMBERS: Final = frozenset({"index", "iteration", "max_iterations"})

_OF_AN_ITEM: Final = {
    "item": "`item` has a value only between an Iterator and its Aggregator.",
    "index": "`index` has a value only between an Iterator and its Aggregator; in a loop it is `loop.index`.",
}


def name_problems(structure: Structure) -> Iterator[Problem]:
    """A problem for each name in a text that can have no value there."""
    known = state_names(structure)
    for resolved in structure.resolution.nodes.values():
        for text in resolved.spec.texts(resolved.config):
            for path in sorted(paths_of(text)):
                fault = _fault(path, text, resolved, structure, known)
                if fault:
                    yield Problem(
                        "unknown-name",
                        f"`{'.'.join(path)}` cannot be filled in: {fault}",
                        "Correct the name.",
                        node=resolved.id,
                        field=text.field,
                    )


def state_names(structure: Structure) -> dict[str, list[str]]:
    """The names in `state` that nodes give, each with the ids of those nodes; those of broken nodes too."""
    found: dict[str, list[str]] = {}
    for node in structure.workflow.nodes_by_id.values():
        resolved = structure.resolution.nodes.get(node.id)
        # Few types have one, and pydantic is slow to say so.
        settings: dict[str, object] = resolved.config.__dict__ if resolved is not None else node.config
        key = settings.get("output_key")
        if isinstance(key, str) and key:
            found.setdefault(key, []).append(node.id)
    return found


def _fault(
    path: tuple[str, ...], text: NamedText, resolved: Resolved, structure: Structure, known: Mapping[str, object]
) -> str:
    root = path[0]
    own_loop = resolved.id if "nodes" in text.namespaces else structure.around(resolved.id, LOOP)
    if root == "loop":
        return _loop_fault(path[1:], own_loop, structure)
    if root == "state":
        return _state_fault(path[1:], known)
    if root == "nodes" and root in text.namespaces:
        return _node_fault(path[1:], resolved.id, structure)
    if root in text.names or (text.ports and root in resolved.inputs):
        return ""
    if root in _OF_AN_ITEM:
        return "" if structure.around(resolved.id, ITERATOR) is not None else _OF_AN_ITEM[root]
    ports = resolved.inputs if text.ports else ()
    names = sorted({*text.names, *ports, *text.namespaces})
    return f"here there is {', '.join(names)}."


def _state_fault(members: tuple[str, ...], known: Mapping[str, object]) -> str:
    if members and members[0] in known:
        return ""
    if not known:
        return "no node has a name in the state ('output_key')."
    return f"`state` has {', '.join(sorted(known))}."


def _loop_fault(members: tuple[str, ...], loop: str | None, structure: Structure) -> str:
    if loop is None:
        return "`loop` has a value only between a Loop and its Exit."
    name = members[0] if members else ""
    if name not in LOOP_MEMBERS:
        return f"`loop` has {', '.join(sorted(LOOP_MEMBERS))}."
    if name in _NUMBERS and len(members) > 1:
        return f"`loop.{name}` is a number and has nothing in it."
    if name == "parent":
        outer = structure.around(loop, LOOP)
        if outer is None:
            return f'the loop "{loop}" lies in no other.'
        return _loop_fault(members[1:], outer, structure)
    return _node_fault(members[1:], loop, structure) if name == "last" else ""


def _node_fault(members: tuple[str, ...], loop: str, structure: Structure) -> str:
    there = structure.members.get(loop, [])
    if members and members[0] in there:
        return ""
    if loop not in structure.bodies:
        return ""  # the loop's own problem says why nothing is known of its body
    name = f"`{members[0]}` is no node of it; " if members else ""
    return f'{name}the loop "{loop}" has {", ".join(there) if there else "no nodes"}.'
