"""Check of the variables in templates and expressions: a name that cannot have a value is a problem before the run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from engine.document.problems import Problem
from engine.errors import did_you_mean
from engine.expr.correction import correct
from engine.nodes.pairs import ITERATOR, LOOP
from engine.nodes.spec import RESERVED_NAMES, NamedText, PortType, TextKind
from engine.nodes.texts import elements_of, paths_of
from engine.plan.resolve import Resolved
from engine.plan.structure import Structure
from engine.text_sanitizing import shown

LOOP_MEMBERS: Final = frozenset(
    {"index", "iteration", "max_iterations", "input", "previous", "last", "history", "parent"}
)
"""What `loop.…` has in a body."""

RECORD_MEMBERS: Final = (
    "index",
    "input",
    "result",
    "feedback",
    "branch",
    "reason",
    "score",
    "similarity",
    "cost_usd",
    "duration_s",
    "warnings",
    "nodes",
)
"""What the record of an iteration has, in its order."""

_NUMBERS: Final = frozenset({"index", "iteration", "max_iterations", "score", "similarity", "cost_usd", "duration_s"})
_TEXTS: Final = frozenset({"branch", "reason"})

_OF_AN_ITEM: Final = {
    "item": "`item` has a value only between an Iterator and its Aggregator.",
    "index": "`index` has a value only between an Iterator and its Aggregator; in a loop it is `loop.index`.",
}


@dataclass(frozen=True, slots=True)
class _Fault:
    """Why a name can have no value.

    Attributes:
        sentence: The reason.
        name: The part of the name that is wrong; empty where no other name would be right.
        known: The names that would be right in its place.
        prefix: What stands before it, to suggest the whole name.
    """

    sentence: str
    name: str = ""
    known: tuple[str, ...] = ()
    prefix: str = ""

    @property
    def suggestion(self) -> str:
        """The question whether a similar name was meant; empty where none is similar."""
        known = (f"{self.prefix}{name}" for name in self.known)
        return did_you_mean(f"{self.prefix}{self.name}", known) if self.name else ""


def name_problems(structure: Structure) -> Iterator[Problem]:
    """A problem for each name in a text that can have no value there."""
    states = state_names(structure)
    for resolved in structure.resolution.nodes.values():
        for text in resolved.spec.texts(resolved.config):
            if _are_ports(text, resolved):
                continue
            checker = _Checker(structure, resolved, text, states)
            for name, fault in checker.faults():
                message = f"`{shown(name, 120)}` cannot be filled in: {fault.sentence}"
                suggestion = fault.suggestion
                correction = "" if suggestion else checker.correction
                remedy = f"Did you mean `{correction}`?" if correction else f"{suggestion} Correct the name.".lstrip()
                yield Problem(
                    "unknown-name", message, remedy, node=resolved.id, field=text.field, correction=correction
                )


def _are_ports(text: NamedText, resolved: Resolved) -> bool:
    """Whether a text names nothing but input ports and its own names, as most do."""
    ports = resolved.inputs if text.ports else ()
    for path in paths_of(text):
        if path[0] in RESERVED_NAMES or not (path[0] in ports or path[0] in text.names):
            return False
    return not elements_of(text)


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


class _Checker:
    """Checks the names in one text of a node."""

    def __init__(self, structure: Structure, resolved: Resolved, text: NamedText, states: Iterable[str]) -> None:
        self._structure = structure
        self._resolved = resolved
        self._text = text
        self._states = tuple(sorted(states))
        self._loop = resolved.id if "nodes" in text.namespaces else structure.around(resolved.id, LOOP)

    @property
    def correction(self) -> str:
        """The expression that may have been meant, if a bare word in it was meant as a text; else empty."""
        if self._text.kind is not TextKind.EXPRESSION:
            return ""
        ports = self._resolved.inputs if self._text.ports else ()
        return correct(self._text.text, {*self._text.names, *ports, *self._text.namespaces}) or ""

    def faults(self) -> Iterator[tuple[str, _Fault]]:
        """Each name that can have no value, and why."""
        for path in sorted(paths_of(self._text)):
            fault = self._fault(path)
            if fault is not None:
                yield ".".join(path), fault
        for path, members in sorted(elements_of(self._text)):
            fault = self._element_fault(path, members)
            if fault is not None:
                yield f"{'.'.join(path)}[…].{'.'.join(members)}", fault

    def _fault(self, path: tuple[str, ...]) -> _Fault | None:
        root, members, text = path[0], path[1:], self._text
        if root == "loop":
            return self._loop_fault(members, self._loop, "loop.")
        if root == "state":
            return self._state_fault(members)
        if root == "nodes" and root in text.namespaces:
            return self._node_fault(members, self._resolved.id, "nodes.")
        if root in text.names or (text.ports and root in self._resolved.inputs):
            return None
        if root in _OF_AN_ITEM:
            is_inside = self._structure.around(self._resolved.id, ITERATOR) is not None
            return None if is_inside else _Fault(_OF_AN_ITEM[root])
        ports = self._resolved.inputs if text.ports else ()
        names = tuple(sorted({*text.names, *ports, *text.namespaces}))
        known = (*names, *(f"loop.{name}" for name in sorted(LOOP_MEMBERS) if self._loop is not None))
        sentence = f"here there is {', '.join(names)}."
        in_loop = f"loop.{root}"
        return _Fault(sentence, in_loop if in_loop in known else root, known)

    def _state_fault(self, members: tuple[str, ...]) -> _Fault | None:
        if members and members[0] in self._states:
            return None
        if not self._states:
            return _Fault("no node has a name in the state ('output_key').")
        return _Fault(f"`state` has {', '.join(self._states)}.", members[0] if members else "", self._states, "state.")

    def _loop_fault(self, members: tuple[str, ...], loop: str | None, prefix: str) -> _Fault | None:
        if loop is None:
            return _Fault("`loop` has a value only between a Loop and its Exit.")
        name, deeper = members[0] if members else "", members[1:]
        fault: _Fault | None = None
        if name not in LOOP_MEMBERS:
            known = tuple(sorted(LOOP_MEMBERS))
            fault = _Fault(f"`loop` has {', '.join(known)}.", name, known, prefix)
        elif name in _NUMBERS and deeper:
            fault = _Fault(f"`{prefix}{name}` is a number and has nothing in it.")
        elif name == "history" and deeper:
            record = f"{prefix}history[0].{deeper[0]}"
            fault = _Fault(f"`{prefix}history` is a list; take a record from it, as in `{record}`.")
        elif name == "last":
            fault = self._node_fault(deeper, loop, f"{prefix}last.")
        elif name == "parent":
            outer = self._structure.around(loop, LOOP)
            if outer is None:
                return _Fault(f'the loop "{loop}" lies in no other.')
            fault = self._loop_fault(deeper, outer, f"{prefix}parent.")
        return fault

    def _element_fault(self, path: tuple[str, ...], members: tuple[str, ...]) -> _Fault | None:
        """Why something that is read of an element of a list can have no value; only records are known."""
        loop = self._loop
        for name in path[1:-1]:
            loop = self._structure.around(loop, LOOP) if name == "parent" and loop is not None else None
        if path[0] != "loop" or path[-1] != "history" or loop is None:
            return None
        name, deeper = members[0], members[1:]
        if name not in RECORD_MEMBERS:
            return _Fault(f"the record of an iteration has {', '.join(RECORD_MEMBERS)}.", name, RECORD_MEMBERS)
        if name == "nodes":
            return self._node_fault(deeper, loop, "nodes.") if deeper else None
        if deeper and name in _NUMBERS | _TEXTS:
            return _Fault(f"`{name}` is a {'number' if name in _NUMBERS else 'text'} and has nothing in it.")
        return None

    def _node_fault(self, members: tuple[str, ...], loop: str, prefix: str) -> _Fault | None:
        there = tuple(self._structure.members.get(loop, ()))
        if members and members[0] in there:
            return self._output_fault(members[0], members[1:], prefix)
        if loop not in self._structure.bodies:
            return None  # the loop's own problem says why nothing is known of its body
        name = f"`{members[0]}` is no node of it; " if members else ""
        sentence = f'{name}the loop "{loop}" has {", ".join(there) if there else "no nodes"}.'
        return _Fault(sentence, members[0] if members else "", there, prefix)

    def _output_fault(self, node: str, members: tuple[str, ...], prefix: str) -> _Fault | None:
        """Why something that is read of a node's output can have no value, where its form is known."""
        resolved = self._structure.resolution.nodes.get(node)
        if (
            not members
            or resolved is None
            or node in self._structure.disabled
            or resolved.config.on_error == "continue"
        ):
            return None
        known = resolved.spec.recorded_members
        if known and members[0] not in known:
            return _Fault(f"`{node}` gives {', '.join(known)}.", members[0], known, f"{prefix}{node}.")
        output = resolved.outputs.get("output")
        if not known and output is not None and output.type is PortType.TEXT:
            return _Fault(f"`{node}` gives a text, which has nothing in it.")
        return None
