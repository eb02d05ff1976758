"""A small language for workflows in tests: nodes by short functions, edges as text.

flow(entry(), loop(max_iterations=2), llm("draft"), leave(), result(), edges='''
    text -> loop -> draft -> exit -> out
''')
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from engine import Builder, Workflow, loads

_SOURCE_PORT = {"input": "value", "loop": "body", "iterator": "item", "validator": "valid", "router": "done"}
_TARGET_PORT = {"output": "value", "iterator": "items"}


@dataclass(frozen=True)
class Part:
    """A node of a workflow to build."""

    id: str
    type: str
    config: Mapping[str, Any]
    enabled: bool = True
    pinned: Mapping[str, Any] | None = None


def part(node_id: str, node_type: str, **config: Any) -> Part:
    return Part(node_id, node_type, config)


def entry(node_id: str = "text", **config: Any) -> Part:
    return part(node_id, "input", **config)


def result(node_id: str = "out", **config: Any) -> Part:
    return part(node_id, "output", **config)


def llm(node_id: str, prompt: str = "{{input}}", **config: Any) -> Part:
    return part(node_id, "llm", **{"prompt": prompt, "retries": 0, **config})


def transform(node_id: str, template: str = "{{input}}", **config: Any) -> Part:
    return part(node_id, "transform", template=template, **config)


def formula(node_id: str, expression: str, **config: Any) -> Part:
    return part(node_id, "transform", mode="expression", expression=expression, **config)


def judge(node_id: str = "check", criteria: str = "Is it good?", **config: Any) -> Part:
    """A router that asks a model, with the branches `done` and `continue`."""
    return part(node_id, "router", **{"criteria": criteria, "retries": 0, **config})


def rules(node_id: str, when: Mapping[str, str], **config: Any) -> Part:
    """A router by rules, with one expression for each branch."""
    branches = [{"name": name, "when": rule} for name, rule in when.items()]
    return part(node_id, "router", mode="rules", branches=branches, **config)


def loop(node_id: str = "loop", **config: Any) -> Part:
    """A loop without iteration note by default, so that tests can compare prompts."""
    return part(node_id, "loop", **{"inject_feedback": False, **config})


def leave(node_id: str = "exit", of: str = "loop", **config: Any) -> Part:
    """The exit of a loop."""
    return part(node_id, "exit", loop=of, **config)


def each(node_id: str = "each", **config: Any) -> Part:
    return part(node_id, "iterator", **config)


def gather(node_id: str = "gather", of: str = "each", **config: Any) -> Part:
    """The aggregator of an iterator."""
    return part(node_id, "aggregator", iterator=of, **config)


def off(node: Part) -> Part:
    """The node, disabled."""
    return replace(node, enabled=False)


def held(node: Part, **pinned: Any) -> Part:
    """The node with values pinned to its outputs."""
    return replace(node, pinned=pinned)


def edge_pairs(text: str, types: Mapping[str, str] | None = None) -> Iterator[tuple[str, str]]:
    """The edges in a text: `a -> b.port -> c`, one chain per line. A missing port is the default port of the type."""
    known = types or {}
    for line in text.splitlines():
        steps = [step.strip() for step in line.split("->") if step.strip()]
        for index in range(len(steps) - 1):
            source, target = steps[index], steps[index + 1]
            if "." not in source:
                source = f"{source}.{_SOURCE_PORT.get(known.get(source, ''), 'output')}"
            elif index > 0:
                raise ValueError(f"{source} is in the middle of a chain and cannot name a port")
            if "." not in target:
                target = f"{target}.{_TARGET_PORT.get(known.get(target, ''), 'input')}"
            yield source, target


def flow(*parts: Part, edges: str = "", settings: Mapping[str, Any] | None = None) -> Workflow:
    """A workflow built with the public builder."""
    builder = Builder("test", settings=settings)
    for node in parts:
        builder.add(node.type, id=node.id, enabled=node.enabled, config=node.config, pinned=node.pinned)
    for source, target in edge_pairs(edges, {node.id: node.type for node in parts}):
        builder.connect(source, target)
    return builder.build()


def around(*body: Part, edges: str, **config: Any) -> Workflow:
    """A workflow of one loop around a body: `text -> loop`, `exit -> out`; `edges` are those between."""
    return flow(entry(), loop(**config), *body, leave(), result(), edges=f"text -> loop\n{edges}\nexit -> out")


def for_each(*body: Part, edges: str, gathered: Mapping[str, Any] | None = None, **config: Any) -> Workflow:
    """A workflow of one iterator around a body: `items -> each`, `gather -> out`; `edges` are those between."""
    entries = entry("items", type="json", default=["a", "b", "c"])
    parts = (entries, each(**config), *body, gather(**(gathered or {})), result())
    return flow(*parts, edges=f"items -> each\n{edges}\ngather -> out")


def raw(nodes: list[dict[str, Any]], edges: list[dict[str, Any]], **top: Any) -> Workflow:
    """A document as a file can contain it, valid or not."""
    document = {"format": "loopwright.workflow", "version": 1, "name": "test", "nodes": nodes, "edges": edges, **top}
    return loads(json.dumps(document))
