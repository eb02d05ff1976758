"""The changes of single nodes: adding, removing, renaming, and what stands in them.

Each is frozen data; see `engine.document.operation` for how they are applied and taken back. They keep a document
well-formed (ids, JSON), and know no node types: whether a config fits its type is found by the check of the workflow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from engine.document.config_path import Unset, set_in
from engine.document.ids import is_node_id
from engine.document.json_rules import JsonPath
from engine.document.model import Edge, Node, Workflow
from engine.document.operation import Operation, OperationError, changed, index_of, require_json
from engine.document.references import with_new_names
from engine.document.wording import shown
from engine.values import Value


@dataclass(frozen=True, slots=True)
class AddNode:
    """Adds a node, at an index of the list or at its end."""

    node: Node
    index: int | None = None

    @property
    def title(self) -> str:
        """In words."""
        return f"Add {shown(self.node.id)}"

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Refuses an id that is taken or malformed, and a config that is not JSON."""
        _require_free_id(workflow, self.node.id)
        # The root, the list of nodes and the node itself stand around the config.
        require_json(self.node.config, f'The config of node "{self.node.id}"', 3)
        require_json(self.node.model_extra, f'Node "{self.node.id}"', 2)
        nodes = list(workflow.nodes)
        nodes.insert(len(nodes) if self.index is None else self.index, self.node)
        return changed(workflow, self.title, nodes=tuple(nodes))


@dataclass(frozen=True, slots=True)
class RemoveNode:
    """Removes a node with its edges and its place in the layout."""

    node_id: str

    @property
    def title(self) -> str:
        """In words."""
        return f"Remove {shown(self.node_id)}"

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Refuses a node that is not there; of nodes that share an id, the first goes and the edges stay."""
        return _without(workflow, (self.node_id,), self.title)


@dataclass(frozen=True, slots=True)
class RemoveNodes:
    """Removes nodes with their edges and their places in the layout; of many, faster than each by itself.

    Attributes:
        node_ids: Which, each id once.
    """

    node_ids: tuple[str, ...]

    @property
    def title(self) -> str:
        """In words."""
        return f"Remove {len(self.node_ids)} nodes"

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Refuses a node that is not there; of nodes that share an id, the first goes and the edges stay."""
        return _without(workflow, self.node_ids, self.title)


@dataclass(frozen=True, slots=True)
class RenameNode:
    """Gives a node another id; edges, layout and the texts and fields of other nodes that name it follow."""

    old: str
    new: str

    @property
    def title(self) -> str:
        """In words."""
        return f"Rename {shown(self.old)} to {shown(self.new)}"

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Refuses a node that is not there, and an id that is taken or malformed."""
        index = index_of(workflow, self.old)
        _require_free_id(workflow, self.new)
        names = {self.old: self.new}
        nodes = [with_new_names(node, names) for node in workflow.nodes]
        nodes[index] = nodes[index].model_copy(update={"id": self.new})
        edges = tuple(_renamed_edge(edge, self.old, self.new) for edge in workflow.edges)
        layout = _with_places(workflow, {self.old: self.new})
        return changed(workflow, self.title, nodes=tuple(nodes), edges=edges, layout=layout)


@dataclass(frozen=True, slots=True)
class SetConfig:
    """Sets one value in the config of a node, or takes it out.

    Attributes:
        node_id: The node.
        path: Keys and list indices that lead to the value: `("branches", 0, "when")`.
        value: What shall stand there; `UNSET` takes out what does.
    """

    node_id: str
    path: JsonPath
    value: Value | Unset

    @property
    def title(self) -> str:
        """In words."""
        verb = "Clear" if isinstance(self.value, Unset) else "Change"
        return f"{verb} {shown('.'.join(map(str, self.path)))} of {shown(self.node_id)}"

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Refuses a path that leads nowhere, and a value that is not JSON."""
        node = workflow.nodes[index_of(workflow, self.node_id)]
        what = f'The config of node "{shown(self.node_id)}"'
        config = set_in(node.config, self.path, self.value, what, depth=3)
        return _with_node(workflow, self.title, self.node_id, config=config)


@dataclass(frozen=True, slots=True)
class SetTitle:
    """Sets what people call a node."""

    node_id: str
    text: str

    @property
    def title(self) -> str:
        """In words."""
        return f"Change the title of {shown(self.node_id)}"

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Refuses a node that is not there."""
        return _with_node(workflow, self.title, self.node_id, title=self.text)


@dataclass(frozen=True, slots=True)
class SetEnabled:
    """Switches a node on or off."""

    node_id: str
    enabled: bool

    @property
    def title(self) -> str:
        """In words."""
        return f"{'Enable' if self.enabled else 'Disable'} {shown(self.node_id)}"

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Refuses a node that is not there."""
        return _with_node(workflow, self.title, self.node_id, enabled=self.enabled)


def _require_free_id(workflow: Workflow, node_id: str) -> None:
    if not is_node_id(node_id):
        message = f'"{shown(node_id)}" cannot be the id of a node.'
        raise OperationError(message, "Use small letters, digits and underscores, a letter first.")
    if node_id in workflow.nodes_by_id:
        raise OperationError(f'There is already a node "{node_id}".', "Choose another id.")


def _with_node(workflow: Workflow, words: str, node_id: str, **values: object) -> tuple[Workflow, Operation]:
    index = index_of(workflow, node_id)
    node = workflow.nodes[index].model_copy(update=values)
    return changed(workflow, words, nodes=(*workflow.nodes[:index], node, *workflow.nodes[index + 1 :]))


def _without(workflow: Workflow, node_ids: tuple[str, ...], title: str) -> tuple[Workflow, Operation]:
    going = dict.fromkeys(node_ids)
    nodes: list[Node] = []
    for node in workflow.nodes:
        if node.id in going:
            del going[node.id]
        else:
            nodes.append(node)
    for node_id in going:
        index_of(workflow, node_id)  # says that it is not there
    gone = set(node_ids) - {node.id for node in nodes}
    if not gone:
        return changed(workflow, title, nodes=tuple(nodes))
    edges = tuple(edge for edge in workflow.edges if edge.source[0] not in gone and edge.target[0] not in gone)
    layout = _with_places(workflow, dict.fromkeys(gone))
    return changed(workflow, title, nodes=tuple(nodes), edges=edges, layout=layout)


def _renamed_edge(edge: Edge, old: str, new: str) -> Edge:
    ends = {"from_": edge.from_, "to": edge.to}
    for name, end in ends.items():
        node, dot, port = end.partition(".")
        if node == old:
            ends[name] = f"{new}{dot}{port}"
    return edge.model_copy(update=ends)


def _with_places(workflow: Workflow, names: Mapping[str, str | None]) -> dict[str, Value]:
    places = workflow.layout.get("nodes")
    if not isinstance(places, dict):
        return workflow.layout
    kept: dict[str, Value] = {}
    replaced = {new for old, new in names.items() if old in places}
    for key, place in cast("dict[str, Value]", places).items():
        name = names.get(key, None if key in replaced else key)
        if name is not None:
            kept[name] = place
    return {**workflow.layout, "nodes": kept}
