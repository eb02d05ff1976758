"""Validation of a document: all its problems, each with its place.

Variables of templates and expressions are checked, too: a name that cannot have a value is a problem before the run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from pydantic import ValidationError

from engine.document.model import FORMAT, VERSION, Settings, Workflow, unknown_settings
from engine.document.problems import Problem, Severity, config_errors
from engine.errors import did_you_mean
from engine.exits import MAX_ITERATIONS_CAP
from engine.exits.condition import Need
from engine.expr.comparisons import Comparison, comparisons_of
from engine.expr.correction import correct
from engine.models.protocol import ModelChoice
from engine.nodes.input import InputConfig
from engine.nodes.loop import LoopConfig, range_problem
from engine.nodes.node_registry import Registry
from engine.nodes.output import OutputConfig
from engine.nodes.spec import (
    ERROR_PORT,
    ITERATOR,
    LOOP,
    RESERVED_NAMES,
    Category,
    NamedText,
    PortType,
    TextKind,
    is_body_port,
)
from engine.plan.loop_bodies import Body
from engine.plan.resolve import UNPINNABLE, Resolved, unknown_key
from engine.plan.secrets import SECRET_CODE, secret_problems
from engine.plan.structure import Structure, analyse, problem_of_subflow
from engine.text_sanitizing import shown

LOOP_MEMBERS: Final = frozenset(
    {"index", "iteration", "max_iterations", "input", "previous", "last", "history", "parent"}
)
"""Members of `loop` in a body."""

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
"""Members of an iteration's record, in order."""

_NUMBERS: Final = frozenset({"index", "iteration", "max_iterations", "score", "similarity", "cost_usd", "duration_s"})
_TEXTS: Final = frozenset({"branch", "reason"})

_ITEM_VARIABLES: Final = {
    "item": "`item` has a value only between an Iterator and its Aggregator.",
    "index": "`index` has a value only between an Iterator and its Aggregator; in a loop it is `loop.index`.",
}

_Place = tuple[str, str]
"""A node and one of its output ports."""


@dataclass(frozen=True, slots=True)
class _Fault:
    """The reason why a variable cannot have a value.

    Attributes:
        sentence: The reason.
        name: The wrong part of the name; empty if no other name would be right.
        known: Valid names in its place.
        prefix: The part before it, for suggestions.
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
    """Report each variable of a template or an expression that cannot have a value."""
    unsure = [
        (resolved, text)
        for resolved in structure.resolution.nodes.values()
        for text in resolved.texts
        if not _names_only_ports(text, resolved)
    ]
    states = state_names(structure) if unsure else {}
    for resolved, text in unsure:
        checker = _Checker(structure, resolved, text, states)
        for name, fault in checker.faults():
            message = f"`{shown(name, 120)}` cannot be filled in: {fault.sentence}"
            suggestion = fault.suggestion
            correction = "" if suggestion else checker.correction
            remedy = f"Did you mean `{correction}`?" if correction else f"{suggestion} Correct the name.".lstrip()
            yield Problem("unknown-name", message, remedy, node=resolved.id, field=text.field, correction=correction)


def _names_only_ports(text: NamedText, resolved: Resolved) -> bool:
    """Whether a text uses only input ports and its own names, as most do."""
    ports = resolved.inputs if text.ports else ()
    for path in text.paths:
        if path[0] in RESERVED_NAMES or not (path[0] in ports or path[0] in text.names):
            return False
    return not text.elements


def state_names(structure: Structure) -> dict[str, list[str]]:
    """Return the names in `state` with the ids of the nodes that set them, including nodes with problems."""
    found: dict[str, list[str]] = {}
    for node in structure.workflow.nodes_by_id.values():
        resolved = structure.resolution.nodes.get(node.id)
        # Attribute access is slow if a pydantic model has no such field.
        settings: dict[str, object] = resolved.config.__dict__ if resolved is not None else node.config
        key = settings.get("output_key")
        if isinstance(key, str) and key:
            found.setdefault(key, []).append(node.id)
    return found


class _Checker:
    """Checks the variables of one template or expression."""

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
        """Yield each variable that cannot have a value, with the reason."""
        for path in sorted(self._text.paths):
            fault = self._fault(path)
            if fault is not None:
                yield ".".join(path), fault
        for path, members in sorted(self._text.elements):
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
        if root in _ITEM_VARIABLES:
            is_inside = self._structure.around(self._resolved.id, ITERATOR) is not None
            return None if is_inside else _Fault(_ITEM_VARIABLES[root])
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
            fault = _Fault(f"`{prefix}{name}` is a number and has no members.")
        elif name == "history" and deeper:
            record = f"{prefix}history[0].{deeper[0]}"
            fault = _Fault(f"`{prefix}history` is a list; take a record from it, as in `{record}`.")
        elif name == "last":
            fault = self._node_fault(deeper, loop, f"{prefix}last.")
        elif name == "parent":
            outer = self._structure.around(loop, LOOP)
            if outer is None:
                return _Fault(f'the loop "{self._structure.resolution.name(loop)}" is not in another loop.')
            fault = self._loop_fault(deeper, outer, f"{prefix}parent.")
        return fault

    def _element_fault(self, path: tuple[str, ...], members: tuple[str, ...]) -> _Fault | None:
        """Check a member of a list's element; only records of iterations have known members."""
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
            return _Fault(f"`{name}` is a {'number' if name in _NUMBERS else 'text'} and has no members.")
        return None

    def _node_fault(self, members: tuple[str, ...], loop: str, prefix: str) -> _Fault | None:
        there = tuple(self._structure.members.get(loop, ()))
        if members and members[0] in there:
            return self._output_fault(members[0], members[1:], prefix)
        if loop not in self._structure.bodies:
            return None  # the loop has a problem of its own
        name = f"`{members[0]}` is not one of its nodes; " if members else ""
        sentence = (
            f'{name}the loop "{self._structure.resolution.name(loop)}" has {", ".join(there) if there else "no nodes"}.'
        )
        return _Fault(sentence, members[0] if members else "", there, prefix)

    def _output_fault(self, node: str, members: tuple[str, ...], prefix: str) -> _Fault | None:
        """Check a member of a node's output, if its type is known."""
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
            return _Fault(f"`{node}` outputs a text, which has no members.")
        return None


