"""The execution plan: immutable, with every name resolved to a position.

A `GraphPlan` is one level of a workflow: the whole of it, or the body of a loop, with the iteration input in place of
the loop, and result and feedback in place of the exit. Iterators and aggregators work in the same way. Each value has a
slot: one for each output port, one for the iteration input, one for each value from outside the body.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.document.model import Workflow
from engine.expr import Expression
from engine.models.protocol import ModelChoice
from engine.nodes.input import InputConfig
from engine.nodes.iterator import IteratorConfig
from engine.nodes.loop import LoopConfig
from engine.nodes.spec import AnySpec, Outputs, PortType
from engine.plan.partial_run import Part
from engine.plan.structure import Structure
from engine.values import Value, immutable


@immutable
class InputPlan:
    """One connected input port.

    Attributes:
        name: The port.
        slots: Slots of its values, in the order of the document's edges.
        required: Whether the node is skipped without a live value.
        convert: The type to convert the value to; None for any type.
    """

    name: str
    slots: tuple[int, ...]
    required: bool
    convert: PortType | None


@dataclass(slots=True, eq=False)
class NodePlan:
    """One node of a graph.

    Attributes:
        position: Its position in the graph's `nodes`.
        id: Its id.
        name_of: Returns what people call a node of that id.
        spec: Its type.
        config: Its settings.
        prepared: What its type prepared from them, shared by all runs.
        enabled: Whether it runs; a disabled node passes its one input on, or is skipped.
        inputs: Its connected input ports.
        converts: Whether one of them converts its value.
        blank: Null for each of its input ports, the value of a port without live input; None for a node without texts.
        outputs: Each output port that edges start at, with its slot.
        followers: Positions of the nodes that wait for it.
        loop: For a loop, what it runs.
        iterator: For an iterator, what it runs.
        exit_of: For an exit or an aggregator, the position of its loop or iterator.
        tells_iteration: Whether it gets the iteration note.
        output_key: The name under which the state holds its output; empty for none.
        result_name: For an output, the name of the workflow's result.
        subflow: For a subflow, what it runs.
        pinned: Outputs that are used instead of running it; None to run it. An iterator with a pinned aggregator has no
            outputs.
    """

    position: int
    id: str
    name_of: Callable[[str], str]
    spec: AnySpec
    config: Any
    prepared: Any
    enabled: bool
    inputs: tuple[InputPlan, ...]
    converts: bool
    blank: dict[str, Value] | None
    outputs: tuple[tuple[str, int], ...]
    followers: tuple[int, ...]
    loop: LoopPlan | None = None
    exit_of: int | None = None
    tells_iteration: bool = False
    result_name: str | None = None
    output_key: str = ""
    iterator: IteratorPlan | None = None
    subflow: SubflowPlan | None = None
    pinned: Outputs | None = None

    @property
    def title(self) -> str:
        """What people call it."""
        return self.name_of(self.id)

    @property
    def body(self) -> GraphPlan | None:
        """The graph inside it: the body of a loop or iterator, the workflow of a subflow; None for other nodes."""
        inside = self.loop or self.iterator or self.subflow
        return inside.body if inside is not None else None

    @property
    def does_work(self) -> bool:
        """Whether it runs when it is reached: it is neither disabled nor pinned."""
        return self.enabled and self.pinned is None

    @property
    def is_repeated(self) -> bool:
        """Whether it has iterations: it is a loop or an iterator."""
        return self.loop is not None or self.iterator is not None


@dataclass(slots=True, eq=False)
class GraphPlan:
    """One level of a workflow.

    Attributes:
        nodes: Its nodes in topological order.
        waits: For each node, how many nodes of the same graph must complete first.
        first: Positions of the nodes that wait for none.
        slots: The number of its values.
        input_slot: The slot of the iteration input; None for the whole workflow.
        index_slot: The slot of an item's index; None outside iterators.
        constants: For each value from outside a body: its slot in the graph around the loop, and its slot here.
        result: What the exit collects as the iteration's result; None where nothing leads there.
        feedback: What it collects as the feedback; None where nothing leads there.
    """

    nodes: tuple[NodePlan, ...]
    waits: tuple[int, ...]
    first: tuple[int, ...]
    slots: int
    input_slot: int | None = None
    constants: tuple[tuple[int, int], ...] = ()
    result: InputPlan | None = None
    feedback: InputPlan | None = None
    index_slot: int | None = None


@dataclass(slots=True, eq=False)
class LoopPlan:
    """A loop and its body.

    Attributes:
        config: The loop's settings.
        body: Its body.
        max_iterations: The count after clamping.
        notes: Warnings that hold from the start, such as a clamped count.
        evaluator: Position in the body of the router that controls it; None without one.
        feedback_ends: Positions in the body of the ends of branches that lead nowhere.
        exit: Position of its exit in the graph around it.
        judge: Its judge, run like a node outside of all graphs; None without one.
    """

    config: LoopConfig
    body: GraphPlan
    max_iterations: int
    notes: tuple[str, ...]
    evaluator: int | None
    feedback_ends: tuple[int, ...]
    exit: int
    judge: NodePlan | None = None


@dataclass(slots=True, eq=False)
class IteratorPlan:
    """An iterator and its body.

    Attributes:
        config: The iterator's settings.
        body: Its body.
        aggregator: Position of its aggregator in the graph around it.
        expression: Computes the items from the input; None where the input or a list has them.
        condition: Whether it runs at all; None for always.
    """

    config: IteratorConfig
    body: GraphPlan
    aggregator: int
    expression: Expression | None
    condition: Expression | None


@dataclass(slots=True, eq=False)
class SubflowPlan:
    """A subflow and its workflow.

    Attributes:
        body: The workflow.
        parameters: The settings of its inputs, by name.
    """

    body: GraphPlan
    parameters: dict[str, InputConfig]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A compiled document, ready for any number of runs.

    Attributes:
        graph: Its outermost level.
        models: The models that its nodes call.
        parameters: The settings of its inputs, by name.
        structure: The analysed document.
        max_iterations_cap: The most iterations of any loop.
        part: The part of the document that it runs; None for the whole.
    """

    graph: GraphPlan
    models: tuple[ModelChoice, ...]
    parameters: dict[str, InputConfig]
    structure: Structure
    max_iterations_cap: int
    part: Part | None = None

    @property
    def workflow(self) -> Workflow:
        """The document."""
        return self.structure.workflow
