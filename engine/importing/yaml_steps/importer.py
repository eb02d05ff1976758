"""Recognition of workflows of agents and steps, and their importer's declaration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.importing.fields import as_list, as_object
from engine.importing.spec import ForeignObject, ImporterSpec

if TYPE_CHECKING:
    from engine.document.model import Workflow
    from engine.importing.report import ImportReport

_STEP_KEYS: Final = ("agent", "instructions", "loop", "dependsOn")


def _recognise(value: object) -> ForeignObject | None:
    """Return the object with `steps`. A bare list of steps, as documentation shows it, is recognised too."""
    root: ForeignObject = {"steps": as_list(value)} if as_list(value) else as_object(value)
    steps = [as_object(step) for step in as_list(root.get("steps"))]
    if "format" in root or not steps:
        return None
    return root if all("id" in step and any(key in step for key in _STEP_KEYS) for step in steps) else None


def _convert(root: ForeignObject, report: ImportReport, source: str, name: str) -> Workflow:
    from engine.importing.yaml_steps.converter import convert_steps

    return convert_steps(root, report, source, name)


YAML_STEPS: Final = ImporterSpec(
    name="yaml-steps",
    label="workflow of agents and steps",
    help="YAML or JSON with `agents` and `steps`, which depend on one another by `dependsOn`.",
    suffixes=(".yaml", ".yml", ".json"),
    recognise=_recognise,
    convert=_convert,
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
