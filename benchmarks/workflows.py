"""The measured workflows, with an instant model and an instant node type."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from benchmarks.work import START, STEPS, step
from engine import RunOptions, Workflow
from engine.models.protocol import OnText, Price, Reply, Request
from engine.nodes.context import NodeContext
from engine.nodes.node_registry import builtin_registry
from engine.nodes.spec import Category, NodeConfig, NodeSpec, Outputs, Port

MODEL = "instant"
NO_CAP = 1_000_000

Node = dict[str, Any]
Edges = Iterable[tuple[str, str]]


class InstantModel:
    """A model that replies with `step` of the prompt, after `delay_s` seconds."""

    name = MODEL
    note = ""

    def __init__(self, delay_s: float = 0.0) -> None:
        self._delay_s = delay_s

    async def price(self) -> Price | None:
        """Nothing."""
        return Price(0.0, 0.0)

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Reply in one piece."""
        if self._delay_s:
            await asyncio.sleep(self._delay_s)
        return Reply(step(request.messages[-1].text))

    async def close(self) -> None:
        """Nothing to close."""


class OneModel:
    """A catalog with one model for every name."""

    def __init__(self, model: InstantModel) -> None:
        self._model = model

    def get(self, name: str, api_base: str | None = None) -> InstantModel:
        """The model."""
        return self._model

    async def close(self) -> None:
        """Nothing to close."""


async def _step(context: NodeContext[NodeConfig]) -> Outputs:
    text = context.inputs["input"]
    assert isinstance(text, str)
    return {"output": step(text)}


STEP_SPEC = NodeSpec(
    type="step",
    title="Step",
    category=Category.LOGIC,
    help="Does the benchmark's instant work.",
    icon="",
    config=NodeConfig,
    inputs=lambda _config: (Port("input", required=True),),
    outputs=lambda _config: (Port("output"),),
    run=_step,
)


def options(delay_s: float = 0.0) -> RunOptions:
    """Options of a run with the instant model, the instant node type and no cap on iterations."""
    registry = builtin_registry().with_types([STEP_SPEC])
    return RunOptions(models=OneModel(InstantModel(delay_s)), registry=registry, max_iterations_cap=NO_CAP)


def document(nodes: Iterable[Node], edges: Edges, **settings: Any) -> Workflow:
    """A workflow of these nodes and edges (`node.port`)."""
    return Workflow.model_validate(
        {"nodes": list(nodes), "edges": [{"from": start, "to": end} for start, end in edges], "settings": settings}
    )


def entry() -> Node:
    """The input `text`, with the common input as its value."""
    return {"id": "text", "type": "input", "config": {"default": START}}


def result() -> Node:
    """The output `out`."""
    return {"id": "out", "type": "output"}


def worker(node_id: str, node_type: str) -> Node:
    """A node that does one step: `llm`, `transform` (which passes its input on) or `step`."""
    config = {"llm": {"prompt": "{{input}}", "model": MODEL}, "transform": {"template": "{{input}}"}}.get(node_type, {})
    return {"id": node_id, "type": node_type, "config": config}


def loop_of_three(node_type: str, iterations: int) -> Workflow:
    """A loop over three such nodes that stops after its max iterations."""
    loop: Node = {"id": "loop", "type": "loop", "config": {"max_iterations": iterations, "inject_feedback": False}}
    ends = ("text.value", "loop.input"), ("exit.output", "out.value")
    inside = chained("loop.body", STEPS, "exit.input")
    steps = [worker(name, node_type) for name in STEPS]
    return document([entry(), loop, *steps, {"id": "exit", "type": "exit"}, result()], [*ends, *inside])


def chain(node_type: str, length: int) -> Workflow:
    """A chain of that many nodes."""
    names = [f"n{number}" for number in range(length)]
    nodes = [entry(), *(worker(name, node_type) for name in names), result()]
    return document(nodes, chained("text.value", names, "out.value"))


def fan(width: int) -> Workflow:
    """That many parallel model nodes without a concurrency limit, joined in the output."""
    names = [f"n{number}" for number in range(width)]
    edges = [edge for name in names for edge in (("text.value", f"{name}.input"), (f"{name}.output", "join.input"))]
    join: Node = {"id": "join", "type": "transform", "config": {"template": "{{input}}"}}
    nodes = [entry(), *(worker(name, "llm") for name in names), join, result()]
    return document(nodes, [*edges, ("join.output", "out.value")], max_concurrency=width)


def each_item(items: int, at_once: int) -> Workflow:
    """An iterator over that many items, with a concurrency limit, around a model node."""
    config = {"source": "list", "items": [START] * items, "max_concurrency": at_once}
    each: Node = {"id": "each", "type": "iterator", "config": config}
    gather: Node = {"id": "gather", "type": "aggregator", "config": {"iterator": "each"}}
    edges = [*chained("each.item", ["ask"], "gather.input"), ("gather.output", "out.value")]
    return document([each, worker("ask", "llm"), gather, result()], edges, max_concurrency=at_once)


def loops_of_ten(nodes: int, edges: int) -> Workflow:
    """About that many nodes and edges: a chain of loops with ten nodes in each body.

    Beside the edges in a row, nodes of a body get further ones from nodes before them, until there are enough.
    """
    size = 10
    count = max((nodes - 2) // (size + 2), 1)
    made: list[Node] = [entry()]
    row: list[tuple[str, str]] = []
    before = "text.value"
    for number in range(count):
        names = [f"n{number}_{place}" for place in range(size)]
        made.append({"id": f"l{number}", "type": "loop", "config": {"max_iterations": 3}})
        made.extend(worker(name, "llm") for name in names)
        made.append({"id": f"e{number}", "type": "exit", "config": {"loop": f"l{number}"}})
        row.extend([(before, f"l{number}.input"), *chained(f"l{number}.body", names, f"e{number}.input")])
        before = f"e{number}.output"
    row.append((before, "out.value"))
    across = [
        (f"n{number}_{place}.output", f"n{number}_{place + 2}.input")
        for place in range(size - 2)
        for number in range(count)
    ]
    return document([*made, result()], [*row, *across[: max(edges - len(row), 0)]])


def chained(first: str, names: Iterable[str], last: str) -> list[tuple[str, str]]:
    """Edges from a port through a chain of nodes to a port."""
    edges: list[tuple[str, str]] = []
    for name in names:
        edges.append((first, f"{name}.input"))
        first = f"{name}.output"
    return [*edges, (first, last)]