_DOCUMENT_WIDE: Final = frozenset({"bad-id", "duplicate-id", "unknown-loop", SECRET_CODE})
"""Codes of problems with a field that concern more than the node itself."""


def validate(
    workflow: Workflow, registry: Registry | None = None, *, max_iterations_cap: int = MAX_ITERATIONS_CAP
) -> list[Problem]:
    """Find all problems of a document, each with its place.

    Nothing is executed or fetched; the result does not depend on the computer.

    Args:
        workflow: The document.
        registry: The node types; None for the built-in ones.
        max_iterations_cap: The most iterations that a loop may ask for.
    """
    return validate_structure(analyse(workflow, registry), max_iterations_cap=max_iterations_cap)


def validate_structure(structure: Structure, *, max_iterations_cap: int = MAX_ITERATIONS_CAP) -> list[Problem]:
    """Find all problems of an analysed document, which caches them."""
    if max_iterations_cap not in structure.checked:
        structure.checked[max_iterations_cap] = tuple(_all_problems(structure, max_iterations_cap))
    return list(structure.checked[max_iterations_cap])


def _all_problems(structure: Structure, max_iterations_cap: int) -> list[Problem]:
    problems = [
        *_document_problems(structure.workflow),
        *structure.problems,
        *name_problems(structure),
        *_search_problems(structure),
        *_exit_loop_problems(structure),
        *_parameter_problems(structure),
        *_loop_problems(structure, max_iterations_cap),
        *_judge_problems(structure),
        *_branch_problems(structure),
        *_pin_problems(structure),
        *secret_problems(structure.workflow, structure.registry),
        *_subflow_problems(structure, max_iterations_cap),
    ]
    if not problems:
        return []
    position = {node.id: index for index, node in enumerate(structure.workflow.nodes)}
    return sorted(
        (_softened(problem, structure) for problem in problems),
        key=lambda problem: position.get(problem.node or "", -1),
    )


