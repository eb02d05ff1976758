"""The operations on a document: nodes, edges, settings, name, description and layout.

An operation is frozen data. Applied to a workflow, it returns a new workflow and the inverse operation; the old
workflow is unchanged. An inverse shares the previous parts instead of copying them, so undo is exact, including the
order of nodes, edges and keys, whatever problems the document has.

Operations keep a document well-formed (ids, ends of edges, JSON) and know no node types: whether a config fits its
type, or a port exists, is found by validation.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal, Protocol, cast

from engine.document.model import Edge, Node, Workflow, is_node_id
from engine.document.problems import JsonPath, faults
from engine.errors import EngineError
from engine.text_sanitizing import shown
from engine.values import Value


class OperationError(EngineError):
    """An operation cannot be applied to the document, which is unchanged."""


class Operation(Protocol):
    """A change of a document."""

    @property
    def title(self) -> str:
        """Description for the undo menu: `Connect draft → critique`."""
        ...

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Return the changed workflow and the inverse operation.

        Raises:
            OperationError: The operation cannot be applied to this workflow.
        """
        ...


@dataclass(frozen=True, slots=True)
class Restore:
    """Restores fields of a document: the inverse of every other operation.

    It is applied only after the inverses of all later operations, as an undo stack does.

    Attributes:
        title: The title of the operation to undo.
        parts: The values to restore.
    """

    title: str
    parts: Mapping[str, Any]

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Never fails."""
        return changed(workflow, self.title, **self.parts)


@dataclass(frozen=True, slots=True)
class Batch:
    """Several operations that are applied and undone as one.

    Attributes:
        title: Description for the undo menu.
        operations: The operations, in the order of application.
    """

    title: str
    operations: tuple[Operation, ...]

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Apply all operations, or none.

        Raises:
            OperationError: One of them cannot be applied.
        """
        inverses: list[Operation] = []
        for operation in self.operations:
            workflow, inverse = operation.apply(workflow)
            inverses.append(inverse)
        return workflow, Batch(self.title, tuple(reversed(inverses)))


def changed(workflow: Workflow, title: str, **parts: object) -> tuple[Workflow, Restore]:
    """Return the workflow with some fields replaced, and the inverse operation."""
    before = {name: getattr(workflow, name) for name in parts}
    return workflow.model_copy(update=parts), Restore(title, before)


def require_json(value: object, what: str, depth: int, path: JsonPath = ()) -> None:
    """Check that a value can be saved.

    Args:
        value: The new part of the document.
        what: Its name for error messages.
        depth: The number of objects and lists of the document that contain it.
        path: Its path inside of `what`.

    Raises:
        OperationError: The value is not valid JSON for a document.
    """
    for fault in faults(value, depth=depth):
        place = ".".join(map(str, (*path, *fault.path)))
        where = f', "{shown(place)}"' if place else ""
        raise OperationError(f"{what}{where}: {fault.message}", fault.remedy)


def index_of(workflow: Workflow, node_id: str) -> int:
    """Index of a node in the list. If nodes share an id, of the first one.

    Raises:
        OperationError: There is no such node.
    """
    for index, node in enumerate(workflow.nodes):
        if node.id == node_id:
            return index
    raise OperationError(f'There is no node "{shown(node_id)}".', "Choose an existing node.")


class Unset(Enum):
    """Type of `UNSET`."""

    UNSET = "unset"


UNSET: Final = Unset.UNSET
"""Stands for the absence of a value, which differs from null."""


