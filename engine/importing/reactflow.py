"""Convert a React Flow canvas to a workflow.

The body of a foreign loop starts at the loop's `output` handle, and the result of an iteration reaches an `exit` node.
Paths tell whether an edge from `output` leads into the body or past the loop. A foreign loop body may contain a cycle;
here the loop repeats by itself, so the edge that closes the cycle becomes the feedback of the exit.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from engine.document.model import Workflow
from engine.document.problems import DocumentError
from engine.formatting import format_count
from engine.importing.fields import MAIN_TOOL_PORT, as_number, as_text
from engine.importing.reactflow_nodes import (
    NODE_CONVERTERS,
    SUBFLOW_TYPES,
    ForeignNode,
    convert_subflow,
    port_name,
    subflow_port,
)
from engine.importing.report import FieldReader, ImportReport
from engine.importing.workflow_draft import WorkflowDraft
from engine.text_sanitizing import shown
from engine.values import as_list, as_object

MAX_NODES: Final = 2_000
MAX_EDGES: Final = 10_000
_MAX_COORDINATE: Final = 1e6

_APPEARANCE_KEYS: Final = frozenset(
    {
        *("position", "positionAbsolute", "width", "height", "measured", "selected", "dragging", "zIndex", "style"),
        *("className", "sourcePosition", "targetPosition", "deletable", "draggable", "selectable", "connectable"),
        *("focusable", "hidden", "ariaLabel", "resizing", "expandParent"),
    }
)
_EDGE_KEYS: Final = frozenset({"id", "source", "target", "sourceHandle", "targetHandle"})
_FILE_KEYS: Final = frozenset({"viewport", "id", "version", "createdAt", "updatedAt", "created_at", "updated_at"})


def convert_canvas(root: dict[str, Any], report: ImportReport, source: str, name: str) -> Workflow:
    """Convert a canvas; see `ImporterSpec.convert`.

    Raises:
        DocumentError: The canvas is too large.
    """
    node_entries, edge_entries = as_list(root.get("nodes")), as_list(root.get("edges"))
    if len(node_entries) > MAX_NODES or len(edge_entries) > MAX_EDGES:
        nodes, edges = format_count(len(node_entries), "node"), format_count(len(edge_entries), "edge")
        message = f"{source}: The canvas has {nodes} and {edges}."
        raise DocumentError(
            message,
            f"At most {format_count(MAX_NODES)} and {format_count(MAX_EDGES)} can be imported. Split the canvas.",
        )
    draft = WorkflowDraft()
    nodes = _read_nodes(node_entries, edge_entries, report)
    ids = {node_id: _add_node(node, draft, source) for node_id, node in nodes.items()}
    _set_positions(node_entries, ids, draft, report)
    edges = read_edges(edge_entries, nodes, report)
    ends = BodyEnds({node_id: node.type for node_id, node in nodes.items()}, [(e.source, e.target) for e in edges])
    for start, end in ends.of_start.items():
        draft.config(ids[end])["loop" if ends.types[start] == "loop" else "iterator"] = ids[start]
    translate_prompts(nodes, ids, edges, draft)
    connector = _Connector(nodes, ids, ends, draft, report)
    for edge in edges:
        connector.connect(edge)
    _report_appearance(node_entries, edge_entries, report)
    members = {key: value for key, value in root.items() if key not in {"nodes", "edges", *_FILE_KEYS}}
    top = FieldReader(members, report, "")
    file_keys = [key for key in root if key in _FILE_KEYS]
    if file_keys:
        report.left_out("the file", f"Only the other program needs these: {', '.join(file_keys)}.")
    return draft.finish(top, name)


def _read_nodes(entries: Iterable[object], edges: Iterable[object], report: ImportReport) -> dict[str, ForeignNode]:
    nodes: dict[str, ForeignNode] = {}
    handles: dict[str, list[str]] = {}
    for edge in map(as_object, edges):
        handles.setdefault(as_text(edge.get("source")), []).append(as_text(edge.get("sourceHandle")))
    for index, entry in enumerate(entries):
        node = as_object(entry)
        node_id = as_text(node.get("id"))
        if not node_id or node_id in nodes:
            report.left_out(f"node {index + 1}", "It has no id, or the id of another node.")
            continue
        data = as_object(node.get("data"))
        node_type = _normalized_type(as_text(node.get("type")), as_text(data.get("type") or data.get("nodeType")))
        members = {key: value for key, value in node.items() if key not in {"id", "type", "data", *_APPEARANCE_KEYS}}
        members |= {key: value for key, value in data.items() if key not in {"type", "nodeType", "config"}}
        members |= as_object(members.pop("config", None)) | as_object(data.get("config"))
        fields = FieldReader(members, report, f"node {node_id}")
        label = fields.peek("label", "title")
        title = as_text(label)
        if title or label == "":
            fields.pop("label", "title")
        if title:
            fields.carried_over("label", "The title.")
        nodes[node_id] = ForeignNode(node_id, node_type, title, fields, tuple(handles.get(node_id, ())))
    return nodes


def _normalized_type(node_type: str, data_type: str) -> str:
    name = node_type.strip()
    for suffix in ("Node", "_node", "-node"):
        name = name.removesuffix(suffix)
    if name.lower() in {"", "custom", "default"}:
        name = data_type.strip()
    return name.lower().replace("-", "_")


def _add_node(node: ForeignNode, draft: WorkflowDraft, source: str) -> str:
    fields, report = node.fields, node.fields.report
    if node.type not in NODE_CONVERTERS and node.type not in SUBFLOW_TYPES:
        report.left_out(fields.place, f'The node type "{shown(node.type, 60)}" does not exist here. Replace the node.')
        for name in fields.unread:
            fields.carried_over(shown(name, 60), "Kept unchanged.")
        return draft.add(port_name(node.type) or "unknown", node.id, node.title, fields.unread)
    if node.type in SUBFLOW_TYPES:
        node_type = "subflow"
        config = convert_subflow(node, lambda root, inner, name: convert_canvas(root, inner, source, name))
    else:
        node_type, convert = NODE_CONVERTERS[node.type]
        convert(node)
        config = node.config
    node_id = draft.add(node_type, node.id, node.title, config)
    is_same = node_type == "subflow" or node_id == node.id
    report.mapped(fields.place, f'The node "{node_id}" ({node_type}).', is_same=is_same)
    if node_type == "router" and fields.peek("evaluator") is not None:
        fields.pop("evaluator")
        fields.changed("evaluator", 'The router whose branch "done" leads to the exit decides.')
    fields.report_rest()
    return node_id


def _report_appearance(nodes: Iterable[object], edges: Iterable[object], report: ImportReport) -> None:
    """Report each appearance key of nodes and edges once."""
    node_keys = dict.fromkeys(
        key for node in nodes for key in as_object(node) if key in _APPEARANCE_KEYS - {"position"}
    )
    if node_keys:
        report.left_out("appearance of nodes", f"Not imported: {', '.join(node_keys)}.")
    edge_keys = dict.fromkeys(key for edge in edges for key in as_object(edge) if key not in _EDGE_KEYS)
    report.left_out_keys("edges", edge_keys, "Edges have no settings here.")


def _set_positions(entries: Iterable[object], ids: dict[str, str], draft: WorkflowDraft, report: ImportReport) -> None:
    count = 0
    for node in map(as_object, entries):
        node_id, position = as_text(node.get("id")), as_object(node.get("position"))
        if node_id not in ids or "position" not in node:
            continue
        x, y = as_number(position.get("x")), as_number(position.get("y"))
        if x is None or y is None or max(abs(x), abs(y)) >= _MAX_COORDINATE:
            report.left_out(f"node {node_id}, position", "The position is invalid.")
            continue
        draft.set_position(ids[node_id], round(x), round(y))
        count += 1
    if count:
        report.carried_over("position", f"The positions of {count} nodes, unless some nodes would overlap.")


_SOURCE_PORTS: Final[dict[str, dict[str, str]]] = {
    "validator": {"valid": "valid", "invalid": "invalid", "errors": "errors", "": "valid"},
    "approval": {"approved": "approved", "rejected": "rejected", "comment": "comment", "": "approved"},
    "aggregator": {"": "output"},
    "iterator": {"index": "index", "iterations": "iterations", "count": "count", "": "item"},
    "loop": {"iterations": "iterations", "count": "count", "exit_reason": "exit_reason", "": "body"},
    "llm": {"usage": "usage", "tokens": "usage", "cost": "usage", "": "output"},
    "input": {"": "value"},
}
"""Output ports by node type and foreign handle; the empty handle stands for all others."""


@dataclass(frozen=True, slots=True)
class _Connector:
    """Adds the edges of a canvas to the workflow."""

    nodes: dict[str, ForeignNode]
    ids: dict[str, str]
    ends: BodyEnds
    draft: WorkflowDraft
    report: ImportReport

    def connect(self, edge: ForeignEdge) -> None:
        """Add an edge."""
        source, target = self.nodes[edge.source], self.nodes[edge.target]
        port = self._source_port(edge, source)
        if not port:
            message = f'A {source.type} node has no port "{shown(edge.source_handle, 60)}" here.'
            self.report.left_out(edge.place, message)
            return
        start = f"{self.ids[edge.source]}.{port}"
        if (edge.source, edge.target) in self.ends.cycle_edges:
            self._connect_feedback(edge, start)
            return
        target_port = self._target_port(edge, target)
        end = f"{self.ids[edge.target]}.{target_port}"
        self.draft.connect(start, end)
        is_same = {edge.source_handle or port, edge.target_handle or target_port} == {port, target_port}
        self.report.mapped(edge.place, f"{start} -> {end}.", is_same=is_same)

    def _connect_feedback(self, edge: ForeignEdge, start: str) -> None:
        end = self.ends.innermost_end(edge.target)
        if end is None or self.ends.types[end] != "exit":
            self.report.left_out(edge.place, "It closes a cycle outside of any loop.")
            return
        self.draft.connect(start, f"{self.ids[end]}.feedback")
        self.report.changed(edge.place, "It leads back, so it is the exit's feedback: the next iteration's input.")

    def _source_port(self, edge: ForeignEdge, node: ForeignNode) -> str:
        if node.type in SUBFLOW_TYPES:
            return subflow_port(self.draft.config(self.ids[node.id]), "output", edge.source_handle)
        node_type = _target_type(node)
        if node_type == "router":
            name = port_name(edge.source_handle)
            return name if name not in {"", "output", "value"} else ""
        ports = _SOURCE_PORTS.get(node_type, {"": "output"})
        port = ports.get(edge.source_handle, ports[""])
        if port == "body" and not self.ends.leads_into_body(edge.source, edge.target):
            return "output"
        return port

    def _target_port(self, edge: ForeignEdge, node: ForeignNode) -> str:
        config, handle = self.draft.config(self.ids[node.id]), edge.target_handle
        if node.type in SUBFLOW_TYPES:
            return subflow_port(config, "input", handle)
        node_type = _target_type(node)
        if node_type == "output":
            return "value"
        if node_type == "iterator":
            return "items"
        if node_type == "exit":
            return "feedback" if handle == "feedback" else "input"
        if node_type == "tool":
            main_port = MAIN_TOOL_PORT.get(as_text(config.get("tool")), "input")
            return handle if handle not in {"", "input", "in", "value"} else main_port
        name = port_name(handle)
        texts = [as_text(config.get(field)) for field in TEXT_FIELDS.get(node_type, ())]
        return name if name and any(name in names_in(text) for text in texts) else "input"


def _target_type(node: ForeignNode) -> str:
    return NODE_CONVERTERS[node.type][0] if node.type in NODE_CONVERTERS else node.type


_END_OF_START: Final = {"loop": "exit", "iterator": "aggregator"}
_START_OF_END: Final = {end: start for start, end in _END_OF_START.items()}
_MAX_NESTING: Final = 64
"""Bodies nested deeper than this are not resolved; no workflow may nest them so deep."""


@dataclass(frozen=True, slots=True)
class ForeignEdge:
    """An edge of the canvas: the ids of two foreign nodes and the handles that it connects."""

    source: str
    source_handle: str
    target: str
    target_handle: str

    @property
    def place(self) -> str:
        """How the report names the edge."""
        return f"edge {self.source} -> {self.target}"


def read_edges(entries: Iterable[object], nodes: Container[str], report: ImportReport) -> list[ForeignEdge]:
    """Read the edges between these nodes, and report the others as left out."""
    edges: list[ForeignEdge] = []
    for entry in map(as_object, entries):
        edge = ForeignEdge(
            as_text(entry.get("source")),
            as_text(entry.get("sourceHandle")),
            as_text(entry.get("target")),
            as_text(entry.get("targetHandle")),
        )
        if edge.source in nodes and edge.target in nodes:
            edges.append(edge)
        else:
            report.left_out(edge.place, "It is not connected to nodes at both ends.")
    return edges


class BodyEnds:
    """Where the bodies of loops and iterators end.

    Attributes:
        types: The type of each foreign node.
        cycle_edges: The edges that close a cycle.
        of_start: The exit of each loop, and the aggregator of each iterator.
    """

    def __init__(self, types: dict[str, str], edges: Sequence[tuple[str, str]]) -> None:
        from networkx import DiGraph, dfs_labeled_edges

        self.types = types
        graph: DiGraph[str] = DiGraph()
        targets = {target for _, target in edges}
        graph.add_nodes_from(sorted(types, key=lambda node: node in targets))  # the search starts at the first sources
        graph.add_edges_from(edges)
        self.cycle_edges: set[tuple[str, str]] = set()
        path: set[str] = set()
        finished: list[str] = []
        for source, target, direction in dfs_labeled_edges(graph):
            if direction == "forward":
                path.add(target)
            elif direction == "reverse":
                path.discard(target)
                finished.append(target)
            elif target in path:
                self.cycle_edges.add((source, target))
        self._next = {
            node: [after for after in graph.successors(node) if (node, after) not in self.cycle_edges] for node in types
        }
        self._nearest = self._find_nearest_ends(finished)
        self.of_start: dict[str, str] = {}
        for node, node_type in types.items():
            if node_type in _END_OF_START:
                end = next((end for target in self._next[node] if (end := self.innermost_end(target))), None)
                if end is not None and _START_OF_END[types[end]] == node_type:
                    self.of_start[node] = end

    def innermost_end(self, node: str) -> str | None:
        """The exit or aggregator of the innermost body that contains the node; the node itself if it is one."""
        found = self._nearest[node].get(0)
        return None if found is None else found[1]

    def leads_into_body(self, loop: str, target: str) -> bool:
        """Whether an edge from a loop to that node leads into its body, and not past its exit."""
        return loop in self.of_start and self.innermost_end(target) == self.of_start[loop]

    def _find_nearest_ends(self, order: Sequence[str]) -> dict[str, dict[int, tuple[int, str]]]:
        """For each node and nesting depth, the distance to the nearest end and the end.

        Depth is the number of bodies that are open when a path from the node reaches that end.

        Args:
            order: All nodes, each after its successors.
        """
        nearest: dict[str, dict[int, tuple[int, str]]] = {}
        for node in order:
            node_type = self.types[node]
            opened = 1 if node_type in _END_OF_START else -1 if node_type in _START_OF_END else 0
            found: dict[int, tuple[int, str]] = {}
            for target in self._next[node]:
                for inner_depth, (distance, end) in nearest[target].items():
                    depth = inner_depth - opened
                    if 0 <= depth <= _MAX_NESTING and (depth not in found or distance + 1 < found[depth][0]):
                        found[depth] = (distance + 1, end)
            if node_type in _START_OF_END:
                found[0] = (0, node)
            nearest[node] = found
        return nearest


TEXT_FIELDS: Final = {
    "llm": ("system", "prompt"),
    "router": ("criteria",),
    "transform": ("template",),
    "approval": ("message",),
}
"""By node type, the settings that are templates."""

_PLACEHOLDER: Final = re.compile(r"(?<!\\)\{\{(.{0,300}?)\}\}", re.DOTALL)
_PATH: Final = re.compile(r"\s*([A-Za-z0-9_][A-Za-z0-9_-]*)((?:\.[A-Za-z_][A-Za-z0-9_]*)*)\s*")
_BUILT_IN_NAMES: Final = frozenset({"loop", "state"})
_WHOLE_OUTPUT: Final = frozenset({"", ".output", ".value", ".response", ".result", ".text", ".content"})


def names_in(text: str) -> frozenset[str]:
    """The names that the placeholders of a template refer to."""
    return frozenset(match[1] for found in _PLACEHOLDER.finditer(text) if (match := _PATH.fullmatch(found[1])))


def translate_prompts(
    nodes: dict[str, ForeignNode], ids: dict[str, str], edges: Sequence[ForeignEdge], draft: WorkflowDraft
) -> None:
    """Translate the names in the prompts of these nodes, and add the edges that they need."""
    inputs = {
        as_text(draft.config(ids[node_id]).get("name")): node_id
        for node_id, node in nodes.items()
        if node.type == "input"
    }
    incoming: dict[str, list[ForeignEdge]] = {}
    for edge in edges:
        incoming.setdefault(edge.target, []).append(edge)
    for node_id, node in nodes.items():
        translator = _PromptTranslator(node, ids, inputs, incoming.get(node_id, []), draft)
        config = draft.config(ids[node_id])
        for field in TEXT_FIELDS.get(_target_type(node), ()):
            if field in config:
                config[field] = _PLACEHOLDER.sub(translator.translate, config[field])


@dataclass(frozen=True, slots=True)
class _PromptTranslator:
    """Translates the placeholders in the prompts of one node."""

    node: ForeignNode
    ids: dict[str, str]
    inputs: dict[str, str]
    incoming: Sequence[ForeignEdge]
    draft: WorkflowDraft

    def translate(self, placeholder: re.Match[str]) -> str:
        """Return the placeholder with the name that it has here."""
        path = _PATH.fullmatch(placeholder[1])
        fields, member = self.node.fields, f"{{{{{shown(placeholder[1].strip(), 60)}}}}}"
        if path is None:
            fields.changed(member, "It is plain text here because it is not the name of a value.")
            return "\\" + placeholder[0]
        name, rest = path[1], path[2]
        if name in _BUILT_IN_NAMES and name not in self.ids:
            return placeholder[0]
        source = name if name in self.ids else self.inputs.get(name)
        port = port_name(name)
        ports = {"input", *(port_name(edge.target_handle) for edge in self.incoming if edge.target_handle)}
        if port in ports and (source is None or name == "input"):
            return f"{{{{{port}{rest}}}}}"
        if source is None or source == self.node.id:
            fields.left_out(member, "No node provides this value. Connect one.")
            return f"{{{{{port or 'input'}{rest}}}}}"
        rest = "" if rest in _WHOLE_OUTPUT else rest
        if [edge.source for edge in self.incoming] == [source]:
            fields.changed(member, "The incoming edge brings this value: {{input}}.")
            return f"{{{{input{rest}}}}}"
        source_id = self.ids[source]
        source_port = "value" if source in self.inputs.values() else "output"
        self.draft.connect(f"{source_id}.{source_port}", f"{self.ids[self.node.id]}.{source_id}")
        fields.changed(member, f'A new edge from "{source_id}" brings this value: {{{{{source_id}}}}}.')
        return f"{{{{{source_id}{rest}}}}}"