def affects_only_node(problem: Problem, structure: Structure) -> bool:
    """Whether a problem belongs to a disabled node alone, so that it does not prevent a run."""
    if problem.node not in structure.disabled:
        return False
    return problem.code == "unconnected-port" or (problem.field is not None and problem.code not in _DOCUMENT_WIDE)


def _softened(problem: Problem, structure: Structure) -> Problem:
    return replace(problem, severity=Severity.WARNING) if affects_only_node(problem, structure) else problem


def _document_problems(workflow: Workflow) -> Iterator[Problem]:
    if workflow.format != FORMAT:
        yield Problem(
            "wrong-format", f'The format is "{shown(workflow.format, 60)}".', f'It must be "{FORMAT}".', field="format"
        )
    if workflow.version > VERSION:
        yield Problem(
            "newer-version",
            f"The file has version {shown(workflow.version, 40)}; this program knows {VERSION} and may misread it.",
            "Update the program.",
            Severity.WARNING,
            field="version",
        )
    for key in workflow.unknown_keys:
        yield unknown_key(f'A document has no "{shown(key, 60)}"', key)
    try:
        Settings.model_validate(workflow.settings)
    except ValidationError as error:
        for place, message, remedy in config_errors(Settings, error):
            yield Problem("bad-setting", message, remedy, field=f"settings.{place}")
    for key in unknown_settings(workflow.settings):
        yield unknown_key(f'There is no setting "{shown(key, 60)}"', f"settings.{key}")
    if not workflow.nodes:
        yield Problem("no-nodes", "The workflow is empty.", "Add an Input, a node that does something, and an Output.")
    elif not any(node.type == "output" for node in workflow.nodes):
        yield Problem(
            "no-output",
            "The workflow has no Output, so that its runs have no result.",
            "Add an Output and connect the result to it.",
            Severity.WARNING,
        )


_SEARCHES: Final = frozenset(
    {
        Comparison.CONTAINS,
        Comparison.NOT_CONTAINS,
        Comparison.STARTS_WITH,
        Comparison.ENDS_WITH,
        Comparison.MATCHES,
    }
)


def _search_problems(structure: Structure) -> Iterator[Problem]:
    """Warn about conditions that search for an empty text, which is in every text."""
    for resolved in structure.resolution.nodes.values():
        for text in resolved.texts:
            if text.kind is not TextKind.EXPRESSION or not ('""' in text.text or "''" in text.text):
                continue
            comparisons = comparisons_of(text.text)
            rows = comparisons.rows if comparisons is not None else ()
            row = next((row for row in rows if row.comparison in _SEARCHES and row.right == ""), None)
            if row is not None:
                result = "false" if row.comparison is Comparison.NOT_CONTAINS else "true"
                yield Problem(
                    "empty-search",
                    f"`{shown(row.left, 60)}` is searched for an empty text, which every text has: "
                    f"the comparison is always {result}.",
                    f"Enter the text to search for, or use `size({shown(row.left, 60)}) == 0` to find an empty text.",
                    Severity.WARNING,
                    node=resolved.id,
                    field=text.field,
                )


def _exit_loop_problems(structure: Structure) -> Iterator[Problem]:
    """Report nodes outside of all loops that have the tool `exit_loop`."""
    for resolved in structure.resolution.nodes.values():
        field = resolved.spec.exit_loop_field(resolved.config)
        if field and structure.order and structure.around(resolved.id, LOOP) is None:
            yield Problem(
                "exit-loop-outside",
                f'"{structure.resolution.name(resolved.id)}" may end the loop around it, but is not in a loop.',
                "Put it between a Loop and its Exit, or take the tool exit_loop from it.",
                node=resolved.id,
                field=field,
            )


def _parameter_problems(structure: Structure) -> Iterator[Problem]:
    for kind, config in (("input", InputConfig), ("output", OutputConfig)):
        names: dict[str, str] = {}
        for resolved in structure.resolution.by_type.get(kind, ()):
            if not isinstance(resolved.config, config) or resolved.id in structure.disabled:
                continue
            name = resolved.config.name or resolved.id
            first = names.setdefault(name, resolved.id)
            if first != resolved.id:
                title = structure.resolution.name
                yield Problem(
                    f"duplicate-{kind}",
                    f'Two {kind}s are called "{shown(name, 60)}": "{title(first)}" and "{title(resolved.id)}".',
                    "Rename one.",
                    node=resolved.id,
                    field="name",
                )


