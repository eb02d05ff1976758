"""What `loop.…` and `nodes.…` stand for while a loop runs.

A frame is one iteration as the texts in its body see it. Everything in it is looked up only when a text names it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from engine.events import LoopIterationCompleted
from engine.expr import Namespace, Record, Records
from engine.models.protocol import Message, Usage
from engine.nodes.context import whole_text
from engine.nodes.spec import ModelCall, Outputs
from engine.plan.execution_plan import GraphPlan
from engine.plan.validation import RECORD_MEMBERS
from engine.values import Value, to_text


class NodeOutputs:
    """What each node of a body gave in one iteration, by id; null for one that was skipped, or before the first."""

    __slots__ = ("_given", "_graph")

    def __init__(self, graph: GraphPlan, given: Sequence[Outputs | None] | None) -> None:
        self._graph = graph
        self._given = given

    def member(self, name: str) -> Value:
        """What the node of that id gave.

        Raises:
            LookupError: The body has no such node.
        """
        for node in self._graph.nodes:
            if node.id == name:
                outputs = self._given[node.position] if self._given is not None else None
                return None if outputs is None else node.spec.recorded(outputs)
        raise LookupError(name)

    def all(self) -> dict[str, Value]:
        """What every node gave that was not skipped, by id."""
        if self._given is None:
            return {}
        pairs = ((node, self._given[node.position]) for node in self._graph.nodes)
        return {node.id: node.spec.recorded(outputs) for node, outputs in pairs if outputs is not None}

    def with_skipped(self) -> dict[str, Value]:
        """What every node gave, by id; null for one that was skipped."""
        outputs = self._given or (None,) * len(self._graph.nodes)
        pairs = zip(self._graph.nodes, outputs, strict=True)
        return {node.id: None if given is None else node.spec.recorded(given) for node, given in pairs}


_PLAIN_MEMBERS = frozenset({"index", "max_iterations", "input", "previous"})


@dataclass(slots=True)
class LoopVariables:
    """One iteration of a loop.

    Attributes:
        graph: The loop's body.
        index: The iteration's number, from 0.
        max_iterations: How many there will be at the most.
        input: What the loop started from.
        previous: The result before; null in the first iteration.
        last: What the body's nodes gave in the iteration before.
        history: Gives the records of the first so many iterations.
        parent: The frame of the loop around this one.
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
        """The value, or the group of values, of that name.

        Raises:
            LookupError: There is none.
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
        """The record of an iteration that has not run yet: null in every place."""
        nodes = NodeOutputs(self.graph, None).with_skipped()
        return Record(dict.fromkeys(name for name in RECORD_MEMBERS if name != "nodes"), nodes=nodes)


class LoopMemory:
    """The prompts and replies of each model node of a body, oldest first.

    Args:
        most: How many of the last iterations are kept; None for all.
    """

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._turns: dict[str, deque[tuple[Message, Message]]] = {}

    def of(self, node_id: str) -> tuple[Message, ...]:
        """The node's earlier prompts and replies, as the beginning of a conversation."""
        return tuple(message for turn in self._turns.get(node_id, ()) for message in turn)

    def note(self, node_id: str, calls: Sequence[ModelCall], given: Value) -> None:
        """Take note of what a node was asked and answered in an iteration.

        Args:
            node_id: The node.
            calls: Its model calls.
            given: What it gave: the answer, where its model put that into a tool call.
        """
        if not calls:
            return
        asked, said = calls[0].request.messages[-1], whole_text(calls[-1])
        answered = said if said.strip() else to_text(given)
        if not answered:  # it ended the loop, or said nothing; no model takes an empty reply as its own
            return
        turns = self._turns.setdefault(node_id, deque(maxlen=self._most))
        turns.append((asked, Message("assistant", answered)))


def _no_values() -> dict[str, Value]:  # calling `dict[...]` itself takes ten times as long
    return {}


@dataclass(slots=True)
class IterationRecord:
    """One iteration that has ended; the fields are those of `LoopIterationCompleted`, in its order."""

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

    def fields(self) -> tuple[Any, ...]:
        """All fields, in order."""
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
    """The record in the output port `iterations`."""
    return {**_listed_fields(record), "nodes": record.nodes}


def history_entry(record: IterationRecord | LoopIterationCompleted) -> Record:
    """The record in `loop.history`."""
    return Record(_listed_fields(record), nodes=record.nodes)


def _listed_fields(record: IterationRecord | LoopIterationCompleted) -> dict[str, Value]:
    return {  # the names and the order of `RECORD_MEMBERS`, without `nodes`
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
    given: NodeOutputs,
) -> Value:
    """What comes out of a loop.

    Args:
        mode: `final`: the chosen result. `last_iteration`: what every body node gave in it, by id. `all_iterations`:
            every result, as one text with a heading each, or as a list where one is no text.
        chosen: The iteration that is returned.
        records: All iterations.
        given: What the body's nodes gave in the chosen one.
    """
    if mode == "final":
        return chosen.result
    if mode == "last_iteration":
        return given.all()
    results = [record.result for record in records]
    if all(result is None or isinstance(result, str) for result in results):
        return "\n".join(f"--- iteration {number} ---\n{to_text(result)}" for number, result in enumerate(results, 1))
    return results
