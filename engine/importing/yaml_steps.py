"""Convert a workflow of agents and steps.

A step becomes a model node, its dependencies become edges. A step with a loop becomes an iterator with its aggregator
(`forEach`) or a loop with its exit. What the other program adds to a step's input by itself is written into the prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from engine.document.model import Workflow
from engine.document.problems import DocumentError
from engine.expr import escape_template
from engine.formatting import format_count
from engine.importing.fields import as_text, map_model
from engine.importing.report import FieldReader, ImportReport
from engine.importing.workflow_draft import WorkflowDraft
from engine.importing.yaml_steps_nodes import (
    REWRITE,
    BodyStart,
    Step,
    StepNodeBuilder,
    StepOutput,
    UntranslatableError,
    final_steps,
    first_tested,
    in_dependency_order,
    member_resolver,
    read_agents,
    read_steps,
    steps_in,
    translate_expression,
    translate_member,
)
from engine.text_sanitizing import shown
from engine.values import as_list, as_object

MAX_STEPS: Final = 1_000
_MAX_CONCURRENCY: Final = 1_000
_ITEM_PROMPT: Final = "Item {{index}}:\n{{input}}"
_LOOP_INPUT_PROMPT: Final = "{{loop.input}}"
_FEEDBACK_PROMPT: Final = '{{loop.index == 0 ? "" : "Output of the previous iteration:\\n" + string(input)}}'
_VERDICT_PROMPT: Final = (
    '{{loop.index == 0 || loop.history[loop.index - 1].reason == null ? "" : '
    '"Verdict of the judge: " + loop.history[loop.index - 1].reason}}'
)


def convert_steps(root: dict[str, Any], report: ImportReport, source: str, name: str) -> Workflow:
    """Convert agents and steps; see `ImporterSpec.convert`.

    Raises:
        DocumentError: There are too many steps.
    """
    members = {key: value for key, value in root.items() if key not in {"steps", "agents", "options"}}
    top = FieldReader(members, report, "")
    entries = as_list(root.get("steps"))
    count = len(entries) + sum(len(as_list(as_object(as_object(e).get("loop")).get("steps"))) for e in entries)
    if count > MAX_STEPS:
        message = f"{source}: The workflow has {format_count(count, 'step')}."
        raise DocumentError(message, f"At most {format_count(MAX_STEPS)} can be imported. Split the workflow.")
    draft = WorkflowDraft()
    agents = read_agents(root.get("agents"), report)
    nodes = StepNodeBuilder(draft, report, agents)
    _read_options(FieldReader(as_object(root.get("options")), report, "options"), nodes)
    model = as_text(top.pop("model", "defaultModel"))
    if model:
        draft.settings["model"], message = map_model(model)
        report.changed("model", message)
    subject = as_text(top.peek("description")) or as_text(top.peek("name")) or name
    _add_steps(read_steps(entries, report), nodes, LoopBuilder(nodes, subject))
    for agent in sorted(agents.keys() - nodes.used_agents):
        report.left_out(f"agent {shown(agent, 60)}", "No step uses this agent.")
    sections = {"steps": entries, "agents": as_object(root.get("agents")), "options": as_object(root.get("options"))}
    for key in sections.keys() & root.keys():
        if not sections[key]:
            report.left_out(key, "It is empty or malformed.")
    return draft.finish(top, name)


def _add_steps(steps: Sequence[Step], nodes: StepNodeBuilder, loops: LoopBuilder) -> None:
    outputs: dict[str, StepOutput] = {}
    ordered = in_dependency_order(steps)
    for step, names in ordered:
        dependencies = {name: outputs[name] for name in names}
        builder = nodes if step.loop is None else loops
        outputs[step.id] = builder.build(step, dependencies)
    for name in final_steps(ordered):
        output = nodes.draft.add("output", f"{name}_result", name, {"name": name})
        nodes.draft.connect(outputs[name].port, f"{output}.value")
        message = f'No other step depends on it, so its output is the workflow output "{shown(name, 60)}".'
        nodes.report.carried_over(f"step {name}", message)


def _read_options(fields: FieldReader, nodes: StepNodeBuilder) -> None:
    on_failure = as_text(fields.pop("onStepFailure", "on_step_failure")).lower()
    if on_failure == "abort":
        fields.carried_over("onStepFailure", "A failed node ends the run.")
    elif on_failure in {"continue", "skip", "skip-dependents", "skip_dependents"}:
        nodes.default_config["on_error"] = "branch"
        fields.changed("onStepFailure", "Nodes that depend on a failed node are skipped; the others run.")
    elif on_failure:
        message = f'"{shown(on_failure, 40)}" does not exist here; a failed node ends the run.'
        fields.left_out("onStepFailure", message)
    fields.pop_seconds(nodes.default_config, "timeout_s", "stepTimeout", "step_timeout")
    names = ("maxConcurrency", "max_concurrency")
    fields.pop_count(nodes.draft.settings, "max_concurrency", *names, high=_MAX_CONCURRENCY)
    fields.report_rest()


class LoopBuilder:
    """Builds the nodes of steps with loops.

    Args:
        nodes: Builds the nodes in the loops.
        subject: The input of a loop without dependencies.
    """

    def __init__(self, nodes: StepNodeBuilder, subject: str) -> None:
        self._nodes = nodes
        self._draft = nodes.draft
        self._report = nodes.report
        self._subject = subject

    def build(self, step: Step, dependencies: Mapping[str, StepOutput]) -> StepOutput:
        """Build the nodes of a step that has a loop."""
        fields = FieldReader(step.loop or {}, self._report, f"{step.place}, loop", ".")
        build = self._build_loop if fields.peek("forEach") is None else self._build_iterator
        output = build(step, fields, dependencies)
        fields.report_rest()
        if step.depends_on and dependencies:
            step.fields.carried_over("dependsOn", "Edges from these steps.")
        step.fields.report_rest()
        return output

    def _build_loop(self, step: Step, fields: FieldReader, dependencies: Mapping[str, StepOutput]) -> StepOutput:
        config: dict[str, Any] = {"max_iterations": 5, "inject_feedback": False}
        fields.pop_count(config, "max_iterations", "maxIterations", high=50, is_raised=True)
        judge = as_text(fields.pop("untilAgent"))
        self._read_judge(fields, judge, config)
        fields.pop_seconds(config, "delay_s", "delay", allow_zero=True)
        mode = as_text(fields.pop("outputMode"))
        if mode == "cumulative":
            config["output_mode"] = "all_iterations"
            fields.carried_over("outputMode", "output_mode: all_iterations.")
        elif mode:
            fields.carried_over("outputMode", "output_mode: final.")
        self._nodes.read_limits(step, config)
        gated = first_tested(step, dependencies)
        gate = self._read_condition(step, dependencies, config)
        loop = self._draft.add("loop", step.id, step.id, config)
        self._connect_inputs(loop, step, dependencies, gated, gate)
        prompts = [_LOOP_INPUT_PROMPT if dependencies else "", _FEEDBACK_PROMPT, _VERDICT_PROMPT if judge else ""]
        start = BodyStart(f"{loop}.body", "\n\n".join(filter(None, prompts)), {"iteration": "{{loop.index}}"})
        outputs, final = self._build_body(step, fields, {}, start)
        end = self._draft.add("exit", f"{step.id}_exit", f"{step.id} exit", {"loop": loop})
        for output in final:
            self._draft.connect(output.port, f"{end}.input")
        until = as_text(fields.pop("until")).strip()
        if until:
            self._read_until(fields, until, outputs, final, config)
        self._draft.config(loop).update(config)
        self._report.carried_over(fields.place, f'The loop "{loop}" with its exit "{end}".')
        return StepOutput(f"{end}.output", loop, is_json=len(final) == 1 and final[0].is_json)

    def _read_judge(self, fields: FieldReader, name: str, config: dict[str, Any]) -> None:
        if not name:
            return
        if name not in self._nodes.agents:
            # A judge without criteria is a problem of the loop, so the user has to decide how the loop ends.
            config["stop_when"] = [{"condition": "judge"}]
            message = f"The agent {shown(name, 60)} does not exist. Write the judge's criteria before you run."
            fields.left_out("untilAgent", message)
            return
        agent = self._nodes.use_agent(name, fields)
        criteria = agent.config.get("system") or "The work is complete."
        judge: dict[str, Any] = {"criteria": f"{criteria}\n\nReply that it is done only if nothing is left to do."}
        judge |= {key: agent.config[key] for key in ("model", "temperature") if key in agent.config}
        config |= {"stop_when": [{"condition": "judge"}], "judge": judge}
        fields.carried_over("untilAgent", "The loop's judge, which replies with `done`, a reason and a score.")
        if agent.config.get("tools"):
            self._report.left_out(f"agent {shown(name, 60)}, tools", "The judge of a loop has no tools here.")

    def _read_condition(self, step: Step, dependencies: Mapping[str, StepOutput], config: dict[str, Any]) -> str | None:
        """Convert the condition of a loop: one on the loop's only input is a setting, any other needs a router.

        Returns:
            The port behind the router; None if there is no router.
        """
        if len(dependencies) == 1 and step.fields.peek("condition") is not None:
            condition = as_text(step.fields.pop("condition"))
            try:
                resolve = member_resolver(dependencies, "input")
                config["condition"] = translate_expression(condition, dependencies, resolve)
            except UntranslatableError as error:
                config["condition"] = condition
                step.fields.left_out("condition", f"{error}. {REWRITE}")
            else:
                step.fields.carried_over("condition", "If false, the loop is skipped and its input passes through.")
            return None
        gated = first_tested(step, dependencies)
        return self._nodes.add_condition(step, dependencies, dependencies[gated].port if gated is not None else None)

    def _connect_inputs(
        self, loop: str, step: Step, dependencies: Mapping[str, StepOutput], gated: str | None, gate: str | None
    ) -> None:
        """Connect the loop to its dependencies: one of them through the gate, or a start text if there are none."""
        for name, output in dependencies.items():
            self._draft.connect(gate if gate is not None and name == gated else output.port, f"{loop}.input")
        if not dependencies:
            template = {"mode": "template", "template": escape_template(self._subject)}
            start = self._draft.add("transform", f"{step.id}_start", "Start", template)
            self._draft.connect(f"{start}.output", f"{loop}.input")
            step.fields.changed("loop", "It depends on no step, so a text is its first input.")

    def _read_until(
        self,
        fields: FieldReader,
        until: str,
        outputs: Mapping[str, StepOutput],
        final: Sequence[StepOutput],
        config: dict[str, Any],
    ) -> None:
        def resolve(name: str | None, member: str) -> str:
            if name is not None:
                node = outputs[name].port.partition(".")[0]
                return translate_member(f"nodes.{node}", outputs[name].is_json, member)
            if member == "iteration":
                return "loop.index"
            return translate_member("output", bool(final) and final[0].is_json, member)

        try:
            expression = translate_expression(until, outputs, resolve)
        except UntranslatableError as error:
            expression = until
            fields.left_out("until", f"{error}. {REWRITE}")
        else:
            fields.mapped("until", f"until: {expression}", is_same=expression == until)
        config["stop_when"] = [{"condition": "until", "expression": expression}, *config.get("stop_when", [])]

    def _build_iterator(self, step: Step, fields: FieldReader, dependencies: Mapping[str, StepOutput]) -> StepOutput:
        config: dict[str, Any] = {"on_empty": "fail"}
        fields.pop_count(config, "max_concurrency", "maxConcurrency", low=0, high=_MAX_CONCURRENCY)
        for name in ("until", "untilAgent", "maxIterations", "delay"):
            if fields.pop(name) is not None:
                fields.left_out(name, "It cannot be combined with forEach.")
        self._nodes.read_limits(step, config)
        source, used = self._read_items(step, fields, dependencies, config)
        gated = first_tested(step, dependencies)
        first = source or (dependencies[gated].port if gated is not None else None)
        start = self._nodes.add_condition(step, dependencies, first) or source
        iterator = self._draft.add("iterator", step.id, step.id, config)
        if start is not None:
            self._draft.connect(start, f"{iterator}.items")
        body_start = BodyStart(f"{iterator}.item", _ITEM_PROMPT, {"item": "{{input}}", "index": "{{index}}"})
        others = {name: output for name, output in dependencies.items() if name not in used}
        _, final = self._build_body(step, fields, others, body_start)
        mode = "join" if as_text(fields.pop("outputMode")) == "cumulative" else "collect"
        settings = {"iterator": iterator, "mode": mode}
        end = self._draft.add("aggregator", f"{step.id}_results", f"{step.id} results", settings)
        for output in final:
            self._draft.connect(output.port, f"{end}.input")
        if mode == "join":
            fields.carried_over("outputMode", "All results in one text.")
        else:
            fields.changed("outputMode", "The output is a list of all results, in the order of the items.")
        self._report.carried_over(fields.place, f'The iterator "{iterator}" with its aggregator "{end}".')
        return StepOutput(f"{end}.output", iterator, is_json=mode == "collect")

    def _read_items(
        self, step: Step, fields: FieldReader, dependencies: Mapping[str, StepOutput], config: dict[str, Any]
    ) -> tuple[str | None, list[str]]:
        """Convert the items of an iterator.

        Returns:
            The port that provides them, if any, and the steps that their expression uses.
        """
        given = fields.pop("forEach")
        items, text = as_list(given), as_text(given)
        if items or not text:
            config |= {"source": "list", "items": items}
            if items:
                fields.carried_over("forEach", f"The list of {len(items)} items.")
            else:
                fields.left_out("forEach", "It has no items. Write the list.")
            return None, []
        config["source"] = "expression"
        try:
            used = steps_in(text, dependencies)
            if len(used) == 1:
                output = dependencies[used[0]]
                config["expression"] = translate_expression(
                    text, dependencies, lambda _, member: translate_member("items", output.is_json, member)
                )
                fields.carried_over("forEach", f"expression: {config['expression']}")
                return output.port, used
            expression = translate_expression(text, dependencies, member_resolver(dependencies))
        except UntranslatableError as error:
            config |= {"source": "list", "items": []}
            fields.left_out("forEach", f"{error}. Write the list of items.")
            return None, []
        if not used:
            config["expression"] = expression
            fields.carried_over("forEach", f"expression: {expression}")
            return None, []
        settings = {"mode": "expression", "expression": expression}
        node = self._draft.add("transform", f"{step.id}_items", "Items", settings)
        for name in used:
            self._draft.connect(dependencies[name].port, f"{node}.{dependencies[name].name}")
        config["source"] = "port"
        fields.changed("forEach", f'The node "{node}" builds the list.')
        return f"{node}.output", used

    def _build_body(
        self, step: Step, fields: FieldReader, others: Mapping[str, StepOutput], start: BodyStart
    ) -> tuple[dict[str, StepOutput], list[StepOutput]]:
        """Build the nodes in a loop. Its first nodes get the outputs `others` from outside.

        Returns:
            All outputs by foreign id, and those that no other step in the loop uses.
        """
        entries = as_list(fields.pop("steps"))
        if not entries:
            fields = FieldReader({}, self._report, step.place)
            single = Step(step.id, step.agent, step.instructions, (), None, fields)
            return {}, [self._nodes.build(single, others, start, wanted_id=f"{step.id}_step")]
        fields.carried_over("steps", f"{len(entries)} steps in its body.")
        for name, given in (("agent", step.agent), ("instructions", step.instructions)):
            if given:
                step.fields.left_out(name, "The steps in its loop are used instead.")
        inner = read_steps(entries, self._report, f"{step.id}.")
        ordered = in_dependency_order(inner)
        outputs: dict[str, StepOutput] = {}
        for part, names in ordered:
            if part.loop is not None:
                message = "This format has no nested loops, so the step runs once."
                part.fields.left_out("loop", message)
            dependencies = {**({} if names else others), **{name: outputs[name] for name in names}}
            outputs[part.id] = self._nodes.build(part, dependencies, start if not names else None)
        return outputs, [outputs[name] for name in final_steps(ordered)]