def set_in(
    container: dict[str, Value], path: JsonPath, value: Value | Unset, what: str, *, depth: int
) -> dict[str, Value]:
    """Set or remove one value deep inside an object, without changing the original.

    Missing objects and lists on the path are created. The index after the last entry appends to a list. Removing a
    missing value has no effect. Everything beside the path is shared with the original.

    Args:
        container: The object.
        path: Keys and list indices.
        value: The value, or `UNSET` to remove it.
        what: The object's name for error messages.
        depth: The number of objects and lists of the document that contain it.

    Raises:
        OperationError: The path is empty or invalid, or the value is not valid JSON for a document.
    """
    try:
        if not path:
            raise LookupError("the path is empty")
        changed = cast("dict[str, Value]", _with_value(container, path, value))
    except LookupError as error:
        message = f'{what} cannot be changed at "{shown(".".join(map(str, path)))}": {error.args[0]}.'
        raise OperationError(message, "Choose an existing place.") from error
    # Check only what is new, so that moving a node does not check a large layout.
    require_json(dict.fromkeys(key for key in path if isinstance(key, str)), what, depth)
    if not isinstance(value, Unset):
        require_json(value, what, depth + len(path), path)
    return changed


def _with_value(container: Value, path: JsonPath, value: Value | Unset) -> Value:
    key, rest = path[0], path[1:]
    if isinstance(container, dict) and isinstance(key, str):
        return _in_object(container, key, rest, value)
    if isinstance(container, list) and isinstance(key, int):
        return _in_list(container, key, rest, value)
    kind = "an object" if isinstance(key, str) else "a list"
    raise LookupError(f'"{shown(key)}" needs {kind} around it')


def _in_object(container: dict[str, Value], key: str, rest: JsonPath, value: Value | Unset) -> Value:
    if value is UNSET and key not in container:
        return container
    if not rest and value is UNSET:
        return {name: item for name, item in container.items() if name != key}
    return {**container, key: _deeper(container.get(key, UNSET), rest, value)}


def _in_list(container: list[Value], index: int, rest: JsonPath, value: Value | Unset) -> Value:
    if not 0 <= index <= len(container):
        raise LookupError(f"the list has {len(container)} entries, so the index {index} is out of range")
    if value is UNSET and index == len(container):
        return container
    if not rest and value is UNSET:
        return container[:index] + container[index + 1 :]
    old = container[index] if index < len(container) else UNSET
    return [*container[:index], _deeper(old, rest, value), *container[index + 1 :]]


def _deeper(old: Value | Unset, rest: JsonPath, value: Value | Unset) -> Value:
    if not rest:
        return cast("Value", value)
    if isinstance(old, Unset):
        old = {} if isinstance(rest[0], str) else []
    return _with_value(old, rest, value)


REFERENCE_FIELDS = frozenset({("exit", "loop"), ("loop", "evaluator"), ("aggregator", "iterator")})
"""Node types and config fields whose value is the id of another node."""

_NESTED_WORKFLOW_FIELDS = frozenset({("subflow", "workflow")})
"""Node types and config fields that hold a nested workflow, whose references are its own."""

_PATH = re.compile(
    r"(?<![A-Za-z0-9_.])((?:loop(?:\.parent)*\.last|nodes)\.)([a-z][a-z0-9_]*)(?![A-Za-z0-9_])",
)


def rename_references(node: Node, names: Mapping[str, str]) -> Node:
    """Update all references to other nodes in a node's config.

    References are fields such as the loop of an exit, and the paths `loop.last.ID` and `nodes.ID` in templates and
    expressions. A text without `{{` is treated as an expression.

    Args:
        node: The node; its own id stays.
        names: New ids by old ones, applied at once, so two nodes may swap their ids.
    """
    config = {key: _in_field((node.type, key), value, names) for key, value in node.config.items()}
    return node if config == node.config else node.model_copy(update={"config": config})


def _in_field(field: tuple[str, str], value: Any, names: Mapping[str, str]) -> Value:
    if field in _NESTED_WORKFLOW_FIELDS:
        return value
    if field in REFERENCE_FIELDS and isinstance(value, str):
        return names.get(value, value)
    return _in_value(value, names)


def _in_value(value: Any, names: Mapping[str, str]) -> Value:
    if isinstance(value, str):
        return _in_template(value, names) if "{{" in value else _in_expression(value, names)
    if isinstance(value, list):
        return [_in_value(item, names) for item in value]  # pyright: ignore[reportUnknownVariableType] # any JSON
    if isinstance(value, dict):
        return {key: _in_value(item, names) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType] # any JSON
    return value


