"""The steps form: a YAML (or JSON) file of agents and steps, which wait for one another by `dependsOn`.

A step is a model node here, what it depends on are edges, and its loop is an Iterator with its Aggregator or a Loop
with its Exit. What a step there is shown without being told stands in the prompt here, where people see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from engine.document.importing.draft import Draft
from engine.document.importing.models import model_name
from engine.document.importing.report import Report
from engine.document.importing.steps_agents import read_agents
from engine.document.importing.steps_loops import LoopMaker
from engine.document.importing.steps_model import Step, ends_of, in_order, read_steps
from engine.document.importing.steps_nodes import Made, NodeMaker
from engine.document.importing.values import Fields, as_list, as_object, as_seconds, as_text, as_whole
from engine.document.model import Workflow
from engine.document.problems import DocumentError
from engine.document.wording import shown

MAX_STEPS: Final = 1_000


def steps_of(value: object) -> dict[str, Any] | None:
    """The object with `steps` of a file; None where it is no workflow of this form.

    A bare list of steps, as it stands in documentation, counts too.
    """
    whole: dict[str, Any] = {"steps": as_list(value)} if as_list(value) else as_object(value)
    steps = as_list(whole.get("steps"))
    if "format" in whole or not steps:
        return None
    told = [as_object(step) for step in steps]
    known = ("agent", "instructions", "loop", "dependsOn")
    return whole if all("id" in step and any(key in step for key in known) for step in told) else None


def import_steps(whole: dict[str, Any], report: Report, source: str, name: str) -> Workflow:
    """Make a document of steps.

    Args:
        whole: What `steps_of` gave.
        report: Told what became of each thing.
        source: What to call the file in messages.
        name: What the workflow is called where the file does not say.

    Raises:
        DocumentError: It is too large.
    """
    top = Fields({key: told for key, told in whole.items() if key not in {"steps", "agents", "options"}})
    entries = as_list(whole.get("steps"))
    count = len(entries) + sum(len(as_list(as_object(as_object(e).get("loop")).get("steps"))) for e in entries)
    if count > MAX_STEPS:
        raise DocumentError(f"{source}: It has {count:,} steps.", f"At most {MAX_STEPS:,} are imported; divide it.")
    title, description = as_text(top.take("name")) or name, as_text(top.take("description"))
    draft = Draft()
    agents = read_agents(whole.get("agents"), report)
    nodes = NodeMaker(draft, report, agents)
    _options(as_object(whole.get("options")), nodes, draft, report)
    model = as_text(top.take("model", "defaultModel"))
    if model:
        draft.settings["model"], how = model_name(model)
        report.changed("model", how)
    _make(read_steps(entries, report), nodes, LoopMaker(nodes, description or title))
    for agent in sorted(agents.keys() - nodes.used_agents):
        report.left(f"agent {shown(agent, 60)}", "No step uses it.")
    parts = {"steps": entries, "agents": as_object(whole.get("agents")), "options": as_object(whole.get("options"))}
    for key in parts.keys() & whole.keys():
        if not parts[key]:
            report.left(key, "There is nothing in it that could be read.")
    if as_text(whole.get("name")):
        report.carried("name", "The workflow's name.")
    if description:
        report.carried("description", "The workflow's description.")
    report.settle("", top)
    return draft.finished(title, description)


def _make(steps: Sequence[Step], nodes: NodeMaker, loops: LoopMaker) -> None:
    made: dict[str, Made] = {}
    ordered = in_order(steps, nodes.report)
    for step, names in ordered:
        before = {name: made[name] for name in names}
        made[step.id] = nodes.make(step, before) if step.loop is None else loops.make(step, before)
    for name in ends_of(ordered):
        output = nodes.draft.add("output", f"{name}_result", name, {"name": name})
        nodes.draft.connect(made[name].port, f"{output}.value")
        nodes.report.carried(f"step {name}", f'No other step waits for it: it is the output "{shown(name, 60)}".')


def _options(options: dict[str, Any], nodes: NodeMaker, draft: Draft, report: Report) -> None:
    fields = Fields(options)
    on_failure = as_text(fields.take("onStepFailure", "on_step_failure")).lower()
    if on_failure == "abort":
        report.carried("options, onStepFailure", "A node that fails ends the run.")
    elif on_failure in {"continue", "skip", "skip-dependents", "skip_dependents"}:
        nodes.usual["on_error"] = "branch"
        report.changed("options, onStepFailure", "What depends on a node that fails is skipped; the rest goes on.")
    elif on_failure:
        report.left("options, onStepFailure", f'There is no "{shown(on_failure, 40)}" here; a failure ends the run.')
    timeout = fields.take("stepTimeout", "step_timeout")
    seconds = as_seconds(timeout)
    if seconds:
        nodes.usual["timeout_s"] = seconds
        report.carried("options, stepTimeout", f"timeout_s: {seconds:g} in each node.")
    elif timeout is not None:
        report.left("options, stepTimeout", f"{shown(timeout, 40)} is no duration.")
    at_once = as_whole(fields.take("maxConcurrency", "max_concurrency"))
    if at_once is not None and 1 <= at_once <= 1000:
        draft.settings["max_concurrency"] = at_once
        report.carried("options, maxConcurrency", f"{at_once} nodes at work at once.")
    report.settle("options", fields)
