"""Recognition of React Flow canvases, and their importer's declaration."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from engine.importing.fields import as_list, as_object
from engine.importing.spec import ForeignObject, ImporterSpec

if TYPE_CHECKING:
    from engine.document.model import Workflow
    from engine.importing.report import ImportReport

_WRAPPERS: Final = ("graph", "workflow", "definition", "flow", "data", "graph_json", "graphJson", "graphData")


def _recognise(value: object) -> ForeignObject | None:
    """Return the object with `nodes` and `edges`, which may be nested in a wrapper or in a JSON string."""
    outer = as_object(value)
    if _is_canvas(outer):
        return outer
    for name in _WRAPPERS:
        inner = outer.get(name)
        if isinstance(inner, str) and inner.lstrip().startswith("{"):
            try:
                inner = json.loads(inner)
            except (ValueError, RecursionError):
                continue
        if _is_canvas(as_object(inner)):
            canvas = as_object(inner)
            beside = {f"{key} beside {name}" if key in canvas else key: outer[key] for key in outer if key != name}
            return {**beside, **canvas}
    return None


def _is_canvas(value: dict[str, Any]) -> bool:
    edges = as_list(value.get("edges"))
    if "format" in value or not as_list(value.get("nodes")) or not isinstance(value.get("edges"), list):
        return False
    return all("source" in as_object(edge) and "target" in as_object(edge) for edge in edges)


def _convert(root: ForeignObject, report: ImportReport, source: str, name: str) -> Workflow:
    from engine.importing.reactflow.converter import convert_canvas

    return convert_canvas(root, report, source, name)


REACT_FLOW: Final = ImporterSpec(
    name="react-flow",
    label="React Flow canvas",
    help=(
        "JSON with `nodes` and `edges`, as workflow editors in the browser save it (`data`, `sourceHandle`, "
        "`targetHandle`)."
    ),
    suffixes=(".json",),
    recognise=_recognise,
    convert=_convert,
    review=(
        "Check the routers, and the expressions in transforms and validators: they come from another language. "
        "A name in a prompt that stood for another node is now an edge."
    ),
    example="""{
  "name": "Refine a text",
  "nodes": [
    {"id": "topic", "type": "input", "data": {"label": "Topic", "config": {"name": "topic", "dataType": "text"}}},
    {"id": "refine", "type": "loop", "data": {"config": {"maxIterations": 3, "exitCondition": "stable_output"}}},
    {"id": "draft", "type": "llm", "data": {"config": {"systemPrompt": "You write.", "prompt": "Improve: {{input}}"}}},
    {"id": "done", "type": "exit", "data": {}},
    {"id": "text", "type": "output", "data": {"config": {"name": "text"}}}
  ],
  "edges": [
    {"id": "1", "source": "topic", "target": "refine", "sourceHandle": "output", "targetHandle": "input"},
    {"id": "2", "source": "refine", "target": "draft", "sourceHandle": "output", "targetHandle": "input"},
    {"id": "3", "source": "draft", "target": "done", "sourceHandle": "output", "targetHandle": "input"},
    {"id": "4", "source": "done", "target": "text", "sourceHandle": "output", "targetHandle": "input"}
  ]
}
""",
)