def _in_template(text: str, names: Mapping[str, str]) -> str:
    written: list[str] = []
    position = 0
    while (start := text.find("{{", position)) >= 0 and (end := text.find("}}", start)) >= 0:
        if text[start - 1 : start] == "\\":
            end = start + 2
            written.append(text[position:end])
        else:
            written += [text[position:start], _in_expression(text[start:end], names)]
        position = end
    return "".join([*written, text[position:]])


def _in_expression(text: str, names: Mapping[str, str]) -> str:
    return _PATH.sub(lambda found: found[1] + names.get(found[2], found[2]), text)


@dataclass(frozen=True, slots=True)
class Connect:
    """Adds edges at the end of the list."""

    edges: tuple[Edge, ...]

    @classmethod
    def between(cls, source: str, target: str) -> Connect:
        """Add one edge from an output port to an input port, each written `node.port`."""
        return cls((Edge.between(source, target),))

    @property
    def title(self) -> str:
        """See `Operation.title`."""
        return f"Connect {_arrow(self.edges[0].from_, self.edges[0].to) if len(self.edges) == 1 else 'nodes'}"

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Fail if a node is missing, if one of the edges exists, or if another key of an edge is not JSON."""
        existing = {(edge.from_, edge.to) for edge in workflow.edges}
        for edge in self.edges:
            _require_end(workflow, edge.from_)
            _require_end(workflow, edge.to)
            if (edge.from_, edge.to) in existing:
                message = f'There is already an edge from "{shown(edge.from_)}" to "{shown(edge.to)}".'
                raise OperationError(message, "Choose other ports.")
            if edge.model_extra:
                require_json(edge.model_extra, f'The edge "{shown(edge)}"', 2)
            existing.add((edge.from_, edge.to))
        return changed(workflow, self.title, edges=(*workflow.edges, *self.edges))


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Removes the first edge with these ends."""

    source: str
    target: str

    @property
    def title(self) -> str:
        """See `Operation.title`."""
        return f"Disconnect {_arrow(self.source, self.target)}"

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Fail if there is no such edge."""
        for index, edge in enumerate(workflow.edges):
            if (edge.from_, edge.to) == (self.source, self.target):
                return changed(workflow, self.title, edges=workflow.edges[:index] + workflow.edges[index + 1 :])
        message = f'There is no edge from "{shown(self.source)}" to "{shown(self.target)}".'
        raise OperationError(message, "Choose an existing edge.")


@dataclass(frozen=True, slots=True)
class SetSettings:
    """Sets or removes one value in the settings of the workflow; see `SetConfig` for the path."""

    path: JsonPath
    value: Value | Unset

    @property
    def title(self) -> str:
        """See `Operation.title`."""
        return f"Change the setting {shown('.'.join(map(str, self.path)))}"

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Fail if the path is invalid, or if the value is not JSON."""
        settings = set_in(workflow.settings, self.path, self.value, "The settings", depth=1)
        return changed(workflow, self.title, settings=settings)


@dataclass(frozen=True, slots=True)
class SetText:
    """Sets the name or the description of the workflow."""

    field: Literal["name", "description"]
    text: str

    @property
    def title(self) -> str:
        """See `Operation.title`."""
        return f"Change the {self.field}"

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Never fails."""
        return changed(workflow, self.title, **{self.field: self.text})


@dataclass(frozen=True, slots=True)
class SetLayout:
    """Sets or removes one value in the layout.

    Attributes:
        path: `("nodes", ID)` for the position of a node, an object with `x` and `y`; `("frames", ID)` for a frame.
        value: The value, or `UNSET` to remove it.
    """

    path: JsonPath
    value: Value | Unset

    @property
    def title(self) -> str:
        """See `Operation.title`."""
        match self.path:
            case ("nodes", node_id, *_):
                return f"Move {shown(node_id)}"
            case _:
                return "Change the layout"

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Fail if the path is invalid, or if the value is not JSON."""
        layout = set_in(workflow.layout, self.path, self.value, "The layout", depth=1)
        return changed(workflow, self.title, layout=layout)