def _loop_problems(structure: Structure, cap: int) -> Iterator[Problem]:
    for resolved in structure.resolution.by_type.get(LOOP.start, ()):
        if not isinstance(resolved.config, LoopConfig):
            continue
        fault = range_problem(resolved.config.max_iterations, cap)
        if fault is not None:
            yield Problem(fault.code, fault.message, fault.remedy, fault.severity, node=resolved.id, field=fault.field)


def _judge_problems(structure: Structure) -> Iterator[Problem]:
    """Warn about a judge that uses the model of a node that it judges."""
    default_model, known = structure.workflow.settings.get("model"), structure.resolution.nodes
    for loop, body in structure.bodies.items():
        config = known[loop].config if loop in known else None
        judge = config.judge if isinstance(config, LoopConfig) and config.has_judge else None
        if judge is None or not judge.model:
            continue
        nodes = (known[node] for node in structure.order if node in body.nodes and node in known)
        writers = (node for node in nodes if node.spec.category is Category.AI)
        same = (
            structure.resolution.name(node.id)
            for node in writers
            if _is_model(judge.choice, node.spec.model(node.config), default_model)
        )
        if writer := next(same, None):
            yield Problem(
                "judge-is-writer",
                f'The judge has the model of "{writer}", whose work it judges: {shown(judge.model, 60)}.',
                "Models are lenient with their own work. Choose another model for the judge, or accept the bias.",
                Severity.WARNING,
                node=loop,
                field=known[loop].spec.model_field,
            )


def _branch_problems(structure: Structure) -> Iterator[Problem]:
    """Warn about unconnected branches in loops after which nothing arrives at the exit."""
    known: dict[tuple[str | _Place, ...], set[str]] = {}  # most documents need none, and `functools.cache` takes time

    def skipped(loop: str, *dead: _Place) -> set[str]:
        if (loop, *dead) not in known:
            known[loop, *dead] = _skipped(structure, loop, dead)
        return known[loop, *dead]

    for body in structure.bodies.values():
        if body.kind is not LOOP or body.loop not in structure.resolution.nodes:  # its own settings have an error
            continue
        for node in structure.members.get(body.loop, ()):
            for branch in _branches(structure, node):
                if _ends_iteration(structure, body, (node, branch), skipped):
                    name = structure.resolution.name
                    yield Problem(
                        "unconnected-branch",
                        f'Nothing follows the branch "{branch}" of "{name(node)}": an iteration that takes it has '
                        "no result, and passes nothing to the next one.",
                        f'Connect it to the port "feedback" of "{name(body.exit)}", or to a node that leads there.',
                        Severity.WARNING,
                        node=node,
                        port=branch,
                    )


def _branches(structure: Structure, node: str) -> list[str]:
    """The ports of a node that are branches; none if its type is unknown."""
    resolved = structure.resolution.nodes.get(node)
    return [] if resolved is None else [port.name for port in resolved.outputs.values() if port.branch]


def _ends_iteration(structure: Structure, body: Body, branch: _Place, skipped: Callable[..., set[str]]) -> bool:
    """Whether a branch beside connected ports is unconnected, and an iteration that takes it has no outcome."""
    node = branch[0]
    connected = {(node, link.source_port) for link in structure.links_from.get(node, ())}
    dead = _not_taken(structure, branch)
    if branch in connected or connected.isdisjoint(dead) or node in structure.disabled | structure.replaced_by_pins:
        return False
    for around in _connected_branches(structure, body):
        if around[0] != node and node in skipped(body.loop, around):  # the node is reached by that branch alone
            dead |= _not_taken(structure, around)
    return node not in skipped(body.loop) and not _has_outcome(structure, body, dead)


def _connected_branches(structure: Structure, body: Body) -> Iterator[_Place]:
    """The connected branches of the nodes of a body."""
    for node in structure.members.get(body.loop, ()):
        used = {link.source_port for link in structure.links_from.get(node, ())}
        yield from ((node, branch) for branch in _branches(structure, node) if branch in used)


