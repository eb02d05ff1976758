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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Final

from engine.document.model import Settings, Workflow
from engine.export.langgraph_loops import LoopWriter, aggregator_lines, iterator_lines, named_outputs, subflow_lines
from engine.export.langgraph_nodes import AgentWriter, NodeWriter
from engine.export.langgraph_scope import Scope
from engine.export.python_source import Exported, docstring, literal
from engine.nodes.agent_tools import TOOL_CALLING
from engine.nodes.input import InputConfig
from engine.nodes.node_registry import Registry
from engine.plan.compiler import compile_workflow
from engine.plan.execution_plan import GraphPlan, NodePlan

_ALWAYS_DIFFERENT: Final = (
    "Parallel nodes run one after the other.",
    "There is no history. Failures are retried if LangGraph considers them temporary.",
    "Warnings are Python warnings; the records of iterations do not contain them.",
)
_DEFAULT_MODEL: Final = "openai/gpt-4o-mini"
_STATE: Final = '''class Flow(TypedDict):
    """The state of the graph: inputs, outputs of nodes by port, loops, named state, agents."""

    _inputs: dict[str, Any]
    _values: Annotated[dict[str, Any], merged]
    _loops: Annotated[dict[str, Any], merged]
    _named: Annotated[dict[str, Any], merged]
    _agents: Annotated[dict[str, Any], merged]
'''
_ASK: Final = '''\
def ask(messages: list[Any], *, node: str, model: str = "", schema: Any = None, **settings: Any) -> str:
    """Call a model through litellm. Replace this function to call models in another way.

    `node` is the node that makes the call, `schema` the JSON Schema of the reply.
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
    """Call a model that may call tools. Returns its text and the tool calls with `id`, `name` and `args`."""
    # before
    offered = [{"type": "function", "function": tool} for tool in tools]
    reply = complete(list(map(to_litellm, messages)), model or DEFAULT_MODEL, tools=offered, **settings)
    # after
    message = reply.choices[0].message
    return split_reasoning(message.content or "")[0], list(tool_calls_of(message.tool_calls or ()))
'''
_RUN: Final = '''def run(inputs: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run the workflow, and return its outputs by name."""
    values = input_values(INPUTS, inputs or {})
    start = {"_inputs": values, "_values": {}, "_loops": {}, "_named": {}, "_agents": {}}
    end = build().invoke(start, {"recursion_limit": 1_000_000})
    return workflow_outputs(end, OUTPUTS)
'''
_RUN_WITH_PEOPLE: Final = '''def run(
    inputs: dict[str, Any] | None = None, answer: Callable[[dict[str, Any]], dict[str, Any]] = ask_at_terminal
) -> dict[str, Any]:
    """Run the workflow, and return its outputs by name; `answer` answers the questions to a person."""
    values = input_values(INPUTS, inputs or {})
    start = {"_inputs": values, "_values": {}, "_loops": {}, "_named": {}, "_agents": {}}
    graph, thread = build(), {"configurable": {"thread_id": "run"}, "recursion_limit": 1_000_000}
    end = graph.invoke(start, thread)
    while end.get("__interrupt__"):
        end = graph.invoke(Command(resume={one.id: answer(one.value) for one in end["__interrupt__"]}), thread)
    return workflow_outputs(end, OUTPUTS)
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
_ENGINE_DEFINITIONS: Final = (
    ("engine.nodes.context", "with_note"),
    ("engine.nodes.aggregator", "most_frequent"),
    ("engine.expr.functions", "divide"),
    ("engine.expr.functions", "remainder"),
    ("engine.plan.validation", "RECORD_MEMBERS"),
)
"""Definitions of the engine that are copied as the runtime functions are."""

_PLAIN_IMPORTS: Final = ("json", "math", "os", "re", "sys", "time", "unicodedata", "warnings")
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
_PACKAGES: Final = {
    "from litellm": "litellm",
    "from Levenshtein": "python-Levenshtein",
    "from jsonschema_rs": "jsonschema-rs",
    "from json_repair": "json-repair",
}
"""The package to install for an import of the module."""


def export_langgraph(workflow: Workflow, registry: Registry | None = None) -> Exported:
    """Export a workflow as a LangGraph module.

    Raises:
        DocumentError: The document has errors.
    """
    plan = compile_workflow(workflow, registry)
    settings = Settings.model_validate(workflow.settings)
    writer = NodeWriter()
    graphs = _GraphWriter(writer, settings.max_concurrency)
    whole = graphs.whole(plan.graph)
    sources = [*graphs.sources, whole]
    counts_costs = settings.budget_usd is not None or writer.counts_costs
    called = frozenset[str]().union(*map(_names, sources))
    budget, cost = "", ""
    if settings.budget_usd is not None:
        budget = f"    check_budget({settings.budget_usd!r})\n"
    if counts_costs:
        cost = "    add_cost(model or DEFAULT_MODEL, reply.usage)\n"
    model_calls = [
        source.replace("    # before\n", budget).replace("    # after\n", cost)
        for name, source in (("ask", _ASK), ("act", _ACT))
        if name in called
    ]
    constants = _constants(settings, plan.parameters, plan.graph, has_tools=writer.has_tools)
    run = _RUN_WITH_PEOPLE if writer.asks_people else _RUN
    body = "\n\n\n".join((constants, _STATE, *model_calls, *sources, run, _MAIN))
    parts = (*_runtime_sources(body, writer.condition_modules), body)
    code = "\n\n\n".join(parts)
    notes = (*_setting_notes(settings, counts_costs=counts_costs), *writer.left_out)
    left_out = (*_ALWAYS_DIFFERENT, *dict.fromkeys(notes))
    imports = _imports(parts)
    packages = ("langgraph", *(name for found, name in _PACKAGES.items() if found in f"{imports}\n{code}"))
    head = docstring(_description(workflow, left_out, " ".join(packages)))
    text = re.sub(r"\n{4,}", "\n\n\n", "\n\n".join((head, imports, code))).rstrip("\n")
    return Exported(f"{text}\n", left_out)


def _description(workflow: Workflow, left_out: tuple[str, ...], packages: str) -> Iterator[str]:
    yield workflow.name or "A workflow"
    yield workflow.description
    yield "Exported by Loopwright. It needs LangGraph, but not Loopwright:"
    yield f'    pip install {packages}\n    python THIS_FILE \'{{"INPUT": "VALUE"}}\''
    yield "Differences from a run in Loopwright:"
    yield "\n".join(f"- {' '.join(sentence.split())}" for sentence in left_out)


def _setting_notes(settings: Settings, *, counts_costs: bool) -> Iterator[str]:
    if settings.budget_usd is not None:
        yield "The budget stops calls once it is used up; the cost of a call is not estimated before."
    if settings.budget_tokens is not None:
        yield "The token budget of the workflow is ignored."
    if counts_costs:
        yield "Costs come from litellm's price list. Add the price of a model that is not in it to PRICES."
    if not settings.model:
        yield f"The workflow has no default model; DEFAULT_MODEL is {_DEFAULT_MODEL}."


def _constants(settings: Settings, parameters: dict[str, InputConfig], graph: GraphPlan, *, has_tools: bool) -> str:
    inputs = "".join(
        f"    {name!r}: ({str(config.type)!r}, {literal(config.default, '    ')}),\n"
        for name, config in parameters.items()
    )
    lines = [
        f"DEFAULT_MODEL = {settings.model or _DEFAULT_MODEL!r}",
        f"INPUTS: dict[str, tuple[str, Any]] = {{\n{inputs}}}" if inputs else "INPUTS: dict[str, tuple[str, Any]] = {}",
        f"OUTPUTS = {literal(named_outputs(graph))}",
    ]
    return "\n".join([*lines, *(["TOOLS: dict[str, Callable[..., Any]] = {}"] if has_tools else [])])


def _runtime_sources(body: str, condition_modules: Iterable[str]) -> list[str]:
    """The sources of the runtime functions that the module uses, directly or through each other."""
    sources = {name: definitions(module)[name] for module, name in _ENGINE_DEFINITIONS}
    for module in (*condition_modules, *RUNTIME_MODULES):
        sources |= definitions(module)
    wanted: set[str] = set()
    unread = [body]
    while unread:
        found = _names(unread.pop()).intersection(sources) - wanted
        wanted |= found
        unread += [sources[name] for name in found]
    return [source for name, source in sources.items() if name in wanted]


@functools.lru_cache(maxsize=512)
def _names(source: str) -> frozenset[str]:
    """Return the names that a source uses; the runtime functions are the same in each export."""
    return frozenset(node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name))


@functools.cache
def definitions(module: str) -> dict[str, str]:
    """The sources of a module's definitions, by name. The module is not imported: it imports what the export needs."""
    package, _, file = module.rpartition(".")
    text = resources.files(package).joinpath(f"{file}.py").read_text(encoding="utf-8")
    lines = text.split("\n")
    found: dict[str, str] = {}
    for statement in ast.parse(text).body:
        name = None
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            name = statement.name
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            name = target.id if isinstance(target, ast.Name) else None
        if name is not None:
            found[name] = _source_segment(lines, statement)
    return found


def _source_segment(lines: Sequence[str], statement: ast.stmt) -> str:
    """Return the source of a statement; `ast.get_source_segment` splits the whole text each time."""
    assert statement.end_lineno is not None
    last = lines[statement.end_lineno - 1].encode()[: statement.end_col_offset].decode()
    return "\n".join([*lines[statement.lineno - 1 : statement.end_lineno - 1], last])


def _imports(sources: Iterable[str]) -> str:
    used = frozenset[str]().union(*map(_names, sources))
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


@dataclass(slots=True)
class _Graph:
    """A LangGraph graph being written.

    Attributes:
        function: The name of the function that builds it.
        steps: The `add_node` arguments of each step by name, in order.
        loops: The id, the first step of the body and the exit of each loop.
        agents: The ids of agents that take turns.
    """

    function: str
    steps: dict[str, str] = field(default_factory=dict[str, str])
    loops: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    agents: list[str] = field(default_factory=list[str])

    def add(self, node: NodePlan, scope: Scope, kind: str = "node") -> None:
        """Add a step of a node."""
        takes_turns = node.does_work and node.spec.type == "agent" and node.config.turn_strategy == TOOL_CALLING
        can_be_repeated = node.spec.type not in {"loop", "exit", "iterator"} and (not takes_turns or kind == "turn")
        config, retry = node.config, ""
        if node.does_work and can_be_repeated and config.on_error == "fail" and config.retries:
            policy = f"RetryPolicy(max_attempts={config.retries + 1}, initial_interval={config.retry_delay_s!r})"
            retry = f", retry_policy={policy}"
        name = node.id if kind == "node" else f"{node.id}.{kind}"
        self.steps[name] = f"{name!r}, {kind}_{node.id}{scope.suffix}{retry}"


class _GraphWriter:
    """Writes the graph of a workflow and the graphs in it.

    Attributes:
        sources: The functions written so far, including those that build inner graphs.
    """

    def __init__(self, writer: NodeWriter, max_concurrency: int) -> None:
        self._writer, self._max_concurrency = writer, max_concurrency
        self.sources: list[str] = []

    def whole(self, graph: GraphPlan) -> str:
        """Write the functions of a workflow, and return the one that builds its graph."""
        return self._graph(graph, Scope(_ports(graph, {}, None)), "build")

    def _graph(self, plan: GraphPlan, scope: Scope, function: str) -> str:
        graph = _Graph(function)
        self._level(graph, plan, scope)
        has_checkpoints = function == "build" and self._writer.asks_people
        return _build_function(graph, "checkpointer=InMemorySaver()" if has_checkpoints else "")

    def _level(self, graph: _Graph, plan: GraphPlan, scope: Scope) -> None:
        """Write the functions of a level, including those of loop bodies."""
        for node in plan.nodes:
            if node.loop is not None:
                self._loop(graph, plan, node, scope)
            elif node.iterator is not None:
                self._iterator(graph, node, scope)
            elif node.subflow is not None:
                body = node.subflow.body
                inside = Scope(_ports(body, {}, None), suffix=f"_OF_{node.id}{scope.suffix}")
                self.sources.append(self._graph(body, inside, f"build_{node.id}{scope.suffix}"))
                self._add(graph, node, scope, functools.partial(subflow_lines, node, scope))
            elif node.spec.type == "aggregator":
                assert node.exit_of is not None
                self._add(
                    graph, node, scope, functools.partial(aggregator_lines, node, plan.nodes[node.exit_of], scope)
                )
            elif node.spec.type == "agent":
                agent = AgentWriter(self._writer, node, scope)
                self.sources += agent.functions()
                graph.agents += [node.id] if agent.takes_turns else []
                for kind in ("node", "turn", "call") if agent.takes_turns else ("node",):
                    graph.add(node, scope, kind)
            elif node.exit_of is None:
                self._add(graph, node, scope)

    def _add(self, graph: _Graph, node: NodePlan, scope: Scope, body: Callable[[], list[str]] | None = None) -> None:
        self.sources.append(self._writer.function(node, scope, body))
        graph.add(node, scope)

    def _loop(self, graph: _Graph, around: GraphPlan, node: NodePlan, scope: Scope) -> None:
        loop = node.loop
        assert loop is not None
        end, config = around.nodes[loop.exit], loop.config
        memory = None
        if config.memory != "fresh":
            memory = (node.id, None if config.memory == "accumulate" else config.memory_window)
        ports, loops = _ports(loop.body, scope.ports, node.id), ((node.id, loop.max_iterations), *scope.loops)
        inside = Scope(ports, loops, scope.iterator, node.id, memory, scope.suffix)
        writer = LoopWriter(self._writer, node, loop, end.id, scope, inside)
        self.sources.append(writer.start())
        graph.add(node, scope)
        before = len(graph.steps)
        self._level(graph, loop.body, inside)
        self.sources.append(writer.end(end))
        graph.add(end, scope)
        graph.loops.append((node.id, list(graph.steps)[before], end.id))

    def _iterator(self, graph: _Graph, node: NodePlan, scope: Scope) -> None:
        assert node.iterator is not None
        writer, body = self._writer, node.iterator.body
        ports = _ports(body, scope.ports, node.id)
        inside = Scope(ports, scope.loops, node.id, scope.exits, None, scope.suffix)
        sequential = writer.sequential
        self.sources.append(self._graph(body, inside, f"build_{node.id}{scope.suffix}"))
        concurrency = min(node.config.max_concurrency or self._max_concurrency, self._max_concurrency)
        if writer.sequential != sequential and concurrency > 1:
            writer.left_out.append(f'The items of "{node.title}" ({node.id}) are processed one after the other.')
            concurrency = 1
        self._add(graph, node, scope, functools.partial(iterator_lines, writer, node, scope, inside, concurrency))


def _ports(graph: GraphPlan, outside: Mapping[int, str], repeated: str | None) -> dict[int, str]:
    """The port `node.port` whose value is in each slot of a level."""
    ports = {slot: f"{node.id}.{port}" for node in graph.nodes for port, slot in node.outputs}
    ports |= {slot: outside[outer] for outer, slot in graph.constants}
    if graph.input_slot is not None:
        ports[graph.input_slot] = f"{repeated}.{'body' if graph.index_slot is None else 'item'}"
    if graph.index_slot is not None:
        ports[graph.index_slot] = f"{repeated}.index"
    return ports


def _build_function(graph: _Graph, compile_arguments: str) -> str:
    """The function that builds a graph."""
    lines = [] if graph.function == "build" else ["@cache"]
    lines += [f"def {graph.function}() -> Any:", '    """The compiled graph."""', "    graph = StateGraph(Flow)"]
    lines += [f"    graph.add_node({arguments})" for arguments in graph.steps.values()]
    names = list(graph.steps)
    following = dict(zip(names, [*map(repr, names[1:]), "END"], strict=True))
    lines.append(f"    graph.add_edge(START, {names[0]!r})" if names else "    graph.add_edge(START, END)")
    choices: dict[str, str] = {}
    for loop, first, end in graph.loops:
        choices |= dict.fromkeys((loop, end), f"continues({loop!r}), {{True: {first!r}, False: {following[end]}}}")
    for agent in graph.agents:
        turn, call = f"{agent}.turn", f"{agent}.call"
        steps = f"{{'turn': {turn!r}, 'call': {call!r}, 'end': {following[call]}}}"
        choices |= dict.fromkeys((agent, turn, call), f"next_step({agent!r}), {steps}")
    for name in names:
        if name in choices:
            lines.append(f"    graph.add_conditional_edges({name!r}, {choices[name]})")
        else:
            lines.append(f"    graph.add_edge({name!r}, {following[name]})")
    return "\n".join([*lines, f"    return graph.compile({compile_arguments})\n"])
