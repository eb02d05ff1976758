"""Broken documents, one for each kind of problem, as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from engine import Workflow, loads

Node = tuple[str, str, Mapping[str, Any]]


def document(nodes: Mapping[str, tuple[str, Mapping[str, Any]] | str], *edges: str, **top: Any) -> Workflow:
    """A document of nodes by id (a type, or a type with its config) and edges written `a.port -> b.port`."""
    listed = [
        {"id": node_id, "type": node, "config": {}}
        if isinstance(node, str)
        else {"id": node_id, "type": node[0], "config": dict(node[1])}
        for node_id, node in nodes.items()
    ]
    return of_json(listed, [_edge(edge) for edge in edges], **top)


def of_json(nodes: list[dict[str, Any]], edges: list[dict[str, Any]], **top: Any) -> Workflow:
    whole = {"format": "loopwright.workflow", "version": 1, "name": "test", "nodes": nodes, "edges": edges, **top}
    return loads(json.dumps(whole))


def _edge(text: str) -> dict[str, Any]:
    source, _, target = text.partition(" -> ")
    return {"from": source, "to": target}


OPEN = ("text.value -> loop.input", "loop.body -> a.input")
CLOSE = ("exit.output -> out.value",)
LOOPED = (*OPEN, "a.output -> exit.input", *CLOSE)
STEP = ("transform", {"template": "{{input}}!"})


def looped(
    loop: Mapping[str, Any] | None = None, exit_config: Mapping[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """The nodes of a loop around the transform `a`."""
    return {
        "text": "input",
        "loop": ("loop", loop or {}),
        "a": STEP,
        "exit": ("exit", exit_config or {}),
        "out": "output",
        **more,
    }


def in_a_row(node: str | tuple[str, Mapping[str, Any]], *edges: str) -> Workflow:
    """A node called `n` between input and output; its usual ports, unless others are given."""
    usual = edges or ("text.value -> n.input", "n.output -> out.value")
    return document({"text": "input", "n": node, "out": "output"}, *usual)


ROUTER = ("router", {"criteria": "Is it good?"})
