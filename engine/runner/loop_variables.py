"""Variables of a loop: `loop.…` and `nodes.…`, records of iterations, and the memory of model nodes.

Each variable is computed when a template or an expression uses it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from engine.events import LoopIterationCompleted
from engine.expr import Namespace, Record, Records
from engine.models.protocol import Message, ModelCall, Usage
from engine.nodes.context import whole_text
from engine.nodes.spec import Outputs
from engine.plan.execution_plan import GraphPlan
from engine.plan.validation import RECORD_MEMBERS
from engine.values import Value, to_text


class NodeOutputs:
    """The outputs of the nodes of a body in one iteration, by id; null for skipped nodes.

    Args:
        graph: The body.
        outputs: The outputs of each node, by position; None before the first iteration.
    """

    __slots__ = ("_graph", "_outputs")

    def __init__(self, graph: GraphPlan, outputs: Sequence[Outputs | None] | None) -> None:
        self._graph = graph
        self._outputs = outputs

    def member(self, name: str) -> Value:
        """Return the output of a node.

        Raises:
            LookupError: The body has no such node.
        """
        for node in self._graph.nodes:
            if node.id == name:
                outputs = self._outputs[node.position] if self._outputs is not None else None
                return None if outputs is None else node.spec.recorded(outputs)
        raise LookupError(name)

    def all(self) -> dict[str, Value]:
        """Return the outputs of all nodes that were not skipped, by id."""
        if self._outputs is None:
            return {}
        pairs = ((node, self._outputs[node.position]) for node in self._graph.nodes)
        return {node.id: node.spec.recorded(outputs) for node, outputs in pairs if outputs is not None}

    def with_skipped(self) -> dict[str, Value]:
        """Return the outputs of all nodes, by id; null for skipped nodes."""
        outputs = self._outputs or (None,) * len(self._graph.nodes)
        pairs = zip(self._graph.nodes, outputs, strict=True)
        return {node.id: None if output is None else node.spec.recorded(output) for node, output in pairs}


_PLAIN_MEMBERS = frozenset({"index", "max_iterations", "input", "previous"})


@dataclass(slots=True)
class LoopVariables:
    """The variables `loop.…` of one iteration.

    Attributes:
        graph: The body of the loop.
        index: Index of the iteration.
        max_iterations: The maximum number of iterations.
        input: Input of the loop.
        previous: Result of the iteration before; null in the first.
        last: Outputs of the nodes in the iteration before, by position.
        history: Returns the records of the first iterations, given their number.
        parent: Variables of the loop around this one.
    """

    graph: GraphPlan
    index: int
    max_iterations: int
    input: Value
    previous: Value
    last: Sequence[Outputs | None] | None
    history: Callable[[int], Sequence[Record]]
    parent: LoopVariables | None

    def member(self, name: str) -> Value | Namespace:
        """Return the value or namespace of a name.

        Raises:
            LookupError: There is no such variable.
        """
        if name == "last":
            return NodeOutputs(self.graph, self.last)
        if name == "history":
            return Records(self.history(self.index), self._blank_record(), self.max_iterations)
        if name == "iteration":
            return self.index + 1
        if name in _PLAIN_MEMBERS:
            return getattr(self, name)
        if name == "parent" and self.parent is not None:
            return self.parent
        raise LookupError(name)

    def _blank_record(self) -> Record:
        """Return the record of an iteration that has not run: all fields are null."""
        nodes = NodeOutputs(self.graph, None).with_skipped()
        return Record(dict.fromkeys(name for name in RECORD_MEMBERS if name != "nodes"), nodes=nodes)


class LoopMemory:
    """Prompts and replies of each model node of a body, the oldest first.

    Args:
        window: How many of the last iterations it remembers; None for all.
    """

    def __init__(self, window: int | None) -> None:
        self._window = window
        self._turns: dict[str, deque[tuple[Message, Message]]] = {}

    def of(self, node_id: str) -> tuple[Message, ...]:
        """Return a node's earlier prompts and replies, to begin its conversation with."""
        return tuple(message for turn in self._turns.get(node_id, ()) for message in turn)

    def add(self, node_id: str, calls: Sequence[ModelCall], output: Value) -> None:
        """Remember the prompt and the reply of a node in an iteration.

        Args:
            node_id: The node.
            calls: Its model calls.
            output: Its output: the reply if its model put the reply into a tool call.
        """
        if not calls:
            return
        prompt, text = calls[0].request.messages[-1], whole_text(calls[-1])
        reply = text if text.strip() else to_text(output)
        if not reply:  # models reject an empty reply in a conversation
            return
        turns = self._turns.setdefault(node_id, deque(maxlen=self._window))
        turns.append((prompt, Message("assistant", reply)))


def _no_values() -> dict[str, Value]:  # ten times faster than calling `dict[...]`
    return {}


@dataclass(slots=True)
class IterationRecord:
    """The record of a finished iteration, with the fields of `LoopIterationCompleted` in the same order."""

    index: int
    input: Value
    result: Value
    feedback: Value
    branch: str | None
    reason: str | None
    score: float | None
    similarity: float | None
    usage: Usage
    cost_usd: float | None
    duration_s: float
    warnings: tuple[str, ...] = ()
    tested: dict[str, Value] = field(default_factory=_no_values)
    nodes: dict[str, Value] = field(default_factory=_no_values)

    @staticmethod
    def from_event(event: LoopIterationCompleted) -> IterationRecord:
        """Restore a record from its event."""
        return IterationRecord(*(getattr(event, name) for name in IterationRecord.__slots__))

    def fields(self) -> tuple[Any, ...]:
        """Return all fields in order."""
        return (
            self.index,
            self.input,
            self.result,
            self.feedback,
            self.branch,
            self.reason,
            self.score,
            self.similarity,
            self.usage,
            self.cost_usd,
            self.duration_s,
            self.warnings,
            self.tested,
            self.nodes,
        )


def record_json(record: IterationRecord) -> dict[str, Value]:
    """Return the record for the output port `iterations`."""
    return {**_listed_fields(record), "nodes": record.nodes}


def history_entry(record: IterationRecord | LoopIterationCompleted) -> Record:
    """Return the record for `loop.history`."""
    return Record(_listed_fields(record), nodes=record.nodes)


def _listed_fields(record: IterationRecord | LoopIterationCompleted) -> dict[str, Value]:
    return {  # `RECORD_MEMBERS` without `nodes`, in the same order
        "index": record.index,
        "input": record.input,
        "result": record.result,
        "feedback": record.feedback,
        "branch": record.branch,
        "reason": record.reason,
        "score": record.score,
        "similarity": record.similarity,
        "cost_usd": record.cost_usd,
        "duration_s": record.duration_s,
        "warnings": list(record.warnings),
    }


def loop_output(
    mode: Literal["final", "last_iteration", "all_iterations"],
    chosen: IterationRecord,
    records: list[IterationRecord],
    nodes: NodeOutputs,
) -> Value:
    """Return the output of a loop.

    Args:
        mode: `final`: the chosen result. `last_iteration`: the outputs of all nodes in the chosen iteration, by id.
            `all_iterations`: all results, as one text with headings, or as a list if one is not a text.
        chosen: The iteration that is returned.
        records: All iterations.
        nodes: Outputs of the body's nodes in the chosen iteration.
    """
    if mode == "final":
        return chosen.result
    if mode == "last_iteration":
        return nodes.all()
    results = [record.result for record in records]
    if all(result is None or isinstance(result, str) for result in results):
        return "\n".join(f"--- iteration {number} ---\n{to_text(result)}" for number, result in enumerate(results, 1))
    return results
