"""The document: a workflow as it stands in a `NAME.loop.json` file.

Frozen pydantic models that hold what the file says and nothing worked out from it. They are tolerant: a document with
problems is still a document (`engine.plan.check` finds the problems), and keys that this version does not know are kept
through a save. This module knows no node types.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Mapping
from functools import cached_property
from typing import Any, Final, Self, cast

from pydantic import BaseModel, ConfigDict, Field

from engine.values import Value

FORMAT: Final = "loopwright.workflow"
VERSION: Final = 1
FILE_SUFFIX: Final = ".loop.json"
NODE_ID_PATTERN: Final = r"[a-z][a-z0-9_]*"


class _Part(BaseModel):
    """A frozen part of a document that keeps keys it does not know, after those that it does."""

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True, strict=True)

    @property
    def unknown_keys(self) -> tuple[str, ...]:
        """Keys of the file that this version of the program does not know."""
        return tuple(self.model_extra or ())


class Node(_Part):
    """One node of a workflow.

    Attributes:
        id: Unique in the document and stable: edges, history and prompts name it.
        type: Name of its node type; may be unknown to this program.
        title: What people call it; empty stands for the type's own title.
        config: Its settings as the file has them, read through the type's config model.
        enabled: A disabled node passes its one input on, or is skipped.
    """

    id: str
    type: str
    title: str = ""
    config: dict[str, Any] = Field(default_factory=dict)
    enabled: bool = True

    def to_json(self) -> dict[str, Value]:
        """The node as a JSON object; see `Workflow.to_json`."""
        usual: dict[str, Value] = {} if self.enabled else {"enabled": False}
        known = {"id": self.id, "type": self.type, "title": self.title, "config": self.config}
        return {**known, **usual, **(self.model_extra or {})}


class Edge(_Part):
    """A connection from an output port to an input port, each written `node.port`."""

    from_: str = Field(alias="from")
    to: str

    @property
    def source(self) -> tuple[str, str]:
        """Node id and output port that the edge starts at."""
        return _split(self.from_)

    @property
    def target(self) -> tuple[str, str]:
        """Node id and input port that the edge leads to."""
        return _split(self.to)

    def to_json(self) -> dict[str, Value]:
        """The edge as a JSON object; see `Workflow.to_json`."""
        return {"from": self.from_, "to": self.to, **(self.model_extra or {})}

    def __str__(self) -> str:
        return f"{self.from_} -> {self.to}"


def _split(end: str) -> tuple[str, str]:
    node, _, port = end.partition(".")
    return node, port


class Workflow(_Part):
    """A whole document.

    Attributes:
        format: Always `loopwright.workflow`.
        version: Version of the file form; see `engine.document.migrate`.
        name: What people call the workflow.
        description: What it is for, in a sentence or two.
        settings: What holds for all of it, as the file has it; read through `engine.document.settings`.
        nodes: The nodes, in the file's order.
        edges: The edges, in the file's order; where several values meet in a port, this is their order.
        layout: Positions, sizes, colours, frames and notes. It never changes what the workflow means.
    """

    format: str = FORMAT
    version: int = VERSION
    name: str = ""
    description: str = ""
    settings: dict[str, Any] = Field(default_factory=dict)
    nodes: tuple[Node, ...] = Field(default=(), strict=False)
    edges: tuple[Edge, ...] = Field(default=(), strict=False)
    layout: dict[str, Any] = Field(default_factory=dict)

    @cached_property
    def nodes_by_id(self) -> dict[str, Node]:
        """The nodes by id; of nodes that share an id, the first."""
        by_id = {node.id: node for node in self.nodes}
        if len(by_id) < len(self.nodes):
            by_id.update({node.id: node for node in reversed(self.nodes)})
        return by_id

    @cached_property
    def edges_into(self) -> dict[str, list[Edge]]:
        """The edges that lead to each node, in their order; nodes that none leads to are not in it."""
        found: dict[str, list[Edge]] = {}
        for edge in self.edges:
            found.setdefault(edge.target[0], []).append(edge)
        return found

    def node(self, node_id: str) -> Node:
        """The node of that id.

        Raises:
            KeyError: There is none.
        """
        return self.nodes_by_id[node_id]

    def to_json(self) -> dict[str, Value]:
        """The document as a JSON object, keys in the file's fixed order.

        Configs, settings and the layout in it are the document's own: to be read, not to be changed.
        """
        return {
            "format": self.format,
            "version": self.version,
            "name": self.name,
            "description": self.description,
            "settings": self.settings,
            "nodes": [node.to_json() for node in self.nodes],
            "edges": [edge.to_json() for edge in self.edges],
            "layout": self.layout,
            **(self.model_extra or {}),
        }

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with some fields replaced, unchecked; what is worked out from these is worked out anew."""
        copied = super().model_copy(update=update, deep=deep)
        for field, worked_out in (("nodes", "nodes_by_id"), ("edges", "edges_into")):
            if field in (update or ()):
                cast("dict[str, object]", copied.__dict__).pop(worked_out, None)
        return copied


MAX_MADE_LENGTH = 40
"""The most characters of an id that is made from a text, before a number is put behind it."""

_NODE_ID = re.compile(NODE_ID_PATTERN)
_NUMBERED = re.compile(r"(.*)_([1-9][0-9]{0,8})")


def is_node_id(text: str) -> bool:
    """Whether a text may be the id of a node: small letters, digits and underscores, a letter first."""
    return _NODE_ID.fullmatch(text) is not None


def make_id(wish: str, taken: Container[str]) -> str:
    """Make a free node id that looks like a text.

    Args:
        wish: Any text, such as a title or the id of a copied node; accents are dropped, other characters become `_`.
        taken: The ids that are no longer free.

    Returns:
        The text as an id, with the next free number behind it where it is taken: `critique`, `critique_2`.
    """
    plain = unicodedata.normalize("NFKD", wish[: 10 * MAX_MADE_LENGTH]).encode("ascii", "ignore").decode().lower()
    made = re.sub("[^a-z0-9]+", "_", plain).strip("_")[:MAX_MADE_LENGTH].rstrip("_")
    if not is_node_id(made):
        made = f"node_{made}" if made else "node"
    if made not in taken:
        return made
    numbered = _NUMBERED.fullmatch(made)
    stem, number = (numbered[1], int(numbered[2])) if numbered else (made, 1)
    while True:
        number += 1
        if (candidate := f"{stem}_{number}") not in taken:
            return candidate


def unique_id(workflow: Workflow, wish: str) -> str:
    """Make an id for a new node of a workflow that looks like a text; see `make_id`."""
    return make_id(wish, workflow.nodes_by_id)