def _require_end(workflow: Workflow, end: str) -> None:
    node, _, port = end.partition(".")
    if not port:
        message = f'"{shown(end)}" is not a port.'
        raise OperationError(message, 'Write the node and its port with a dot between them, such as "draft.output".')
    if node not in workflow.nodes_by_id:
        raise OperationError(f'There is no node "{shown(node)}" to connect.', "Add the node first.")


def _arrow(source: str, target: str) -> str:
    return f"{shown(source.partition('.')[0])} → {shown(target.partition('.')[0])}"


def _one_or_many(node_ids: Sequence[str]) -> str:
    return shown(node_ids[0]) if len(node_ids) == 1 else f"{len(node_ids)} nodes"


@dataclass(frozen=True, slots=True)
class AddNodes:
    """Adds nodes at the end of the list."""

    nodes: tuple[Node, ...]

    @property
    def title(self) -> str:
        """See `Operation.title`."""
        return f"Add {_one_or_many([node.id for node in self.nodes])}"

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Fail if an id is taken or invalid, or if a config is not JSON."""
        taken = set(workflow.nodes_by_id)
        for node in self.nodes:
            _require_addable(node, taken)
            taken.add(node.id)
        return changed(workflow, self.title, nodes=(*workflow.nodes, *self.nodes))


@dataclass(frozen=True, slots=True)
class RemoveNodes:
    """Removes nodes with their edges and positions.

    Attributes:
        node_ids: Their ids, without repetition.
    """

    node_ids: tuple[str, ...]

    @property
    def title(self) -> str:
        """See `Operation.title`."""
        return f"Remove {_one_or_many(self.node_ids)}"

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Fail if there is no such node. If nodes share an id, remove the first one and keep the edges."""
        remaining = dict.fromkeys(self.node_ids)
        nodes: list[Node] = []
        for node in workflow.nodes:
            if node.id in remaining:
                del remaining[node.id]
            else:
                nodes.append(node)
        for node_id in remaining:
            index_of(workflow, node_id)  # raises for a missing node
        gone = set(self.node_ids) - {node.id for node in nodes}
        if not gone:
            return changed(workflow, self.title, nodes=tuple(nodes))
        edges = tuple(edge for edge in workflow.edges if edge.source[0] not in gone and edge.target[0] not in gone)
        layout = _renamed_positions(workflow, dict.fromkeys(gone))
        return changed(workflow, self.title, nodes=tuple(nodes), edges=edges, layout=layout)


@dataclass(frozen=True, slots=True)
class RenameNode:
    """Changes the id of a node, and updates edges, layout and references in other nodes."""

    old: str
    new: str

    @property
    def title(self) -> str:
        """See `Operation.title`."""
        return f"Rename {shown(self.old)} to {shown(self.new)}"

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Fail if there is no such node, or if the id is taken or invalid."""
        index = index_of(workflow, self.old)
        _require_free_id(self.new, workflow.nodes_by_id)
        names = {self.old: self.new}
        nodes = [rename_references(node, names) for node in workflow.nodes]
        nodes[index] = nodes[index].model_copy(update={"id": self.new})
        edges = tuple(_renamed_edge(edge, self.old, self.new) for edge in workflow.edges)
        layout = _renamed_positions(workflow, {self.old: self.new})
        return changed(workflow, self.title, nodes=tuple(nodes), edges=edges, layout=layout)


@dataclass(frozen=True, slots=True)
class SetConfig:
    """Sets or removes one value in the configs of nodes.

    Attributes:
        path: Keys and list indices: `("branches", 0, "when")`.
        values: The value by node, or `UNSET` to remove it.
    """

    path: JsonPath
    values: Mapping[str, Value | Unset]

    @property
    def title(self) -> str:
        """See `Operation.title`."""
        verb = "Clear" if all(isinstance(value, Unset) for value in self.values.values()) else "Change"
        return f"{verb} {shown('.'.join(map(str, self.path)))} of {_one_or_many([*self.values])}"

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Fail if there is no such node, if the path is invalid, or if a value is not JSON."""
        nodes = list(workflow.nodes)
        positions = {node.id: index for index, node in reversed(list(enumerate(nodes)))}
        for node_id, value in self.values.items():
            index = positions[node_id] if node_id in positions else index_of(workflow, node_id)
            what = f'The config of node "{shown(node_id)}"'
            config = set_in(nodes[index].config, self.path, value, what, depth=3)
            nodes[index] = nodes[index].model_copy(update={"config": config})
        return changed(workflow, self.title, nodes=tuple(nodes))


