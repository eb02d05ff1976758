"""Names in the prompts of a React Flow canvas.

There, `{{name}}` may refer to any node. Here it refers to a value that an edge brings to the node.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final

from engine.importing.fields import as_text
from engine.importing.reactflow.edges import ForeignEdge
from engine.importing.reactflow.node_settings import NODE_CONVERTERS, ForeignNode, port_name
from engine.importing.report import ImportReport
from engine.importing.workflow_draft import WorkflowDraft
from engine.text_sanitizing import shown

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
    nodes: dict[str, ForeignNode],
    ids: dict[str, str],
    edges: Sequence[ForeignEdge],
    draft: WorkflowDraft,
    report: ImportReport,
) -> None:
    """Translate the names in all prompts, and add the edges that they need.

    Args:
        nodes: The nodes by foreign id.
        ids: The ids here, by foreign id.
        edges: The edges between them.
        draft: The workflow, whose prompts are changed.
        report: Gets a line for each translated name.
    """
    inputs = {
        as_text(draft.config(ids[node_id]).get("name")): node_id
        for node_id, node in nodes.items()
        if node.type == "input"
    }
    incoming: dict[str, list[ForeignEdge]] = {}
    for edge in edges:
        incoming.setdefault(edge.target, []).append(edge)
    for node_id, node in nodes.items():
        node_type = NODE_CONVERTERS[node.type][0] if node.type in NODE_CONVERTERS else ""
        translator = _PromptTranslator(node, ids, inputs, incoming.get(node_id, ()), draft, report)
        config = draft.config(ids[node_id])
        for field in TEXT_FIELDS.get(node_type, ()):
            if field in config:
                config[field] = _PLACEHOLDER.sub(translator.translate, config[field])


class _PromptTranslator:
    """Translates the placeholders in the prompts of one node."""

    def __init__(
        self,
        node: ForeignNode,
        ids: dict[str, str],
        inputs: dict[str, str],
        incoming: Collection[ForeignEdge],
        draft: WorkflowDraft,
        report: ImportReport,
    ) -> None:
        self._node = node
        self._ids = ids
        self._inputs = inputs
        self._sources = [edge.source for edge in incoming]
        self._ports = {port_name(edge.target_handle) for edge in incoming if edge.target_handle} | {"input"}
        self._draft = draft
        self._report = report

    def translate(self, placeholder: re.Match[str]) -> str:
        """Return the placeholder with the name that it has here."""
        path = _PATH.fullmatch(placeholder[1])
        place = f"{self._node.place}, {{{{{shown(placeholder[1].strip(), 60)}}}}}"
        if path is None:
            self._report.changed(place, "It is plain text here because it is not the name of a value.")
            return "\\" + placeholder[0]
        name, rest = path[1], path[2]
        if name in _BUILT_IN_NAMES and name not in self._ids:
            return placeholder[0]
        source = name if name in self._ids else self._inputs.get(name)
        if port_name(name) in self._ports and (source is None or name == "input"):
            return f"{{{{{port_name(name)}{rest}}}}}"
        if source is None or source == self._node.id:
            self._report.left_out(place, "No node provides this value. Connect one.")
            return f"{{{{{port_name(name) or 'input'}{rest}}}}}"
        member = "" if rest in _WHOLE_OUTPUT else rest
        if self._sources == [source]:
            self._report.changed(place, "The incoming edge brings this value: {{input}}.")
            return f"{{{{input{member}}}}}"
        source_id = self._ids[source]
        port = "value" if source in self._inputs.values() else "output"
        self._draft.connect(f"{source_id}.{port}", f"{self._ids[self._node.id]}.{source_id}")
        self._report.changed(place, f'A new edge from "{source_id}" brings this value: {{{{{source_id}}}}}.')
        return f"{{{{{source_id}{member}}}}}"
