"""The graphs of an exported LangGraph module: which functions they are made of, and in which order.

The nodes of a graph stand in a chain, sources before targets; a node that nothing live reaches gives nothing. So
routers, joins and loops mean what they mean in the workflow. From a loop's exit an edge leads back to the first node
of its body, from an agent's tool call back to its turn. What an iterator runs for each item, and what is in a subflow,
is a graph of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.export.langgraph_loops import LoopFunctions, PartFunctions, named_outputs
from engine.export.langgraph_nodes import AgentFunctions, NodeFunctions
from engine.export.langgraph_texts import Place
from engine.nodes.agent_config import TOOL_CALLING
from engine.plan.execution_plan import GraphPlan, NodePlan

_WITHOUT_RETRIES = frozenset({"loop", "exit", "iterator"})


@dataclass(frozen=True, slots=True)
class _Step:
    """A node of a LangGraph graph: its name there, its function, and how often it is tried again."""

    name: str
    function: str
    retries: int = 0
    delay_s: float = 0.0


@dataclass(slots=True)
class _Graph:
    """A graph being written: its steps in order, and where some of them lead otherwise than to the next."""

    function: str
    steps: list[_Step] = field(default_factory=list[_Step])
    loops: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    """Of each loop its id, the first step of its body, its exit."""
    agents: list[str] = field(default_factory=list[str])

    def add(self, node: NodePlan, place: Place, kind: str = "node") -> None:
        """Add a step of a node."""
        name = node.id if kind == "node" else f"{node.id}.{kind}"
        makes_turns = node.spec.type == "agent" and node.config.turn_strategy == TOOL_CALLING
        steps_again = node.spec.type not in _WITHOUT_RETRIES and (not makes_turns or kind == "turn")
        tries_again = node.enabled and steps_again and node.config.on_error == "fail"
        retries = (node.config.retries, node.config.retry_delay_s) if tries_again else (0, 0.0)
        self.steps.append(_Step(name, f"{kind}_{node.id}{place.suffix}", *retries))


class GraphWriter:
    """Writes a workflow's graph, and the graphs in it.

    Args:
        functions: Writes functions, and keeps what was left out.
        at_once: How many nodes may be at work at a time.

    Attributes:
        sources: The functions so far, those that build graphs of parts among them.
    """

    def __init__(self, functions: NodeFunctions, at_once: int) -> None:
        self._functions, self._at_once = functions, at_once
        self.sources: list[str] = []

    def whole(self, graph: GraphPlan) -> str:
        """Write the functions of a workflow, and give the one that builds its graph."""
        return self._graph(graph, Place(_names(graph, {}, None)), "build")

    def _graph(self, plan: GraphPlan, place: Place, function: str) -> str:
        graph = _Graph(function)
        self._level(graph, plan, place)
        keeps = function == "build" and self._functions.asks_people
        return _built(graph, "checkpointer=InMemorySaver()" if keeps else "")

    def _level(self, graph: _Graph, plan: GraphPlan, place: Place) -> None:
        """Write the functions of a level, those of its loops' bodies among them."""
        parts = PartFunctions(self._functions, place)
        for node in plan.nodes:
            if node.loop is not None:
                self._loop(graph, plan, node, place)
            elif node.iterator is not None:
                self._iterator(graph, node, place, parts)
            elif node.subflow is not None:
                self._subflow(graph, node, place, parts)
            elif node.spec.type == "aggregator":
                assert node.exit_of is not None
                self.sources.append(parts.aggregator(node, plan.nodes[node.exit_of]))
                graph.add(node, place)
            elif node.spec.type == "agent":
                self._agent(graph, node, place)
            elif node.exit_of is None:
                self.sources.append(self._functions.function(node, place))
                graph.add(node, place)

    def _loop(self, graph: _Graph, around: GraphPlan, node: NodePlan, place: Place) -> None:
        loop = node.loop
        assert loop is not None
        end = around.nodes[loop.exit]
        config = loop.config
        memory = None if config.memory == "fresh" else (node.id, config.memory_window)
        if config.memory == "accumulate":
            memory = (node.id, None)
        names, loops = _names(loop.body, place.names, node.id), ((node.id, loop.max_iterations), *place.loops)
        inside = Place(names, loops, place.items, node.id, memory, place.suffix)
        written = LoopFunctions(self._functions, node, loop, end.id, place, inside)
        self.sources.append(written.beginning())
        graph.add(node, place)
        first = len(graph.steps)
        self._level(graph, loop.body, inside)
        self.sources.append(written.ending(end))
        graph.add(end, place)
        graph.loops.append((node.id, graph.steps[first].name, end.id))

    def _iterator(self, graph: _Graph, node: NodePlan, place: Place, parts: PartFunctions) -> None:
        iterator = node.iterator
        assert iterator is not None
        names = _names(iterator.body, place.names, node.id)
        inside = Place(names, place.loops, node.id, place.leaves, None, place.suffix)
        in_turn = self._functions.in_turn
        self.sources.append(self._graph(iterator.body, inside, f"build_{node.id}{place.suffix}"))
        at_once = min(node.config.max_concurrency or self._at_once, self._at_once)
        is_apart = self._functions.in_turn == in_turn
        if not is_apart and at_once > 1:
            said = f'The items of "{node.title}" ({node.id}) are worked on one after the other.'
            self._functions.left_out.append(said)
        self.sources.append(parts.iterator(node, inside, at_once if is_apart else 1))
        graph.add(node, place)

    def _subflow(self, graph: _Graph, node: NodePlan, place: Place, parts: PartFunctions) -> None:
        assert node.subflow is not None
        body = node.subflow.body
        inside = Place(_names(body, {}, None), suffix=f"_OF_{node.id}{place.suffix}")
        self.sources.append(self._graph(body, inside, f"build_{node.id}{place.suffix}"))
        self.sources.append(parts.subflow(node, named_outputs(body)))
        graph.add(node, place)

    def _agent(self, graph: _Graph, node: NodePlan, place: Place) -> None:
        agent = AgentFunctions(self._functions, node, place)
        if not agent.takes_turns:
            self.sources.append(agent.single())
            graph.add(node, place)
            return
        self.sources += agent.steps()
        graph.agents.append(node.id)
        for kind in ("node", "turn", "call"):
            graph.add(node, place, kind)


