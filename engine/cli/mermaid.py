"""Mermaid flowcharts of workflows: nodes as boxes, edges as arrows, loop bodies as subgraphs.

Texts of the document cannot break out of a label: node ids are generated, and special characters are escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from engine.document.model import NODE_ID_PATTERN, Edge, Node, Workflow
from engine.nodes.spec import LOOP
from engine.plan.loop_bodies import MAX_DEPTH
from engine.plan.structure import analyse

_ID: Final = re.compile(NODE_ID_PATTERN)
_PLAIN: Final = re.compile(r"[^\w .,:?!()'-]", re.ASCII)
_LABEL_CHARACTERS: Final = 80
_SHAPES: Final = {
    "input": ('(["', '"])'),
    "output": ('(["', '"])'),
    "router": ('{"', '"}'),
    "validator": ('{"', '"}'),
    "loop": ('{{"', '"}}'),
    "exit": ('{{"', '"}}'),
    "iterator": ('{{"', '"}}'),
    "aggregator": ('{{"', '"}}'),
}
_USUAL_PORTS: Final = frozenset({"output", "input", "value", "body", "item", "items"})


def flowchart(workflow: Workflow) -> str:
    """Draw a workflow. One with problems is drawn as far as possible.

    Returns:
        The Mermaid source, with a newline at the end.
    """
    structure = analyse(workflow)
    names = _names(workflow)
    inside: dict[str | None, list[Node]] = {}
    for node in workflow.nodes_by_id.values():
        inside.setdefault(structure.parent.get(node.id), []).append(node)
    lines = ["flowchart TD", *_level(inside, names, None, 1)]
    # Nodes outside of any level, because loops overlap or nest too deeply.
    lines += (_box(node, names, 1) for nodes in inside.values() for node in nodes)
    lines += (line for edge in workflow.edges for line in _edge(edge, names))
    lines += (
        f'    {names[body.exit]} -.->|"next {"iteration" if body.kind is LOOP else "item"}"| {names[loop]}'
        for loop, body in structure.bodies.items()
    )
    return "\n".join(lines) + "\n"


def _names(workflow: Workflow) -> dict[str, str]:
    """A safe Mermaid id for each node id."""
    return {
        node_id: f"n_{node_id}" if _ID.fullmatch(node_id) else f"x{index}"
        for index, node_id in enumerate(workflow.nodes_by_id)
    }


def _level(inside: dict[str | None, list[Node]], names: dict[str, str], loop: str | None, depth: int) -> Iterator[str]:
    """Lines for the nodes of one level and the bodies nested in it, which are removed from `inside`."""
    margin = "    " * depth
    for node in inside.pop(loop, ()):
        yield _box(node, names, depth)
        if node.id in inside and depth <= MAX_DEPTH:
            yield f'{margin}subgraph body_{names[node.id]}["{_escaped(node.title or node.id)}: repeated"]'
            yield from _level(inside, names, node.id, depth + 1)
            yield f"{margin}end"


def _box(node: Node, names: dict[str, str], depth: int) -> str:
    opening, closing = _SHAPES.get(node.type, ('["', '"]'))
    return f"{'    ' * depth}{names[node.id]}{opening}{_label(node)}{closing}"


def _edge(edge: Edge, names: dict[str, str]) -> Iterator[str]:
    (source, source_port), (target, target_port) = edge.source, edge.target
    if source not in names or target not in names:
        return
    ports = [port for port in (source_port, target_port) if port not in _USUAL_PORTS]
    label = f'|"{_escaped(" to ".join(ports))}"|' if ports else ""
    yield f"    {names[source]} -->{label} {names[target]}"


def _label(node: Node) -> str:
    title = node.title or node.id
    return _escaped(title if node.type in _SHAPES and title != node.id else f"{title} ({node.type})")


def _escaped(text: str) -> str:
    line = " ".join(text.split())
    shortened = line if len(line) <= _LABEL_CHARACTERS else f"{line[: _LABEL_CHARACTERS - 3]}..."
    return _PLAIN.sub(lambda found: f"#{ord(found[0])};", shortened) or "-"
