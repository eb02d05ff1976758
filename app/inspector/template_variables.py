"""Variables of templates and expressions: which a node may use, where a text uses them, and their values in a run.

Used for completion, highlighting and the preview. `engine.plan` does the authoritative check; it accepts every variable
listed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.runs.run_view_model import RunViewModel
from engine.document.model import Node, Workflow
from engine.document.operations import OperationError, set_in
from engine.document.problems import JsonPath
from engine.events import LoopIterationCompleted
from engine.expr import ExpressionError, Namespace, Scope, TemplateError, compile_template
from engine.expr.syntax import placeholder_end
from engine.nodes.node_registry import Registry
from engine.nodes.spec import ITERATOR, LOOP, AnySpec, NamedText, Pair, TextKind
from engine.plan.structure import Structure
from engine.plan.validation import state_names
from engine.run_state.state import LoopExecution, NodeState
from engine.runner.loop_variables import history_entry
from engine.values import Value

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
    return structure.resolution.name(node_id)


_OPEN: Final = "{{"
_CLOSE: Final = "}}"
_PATH: Final = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_UNFINISHED: Final = re.compile(r"[A-Za-z_](?:\w|\.|\[[0-9]*(?:\]|$))*$|$")


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A placeholder: `text[start:end]` including the braces, `content` between them; if unclosed, up to the end."""

    start: int
    end: int
    content: str
    closed: bool


def find_placeholders(text: str) -> list[Placeholder]:
    """Return the placeholders of a template, in order. They may be unfinished, so this does not compile them."""
    found: list[Placeholder] = []
    position = 0
    while (start := text.find(_OPEN, position)) >= 0:
        inside = start + len(_OPEN)
        if start > 0 and text[start - 1] == "\\":
            position = inside
            continue
        end = _end(text, inside)
        position = len(text) if end is None else end + len(_CLOSE)
        found.append(Placeholder(start, position, text[inside:end], closed=end is not None))
    return found


def _end(text: str, start: int) -> int | None:
    try:
        return placeholder_end(text, start)
    except ExpressionError:  # an unclosed quotation mark
        end = text.find(_CLOSE, start)
        return None if end < 0 else end


def expression_paths(content: str) -> frozenset[tuple[str, ...]] | None:
    """Return the dotted paths that an expression reads, or None if it does not compile."""
    try:
        return compile_template(f"{_OPEN}{content}{_CLOSE}").paths
    except (ExpressionError, TemplateError):
        return None


def path_spans(content: str, paths: frozenset[tuple[str, ...]]) -> list[tuple[int, int, tuple[str, ...]]]:
    """Locate paths in an expression: start, end and path."""
    spans: list[tuple[int, int, tuple[str, ...]]] = []
    for match in _PATH.finditer(content):
        names = tuple(match[0].split("."))
        path = next((names[:length] for length in range(len(names), 0, -1) if names[:length] in paths), None)
        if path is not None:
            spans.append((match.start(), match.end(), path))
    return spans


def name_prefix(text: str) -> str:
    """Return the dotted name, possibly unfinished, at the end of a text."""
    match = _UNFINISHED.search(text)
    return match[0] if match else ""


UNKNOWN: Final = "—"
_WITHOUT_OUTPUT: Final = frozenset({NodeState.PENDING, NodeState.SKIPPED, NodeState.CANCELLED, NodeState.INTERRUPTED})


@dataclass(frozen=True, slots=True)
class PreviewRun:
    """The run that is displayed.

    Attributes:
        view_model: Its state.
        workflow: The document that ran.
        chosen: The selected iterations.
        registry: The node types.
        parents: For each node in a body of the current document, the innermost loop or iterator around it.
    """

    view_model: RunViewModel
    workflow: Workflow
    chosen: Mapping[str, int]
    registry: Registry
    parents: Mapping[str, str]

    def around(self, node_id: str, kind: Pair) -> str | None:
        """Return the innermost loop or iterator around a node, also around one that was added after the run."""
        nodes, parents = self.workflow.nodes_by_id, self.view_model.parents
        start = (parents if node_id in nodes else self.parents).get(node_id)
        while start is not None and (start not in nodes or nodes[start].type != kind.start):
            start = parents.get(start)
        return start

    def iteration(self, loop: str) -> LoopIterationCompleted | None:
        """Return the selected iteration of a loop or item of an iterator; None if it has not completed."""
        return self.view_model.loop(loop, self.chosen).iteration(self.view_model.index_of(loop, self.chosen))