def _names(graph: GraphPlan, around: Mapping[int, str], repeated: str | None) -> dict[int, str]:
    """What lies in each slot of a level: `node.port`."""
    names = {slot: f"{node.id}.{port}" for node in graph.nodes for port, slot in node.outputs}
    names |= {slot: around[there] for there, slot in graph.constants}
    if graph.input_slot is not None:
        names[graph.input_slot] = f"{repeated}.{'body' if graph.index_slot is None else 'item'}"
    if graph.index_slot is not None:
        names[graph.index_slot] = f"{repeated}.index"
    return names


def _built(graph: _Graph, settings: str) -> str:
    """The function that builds a graph."""
    lines = [] if graph.function == "build" else ["@cache"]
    lines += [f"def {graph.function}() -> Any:", '    """The graph, compiled."""', "    graph = StateGraph(Flow)"]
    for step in graph.steps:
        retries = f"RetryPolicy(max_attempts={step.retries + 1}, initial_interval={step.delay_s!r})"
        more = f", retry_policy={retries}" if step.retries else ""
        lines.append(f"    graph.add_node({step.name!r}, {step.function}{more})")
    names = [step.name for step in graph.steps]
    lines.append(f"    graph.add_edge(START, {names[0]!r})" if names else "    graph.add_edge(START, END)")
    ends = {end: (loop, first) for loop, first, end in graph.loops}
    begins = {loop: (first, end) for loop, first, end in graph.loops}

    def after(place: int) -> str:
        return repr(names[place + 1]) if place + 1 < len(names) else "END"

    for place, name in enumerate(names):
        agent = name.partition(".")[0]
        if name in begins:
            first, end = begins[name]
            lines.append(
                _conditional(name, f"goes_on({name!r})", {"True": repr(first), "False": after(names.index(end))})
            )
        elif name in ends:
            loop, first = ends[name]
            lines.append(_conditional(name, f"goes_on({loop!r})", {"True": repr(first), "False": after(place)}))
        elif agent in graph.agents:
            turn, call = f"{agent}.turn", f"{agent}.call"
            ways = {"'turn'": repr(turn), "'call'": repr(call), "'end'": after(names.index(call))}
            lines.append(_conditional(name, f"next_step({agent!r})", ways))
        else:
            lines.append(f"    graph.add_edge({name!r}, {after(place)})")
    return "\n".join([*lines, f"    return graph.compile({settings})\n"])


def _conditional(name: str, chosen: str, ways: dict[str, str]) -> str:
    return f"    graph.add_conditional_edges({name!r}, {chosen}, {{{', '.join(f'{a}: {b}' for a, b in ways.items())}}})"
