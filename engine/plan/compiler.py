"""Compile documents into execution plans.

The body of each loop becomes a synthetic graph: a slot for the iteration input replaces the loop, the collected result
and feedback its exit, and values from outside the body become constants. Iterators and aggregators are compiled in the
same way. A document is compiled once for any number of runs and iterations.

A stand-in replaces a disabled node with problems of its own, so that people can disable a broken node and run the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from engine.document.model import Node, Workflow, make_id
from engine.document.problems import DocumentError, Problem, has_errors
from engine.exits import MAX_ITERATIONS_CAP, clamped
from engine.expr import compile_expression
from engine.formatting import format_count
from engine.models.protocol import ModelChoice
from engine.nodes.input import InputConfig
from engine.nodes.iterator import IteratorConfig
from engine.nodes.judge import JUDGE, JUDGE_SPEC
from engine.nodes.loop import LoopConfig, range_problem
from engine.nodes.node_registry import Registry
from engine.nodes.output import OutputConfig
from engine.nodes.spec import (
    ITERATOR,
    LOOP,
    AnySpec,
    Category,
    NodeConfig,
    NodeSpec,
    Outputs,
    Port,
    PortType,
)
from engine.plan.dependencies import everything_in, is_outside, part_nodes
from engine.plan.execution_plan import (
    GraphPlan,
    InputPlan,
    IteratorPlan,
    LoopPlan,
    NodePlan,
    Plan,
    SubflowPlan,
)
from engine.plan.loop_bodies import Body
from engine.plan.partial_run import Part
from engine.plan.resolve import Resolved
from engine.plan.structure import Structure, analyse
from engine.plan.validation import affects_only_node, validate_structure
from engine.values import immutable

if TYPE_CHECKING:
    from networkx import DiGraph


def compile_workflow(
    workflow: Workflow,
    registry: Registry | None = None,
    *,
    max_iterations_cap: int = MAX_ITERATIONS_CAP,
    part: Part | None = None,
) -> Plan:
    """Compile a document into the plan that its runs follow.

    Args:
        workflow: The document.
        registry: The node types; None for the built-in ones.
        max_iterations_cap: The most iterations of any loop.
        part: The part that runs; None for the whole workflow. Errors of nodes outside of it do not matter.

    Raises:
        DocumentError: The document has errors; its `problems` list all of them, warnings included.
        EngineError: There is no such part.
    """
    return compile_structure(analyse(workflow, registry), max_iterations_cap=max_iterations_cap, part=part)


def compile_structure(
    structure: Structure, *, max_iterations_cap: int = MAX_ITERATIONS_CAP, part: Part | None = None
) -> Plan:
    """Compile a document that was analysed before; see `compile_workflow`."""
    problems = validate_structure(structure, max_iterations_cap=max_iterations_cap)
    only = part_nodes(structure, part).all if part is not None and structure.order else None
    inside = structure.workflow.nodes_by_id.keys() if only is None else everything_in(structure, only)
    if only is not None:
        problems = [problem for problem in problems if not is_outside(problem, structure, inside)]
    if has_errors(problems):
        errors = [problem for problem in problems if problem.severity == "error"]
        count = format_count(len(errors), "problem")
        raise DocumentError(
            f"The workflow cannot run: it has {count}. The first: {errors[0].message}", errors[0].remedy, problems
        )
    models = dict.fromkeys(model for _, choice in models_called(structure, inside) for model in choice.chain)
    planned = _planned(structure, problems, max_iterations_cap, only)
    return Plan(
        graph=_GraphCompiler(planned).build(),
        models=tuple(models),
        parameters=_parameters(structure, inside),
        structure=structure,
        max_iterations_cap=max_iterations_cap,
        part=part,
    )


def plan_for(document: Workflow | Plan, registry: Registry | None, max_iterations_cap: int) -> Plan:
    """Return the plan of a document, or a given plan with this cap; a plan keeps its registry."""
    if isinstance(document, Workflow):
        return compile_workflow(document, registry, max_iterations_cap=max_iterations_cap)
    if document.max_iterations_cap == max_iterations_cap:
        return document
    return compile_structure(document.structure, max_iterations_cap=max_iterations_cap, part=document.part)


def models_called(structure: Structure, inside: Collection[str]) -> Iterator[tuple[str, ModelChoice]]:
    """Yield the models that a run calls, each with the id of its node; a model in a subflow has the subflow's id.

    Args:
        structure: The document.
        inside: The nodes that run; disabled and pinned ones call none.
    """
    disabled, pinned, subflows = structure.disabled, structure.replaced_by_pins, structure.subflows
    for node in structure.resolution.nodes.values():
        if node.id not in inside or node.id in disabled or node.id in pinned:
            continue
        choice = node.spec.model(node.config)
        if choice is not None:
            yield node.id, choice
        if node.id in subflows:
            inner = subflows[node.id]
            yield from ((node.id, choice) for _, choice in models_called(inner, inner.workflow.nodes_by_id))


def _parameters(structure: Structure, inside: Collection[str]) -> dict[str, InputConfig]:
    inputs = structure.resolution.by_type.get("input", ())
    running = (node for node in inputs if node.id in inside and node.id not in structure.disabled)
    return {node.config.name or node.id: node.config for node in running if isinstance(node.config, InputConfig)}


@immutable
class _Planned:
    """A document without errors.

    Attributes:
        structure: The document.
        nodes: Its nodes, with stand-ins for faulty disabled ones.
        graph: What waits for what; see `_graph`.
        cap: The most iterations of any loop.
        only: The outermost nodes that run; None for all.
    """

    structure: Structure
    nodes: dict[str, Resolved]
    graph: DiGraph[str]
    cap: int
    only: Collection[str] | None

    def subflow(self, node: str) -> _Planned | None:
        """The workflow of a subflow; None for a disabled one."""
        if node in self.structure.disabled:
            return None
        inner = self.structure.subflows[node]
        problems = validate_structure(inner, max_iterations_cap=self.cap) if inner.disabled else ()
        return _planned(inner, problems, self.cap)


def _planned(
    structure: Structure, problems: Iterable[Problem], cap: int, only: Collection[str] | None = None
) -> _Planned:
    return _Planned(structure, _with_stand_ins(structure, problems), _graph(structure), cap, only)


def _graph(structure: Structure) -> DiGraph[str]:
    """The nodes of all levels, each with those of its own level that wait for it.

    A loop stands for its body and its exit: an edge that leads there from outside leads to the loop, which waits for
    it. The exit waits for its loop.
    """
    from networkx import DiGraph

    bodies, parent, loop_of = structure.bodies, structure.parent, structure.loop_of
    edges = [(body.loop, body.exit) for body in bodies.values()]
    for link in structure.links:
        source, target = link.source, loop_of.get(link.target, link.target)
        if source in bodies and link.source_port in bodies[source].kind.body_ports:
            continue  # a body starts with what waits for nothing else
        level = parent.get(source)
        while target and parent.get(target) != level:
            target = parent.get(target, "")
        if target:
            edges.append((source, target))
    graph: DiGraph[str] = DiGraph()
    graph.add_nodes_from(structure.order)
    graph.add_edges_from(edges)
    return graph


class _GraphCompiler:
    """Compiles one graph: the whole workflow (`loop` is None) or the body of a loop or iterator."""

    def __init__(self, planned: _Planned, loop: str | None = None, around: _GraphCompiler | None = None) -> None:
        self.planned = planned
        self.structure = structure = planned.structure
        self.loop = loop
        self.around = around
        self.body = structure.bodies[loop] if loop is not None else None
        self.order = structure.members.get(loop, [])
        if loop is None and planned.only is not None:
            self.order = [node for node in self.order if node in planned.only]
        self.position = {node: index for index, node in enumerate(self.order)}
        self.noted = self._noted()
        self.slots: dict[tuple[str, str], int] = {}
        self.constants: list[tuple[int, int]] = []
        self.body_slots = (
            [] if self.body is None else [self._slot(self.body.loop, p) for p in self.body.kind.body_ports]
        )

    def _noted(self) -> str | None:
        """The node that gets the iteration note: the first that takes one, in a loop that gives it."""
        around = None if self.loop is None else self.planned.nodes[self.loop].config
        if not isinstance(around, LoopConfig) or not around.inject_feedback:
            return None
        nodes = self.planned.nodes
        takes = (node for node in self.order if nodes[node].spec.iteration_note and nodes[node].node.enabled)
        return next(takes, None)

    def _outputs(self, node: str, body: Body | None) -> tuple[tuple[str, int], ...]:
        """The ports at which edges of this level start, with their slots."""
        inner = body.kind.body_ports if body is not None else ()
        found: dict[str, int] = {}
        for link in self.structure.links_from.get(node, ()):
            if link.source_port not in inner:
                found[link.source_port] = self._slot(node, link.source_port)
        return tuple(found.items())

    def _slot(self, node: str, port: str) -> int:
        """The slot of a value on this level; a value from outside becomes a constant of the body."""
        key = (node, port)
        if key not in self.slots:
            outside = None
            if node not in self.position and node != self.loop and self.around is not None:
                outside = self.around._slot(node, port)  # noqa: SLF001 - the same class, one level up
            self.slots[key] = len(self.slots)
            if outside is not None:
                self.constants.append((outside, self.slots[key]))
        return self.slots[key]

    def build(self) -> GraphPlan:
        nodes = tuple([self._node(self.planned.nodes[node]) for node in self.order])
        waits = [0] * len(nodes)
        for node in nodes:
            for follower in node.followers:
                waits[follower] += 1
        first = tuple([position for position, count in enumerate(waits) if count == 0])
        result = feedback = None
        if self.body is not None:
            exit_node = self.planned.nodes[self.body.exit]
            ends = {plan.name: plan for plan in self._inputs(exit_node)}
            result, feedback = ends.get("input"), ends.get("feedback")
        constants, slots = tuple(self.constants), (*self.body_slots, None, None)
        return GraphPlan(nodes, tuple(waits), first, len(self.slots), slots[0], constants, result, feedback, slots[1])

    def _node(self, resolved: Resolved) -> NodePlan:
        node, spec, config = resolved.id, resolved.spec, resolved.config
        body = self.structure.bodies.get(node)
        loop_of_exit = self.structure.loop_of.get(node)
        pinned = self._pinned(resolved, body)
        inputs = () if loop_of_exit is not None else self._inputs(resolved, is_pinned=pinned is not None)
        is_output = resolved.type == "output" and isinstance(config, OutputConfig)
        followers = [self.position[after] for after in self.planned.graph.successors(node) if after in self.position]
        return NodePlan(
            position=self.position[node],
            id=node,
            name_of=self.structure.resolution.name,
            spec=spec,
            config=config,
            prepared=spec.prepare(config),
            enabled=resolved.node.enabled,
            inputs=inputs,
            converts=any(port.convert for port in inputs),
            blank=dict.fromkeys(resolved.inputs) if resolved.texts else None,
            outputs=self._outputs(node, body),
            followers=tuple(sorted(followers)),
            loop=self._loop(resolved) if body is not None and body.kind is LOOP else None,
            iterator=self._iterator(resolved) if body is not None and body.kind is ITERATOR else None,
            exit_of=self.position[loop_of_exit] if loop_of_exit is not None else None,
            tells_iteration=node == self.noted,
            result_name=(config.name or node) if is_output else None,
            subflow=self._subflow(node) if node in self.structure.subflows else None,
            output_key=config.__dict__.get("output_key", ""),  # `getattr` is slow where a model has no such field
            pinned=pinned,
        )

    def _pinned(self, resolved: Resolved, body: Body | None) -> Outputs | None:
        if body is not None and body.kind is ITERATOR:
            return {} if body.exit in self.structure.replaced_by_pins else None
        return dict(resolved.node.pinned) if resolved.node.pinned and resolved.node.enabled else None

    def _inputs(self, resolved: Resolved, *, is_pinned: bool = False) -> tuple[InputPlan, ...]:
        sources: dict[str, list[int]] = {}
        for link in self.structure.links_to.get(resolved.id, ()):
            if is_pinned and self.body is None and link.source not in self.position:
                continue  # a part has nothing before a pinned node
            sources.setdefault(link.target_port, []).append(self._slot(link.source, link.source_port))
        inputs: list[InputPlan] = []
        for port in resolved.inputs.values():
            # An open one that is required makes a loop be skipped.
            if port.name in sources or (port.required and not is_pinned):
                convert = None if port.type is PortType.ANY else port.type
                slots = tuple(sources.get(port.name, ()))
                inputs.append(InputPlan(port.name, slots, port.required or port.gate, convert))
        return tuple(inputs)

    def _loop(self, resolved: Resolved) -> LoopPlan:
        config, loop = resolved.config, resolved.id
        inner = _GraphCompiler(self.planned, loop, self)
        body = inner.build()
        out_of_range = range_problem(config.max_iterations, self.planned.cap)
        evaluator = self.structure.evaluators.get(loop)
        return LoopPlan(
            config=config,
            body=body,
            max_iterations=clamped(config.max_iterations, self.planned.cap),
            notes=() if out_of_range is None else (out_of_range.message,),
            evaluator=None if evaluator is None else inner.position[evaluator],
            feedback_ends=tuple(inner.position[end] for end in self.structure.feedback_ends.get(loop, ())),
            exit=self.position[self.structure.bodies[loop].exit],
            judge=_judge(config, inner.order) if config.has_judge else None,
        )

    def _iterator(self, resolved: Resolved) -> IteratorPlan:
        config: IteratorConfig = resolved.config
        return IteratorPlan(
            config=config,
            body=_GraphCompiler(self.planned, resolved.id, self).build(),
            aggregator=self.position[self.structure.bodies[resolved.id].exit],
            expression=compile_expression(config.expression) if config.source == "expression" else None,
            condition=compile_expression(config.condition) if config.condition.strip() else None,
        )

    def _subflow(self, node: str) -> SubflowPlan | None:
        inner = self.planned.subflow(node)
        if inner is None:
            return None
        parameters = _parameters(inner.structure, inner.structure.workflow.nodes_by_id)
        return SubflowPlan(_GraphCompiler(inner).build(), parameters)


def _judge(config: LoopConfig, body: Sequence[str]) -> NodePlan:
    """The judge of a loop as a node outside of all graphs, with an id that no node of the body has."""
    judge = config.judge
    assert judge is not None, "asked for only where there is one"
    name = make_id(JUDGE, body)
    return NodePlan(
        position=-1,
        id=name,
        name_of=lambda _id: JUDGE_SPEC.title,
        spec=JUDGE_SPEC,
        config=judge,
        prepared=JUDGE_SPEC.prepare(judge),
        enabled=True,
        inputs=(),
        converts=False,
        blank={},
        outputs=(),
        followers=(),
    )


def _with_stand_ins(structure: Structure, problems: Iterable[Problem]) -> dict[str, Resolved]:
    """Return all nodes by id, with stand-ins for disabled nodes that have problems."""
    faulty = {problem.node for problem in problems if affects_only_node(problem, structure)}
    nodes = structure.workflow.nodes_by_id
    stand_ins = {node: _stand_in(nodes[node], structure) for node in faulty if node is not None}
    return {**structure.resolution.nodes, **stand_ins} if stand_ins else structure.resolution.nodes


def _stand_in(node: Node, structure: Structure) -> Resolved:
    """Create a disabled node of the same type, with default settings and the ports that edges use."""
    spec, config = _defaults(node.type, structure.registry)
    inputs, outputs = _known_ports(structure.resolution.nodes.get(node.id), spec, config)
    for link in structure.links_to.get(node.id, ()):
        inputs.setdefault(link.target_port, Port(link.target_port))
    is_branching = any(port.branch for port in spec.outputs(config))
    for link in structure.links_from.get(node.id, ()):
        outputs.setdefault(link.source_port, Port(link.source_port, branch=is_branching))
    stand_in = NodeSpec(
        type=node.type,
        title=spec.title,
        category=spec.category,
        help=spec.help,
        icon=spec.icon,
        config=spec.config,
        inputs=lambda _config: tuple(inputs.values()),
        outputs=lambda _config: tuple(outputs.values()),
        run=spec.run,
        recorded=spec.recorded,
    )
    return Resolved(node.model_copy(update={"enabled": False}), stand_in, config)


def _known_ports(resolved: Resolved | None, spec: AnySpec, config: Any) -> tuple[dict[str, Port], dict[str, Port]]:
    """Return the ports that are known without the edges; without valid settings, those that do not depend on them."""
    if resolved is not None:
        return dict(resolved.inputs), dict(resolved.outputs)
    if spec.run is None:  # the engine runs loops and exits by these ports
        return {port.name: port for port in spec.inputs(config)}, {port.name: port for port in spec.outputs(config)}
    return {}, {}


def _defaults(node_type: str, registry: Registry) -> tuple[AnySpec, Any]:
    """Return a node type with its default settings; a placeholder for an unknown type, or one without defaults."""
    spec = registry.find(node_type)
    try:
        if spec is not None:
            return spec, spec.config()
    except ValidationError:
        pass
    unknown = NodeSpec(
        type=node_type,
        title=node_type,
        category=Category.LOGIC,
        help="",
        icon="",
        config=NodeConfig,
        inputs=lambda _config: (),
        outputs=lambda _config: (),
        run=_run_disabled,
    )
    return unknown, NodeConfig()


async def _run_disabled(_context: Any) -> dict[str, Any]:
    raise AssertionError("a disabled node does not run")
