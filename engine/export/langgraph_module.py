"""Export of a workflow as a LangGraph module that runs without Loopwright.

This module puts the parts together: docstring, imports, the runtime functions that are used, and the workflow's own
functions. Nodes become functions in a chain, sources before targets; a node that no live value reaches has no output,
so routers, joins and loops mean the same as in the workflow. An edge leads from a loop's exit back to the first node of
its body, and from an agent's tool call back to its turn. The body of an iterator, and a subflow, is a graph of its own.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Final

from engine.document.model import Settings, Workflow
from engine.export.langgraph_loops import LoopFunctions, PartFunctions, named_outputs
from engine.export.langgraph_nodes import AgentFunctions, NodeFunctions
from engine.export.langgraph_texts import Place
from engine.export.python_source import Exported, docstring, literal
from engine.nodes.agent_tools import TOOL_CALLING
from engine.nodes.node_registry import Registry
from engine.plan.compiler import compile_workflow
from engine.plan.execution_plan import GraphPlan, NodePlan
from engine.runner.declared_inputs import InputConfig

_ALWAYS: Final = (
    "Nodes that could run side by side run one after the other.",
    "There is no history; what is tried again after a failure is what LangGraph takes for one that may pass.",
    "Warnings are Python's own; they are not in the records of iterations.",
)
_DEFAULT_MODEL: Final = "openai/gpt-4o-mini"
_STATE: Final = '''class Flow(TypedDict):
    """What goes through the graph: the inputs, what each node gave by port, loops, named state, agents at work."""

    _inputs: dict[str, Any]
    _values: Annotated[dict[str, Any], merged]
    _loops: Annotated[dict[str, Any], merged]
    _named: Annotated[dict[str, Any], merged]
    _agents: Annotated[dict[str, Any], merged]
'''
_ASK: Final = '''\
def ask(messages: list[Any], *, node: str, model: str = "", schema: Any = None, **settings: Any) -> str:
    """Ask a model through litellm. Replace it with a function of your own to ask in another way.

    `node` is the node that asks, `schema` the JSON Schema of the reply.
    """
    # before
    reply = complete(messages, model or DEFAULT_MODEL, **settings)
    # after
    return split_reasoning(reply.choices[0].message.content or "")[0]
'''
_ACT: Final = '''\
def act(
    messages: list[Any], *, node: str, tools: Sequence[dict[str, Any]], model: str = "", **settings: Any
) -> tuple[str, list[dict[str, Any]]]:
    """Ask a model that may call tools: its text, and the calls by `id`, `name` and `args`."""
    # before
    offered = [{"type": "function", "function": tool} for tool in tools]
    reply = complete(list(map(with_calls, messages)), model or DEFAULT_MODEL, tools=offered, **settings)
    # after
    message = reply.choices[0].message
    return split_reasoning(message.content or "")[0], list(calls_of(message.tool_calls or ()))
'''
_RUN: Final = '''def run(inputs: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run the workflow, and give its results by name."""
    values = parameters(INPUTS, inputs or {})
    start = {"_inputs": values, "_values": {}, "_loops": {}, "_named": {}, "_agents": {}}
    end = build().invoke(start, {"recursion_limit": 1_000_000})
    return results_of(end, OUTPUTS)
'''
_RUN_WITH_PEOPLE: Final = '''def run(
    inputs: dict[str, Any] | None = None, answer: Callable[[dict[str, Any]], dict[str, Any]] = ask_at_terminal
) -> dict[str, Any]:
    """Run the workflow, and give its results by name; `answer` is asked what a person is to decide."""
    values = parameters(INPUTS, inputs or {})
    start = {"_inputs": values, "_values": {}, "_loops": {}, "_named": {}, "_agents": {}}
    graph, thread = build(), {"configurable": {"thread_id": "run"}, "recursion_limit": 1_000_000}
    end = graph.invoke(start, thread)
    while end.get("__interrupt__"):
        end = graph.invoke(Command(resume={one.id: answer(one.value) for one in end["__interrupt__"]}), thread)
    return results_of(end, OUTPUTS)