def _not_taken(structure: Structure, branch: _Place) -> set[_Place]:
    """Return the ports that have no value if a node takes a branch: all others if it fails, else other branches."""
    node, taken = branch
    outputs = structure.resolution.nodes[node].outputs
    failed = outputs[taken] == ERROR_PORT
    return {(node, port.name) for port in outputs.values() if port.name != taken and (failed or port.branch)}


def _has_outcome(structure: Structure, body: Body, dead: Collection[_Place]) -> bool:
    """Whether an iteration has a result or feedback although some ports have no value."""
    skipped = _skipped(structure, body.loop, dead)
    config = structure.resolution.nodes[body.loop].config
    ends = {*structure.feedback_ends.get(body.loop, ())}
    if isinstance(config, LoopConfig) and Need.EVALUATOR in config.needs and body.loop in structure.evaluators:
        ends.add(structure.evaluators[body.loop])
    return any(_live_ports(structure, body.exit, skipped, dead).values()) or not ends <= skipped


def _skipped(structure: Structure, loop: str, dead: Collection[_Place]) -> set[str]:
    """Return the nodes of a body without outputs if some of its ports have no value."""
    skipped = set[str]()
    for node in structure.members.get(loop, ()):
        ports, start = _live_ports(structure, node, skipped, dead), structure.loop_of.get(node)
        if start is not None:  # a loop in the body has a result if it runs
            is_skipped = start in skipped
        else:
            is_skipped = not all(ports.values())
            if node in structure.disabled and node not in structure.bodies:
                is_skipped |= not _passes_input_on(structure, node, ports)
        if is_skipped:
            skipped.add(node)
    return skipped


def _passes_input_on(structure: Structure, node: str, ports: dict[str, bool]) -> bool:
    """Whether a disabled node has an output, as in `bypass_node`."""
    used = {link.source_port for link in structure.links_from.get(node, ())}
    return len(ports) == len(used) == 1 and used.isdisjoint(_branches(structure, node))


def _live_ports(structure: Structure, node: str, skipped: set[str], dead: Collection[_Place]) -> dict[str, bool]:
    """Return for each connected input of a node whether a value can arrive there."""
    ports = dict[str, bool]()
    for link in structure.links_to.get(node, ()):
        is_live = link.source not in skipped and (link.source, link.source_port) not in dead
        ports[link.target_port] = ports.get(link.target_port, False) or is_live
    return ports


def _pin_problems(structure: Structure) -> Iterator[Problem]:
    """Warn about connected ports of pinned nodes without a pinned value; of branches, only one has a value anyway."""
    for resolved in structure.resolution.nodes.values():
        node = resolved.node
        if not node.pinned or resolved.id in structure.disabled or node.type in UNPINNABLE:
            continue
        body = structure.bodies.get(resolved.id)
        used = {link.source_port for link in structure.links_from.get(node.id, ())}
        if body is not None:  # the loop's output leaves at its exit
            used |= {link.source_port for link in structure.links_from.get(body.exit, ())}
        for port in resolved.outputs.values():
            if port.name in used - node.pinned.keys() and not port.branch and not is_body_port(node.type, port.name):
                yield Problem(
                    "unpinned-port",
                    f'"{structure.resolution.name(node.id)}" is pinned, '
                    f'but not at the connected port "{port.name}", which has no value.',
                    "Edit the pinned value, or unpin the node. Otherwise, what needs this value is skipped.",
                    Severity.WARNING,
                    node=node.id,
                    port=port.name,
                    field="pinned",
                )


def _is_model(choice: ModelChoice, other: ModelChoice | None, default_model: object) -> bool:
    """Whether a node calls a model; a node that names none calls the workflow's default."""
    return other is not None and (choice.name, choice.api_base) == (other.name or default_model, other.api_base)


def _subflow_problems(structure: Structure, cap: int) -> Iterator[Problem]:
    """Report the problems of subflows' workflows at the subflows."""
    for node_id, inner in structure.subflows.items():
        subflow = structure.resolution.nodes[node_id]
        for problem in validate_structure(inner, max_iterations_cap=cap):
            if problem.code != "no-output":
                yield problem_of_subflow(subflow, structure.resolution.name(node_id), problem)
