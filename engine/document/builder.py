"""Build a document in Python, with the same operations as the window.

    flow = Builder("Shorten", description="Make a text shorter.")
    text = flow.add("input", id="text", name="text")
    result = flow.add("output", name="result")
    flow.connect(text["value"], result["value"])
    save(flow.build(), "shorten.loop.json")

It knows no node types; validation of the finished workflow checks configs and ports.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass

from engine.document.migrate import upgraded_config
from engine.document.model import Node, Workflow, unique_id
from engine.document.operations import (
    AddNodes,
    Connect,
    Operation,
    OperationError,
    SetSettings,
    SetText,
    require_json,
)
from engine.text_sanitizing import shown
from engine.values import Value


@dataclass(frozen=True, slots=True)
class NodeHandle:
    """A node of a builder; `handle["port"]` is a port for `connect`."""

    id: str

    def __getitem__(self, port: str) -> str:
        return f"{self.id}.{port}"


class Builder:
    """Builds a workflow. Invalid operations raise immediately.

    Args:
        name: The workflow's name.
        description: Its description.
        settings: Its settings, such as `{"budget_usd": 0.5}`.
    """

    def __init__(self, name: str = "", *, description: str = "", settings: Mapping[str, Value] | None = None) -> None:
        self._workflow = Workflow()
        self._do(SetText("name", name))
        self._do(SetText("description", description))
        for key, value in _own_copy(dict(settings or {}), "The settings", 1).items():
            self._do(SetSettings((key,), value))

    def add(
        self,
        node_type: str,
        /,
        *,
        id: str | None = None,  # noqa: A002 # as in the document
        title: str = "",
        enabled: bool = True,
        pinned: Mapping[str, Value] | None = None,
        config: Mapping[str, Value] | None = None,
        **fields: Value,
    ) -> NodeHandle:
        """Add a node.

        Args:
            node_type: The node type, such as `llm`.
            id: Its id; by default generated from the title or the type.
            title: Its title.
            enabled: Whether it takes part in runs.
            pinned: Values by output port that runs use instead of running it.
            config: Config fields by name, also those of earlier versions of the program.
            fields: Config fields as keyword arguments. A trailing underscore is removed, for names that are Python
                keywords or parameters of this method: `from_`, `id_`.

        Returns:
            A handle for `connect`.

        Raises:
            OperationError: The id is taken or invalid, a field is given twice, or a value is not JSON.
        """
        values: dict[str, Value] = dict(config or {})
        for name, value in fields.items():
            key = name.removesuffix("_")
            if key in values:
                raise OperationError(f'The config field "{key}" is given twice.', "Give it once.")
            values[key] = value
        node_id = unique_id(self._workflow, title or node_type) if id is None else id
        copied = upgraded_config(node_type, _own_copy(values, f'The config of node "{shown(node_id)}"', 3))
        pins = _own_copy(dict(pinned or {}), f'The pinned values of node "{shown(node_id)}"', 3)
        node = Node(id=node_id, type=node_type, title=title, config=copied, enabled=enabled, pinned=pins)
        self._do(AddNodes((node,)))
        return NodeHandle(node_id)

    def connect(self, source: str, target: str) -> None:
        """Add an edge from an output port to an input port, each as `handle["port"]` or `"node.port"`.

        Raises:
            OperationError: A node does not exist, or the edge exists.
        """
        self._do(Connect.between(source, target))

    def build(self) -> Workflow:
        """Return the current workflow, which later calls do not change."""
        return self._workflow

    def _do(self, operation: Operation) -> None:
        self._workflow, _ = operation.apply(self._workflow)


def _own_copy(values: dict[str, Value], what: str, depth: int) -> dict[str, Value]:
    # A copy, so that the caller cannot change the document later. Circular values are rejected before the copy.
    require_json(values, what, depth)
    return deepcopy(values)
