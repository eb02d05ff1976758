"""The document model: a workflow as stored in a file (`FILE_SUFFIXES`), node ids, and the workflow's settings.

Frozen pydantic models that hold what the file says and no derived data. They are tolerant: a document with problems is
still a document (`engine.plan.validation` finds the problems), and unknown keys survive a save. Knows no node types.
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
VERSION: Final = 2
FILE_SUFFIXES: Final = (".loop.json", ".loopwright")
"""Suffixes of workflow files, the usual one first. The other one is for systems that look at the last suffix only."""
FILE_SUFFIX: Final = FILE_SUFFIXES[0]
NODE_ID_PATTERN: Final = r"[a-z][a-z0-9_]*"


def is_workflow_file(name: str) -> bool:
    """Return whether a file name has the suffix of a workflow file."""
    return name.lower().endswith(FILE_SUFFIXES)


def stem_of(name: str) -> str:
    """Return a file name without the suffix of a workflow file; other names unchanged."""
    suffix = next((suffix for suffix in FILE_SUFFIXES if name.lower().endswith(suffix)), "")
    return name[: len(name) - len(suffix)]


class _Part(BaseModel):
    """Base of document models: frozen, and keeps unknown keys after the known ones."""

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True, strict=True)

    @property
    def unknown_keys(self) -> tuple[str, ...]:
        """Keys of the file that this version of the program does not know."""
        return tuple(self.model_extra or ())


class Node(_Part):
    """One node of a workflow.

    Attributes:
        id: Unique in the document and stable: edges, history and prompts name it.
        type: The name of its node type, which may be unknown.
        title: Its display name; if empty, the title of its type.
        config: Its settings as in the file; the type's config model validates them.
        enabled: A disabled node passes its single input through, or is skipped.
        pinned: Values by output port that runs use instead of running the node; empty for none.
    """

    id: str
    type: str
    title: str = ""
    config: dict[str, Any] = Field(default_factory=dict)
    enabled: bool = True
    pinned: dict[str, Any] = Field(default_factory=dict)

    def to_json(self) -> dict[str, Value]:
        """The node as a JSON object; see `Workflow.to_json`."""
        usual: dict[str, Value] = {} if self.enabled else {"enabled": False}
        pinned: dict[str, Value] = {"pinned": self.pinned} if self.pinned else {}
        known = {"id": self.id, "type": self.type, "title": self.title, "config": self.config}
        return {**known, **usual, **pinned, **(self.model_extra or {})}


class Edge(_Part):
    """A connection from an output port to an input port, each written `node.port`."""

    from_: str = Field(alias="from")
    to: str

    @classmethod
    def between(cls, source: str, target: str, more: Mapping[str, Any] | None = None) -> Self:
        """Return an edge between two ports; `more` has other keys, which may be unknown to this version."""
        return cls.model_validate({**(more or {}), "from": source, "to": target}, by_alias=True, by_name=False)

    @property
    def source(self) -> tuple[str, str]:
        """The node id and output port at which the edge starts."""
        node, _, port = self.from_.partition(".")
        return node, port

    @property
    def target(self) -> tuple[str, str]:
        """The node id and input port to which the edge leads."""
        node, _, port = self.to.partition(".")
        return node, port

    def to_json(self) -> dict[str, Value]:
        """The edge as a JSON object; see `Workflow.to_json`."""
        return {"from": self.from_, "to": self.to, **(self.model_extra or {})}

    def __str__(self) -> str:
        return f"{self.from_} -> {self.to}"


class Workflow(_Part):
    """A whole document.

    Attributes:
        format: Always `loopwright.workflow`.
        version: The version of the file format; see `engine.document.migrate`.
        name: Its display name.
        description: Its purpose, in a sentence or two.
        settings: Settings of the whole workflow as in the file; see `engine.document.model`.
        nodes: The nodes, in the file's order.
        edges: The edges, in the file's order, which is also the order of several values at one port.
        layout: Positions, sizes, colours, frames and notes. It has no effect on runs.
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
        """The nodes by id. If nodes share an id, the first one."""
        by_id = {node.id: node for node in self.nodes}
        if len(by_id) < len(self.nodes):
            by_id.update({node.id: node for node in reversed(self.nodes)})
        return by_id

    @cached_property
    def edges_into(self) -> dict[str, list[Edge]]:
        """The incoming edges of each node that has any, in their order."""
        found: dict[str, list[Edge]] = {}
        for edge in self.edges:
            found.setdefault(edge.target[0], []).append(edge)
        return found

    @property
    def pinned_nodes(self) -> tuple[Node, ...]:
        """The enabled nodes with pinned values."""
        return tuple(node for node in self.nodes if node.pinned and node.enabled)

    def node(self, node_id: str) -> Node:
        """The node with that id.

        Raises:
            KeyError: There is no such node.
        """
        return self.nodes_by_id[node_id]

    def to_json(self) -> dict[str, Value]:
        """The document as a JSON object, with keys in the file's order.

        It shares configs, settings and layout with the document; do not modify them.
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
        """Copy with some fields replaced, without validation. Cached properties of these fields are reset."""
        copied = super().model_copy(update=update, deep=deep)
        for field, cached in (("nodes", "nodes_by_id"), ("edges", "edges_into")):
            if field in (update or ()):
                cast("dict[str, object]", copied.__dict__).pop(cached, None)
        return copied


MAX_GENERATED_LENGTH = 40
"""Maximum length of an id that is generated from a text, without its number."""

_NODE_ID = re.compile(NODE_ID_PATTERN)
_NUMBERED = re.compile(r"(.*)_([1-9][0-9]{0,8})")


def is_node_id(text: str) -> bool:
    """Whether a text is a valid node id: lower-case letters, digits and underscores, starting with a letter."""
    return _NODE_ID.fullmatch(text) is not None


def make_id(wish: str, taken: Container[str]) -> str:
    """Generate a unique node id from a text.

    Args:
        wish: Any text, such as a title or the id of a copied node; accents are dropped, other characters become `_`.
        taken: The ids that are in use.

    Returns:
        The text as an id, with the next free number if it is taken: `critique`, `critique_2`.
    """
    plain = unicodedata.normalize("NFKD", wish[: 10 * MAX_GENERATED_LENGTH]).encode("ascii", "ignore").decode().lower()
    made = re.sub("[^a-z0-9]+", "_", plain).strip("_")[:MAX_GENERATED_LENGTH].rstrip("_")
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
    """Generate an id for a new node of a workflow; see `make_id`."""
    return make_id(wish, workflow.nodes_by_id)


MAX_CONCURRENCY_DEFAULT = 4


class ModelPrice(BaseModel):
    """A user-defined price of a model, in US dollars per million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    input_usd_per_million: float = Field(ge=0, allow_inf_nan=False, title="USD per million input tokens")
    output_usd_per_million: float = Field(ge=0, allow_inf_nan=False, title="USD per million output tokens")


