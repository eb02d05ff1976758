"""Building a document in Python: the same operations that the window uses, with short names.

    flow = Builder("Shorten", description="Make a text shorter.")
    text = flow.add("input", id="text", name="text")
    result = flow.add("output", name="result")
    flow.connect(text["value"], result["value"])
    save(flow.build(), "shorten.loop.json")

It knows no node types: what a config or a port must be is told by the check of the finished workflow.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass

from engine.document.model import Node, Workflow, unique_id
from engine.document.operation import Operation, OperationError, require_json
from engine.document.operations import AddNode, Connect, SetDescription, SetName, SetSettings
from engine.text_sanitizing import shown
from engine.values import Value


@dataclass(frozen=True, slots=True)
class NodeHandle:
    """A node of a builder; `handle["port"]` is one end of an edge."""

    id: str

    def __getitem__(self, port: str) -> str:
        return f"{self.id}.{port}"


class Builder:
    """Builds one workflow, and says at once where something cannot be.

    Args:
        name: What people call the workflow.
        description: What it is for.
        settings: What holds for all of it, such as `{"budget_usd": 0.5}`.
    """

    def __init__(self, name: str = "", *, description: str = "", settings: Mapping[str, Value] | None = None) -> None:
        self._workflow = Workflow()
        self._do(SetName(name))
        self._do(SetDescription(description))
        for key, value in _own_copy(dict(settings or {}), "The settings", 1).items():
            self._do(SetSettings((key,), value))

    def add(
        self,
        node_type: str,
        /,
        *,
        id: str | None = None,  # noqa: A002 # the document's own word
        title: str = "",
        enabled: bool = True,
        config: Mapping[str, Value] | None = None,
        **fields: Value,
    ) -> NodeHandle:
        """Add a node.

        Args:
            node_type: Name of its type, such as `llm`.
            id: Its id; made from the title, or else from the type, where it is left out.
            title: What people call it.
            enabled: False leaves it out of runs.
            config: Config fields by name: the way for those that have a name of this list.
            fields: Config fields as keyword arguments. One underscore at the end of a name is dropped, for names that
                are words of Python or stand in this list: `from_`, `id_`.

        Returns:
            The node, to take ports from.

        Raises:
            OperationError: The id is taken or malformed, a field is given twice, or a value is not JSON.
        """
        values: dict[str, Value] = dict(config or {})
        for name, value in fields.items():
            key = name.removesuffix("_")
            if key in values:
                raise OperationError(f'The config field "{key}" is given twice.', "Give it once.")
            values[key] = value
        node_id = unique_id(self._workflow, title or node_type) if id is None else id
        copied = _own_copy(values, f'The config of node "{shown(node_id)}"', 3)
        self._do(AddNode(Node(id=node_id, type=node_type, title=title, config=copied, enabled=enabled)))
        return NodeHandle(node_id)

    def connect(self, source: str, target: str) -> None:
        """Add an edge from an output port to an input port, each as `handle["port"]` or `"node.port"`.

        Raises:
            OperationError: There is no such node, or the edge is there already.
        """
        self._do(Connect(source, target))

    def build(self) -> Workflow:
        """The workflow as it is now; adding more later does not change it."""
        return self._workflow

    def _do(self, operation: Operation) -> None:
        self._workflow, _ = operation.apply(self._workflow)


def _own_copy(values: dict[str, Value], what: str, depth: int) -> dict[str, Value]:
    # What the caller changes later must not change the document. A value that holds itself is refused before the copy.
    require_json(values, what, depth)
    return deepcopy(values)
