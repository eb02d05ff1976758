"""Registry of importers, with the declarations of the built-in ones.

Importing this module is cheap: the converters load on first use.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from engine.importing.spec import ForeignObject, ImporterSpec
from engine.values import as_list, as_object

if TYPE_CHECKING:
    from engine.document.model import Workflow
    from engine.importing.report import ImportReport


_STEP_KEYS: Final = ("agent", "instructions", "loop", "dependsOn")


def _recognize_steps(value: object) -> ForeignObject | None:
    """Return the object with `steps`. A bare list of steps, as documentation shows it, is recognized too."""
    root: ForeignObject = {"steps": as_list(value)} if as_list(value) else as_object(value)
    steps = [as_object(step) for step in as_list(root.get("steps"))]
    if "format" in root or not steps:
        return None
    return root if all("id" in step and any(key in step for key in _STEP_KEYS) for step in steps) else None


def _convert_steps(root: ForeignObject, report: ImportReport, source: str, name: str) -> Workflow:
    from engine.importing.yaml_steps import convert_steps

    return convert_steps(root, report, source, name)


YAML_STEPS: Final = ImporterSpec(
    name="yaml-steps",
    label="workflow of agents and steps",
    help="YAML or JSON with `agents` and `steps`, which depend on one another by `dependsOn`.",
    suffixes=(".yaml", ".yml", ".json"),
    recognize=_recognize_steps,
    convert=_convert_steps,
    review=(
        "Check the prompts: the other program adds outputs and verdicts of earlier steps by itself, here the prompts "
        "contain them."
    ),
    example="""name: dev-cycle
agents:
  coder: {description: Writes a module., model: gpt-4o-mini}
  reviewer: {description: Reviews the module.}
steps:
  - id: develop
    loop:
      maxIterations: 3
      until: "steps.review.content.contains('APPROVED')"
      steps:
        - {id: code, agent: coder, instructions: Write the module.}
        - {id: review, agent: reviewer, dependsOn: [code], instructions: Say APPROVED if it is correct.}
""",
)


_WRAPPERS: Final = ("graph", "workflow", "definition", "flow", "data", "graph_json", "graphJson", "graphData")


def _recognize_canvas(value: object) -> ForeignObject | None:
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


def _convert_canvas(root: ForeignObject, report: ImportReport, source: str, name: str) -> Workflow:
    from engine.importing.reactflow import convert_canvas

    return convert_canvas(root, report, source, name)


REACT_FLOW: Final = ImporterSpec(
    name="react-flow",
    label="React Flow canvas",
    help=(
        "JSON with `nodes` and `edges`, as workflow editors in the browser save it (`data`, `sourceHandle`, "
        "`targetHandle`)."
    ),
    suffixes=(".json",),
    recognize=_recognize_canvas,
    convert=_convert_canvas,
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


BUILT_IN: Final = (REACT_FLOW, YAML_STEPS)

_importers: dict[str, ImporterSpec] = {spec.name: spec for spec in BUILT_IN}


def importers() -> tuple[ImporterSpec, ...]:
    """All importers, in the order in which they examine a file."""
    return tuple(_importers.values())


def add_importer(spec: ImporterSpec) -> None:
    """Register the importer of a plugin.

    Raises:
        ValueError: Another importer has the same name.
    """
    if _importers.get(spec.name, spec) is not spec:
        raise ValueError(f"there is already an importer {spec.name!r}")
    _importers[spec.name] = spec


def importable_suffixes() -> tuple[str, ...]:
    """File name suffixes of all importers, each once."""
    return tuple(dict.fromkeys(suffix for spec in importers() for suffix in spec.suffixes))


def known_formats() -> str:
    """All formats in one phrase, for help and error texts: `React Flow canvas (.json), …`."""
    return ", ".join(spec.summary for spec in importers())
