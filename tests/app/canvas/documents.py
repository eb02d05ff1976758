"""Documents for tests of the canvas."""

from __future__ import annotations

from typing import Any

from engine.document.model import Workflow

Json = dict[str, Any]


def node(node_id: str, node_type: str, title: str = "", **config: Any) -> Json:
    return {"id": node_id, "type": node_type, "title": title, "config": config}


def workflow(
    nodes: list[Json], edges: list[str], places: dict[str, tuple[int, int]] | None = None, **layout: Any
) -> Workflow:
    ends = [dict(zip(("from", "to"), edge.split(" -> "), strict=True)) for edge in edges]
    if places is not None:
        layout["nodes"] = {key: {"x": x, "y": y} for key, (x, y) in places.items()}
    return Workflow.model_validate({"nodes": nodes, "edges": ends, "layout": layout})


def refine() -> Workflow:
    """An input, a loop around one model, and an output."""
    return workflow(
        [
            node("task", "input", "Task", name="task"),
            node("loop", "loop", "Refine", max_iterations=3),
            node("draft", "llm", "Draft", prompt="{{input}}"),
            node("exit", "exit", "Exit", loop="loop"),
            node("text", "output", "Text", name="text"),
        ],
        [
            "task.value -> loop.input",
            "loop.body -> draft.input",
            "draft.output -> exit.input",
            "exit.output -> text.value",
        ],
        {"task": (0, 80), "loop": (240, 80), "draft": (480, 80), "exit": (720, 80), "text": (960, 80)},
    )


def branching() -> Workflow:
    """A node that two nodes follow, a router with one connected branch, and a loop with a body."""
    return workflow(
        [
            *(node(name, "llm", prompt="{{input}}") for name in ("first", "second", "third", "fourth")),
            node("check", "router", criteria="?"),
            *(node("loop", "loop"), node("exit", "exit", loop="loop"), node("text", "output")),
        ],
        [
            "first.output -> second.input",
            "first.output -> third.input",
            "second.output -> check.input",
            "check.done -> loop.input",
            "loop.body -> fourth.input",
            "fourth.output -> exit.input",
            "exit.output -> text.value",
        ],
    )


def nested() -> Workflow:
    """Three loops, one in the other."""
    nodes = [node("task", "input"), node("text", "output")]
    chain = ["task.value"]
    for depth in range(3):
        nodes += [
            node(f"loop_{depth}", "loop"),
            node(f"step_{depth}", "llm"),
            node(f"exit_{depth}", "exit", loop=f"loop_{depth}"),
        ]
        chain += [f"loop_{depth}.input", f"loop_{depth}.body", f"step_{depth}.input", f"step_{depth}.output"]
    for depth in reversed(range(3)):
        chain += [f"exit_{depth}.input", f"exit_{depth}.output"]
    chain.append("text.value")
    return workflow(nodes, [f"{chain[i]} -> {chain[i + 1]}" for i in range(0, len(chain), 2)])


def pieces(**places: tuple[int, int]) -> Workflow:
    """Nodes that nothing joins: an input, two models, a transform that makes a number's text, a validator."""
    return workflow(
        [
            node("task", "input", "Task", name="task"),
            node("first", "llm", "First", prompt="{{input}}"),
            node("second", "llm", "Second", prompt="{{input}} {{more}}"),
            node("count", "input", "Count", name="count", type="number"),
            node("files", "tool", "Files", tool="search_files"),
        ],
        [],
        {"task": (0, 80), "first": (280, 80), "second": (600, 80), "count": (0, 320), "files": (600, 320), **places},
    )
