"""The changes of edges and of the workflow as a whole.

Each is frozen data; see `engine.document.operation` for how they are applied and taken back. They keep a document
well-formed (ends of edges, JSON), and know no node types: whether a port exists or takes several edges is found by the
check of the workflow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.document.config_path import Unset, set_in
from engine.document.json_rules import JsonPath
from engine.document.model import Edge, Workflow
from engine.document.operation import Operation, OperationError, changed, require_json
from engine.document.wording import shown
from engine.values import Value


@dataclass(frozen=True, slots=True)
class Connect:
    """Adds an edge at the end of the list.

    Attributes:
        source: Where it starts, `node.port`.
        target: Where it leads, `node.port`.
        more: Further keys of the edge, such as those that this version does not know.
    """

    source: str
    target: str
    more: Mapping[str, Value] = field(default_factory=dict[str, Value])

    @property
    def title(self) -> str:
        """In words, by the nodes."""
        return f"Connect {_arrow(self.source, self.target)}"

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Refuses an end that names no node of the workflow, and an edge that is there already."""
        _require_end(workflow, self.source)
        _require_end(workflow, self.target)
        if any(edge.to == self.target and edge.from_ == self.source for edge in workflow.edges):
            message = f'There is already an edge from "{shown(self.source)}" to "{shown(self.target)}".'
            raise OperationError(message, "One is enough.")
        require_json(dict(self.more), f'The edge "{shown(self.source)} -> {shown(self.target)}"', 2)
        edge = Edge.model_validate({**self.more, "from": self.source, "to": self.target}, by_alias=True, by_name=False)
        return changed(workflow, self.title, edges=(*workflow.edges, edge))


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Removes an edge, by its ends as the document has them; of equal edges the first."""

    source: str
    target: str

    @property
    def title(self) -> str:
        """In words, by the nodes."""
        return f"Disconnect {_arrow(self.source, self.target)}"

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Refuses an edge that is not there."""
        for index, edge in enumerate(workflow.edges):
            if (edge.from_, edge.to) == (self.source, self.target):
                return changed(workflow, self.title, edges=workflow.edges[:index] + workflow.edges[index + 1 :])
        message = f'There is no edge from "{shown(self.source)}" to "{shown(self.target)}".'
        raise OperationError(message, "Choose an edge that is there.")


@dataclass(frozen=True, slots=True)
class SetSettings:
    """Sets one value in the settings of the workflow, or takes it out; the path is meant as in `SetConfig`."""

    path: JsonPath
    value: Value | Unset

    @property
    def title(self) -> str:
        """In words."""
        return f"Change the setting {shown('.'.join(map(str, self.path)))}"

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Refuses a path that leads nowhere, and a value that is not JSON."""
        settings = set_in(workflow.settings, self.path, self.value, "The settings", depth=1)
        return changed(workflow, self.title, settings=settings)


@dataclass(frozen=True, slots=True)
class SetName:
    """Sets what people call the workflow."""

    text: str

    @property
    def title(self) -> str:
        """In words."""
        return "Change the name"

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Fits every document."""
        return changed(workflow, self.title, name=self.text)


@dataclass(frozen=True, slots=True)
class SetDescription:
    """Sets what the workflow is for."""

    text: str

    @property
    def title(self) -> str:
        """In words."""
        return "Change the description"

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Fits every document."""
        return changed(workflow, self.title, description=self.text)


@dataclass(frozen=True, slots=True)
class SetLayout:
    """Sets one value in the layout, or takes it out.

    Attributes:
        path: Where: `("nodes", ID)` for the place of a node, an object with `x` and `y`, `("frames", ID)` for a frame.
        value: What shall stand there; `UNSET` takes out what does.
    """

    path: JsonPath
    value: Value | Unset

    @property
    def title(self) -> str:
        """In words."""
        match self.path:
            case ("nodes", node_id, *_):
                return f"Move {shown(node_id)}"
            case _:
                return "Change the layout"

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Refuses a path that leads nowhere, and a value that is not JSON."""
        layout = set_in(workflow.layout, self.path, self.value, "The layout", depth=1)
        return changed(workflow, self.title, layout=layout)


def _require_end(workflow: Workflow, end: str) -> None:
    node, _, port = end.partition(".")
    if not port:
        message = f'"{shown(end)}" is no end of an edge.'
        raise OperationError(message, 'Write the node and its port with a dot between: "draft.output".')
    if node not in workflow.nodes_by_id:
        raise OperationError(f'There is no node "{shown(node)}" to connect.', "Add the node first.")


def _arrow(source: str, target: str) -> str:
    return f"{shown(source.partition('.')[0])} → {shown(target.partition('.')[0])}"
