"""What people call the nodes of a workflow: their titles, else the labels of their types, as on the cards."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Final

from engine.document.model import Node, Workflow
from engine.errors import EngineError, did_you_mean
from engine.formatting import format_count
from engine.nodes.node_registry import Registry, builtin_registry
from engine.text_sanitizing import shown

_MAX_LISTED: Final = 40


def node_names(workflow: Workflow, registry: Registry | None = None) -> Mapping[str, str]:
    """Return the names of the nodes by id.

    A node without a title has the label of its type, with a number if another node has that name already.

    Args:
        workflow: The workflow.
        registry: The node types; None for the built-in ones.
    """
    types = registry or builtin_registry()
    names = {node_id: title_of(node) for node_id, node in workflow.nodes_by_id.items()}
    taken = set(names.values())
    numbers: dict[str, int] = {}
    for node_id, node in workflow.nodes_by_id.items():
        if not names[node_id]:
            spec = types.find(node.type)
            label = name = (spec.title if spec is not None else node.type) or node_id
            while name in taken:
                numbers[label] = numbers.get(label, 1) + 1
                name = f"{label} {numbers[label]}"
            taken.add(name)
            names[node_id] = name
    return names


def node_name(workflow: Workflow, node_id: str) -> str:
    """Return the name of a node, as in `node_names`; the id itself if there is no such node."""
    node = workflow.nodes_by_id.get(node_id)
    if node is None:
        return node_id
    return title_of(node) or node_names(workflow)[node_id]


def title_of(node: Node) -> str:
    """Return the title of a node as a single line, for use in sentences; empty if the node has none."""
    return " ".join(node.title.split())


def find_node(workflow: Workflow, text: str, registry: Registry | None = None) -> str:
    """Return the id of the node that a person names by its id or, if that is unambiguous, by its name.

    Raises:
        EngineError: There is no such node, or several have that name.
    """
    if text in workflow.nodes_by_id:
        return text
    names = node_names(workflow, registry)
    found = [node for node, name in names.items() if name == text]
    if not found and (simple := simplified(text)):
        found = [node for node, name in names.items() if simplified(name) == simple]
    if len(found) == 1:
        return found[0]
    stated = shown(text, 60)
    if found:
        ids = ", ".join(shown(node, 60) for node in found)
        raise EngineError(f'{len(found)} nodes are called "{stated}".', f"Use an id: {ids}.")
    known = {shown(node, 60): shown(name, 60) for node, name in names.items()}
    listed = [node if node == name else f"{node} ({name})" for node, name in known.items()]
    more = f" and {format_count(len(listed) - _MAX_LISTED)} more" if len(listed) > _MAX_LISTED else ""
    suggestion = did_you_mean(text, (*known, *known.values()))
    there = f"There are: {', '.join(listed[:_MAX_LISTED])}{more}."
    raise EngineError(f'There is no node "{stated}".', f"{suggestion} {there}".lstrip())


def simplified(name: str) -> str:
    """Return a name without differences that are hard to see or to type: case, spaces, and forms of Unicode."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())