@dataclass(frozen=True, slots=True)
class SetTitle:
    """Sets the title of a node."""

    node_id: str
    text: str

    @property
    def title(self) -> str:
        """See `Operation.title`."""
        return f"Change the title of {shown(self.node_id)}"

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Fail if there is no such node."""
        return _with_node(workflow, self.title, self.node_id, title=self.text)


@dataclass(frozen=True, slots=True)
class SetEnabled:
    """Enables or disables a node."""

    node_id: str
    enabled: bool

    @property
    def title(self) -> str:
        """See `Operation.title`."""
        return f"{'Enable' if self.enabled else 'Disable'} {shown(self.node_id)}"

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Fail if there is no such node."""
        return _with_node(workflow, self.title, self.node_id, enabled=self.enabled)


@dataclass(frozen=True, slots=True)
class SetPinned:
    """Pins values to the outputs of a node, which runs use instead of running it; or unpins it.

    Attributes:
        node_id: The node.
        pinned: The values by output port; empty to unpin the node.
    """

    node_id: str
    pinned: Mapping[str, Value]

    @property
    def title(self) -> str:
        """See `Operation.title`."""
        return f"{'Pin' if self.pinned else 'Unpin'} {shown(self.node_id)}"

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Fail if there is no such node, or if a value is not JSON."""
        require_json(dict(self.pinned), f'The pinned values of node "{shown(self.node_id)}"', 3)
        return _with_node(workflow, self.title, self.node_id, pinned=dict(self.pinned))


def _require_addable(node: Node, taken: Container[str]) -> None:
    _require_free_id(node.id, taken)
    # The config is inside of the root, the list of nodes and the node.
    require_json(node.config, f'The config of node "{node.id}"', 3)
    if node.pinned:
        require_json(node.pinned, f'The pinned values of node "{node.id}"', 3)
    if node.model_extra:
        require_json(node.model_extra, f'Node "{node.id}"', 2)


def _require_free_id(node_id: str, taken: Container[str]) -> None:
    if not is_node_id(node_id):
        message = f'"{shown(node_id)}" is not a valid node id.'
        raise OperationError(message, "Use lowercase letters, digits and underscores, starting with a letter.")
    if node_id in taken:
        raise OperationError(f'There is already a node "{node_id}".', "Choose another id.")


def _with_node(workflow: Workflow, words: str, node_id: str, **values: object) -> tuple[Workflow, Operation]:
    index = index_of(workflow, node_id)
    node = workflow.nodes[index].model_copy(update=values)
    return changed(workflow, words, nodes=(*workflow.nodes[:index], node, *workflow.nodes[index + 1 :]))


def _renamed_edge(edge: Edge, old: str, new: str) -> Edge:
    ends = {"from_": edge.from_, "to": edge.to}
    for name, end in ends.items():
        node, dot, port = end.partition(".")
        if node == old:
            ends[name] = f"{new}{dot}{port}"
    return edge.model_copy(update=ends)


def _renamed_positions(workflow: Workflow, names: Mapping[str, str | None]) -> dict[str, Value]:
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