'''
_MAIN: Final = """\
if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}), ensure_ascii=False, indent=2))
"""
RUNTIME_MODULES: Final = (
    *(f"engine.export.langgraph_runtime_{name}" for name in ("values", "models", "loops", "agents")),
    "engine.models.reply_text",
    "engine.lenient_json",
    "engine.nodes.structured_replies",
)


def export_langgraph(workflow: Workflow, registry: Registry | None = None) -> Exported:
    """The module, and what it leaves out.

    Raises:
        DocumentError: The document has errors.
    """
    plan = compile_workflow(workflow, registry)
    settings = Settings.model_validate(workflow.settings)
    functions = NodeFunctions()
    writer = GraphWriter(functions, settings.max_concurrency)
    whole = writer.whole(plan.graph)
    sources = [*writer.sources, whole]
    budget = settings.budget_usd
    counts = budget is not None or functions.counts_costs
    asks = [
        _ask(source, counts_costs=counts, budget_usd=budget) for source in (_ASK, _ACT) if _is_used(source, sources)
    ]
    constants = _constants(settings, plan.parameters, named_outputs(plan.graph), has_tools=functions.has_tools)
    run = _RUN_WITH_PEOPLE if functions.asks_people else _RUN
    body = "\n\n\n".join((constants, _STATE, *asks, *sources, run, _MAIN))
    runtime = "\n\n\n".join(_runtime_sources(body, functions.carried))
    rest = f"{runtime}\n\n\n{body}"
    told = (*_settings_left_out(settings, counts_costs=counts), *functions.left_out)
    left_out = (*_ALWAYS, *dict.fromkeys(told))
    imports = _imports(rest)
    head = docstring(_about(workflow, left_out, _packages(rest, imports)))
    return Exported(_tidied("\n\n".join((head, imports, rest))), left_out)


def _is_used(source: str, sources: list[str]) -> bool:
    """Whether a function that is defined there is named in the others."""
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    return any(
        isinstance(node, ast.Name) and node.id == function.name for one in sources for node in ast.walk(ast.parse(one))
    )


def _ask(source: str, *, counts_costs: bool, budget_usd: float | None) -> str:
    """A function that asks a model, with the lines that count what it costs where something hangs on that."""
    note = "    note_cost(model or DEFAULT_MODEL, reply.usage)\n" if counts_costs else ""
    limit = f"    may_spend({budget_usd!r})\n" if budget_usd is not None else ""
    return source.replace("    # before\n", limit).replace("    # after\n", note)


def _packages(rest: str, imports: str) -> str:
    """What has to be installed."""
    names = ["langgraph"]
    names += ["litellm"] if "from litellm" in rest else []
    names += ["python-Levenshtein"] if "from Levenshtein" in rest else []
    names += ["jsonschema-rs"] if "jsonschema_rs" in imports else []
    names += ["json-repair"] if "from json_repair" in rest else []
    return " ".join(names)


def _about(workflow: Workflow, left_out: tuple[str, ...], packages: str) -> Iterator[str]:
    yield workflow.name or "A workflow"
    yield workflow.description
    yield "Written by Loopwright; it needs LangGraph and nothing of Loopwright:"
    yield f'    pip install {packages}\n    python THIS_FILE \'{{"INPUT": "VALUE"}}\''
    yield "What differs from a run in Loopwright:"
    yield "\n".join(f"- {' '.join(sentence.split())}" for sentence in left_out)


def _settings_left_out(settings: Settings, *, counts_costs: bool) -> Iterator[str]:
    if settings.budget_usd is not None:
        yield "The budget refuses a call once it is spent, and not before: what a call may cost is not estimated."
    if settings.budget_tokens is not None:
        yield "The workflow's budget of tokens does not hold here."
    if counts_costs:
        yield "What calls cost is reckoned by litellm; put the price of a model that it does not know into PRICES."
    if not settings.model:
        yield f"The workflow names no model of its own; {_DEFAULT_MODEL} is asked, by DEFAULT_MODEL."


def _constants(
    settings: Settings, parameters: dict[str, InputConfig], outputs: dict[str, Any], *, has_tools: bool
) -> str:
    inputs = "".join(
        f"    {name!r}: ({str(config.type)!r}, {literal(config.default, '    ')}),\n"
        for name, config in parameters.items()
    )
    lines = [
        f"DEFAULT_MODEL = {settings.model or _DEFAULT_MODEL!r}",
        f"INPUTS: dict[str, tuple[str, Any]] = {{\n{inputs}}}" if inputs else "INPUTS: dict[str, tuple[str, Any]] = {}",
        f"OUTPUTS = {literal(outputs)}",
    ]
    if has_tools:
        lines.append("TOOLS: dict[str, Callable[..., Any]] = {}")
    return "\n".join(lines)


def _runtime_sources(body: str, conditions: Iterable[str]) -> list[str]:
    """The sources of the functions that the module uses, and of those that they use in turn."""
    sources = {"with_note": definitions("engine.nodes.context")["with_note"]}
    for module in (*conditions, *RUNTIME_MODULES):
        sources |= definitions(module)
    wanted: set[str] = set()
    looked_at = [body]
    while looked_at:
        for node in ast.walk(ast.parse(looked_at.pop())):
            if isinstance(node, ast.Name) and node.id in sources and node.id not in wanted:
                wanted.add(node.id)
                looked_at.append(sources[node.id])
    return [source for name, source in sources.items() if name in wanted]


@functools.cache
def definitions(module: str) -> dict[str, str]:
    """The sources of what a module defines, by name. It is read and not imported: it needs what the export needs."""
    package, _, name = module.rpartition(".")
    text = resources.files(package).joinpath(f"{name}.py").read_text(encoding="utf-8")
    found: dict[str, str] = {}
    for statement in ast.parse(text).body:
        name = None
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            name = statement.name
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            name = target.id if isinstance(target, ast.Name) else None
        if name is not None:
            found[name] = ast.get_source_segment(text, statement) or ""
    return found


_PLAIN_IMPORTS: Final = ("json", "math", "re", "sys", "time", "unicodedata", "warnings")
_STANDARD_IMPORTS: Final = {
    "collections.abc": ("Callable", "Iterable", "Iterator", "Mapping", "Sequence"),
    "concurrent.futures": ("ThreadPoolExecutor",),
    "functools": ("cache",),
    "typing": ("Annotated", "Any", "Final", "TypedDict", "cast"),
}
_OTHER_IMPORTS: Final = {
    "jsonschema_rs": ("validator_for",),
    "langgraph.checkpoint.memory": ("InMemorySaver",),
    "langgraph.errors": ("GraphBubbleUp",),
    "langgraph.graph": ("END", "START", "StateGraph"),
    "langgraph.types": ("Command", "RetryPolicy", "interrupt"),
}


def _imports(text: str) -> str:
    used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    plain = [f"import {name}" for name in _PLAIN_IMPORTS if name in used]
    standard, other = (
        [
            f"from {module} import {', '.join(name for name in names if name in used)}"
            for module, names in groups.items()
            if used.intersection(names)
        ]
        for groups in (_STANDARD_IMPORTS, _OTHER_IMPORTS)
    )
    return "\n".join(["from __future__ import annotations", "", *plain, *standard, "", *other])


def _tidied(text: str) -> str:
    """At most two blank lines in a row, a newline at the end."""
    return re.sub(r"\n{4,}", "\n\n\n", text).rstrip("\n") + "\n"


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