def render_preview(text: str, node_id: str, run: PreviewRun) -> str:
    """Return the text with the value of each placeholder, `—` where the run has none.

    Each placeholder is rendered on its own, so that an unknown variable affects only itself.
    """
    scope = _scope(node_id, run)
    pieces: list[str] = []
    position = 0
    for found in find_placeholders(text):
        pieces.append(text[position : found.start].replace(r"\{{", "{{"))
        pieces.append(_render(found.content, scope) if found.closed else text[found.start : found.end])
        position = found.end
    pieces.append(text[position:].replace(r"\{{", "{{"))
    return "".join(pieces)


def _render(content: str, scope: Scope) -> str:
    try:
        return compile_template("{{" + content + "}}").render(scope)
    except (ExpressionError, TemplateError):
        return UNKNOWN


def _scope(node_id: str, run: PreviewRun) -> Scope:
    execution = run.view_model.node(node_id, run.chosen)
    scope: dict[str, Value | Namespace] = {}
    if execution.state not in _WITHOUT_OUTPUT:
        scope.update(_with_nulls(node_id, execution.inputs, run))
    loop, iterator = run.around(node_id, LOOP), run.around(node_id, ITERATOR)
    node = run.workflow.nodes_by_id.get(node_id)
    if node is not None and node.type == LOOP.start:  # its criteria are about an iteration of its own
        loop = node_id
        if (ended := run.iteration(loop)) is not None:
            nodes = _NodeOutputs(loop, ended.index, run)
            scope |= {"output": ended.result, "similarity": ended.similarity, "nodes": nodes}
    if iterator is not None and (item := run.iteration(iterator)) is not None:
        scope |= {"item": item.input, "index": item.index}
    if loop is not None:
        scope["loop"] = _Loop(loop, run)
    return scope


def _with_nulls(node_id: str, inputs: Mapping[str, Value], run: PreviewRun) -> dict[str, Value]:
    """Return the inputs, with null for ports that received nothing, as the node itself saw them."""
    node = run.workflow.nodes_by_id.get(node_id)
    spec = run.registry.find(node.type) if node is not None else None
    if node is None or spec is None:
        return dict(inputs)
    try:
        ports = spec.inputs(spec.config.model_validate(node.config))
    except ValueError:
        return dict(inputs)
    return {**{port.name: None for port in ports}, **inputs}


class _Loop:
    """Namespace `loop` as of the selected iteration."""

    def __init__(self, loop_id: str, run: PreviewRun) -> None:
        self._loop_id = loop_id
        self._run = run
        self._picture: LoopExecution = run.view_model.loop(loop_id, run.chosen)
        self._index = max(run.chosen.get(loop_id, self._picture.current), 0)

    def member(self, name: str) -> Value | Namespace:
        """Return a member.

        Raises:
            LookupError: The run has no value for it.
        """
        if self._picture.current < 0:
            raise LookupError(name)
        if name == "last":
            return _NodeOutputs(self._loop_id, self._index - 1, self._run)
        if name == "parent" and (parent := self._run.around(self._loop_id, LOOP)) is not None:
            return _Loop(parent, self._run)
        return self._values()[name]

    def _values(self) -> dict[str, Value]:
        ended = self._picture.iterations
        return {
            "index": self._index,
            "iteration": self._index + 1,
            "max_iterations": self._picture.total,
            "input": self._run.view_model.node(self._loop_id, self._run.chosen).inputs.get("input"),
            "previous": ended[self._index - 1].result if 0 < self._index <= len(ended) else None,
            "history": [history_entry(iteration) for iteration in ended[: self._index]],
        }


class _NodeOutputs:
    """Namespaces `loop.last` and `nodes`: outputs of the loop body in an iteration."""

    def __init__(self, loop_id: str, index: int, run: PreviewRun) -> None:
        self._loop_id = loop_id
        self._index = index
        self._run = run

    def member(self, name: str) -> Value:
        """Return the output of a node.

        Raises:
            LookupError: The node is not in the loop body.
        """
        node = self._run.workflow.nodes_by_id.get(name)
        if node is None or self._run.view_model.parents.get(name) != self._loop_id:
            raise LookupError(name)
        if self._index < 0:
            return None
        execution = self._run.view_model.node(name, {**self._run.chosen, self._loop_id: self._index})
        spec = self._run.registry.find(node.type)
        if spec is None or execution.state in _WITHOUT_OUTPUT:
            return None
        return spec.recorded(dict(execution.outputs))
