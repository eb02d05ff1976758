"""The plan: what a run follows. Immutable, with every name turned into a position.

A `GraphPlan` is one level of a workflow: the whole of it, or the body of a loop as a graph of its own, with `__loop_input__`
in the loop's place and `__loop_output__` in the exit's. Values lie in slots: one for each output port, one for what the
iteration starts from, one for each value that comes from outside the body.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from engine.nodes.loop import LoopConfig
from engine.nodes.spec import AnySpec, PortType

LOOP_INPUT: Final = "__loop_input__"
LOOP_OUTPUT: Final = "__loop_output__"


@dataclass(frozen=True, slots=True)
class InputPlan:
    """One connected input port.

    Attributes:
        name: The port.
        slots: Where its values lie, in the order of the document's edges.
        required: Whether the node is skipped when nothing live is there.
        convert: The type that the value must fit; None where any does.
    """

    name: str
    slots: tuple[int, ...]
    required: bool
    convert: PortType | None


@dataclass(frozen=True, slots=True, eq=False)
class NodePlan:
    """One node of a graph.

    Attributes:
        position: Its place in the graph's `nodes`.
        id: Its id.
        title: What people call it.
        spec: Its type.
        config: Its settings.
        prepared: What its type made of them for this run.
        enabled: Whether it works; a disabled node passes its one input on, or is skipped.
        inputs: Its connected input ports.
        open_inputs: Names of its input ports that no edge leads to.
        outputs: Each output port that edges start at, with its slot.
        waits_for: How many nodes of the same graph must be through first.
        followers: Positions of the nodes that wait for it.
        loop: For a loop, what it runs.
        exit_of: For an exit, the position of its loop.
        tells_iteration: Whether it is told about its iteration.
    """

    position: int
    id: str
    title: str
    spec: AnySpec
    config: Any
    prepared: Any
    enabled: bool
    inputs: tuple[InputPlan, ...]
    open_inputs: tuple[str, ...]
    outputs: tuple[tuple[str, int], ...]
    waits_for: int
    followers: tuple[int, ...]
    loop: LoopPlan | None = None
    exit_of: int | None = None
    tells_iteration: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class GraphPlan:
    """One level of a workflow.

    Attributes:
        nodes: Its nodes, sources before targets.
        slots: How many values it holds.
        input_slot: Where `__loop_input__` puts what the iteration starts from; None for the whole workflow.
        constants: For each value from outside a body: its slot in the graph around the loop, and its slot here.
        result: What `__loop_output__` collects as the iteration's result; None where nothing leads there.
        feedback: What it collects as the feedback; None where nothing leads there.
    """

    nodes: tuple[NodePlan, ...]
    slots: int
    input_slot: int | None = None
    constants: tuple[tuple[int, int], ...] = ()
    result: InputPlan | None = None
    feedback: InputPlan | None = None


@dataclass(frozen=True, slots=True, eq=False)
class LoopPlan:
    """A loop and its body.

    Attributes:
        config: The loop's settings.
        body: Its body.
        max_iterations: The count after clamping.
        notes: What the history says about it from the start (a count that was clamped).
        evaluator: Position in the body of the router that controls it; None without one.
        feedback_ends: Positions in the body of the branch ends that lead nowhere.
        exit: Position of its exit in the graph around it.
    """

    config: LoopConfig
    body: GraphPlan
    max_iterations: int
    notes: tuple[str, ...]
    evaluator: int | None
    feedback_ends: tuple[int, ...]
    exit: int


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A document ready to run.

    Attributes:
        graph: Its outermost level.
        models: Each model that a node names, with its server: (name or None for the default, address or None).
        parameters: The workflow's inputs: name to the node's config.
        outputs: The workflow's results: node id to name.
    """

    graph: GraphPlan
    models: tuple[tuple[str | None, str | None], ...]
    parameters: dict[str, Any]
    outputs: dict[str, str]
