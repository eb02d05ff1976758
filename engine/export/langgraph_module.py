"""A workflow as a module for LangGraph that runs without us: plain functions, loops as cycles of the graph.

The nodes stand in a chain, sources before targets; a node that nothing live reaches gives nothing. So routers, joins
and loops mean what they mean in the workflow. From a loop's exit an edge leads back to the first node of its body.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Final

from engine.document.model import Workflow
from engine.document.settings import Settings
from engine.export import carried_asking, carried_loops, carried_values
from engine.export.exported import Exported
from engine.export.langgraph_loops import LoopFunctions
from engine.export.langgraph_nodes import NodeFunctions, Place
from engine.export.literals import docstring, literal
from engine.nodes.registry import Registry
from engine.plan.build import build
from engine.plan.graph import GraphPlan, NodePlan
from engine.runner.parameters import InputConfig

_ALWAYS: Final = (
    "Nodes that could run side by side run one after the other.",
    "There is no history, no budget and no price, and calls that fail are not made again.",
)
_STATE: Final = '''class Flow(TypedDict):
    """What goes through the graph: the inputs, what each node gave by port, each loop, and the named state."""

    _inputs: dict[str, Any]
    _values: Annotated[dict[str, Any], merged]
    _loops: Annotated[dict[str, Any], merged]
    _named: Annotated[dict[str, Any], merged]
'''
_ASK: Final = '''\
def ask(messages: list[Any], *, node: str, model: str = "", schema: Any = None, **settings: Any) -> str:
    """Ask a model, by LangChain. Put a function of your own in its place to ask in another way.

    `node` is the one that asks, `schema` what its reply is to follow.
    """
    from langchain.chat_models import init_chat_model

    provider, _, name = (model or DEFAULT_MODEL).partition("/")
    reply = init_chat_model(name, model_provider=provider, **settings).invoke(messages)
    return str(reply.content)
'''
_RUN: Final = '''def run(inputs: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run the workflow, and give its results by name."""
    unknown = sorted(set(inputs or {}) - set(INPUTS))
    if unknown:
        raise ValueError(f"There is no input {unknown[0]!r}.")
    values = {}
    for name, (kind, default) in INPUTS.items():
        value = (inputs or {}).get(name, default)
        if value is None and name not in (inputs or {}):
            raise ValueError(f"The input {name!r} has no value.")
        values[name] = fitted(value, kind)
    start = {"_inputs": values, "_values": {}, "_loops": {}, "_named": {}}
    end = build().invoke(start, {"recursion_limit": 1_000_000})
    given = {name: end["_values"].get(node, {}) for name, node in OUTPUTS.items()}
    return {name: ports["value"] for name, ports in given.items() if "value" in ports}


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}), ensure_ascii=False, indent=2))
'''


@dataclass(slots=True)
class _Parts:
    """The module being written: its functions, and the graph's edges in order."""

    functions: NodeFunctions = field(default_factory=NodeFunctions)
    sources: list[str] = field(default_factory=list[str])
    chain: list[str] = field(default_factory=list[str])
    loops: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    """Of each loop its id, the first node of its body, its exit."""


def export_langgraph(workflow: Workflow, registry: Registry | None = None) -> Exported:
    """The module, and what it leaves out.

    Raises:
        DocumentError: The document has errors.
    """
    plan = build(workflow, registry)
    parts = _Parts()
    _level(parts, plan.graph, _names(plan.graph, {}, None), ())
    left_out = (*_ALWAYS, *dict.fromkeys(_settings_left_out(workflow)), *dict.fromkeys(parts.functions.left_out))
    outputs: dict[str, Any] = {node.result_name: node.id for node in _all_nodes(plan.graph) if node.result_name}
    body = "\n\n\n".join(
        (
            _constants(workflow, plan.parameters, outputs, has_tools=any("TOOLS[" in one for one in parts.sources)),
            _STATE,
            _ASK,
            *parts.sources,
            _build(parts),
            _RUN,
        )
    )
    carried = "\n\n\n".join(_carried(body))
    head = docstring(_about(workflow, left_out))
    rest = f"{carried}\n\n\n{body}"
    text = "\n\n".join((head, _imports(rest), rest))
    return Exported(_tidied(text), left_out)


def _about(workflow: Workflow, left_out: tuple[str, ...]) -> Iterator[str]:
    yield workflow.name or "A workflow"
    yield workflow.description
    yield "Written by Loopwright; it needs LangGraph and nothing of Loopwright:"
    yield '    pip install langgraph langchain langchain-openai\n    python THIS_FILE \'{"INPUT": "VALUE"}\''
    yield "What differs from a run in Loopwright:"
    yield "\n".join(f"- {' '.join(sentence.split())}" for sentence in left_out)


def _settings_left_out(workflow: Workflow) -> Iterator[str]:
    settings = Settings.model_validate(workflow.settings)
    if settings.budget_usd is not None or settings.budget_tokens is not None:
        yield "The workflow's budget does not hold here."


def _names(graph: GraphPlan, around: dict[int, str], loop: str | None) -> dict[int, str]:
    """What lies in each slot of a level: `node.port`."""
    names = {slot: f"{node.id}.{port}" for node in graph.nodes for port, slot in node.outputs}
    names |= {slot: around[outer] for outer, slot in graph.constants}
    if graph.input_slot is not None:
        names[graph.input_slot] = f"{loop}.body"
    return names


def _level(parts: _Parts, graph: GraphPlan, names: dict[int, str], loops: tuple[tuple[str, int], ...]) -> None:
    """Write the functions of a level, those of its loops' bodies among them."""
    place = Place(names, loops)
    for node in graph.nodes:
        if node.exit_of is not None:
            continue
        parts.chain.append(node.id)
        if node.loop is None:
            parts.sources.append(parts.functions.function(node, place))
            continue
        end = graph.nodes[node.loop.exit]
        inner = ((node.id, node.loop.max_iterations), *loops)
        inner_names = _names(node.loop.body, names, node.id)
        written = LoopFunctions(parts.functions, node, node.loop, end.id, place, Place(inner_names, inner))
        parts.sources.append(written.beginning())
        first = len(parts.chain)
        _level(parts, node.loop.body, inner_names, inner)
        parts.sources.append(written.ending(end))
        parts.loops.append((node.id, parts.chain[first], end.id))
        parts.chain.append(end.id)


def _all_nodes(graph: GraphPlan) -> Iterator[NodePlan]:
    for node in graph.nodes:
        yield node
        if node.loop is not None:
            yield from _all_nodes(node.loop.body)


def _constants(
    workflow: Workflow, parameters: dict[str, InputConfig], outputs: dict[str, Any], *, has_tools: bool
) -> str:
    settings = Settings.model_validate(workflow.settings)
    inputs = "".join(
        f"    {name!r}: ({str(config.type)!r}, {literal(config.default, '    ')}),\n"
        for name, config in parameters.items()
    )
    lines = [
        f"DEFAULT_MODEL = {settings.model or 'openai/gpt-4o-mini'!r}",
        f"INPUTS: dict[str, tuple[str, Any]] = {{\n{inputs}}}" if inputs else "INPUTS: dict[str, tuple[str, Any]] = {}",
        f"OUTPUTS = {literal(outputs)}",
    ]
    if has_tools:
        lines.append("TOOLS: dict[str, Callable[..., Any]] = {}")
    return "\n".join(lines)


def _build(parts: _Parts) -> str:
    """The function that builds the graph."""
    ends = {end: (loop, first) for loop, first, end in parts.loops}
    begins = {loop: (first, end) for loop, first, end in parts.loops}
    lines = ["def build() -> Any:", '    """The graph, compiled."""', "    graph = StateGraph(Flow)"]
    lines += [f"    graph.add_node({node!r}, node_{node})" for node in parts.chain]
    lines.append(f"    graph.add_edge(START, {parts.chain[0]!r})" if parts.chain else "    graph.add_edge(START, END)")
    for place, node in enumerate(parts.chain):
        following = repr(parts.chain[place + 1]) if place + 1 < len(parts.chain) else "END"
        if node in begins:
            first, end = begins[node]
            after = parts.chain.index(end) + 1
            beyond = repr(parts.chain[after]) if after < len(parts.chain) else "END"
            lines.append(
                f"    graph.add_conditional_edges({node!r}, goes_on({node!r}), {{True: {first!r}, False: {beyond}}})"
            )
        elif node in ends:
            loop, first = ends[node]
            lines.append(
                f"    graph.add_conditional_edges({node!r}, goes_on({loop!r}), {{True: {first!r}, False: {following}}})"
            )
        else:
            lines.append(f"    graph.add_edge({node!r}, {following})")
    return "\n".join([*lines, "    return graph.compile()\n"])


def _carried(body: str) -> list[str]:
    """The sources of the functions that the module uses, and of those that they use in turn."""
    sources: dict[str, str] = {}
    for module in (carried_values, carried_asking, carried_loops):
        sources |= _definitions(module)
    wanted: set[str] = set()
    looked_at = [body]
    while looked_at:
        for node in ast.walk(ast.parse(looked_at.pop())):
            if isinstance(node, ast.Name) and node.id in sources and node.id not in wanted:
                wanted.add(node.id)
                looked_at.append(sources[node.id])
    return [source for name, source in sources.items() if name in wanted]


@functools.cache
def _definitions(module: ModuleType) -> dict[str, str]:
    text = inspect.getsource(module)
    found: dict[str, str] = {}
    body = ast.parse(text).body
    for statement in body:
        name = None
        if isinstance(statement, ast.FunctionDef):
            name = statement.name
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            name = target.id if isinstance(target, ast.Name) else None
        if name is not None:
            found[name] = ast.get_source_segment(text, statement) or ""
    return found


def _imports(text: str) -> str:
    used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    plain = [f"import {name}" for name in ("json", "re", "sys", "time", "warnings") if name in used]
    groups = {
        "collections.abc": [name for name in ("Callable", "Mapping", "Sequence") if name in used],
        "typing": ["Annotated", "Any", "TypedDict", *(["cast"] if "cast" in used else [])],
    }
    named = [f"from {module} import {', '.join(names)}" for module, names in groups.items() if names]
    ours = "from langgraph.graph import END, START, StateGraph"
    return "\n".join(["from __future__ import annotations", "", *plain, *named, "", ours])


def _tidied(text: str) -> str:
    """At most two blank lines in a row, a newline at the end."""
    return re.sub(r"\n{4,}", "\n\n\n", text).rstrip("\n") + "\n"
