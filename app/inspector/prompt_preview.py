"""Preview of a prompt with the values of the last run; unknown values are shown as a dash.

Each placeholder is rendered on its own by the engine's templates, so that an unknown variable affects only itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from app.inspector.template_placeholders import find_placeholders
from app.runs.run_view_model import RunViewModel
from engine.document.model import Workflow
from engine.expr import ExpressionError, Namespace, Scope, TemplateError, compile_template
from engine.nodes.registry import Registry
from engine.run_state.state import LoopExecution, NodeState
from engine.runner.iteration_record import history_entry
from engine.values import Value

UNKNOWN: Final = "—"
_WITHOUT_OUTPUT: Final = frozenset({NodeState.PENDING, NodeState.SKIPPED, NodeState.CANCELLED, NodeState.INTERRUPTED})


@dataclass(frozen=True, slots=True)
class PreviewRun:
    """The run that is displayed: its state, the document that ran and the selected iterations."""

    picture: RunViewModel
    workflow: Workflow
    chosen: Mapping[str, int]
    registry: Registry


def render_preview(text: str, node_id: str, run: PreviewRun) -> str:
    """Return the text with the value of each placeholder, `—` where the run has none."""
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
    execution = run.picture.node(node_id, run.chosen)
    scope: dict[str, Value | Namespace] = {}
    if execution.state not in _WITHOUT_OUTPUT:
        scope.update(_with_nulls(node_id, execution.inputs, run))
    loop = run.picture.parents.get(node_id)
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
        self._picture: LoopExecution = run.picture.loop(loop_id, run.chosen)
        self._index = max(run.chosen.get(loop_id, self._picture.current), 0)

    def member(self, name: str) -> Value | Namespace:
        """Return a member.

        Raises:
            LookupError: The run has no value for it.
        """
        if self._picture.current < 0:
            raise LookupError(name)
        if name == "last":
            return _Last(self._loop_id, self._index - 1, self._run)
        if name == "parent":
            return _Loop(self._run.picture.parents[self._loop_id], self._run)
        return self._values()[name]

    def _values(self) -> dict[str, Value]:
        ended = self._picture.iterations
        return {
            "index": self._index,
            "iteration": self._index + 1,
            "max_iterations": self._picture.total,
            "input": self._run.picture.node(self._loop_id, self._run.chosen).inputs.get("input"),
            "previous": ended[self._index - 1].result if 0 < self._index <= len(ended) else None,
            "history": [history_entry(iteration) for iteration in ended[: self._index]],
        }


class _Last:
    """Namespace `loop.last`: outputs of the loop body in the previous iteration."""

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
        if node is None or self._run.picture.parents.get(name) != self._loop_id:
            raise LookupError(name)
        if self._index < 0:
            return None
        execution = self._run.picture.node(name, {**self._run.chosen, self._loop_id: self._index})
        spec = self._run.registry.find(node.type)
        if spec is None or execution.state in _WITHOUT_OUTPUT:
            return None
        return spec.recorded(dict(execution.outputs))
