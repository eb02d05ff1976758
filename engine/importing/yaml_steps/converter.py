"""Convert a workflow of agents and steps.

A step becomes a model node, its dependencies become edges. A step with a loop becomes an iterator with its aggregator
(`forEach`) or a loop with its exit. What the other program adds to a step's input by itself is written into the prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from engine.document.model import Workflow
from engine.document.problems import DocumentError
from engine.importing.fields import FieldReader, as_integer, as_list, as_object, as_seconds, as_text
from engine.importing.name_mapping import map_model
from engine.importing.report import ImportReport
from engine.importing.workflow_draft import WorkflowDraft
from engine.importing.yaml_steps.step_loops import LoopBuilder
from engine.importing.yaml_steps.step_nodes import StepNodeBuilder, StepOutput
from engine.importing.yaml_steps.steps import Step, final_steps, in_dependency_order, read_agents, read_steps
from engine.text_sanitizing import shown

MAX_STEPS: Final = 1_000
_MAX_CONCURRENCY: Final = 1_000


def convert_steps(root: dict[str, Any], report: ImportReport, source: str, name: str) -> Workflow:
    """Convert agents and steps; see `ImporterSpec.convert`.

    Raises:
        DocumentError: There are too many steps.
    """
    top = FieldReader({key: value for key, value in root.items() if key not in {"steps", "agents", "options"}})
    entries = as_list(root.get("steps"))
    count = len(entries) + sum(len(as_list(as_object(as_object(e).get("loop")).get("steps"))) for e in entries)
    if count > MAX_STEPS:
        message = f"{source}: The workflow has {count:,} steps."
        raise DocumentError(message, f"At most {MAX_STEPS:,} can be imported. Split the workflow.")
    title, description = as_text(top.pop("name")) or name, as_text(top.pop("description"))
    draft = WorkflowDraft()
    agents = read_agents(root.get("agents"), report)
    nodes = StepNodeBuilder(draft, report, agents)
    _read_options(as_object(root.get("options")), nodes, draft, report)
    model = as_text(top.pop("model", "defaultModel"))
    if model:
        draft.settings["model"], message = map_model(model)
        report.changed("model", message)
    _add_steps(read_steps(entries, report), nodes, LoopBuilder(nodes, description or title))
    for agent in sorted(agents.keys() - nodes.used_agents):
        report.left_out(f"agent {shown(agent, 60)}", "No step uses this agent.")
    sections = {"steps": entries, "agents": as_object(root.get("agents")), "options": as_object(root.get("options"))}
    for key in sections.keys() & root.keys():
        if not sections[key]:
            report.left_out(key, "It is empty or malformed.")
    if as_text(root.get("name")):
        report.carried_over("name", "The workflow's name.")
    if description:
        report.carried_over("description", "The workflow's description.")
    report.report_rest("", top)
    return draft.finish(title, description)


def _add_steps(steps: Sequence[Step], nodes: StepNodeBuilder, loops: LoopBuilder) -> None:
    outputs: dict[str, StepOutput] = {}
    ordered = in_dependency_order(steps, nodes.report)
    for step, names in ordered:
        dependencies = {name: outputs[name] for name in names}
        builder = nodes if step.loop is None else loops
        outputs[step.id] = builder.build(step, dependencies)
    for name in final_steps(ordered):
        output = nodes.draft.add("output", f"{name}_result", name, {"name": name})
        nodes.draft.connect(outputs[name].port, f"{output}.value")
        message = f'No other step depends on it, so its output is the workflow output "{shown(name, 60)}".'
        nodes.report.carried_over(f"step {name}", message)


def _read_options(options: dict[str, Any], nodes: StepNodeBuilder, draft: WorkflowDraft, report: ImportReport) -> None:
    fields = FieldReader(options)
    on_failure = as_text(fields.pop("onStepFailure", "on_step_failure")).lower()
    place = "options, onStepFailure"
    if on_failure == "abort":
        report.carried_over(place, "A failed node ends the run.")
    elif on_failure in {"continue", "skip", "skip-dependents", "skip_dependents"}:
        nodes.default_config["on_error"] = "branch"
        report.changed(place, "Nodes that depend on a failed node are skipped; the others run.")
    elif on_failure:
        report.left_out(place, f'"{shown(on_failure, 40)}" does not exist here; a failed node ends the run.')
    timeout = fields.pop("stepTimeout", "step_timeout")
    seconds = as_seconds(timeout)
    if seconds:
        nodes.default_config["timeout_s"] = seconds
        report.carried_over("options, stepTimeout", f"timeout_s: {seconds:g} in each node.")
    elif timeout is not None:
        report.left_out("options, stepTimeout", f"{shown(timeout, 40)} is not a duration.")
    concurrency = as_integer(fields.pop("maxConcurrency", "max_concurrency"))
    if concurrency is not None and 1 <= concurrency <= _MAX_CONCURRENCY:
        draft.settings["max_concurrency"] = concurrency
        report.carried_over("options, maxConcurrency", f"At most {concurrency} nodes run at the same time.")
    report.report_rest("options", fields)