class Settings(BaseModel):
    """The settings of a workflow."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    model: str | None = Field(
        default=None,
        title="Model",
        description="Model of nodes without their own. Leave empty for the program's default.",
        json_schema_extra={"widget": "model"},
    )
    max_concurrency: int = Field(
        default=MAX_CONCURRENCY_DEFAULT,
        ge=1,
        le=1000,
        title="Max concurrency",
        description="Maximum number of nodes that run at the same time.",
        json_schema_extra={"group": "more"},
    )
    budget_usd: float | None = Field(
        default=None,
        ge=0,
        allow_inf_nan=False,
        title="Budget (USD)",
        description="Maximum cost of a run. Calls that could exceed it are not made.",
    )
    budget_tokens: int | None = Field(
        default=None,
        ge=0,
        title="Token limit",
        description="Maximum number of tokens of a run, input and output.",
    )
    prices: dict[str, ModelPrice] = Field(
        default_factory=dict,
        title="Prices",
        description="Prices by model name, for models without a known price.",
        json_schema_extra={"group": "more"},
    )
    allow_unknown_price: bool = Field(
        default=False,
        title="Allow unknown prices",
        description="Allow models without a known price even if the run has a budget.",
        json_schema_extra={"group": "more"},
    )


def unknown_settings(settings: dict[str, Any]) -> tuple[str, ...]:
    """Keys in a document's settings that are unknown to this version."""
    return tuple(key for key in settings if key not in Settings.model_fields)
