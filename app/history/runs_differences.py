"""What differs between a document as it ran and another, in words. No Qt here. Places on the canvas do not count."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from engine.document.model import Node, Workflow
from engine.nodes.registry import Registry, builtin_registry


def differences(ran: Workflow, other: Workflow, registry: Registry | None = None) -> list[str]:
    """What has changed from the document as it ran to the other, a sentence each, in the order of the documents.

    Args:
        ran: The document as it ran.
        other: Another state of it, such as today's.
        registry: The node types; None for the built-in ones.
    """
    types = registry or builtin_registry()
    return [
        *_nodes(ran, other, types),
        *_edges(ran, other),
        *(f"The setting “{name}” of the workflow was changed." for name in _changed(ran.settings, other.settings)),
    ]


def _nodes(ran: Workflow, other: Workflow, registry: Registry) -> Iterator[str]:
    for node in ran.nodes:
        now = other.nodes_by_id.get(node.id)
        if now is None:
            yield f"“{_name(node)}” was removed."
        elif now.type != node.type:
            yield f"“{_name(node)}” was a {node.type}, and is a {now.type} now."
        else:
            yield from _fields(node, now, registry)
    for node in other.nodes:
        if node.id not in ran.nodes_by_id:
            yield f"“{_name(node)}” was added."


def _fields(node: Node, now: Node, registry: Registry) -> Iterator[str]:
    name = _name(now)
    if _name(node) != name:
        yield f"“{_name(node)}” is called “{name}” now."
    if node.enabled != now.enabled:
        yield f"“{name}” was {'enabled' if now.enabled else 'disabled'}."
    spec = registry.find(node.type)
    for field in _changed(node.config, now.config):
        declared = spec.config.model_fields.get(field) if spec is not None else None
        title = declared.title if declared is not None and declared.title else field
        yield f"“{title}” of “{name}” was changed."


def _edges(ran: Workflow, other: Workflow) -> Iterator[str]:
    before, after = ({(edge.from_, edge.to) for edge in workflow.edges} for workflow in (ran, other))
    kept_ids = ran.nodes_by_id.keys() & other.nodes_by_id.keys()
    for workflow, edges, what in ((ran, before - after, "removed"), (other, after - before, "added")):
        for edge in workflow.edges:
            ends = (edge.source[0], edge.target[0])
            # That a node came or went tells of its edges too.
            if (edge.from_, edge.to) in edges and all(end in kept_ids for end in ends):
                first, second = (_name(workflow.nodes_by_id[end]) for end in ends)
                yield f"The connection from “{first}” to “{second}” was {what}."


def _changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [name for name in {**before, **after} if before.get(name) != after.get(name)]


def _name(node: Node) -> str:
    return node.title or node.id
