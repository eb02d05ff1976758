"""Read agents and steps, and build the node of a single step: prompt, incoming edges, a router for its condition.

Also translates expressions. Both sides use CEL, with different names: a step's output is `steps.ID.content` as text and
`steps.ID.result` as JSON, ids may contain hyphens, and a loop condition uses `content`, `result`, `status` and
`iteration`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from engine.expr import escape_template
from engine.importing.fields import AGENT_TOOLS, as_integer, as_text, map_tool
from engine.importing.report import FieldReader, ImportReport
from engine.importing.workflow_draft import WorkflowDraft
from engine.text_sanitizing import shown
from engine.values import as_list, as_object


@dataclass(frozen=True, slots=True)
class Step:
    """A step.

    Attributes:
        id: Its foreign id.
        agent: The name of its agent; empty for none.
        instructions: Its instructions.
        depends_on: The ids of the steps that it waits for and whose outputs it gets.
        loop: Its loop settings; None if it runs once.
        fields: Its other settings.
    """

    id: str
    agent: str
    instructions: str
    depends_on: tuple[str, ...]
    loop: dict[str, Any] | None
    fields: FieldReader

    @property
    def place(self) -> str:
        """How the report names the step."""
        return self.fields.place


def read_steps(entries: Sequence[object], report: ImportReport, prefix: str = "") -> list[Step]:
    """Read a list of steps, and report those without a usable id as left out."""
    steps: dict[str, Step] = {}
    for index, entry in enumerate(entries):
        members = as_object(entry)
        step_id = as_text(members.get("id"))
        place = f"step {prefix}{step_id}"
        fields = FieldReader({name: value for name, value in members.items() if name != "id"}, report, place)
        if not step_id or step_id in steps:
            report.left_out(f"step {prefix}{index + 1}", "It has no id, or the id of another step.")
            continue
        loop = fields.pop("loop")
        depends_on = fields.pop("dependsOn", "depends_on")
        names = [depends_on] if isinstance(depends_on, str) else as_list(depends_on)
        steps[step_id] = Step(
            step_id,
            as_text(fields.pop("agent")),
            as_text(fields.pop("instructions", "prompt")),
            tuple(dict.fromkeys(as_text(name) for name in names)),
            as_object(loop) if loop is not None else None,
            fields,
        )
    return list(steps.values())


def in_dependency_order(steps: Iterable[Step]) -> list[tuple[Step, tuple[str, ...]]]:
    """Order steps so that each follows its dependencies, which are returned beside it.

    Dependencies that do not exist or form a cycle are reported as left out.
    """
    waiting = {step.id: step for step in steps}
    known = set(waiting)
    needed: dict[str, tuple[str, ...]] = {}
    for step in waiting.values():
        needed[step.id] = tuple(name for name in step.depends_on if name in known and name != step.id)
        for name in step.depends_on:
            if name not in needed[step.id]:
                reason = "A step cannot depend on itself." if name == step.id else "This step does not exist."
                step.fields.left_out(f"dependsOn {shown(name, 60)}", reason)
    ordered: list[tuple[Step, tuple[str, ...]]] = []
    done: set[str] = set()
    while waiting:
        ready = [step for step in waiting.values() if done.issuperset(needed[step.id])]
        for step in ready or [next(iter(waiting.values()))]:
            for name in needed[step.id]:
                if name not in done:
                    step.fields.left_out(f"dependsOn {shown(name, 60)}", "The two steps wait for each other.")
            ordered.append((step, tuple(name for name in needed[step.id] if name in done)))
            done.add(step.id)
            del waiting[step.id]
    return ordered


def final_steps(ordered: Sequence[tuple[Step, tuple[str, ...]]]) -> list[str]:
    """The ids of the steps that no other step depends on."""
    needed = {name for _, dependencies in ordered for name in dependencies}
    return [step.id for step, _ in ordered if step.id not in needed]


_MAX_STOP_SEQUENCES: Final = 16


@dataclass(slots=True)
class Agent:
    """An agent.

    Attributes:
        config: The settings that all its nodes share.
        schema: The JSON Schema of its replies; None for free text.
    """

    config: dict[str, Any] = field(default_factory=dict[str, Any])
    schema: dict[str, Any] | None = None

    @property
    def node_type(self) -> str:
        """The type of its nodes."""
        return "agent" if self.config.get("tools") else "llm"


def read_agents(value: object, report: ImportReport) -> dict[str, Agent]:
    """Read the agents, by name."""
    return {name: _agent(name, as_object(members), report) for name, members in as_object(value).items()}


def _agent(name: str, members: dict[str, Any], report: ImportReport) -> Agent:
    fields = FieldReader(members, report, f"agent {shown(name, 60)}")
    agent = Agent()
    description = as_text(fields.pop("description")).strip()
    instructions = as_text(fields.pop("instructions", "systemPrompt", "system", "prompt")).strip()
    role = f"You are {name}: {description}" if description else f"You are {name}."
    agent.config["system"] = escape_template("\n\n".join(part for part in (role, instructions) if part))
    report.carried_over(fields.place, "The system prompt of its nodes.")
    if description:
        fields.carried_over("description", "Part of the system prompt.")
    if instructions:
        fields.carried_over("instructions", "Part of the system prompt.")
    fields.pop_model(agent.config, "provider", "runtime")
    fields.pop_sampling(agent.config)
    stop = as_list(fields.pop("stop", "stopSequences"))
    if texts := [text for text in stop if isinstance(text, str) and text]:
        agent.config["stop"] = texts[:_MAX_STOP_SEQUENCES]
        fields.carried_over("stop", "stop.")
    schema = fields.pop("resultSchema", "outputSchema")
    if isinstance(schema, dict):
        agent.schema = schema
        fields.carried_over("resultSchema", "Its nodes reply with JSON by this schema (reply_schema).")
    elif schema is not None:
        fields.left_out("resultSchema", "It is not a JSON Schema.")
    _read_tools(agent, fields)
    fields.report_rest()
    return agent


def _read_tools(agent: Agent, fields: FieldReader) -> None:
    tools: list[str] = []
    for foreign_name in map(as_text, as_list(fields.pop("tools"))):
        name, member = map_tool(foreign_name, AGENT_TOOLS), f"tools, {shown(foreign_name, 60)}"
        if name:
            tools.append(name)
            fields.mapped(member, f"{name}.", is_same=name == foreign_name)
        else:
            fields.left_out(member, "This tool does not exist here.")
    if not tools:
        return
    agent.config["tools"] = list(dict.fromkeys(tools))
    fields.pop_count(agent.config, "max_turns", "maxTurns", "max_turns", high=50, is_raised=True)
    fields.carried_over("tools", f"{', '.join(agent.config['tools'])}.")


_QUOTED: Final = r"""[rR]?'(?:\\.|[^'\\])*'|[rR]?"(?:\\.|[^"\\])*\""""
_MEMBER: Final = r"\s*\.\s*(?P<member>[A-Za-z_]\w*)"
_LOOP_NAME: Final = r"(?<![\w.])(?P<loop_name>content|result|status|iteration)\b(?!\s*\()"
_STATUS_TEST: Final = re.compile(r"""\s*[!=]=\s*(?:'(\w*)'|"(\w*)")""")
_STATUSES: Final = frozenset({"completed", "skipped"})
"""The statuses of a step that a later step can see here, where a failed step ends the run."""

REWRITE: Final = "Rewrite the expression; until then the workflow does not run."
"""What to do about an expression that was kept unchanged, so that its node has a problem."""

Resolve = Callable[[str | None, str], str]
"""Translates a member of a step, given by its foreign id, or None for the names of a loop condition. May raise
`UntranslatableError`."""


class UntranslatableError(Exception):
    """An expression uses a name that has no counterpart; the text says which."""


def translate_expression(expression: str, ids: Iterable[str], resolve: Resolve) -> str:
    """Translate a foreign expression. Quoted text is left unchanged.

    Args:
        expression: The foreign expression.
        ids: The ids of the steps that it may use.
        resolve: Translates a member of a step.

    Raises:
        UntranslatableError: It uses a name that has no counterpart.
    """
    known = "|".join(re.escape(step) for step in sorted(ids, key=len, reverse=True)) or r"(?!)"
    dotted = rf"(?<![\w.])steps\s*\.\s*(?P<step>{known})(?![\w-]){_MEMBER}"
    indexed = rf"(?<![\w.])steps\s*\[\s*['\"](?P<key>{known})['\"]\s*\]\s*\.\s*(?P<key_member>[A-Za-z_]\w*)"
    unknown = r"(?<![\w.])(?P<unknown>steps\b[\w.\-\s\[\]'\"]{0,80})"
    names = re.compile(f"(?P<quoted>{_QUOTED})|{dotted}|{indexed}|{unknown}|{_LOOP_NAME}")

    def translate(found: re.Match[str]) -> str:
        if found["quoted"] is not None:
            return found[0]
        if found["unknown"] is not None:
            name = shown(found["unknown"].strip(), 60)
            raise UntranslatableError(f'"{name}" is not a step whose output is available there')
        step = found["step"] if found["step"] is not None else found["key"]
        member = found["loop_name"] or found["member"] or found["key_member"]
        if member == "status":
            test = _STATUS_TEST.match(expression[found.end() :])
            if test is None or (test[1] or test[2]) not in _STATUSES:
                raise UntranslatableError(
                    "a step's status is `completed` or `skipped` here: a failed step ends the run"
                )
        return resolve(step, member)

    return names.sub(translate, expression)


def steps_in(expression: str, ids: Iterable[str]) -> list[str]:
    """The ids of the steps that an expression uses, in the order of their use.

    Raises:
        UntranslatableError: It uses a step that is not among them.
    """
    found: list[str] = []

    def collect(step: str | None, _member: str) -> str:
        if step is not None:
            found.append(step)
        return ""

    translate_expression(expression, ids, collect)
    return list(dict.fromkeys(found))


_RESERVED_NAMES: Final = frozenset({"loop", "state", "item", "index", "nodes", "input"})
_VARIABLE: Final = re.compile(r"\\\{\{\s*(iteration|index|item)\s*\}\}")
_MAX_RETRIES: Final = 20


@dataclass(frozen=True, slots=True)
class StepOutput:
    """The output of a converted step.

    Attributes:
        port: The output port: `draft.output`.
        name: The name of the value in prompts of other nodes.
        is_json: Whether the value is JSON.
    """

    port: str
    name: str
    is_json: bool


@dataclass(frozen=True, slots=True)
class BodyStart:
    """The start of a loop body, or of the nodes for one item.

    Attributes:
        port: The port at which the first nodes start: `loop.body`.
        prompt: The part of the first nodes' prompts that contains the iteration's input.
        variables: Placeholders here for `{{iteration}}`, `{{index}}` and `{{item}}` in instructions.
    """

    port: str
    prompt: str
    variables: Mapping[str, str]


@dataclass(slots=True)
class StepNodeBuilder:
    """Builds the nodes of steps.

    Attributes:
        draft: The workflow under construction.
        report: The import report.
        agents: The agents by name.
        default_config: Settings of every node.
        used_agents: The names of the agents that steps have used.
    """

    draft: WorkflowDraft
    report: ImportReport
    agents: Mapping[str, Agent]
    default_config: dict[str, Any] = field(default_factory=dict[str, Any])
    used_agents: set[str] = field(default_factory=set[str])

    def use_agent(self, name: str, fields: FieldReader) -> Agent:
        """Return the agent with that name, or one without settings if there is none."""
        if name and name not in self.agents:
            fields.left_out(f"agent {shown(name, 60)}", "It does not exist, so the node has no system prompt.")
        self.used_agents.add(name)
        return self.agents.get(name, Agent())

    def build(
        self,
        step: Step,
        dependencies: Mapping[str, StepOutput],
        body: BodyStart | None = None,
        *,
        wanted_id: str = "",
    ) -> StepOutput:
        """Build the node of a step.

        Args:
            step: The step.
            dependencies: The outputs of the steps that it depends on, by foreign id.
            body: The body that it starts; None if it starts none.
            wanted_id: The node's id; by default that of the step.
        """
        agent = self.use_agent(step.agent, step.fields)
        inputs = dict(dependencies)
        gated = None if body is not None else first_tested(step, dependencies)
        first = body.port if body is not None else dependencies[gated].port if gated is not None else None
        gate = self.add_condition(step, dependencies, first)
        parts = [self._instructions(step, body)]
        if body is not None:
            parts.append(body.prompt)
        if gate is not None and gated is not None:
            del inputs[gated]
            parts.append(f"Output of {escape_template(gated)}:\n{{{{input}}}}")
        parts += [f"Output of {escape_template(name)}:\n{{{{{one.name}}}}}" for name, one in inputs.items()]
        config = {**self.default_config, **agent.config, "prompt": "\n\n".join(part for part in parts if part)}
        if agent.schema is not None:
            config["reply_schema"] = agent.schema
        self.read_limits(step, config)
        node = self.draft.add(agent.node_type, wanted_id or step.id, step.id, config)
        for output in inputs.values():
            self.draft.connect(output.port, f"{node}.{output.name}")
        start = gate or (body.port if body is not None else None)
        if start is not None:
            self.draft.connect(start, f"{node}.input")
        is_same = node == (wanted_id or step.id)
        self.report.mapped(step.place, f'The node "{node}" ({agent.node_type}).', is_same=is_same)
        if step.agent in self.agents:
            step.fields.carried_over("agent", "Its system prompt and model.")
        if step.instructions.strip():
            step.fields.carried_over("instructions", "The prompt.")
        if step.depends_on and dependencies:
            step.fields.carried_over("dependsOn", "Edges from these steps.")
        step.fields.report_rest()
        name = node if node not in _RESERVED_NAMES else f"{node}_step"
        return StepOutput(f"{node}.output", name, agent.schema is not None)

    def _instructions(self, step: Step, body: BodyStart | None) -> str:
        text = escape_template(step.instructions.strip())
        variables: Mapping[str, str] = body.variables if body is not None else {}
        for name in dict.fromkeys(found[1] for found in _VARIABLE.finditer(text)):
            if name not in variables:
                step.fields.changed(f"{{{{{name}}}}}", "It has no value here, so it is plain text.")
        return _VARIABLE.sub(lambda found: variables.get(found[1], found[0]), text)

    def read_limits(self, step: Step, config: dict[str, Any]) -> None:
        """Convert the step's timeout and retries."""
        step.fields.pop_seconds(config, "timeout_s", "timeout")
        given = step.fields.pop("retries", "retry")
        retries = as_integer(as_object(given).get("max", as_object(given).get("maxAttempts"))) if given else None
        retries = as_integer(given) if retries is None else retries
        if retries is not None and retries >= 0:
            config["retries"] = min(retries, _MAX_RETRIES)
            step.fields.carried_over("retries", f"retries: {config['retries']}.")
        elif given is not None:
            step.fields.left_out("retries", f"{shown(given, 40)} is not a number of retries.")

    def add_condition(self, step: Step, dependencies: Mapping[str, StepOutput], first: str | None) -> str | None:
        """Add a router that skips a step unless its condition holds.

        Args:
            step: The step.
            dependencies: The outputs of the steps that it depends on.
            first: The port whose value passes the router.

        Returns:
            The port behind which the step runs; None if it has no condition.
        """
        condition = as_text(step.fields.pop("condition", "if")).strip()
        if not condition:
            return None
        if first is None:
            step.fields.left_out("condition", f"The step has no input to test. {REWRITE}")
            return self._keep_condition(step, condition, first)
        try:
            tested = steps_in(condition, dependencies)
            tests_input = all(dependencies[name].port == first for name in tested)
            resolve = member_resolver(dependencies, "input" if tests_input else "")
            rule = translate_expression(condition, dependencies, resolve)
        except UntranslatableError as error:
            step.fields.left_out("condition", f"{error}. {REWRITE}")
            return self._keep_condition(step, condition, first)
        router = self._add_router(step, rule if tests_input else "input.run")
        step.fields.changed("condition", f'The router "{router}" decides; if false, the step is skipped.')
        if tests_input:
            self.draft.connect(first, f"{router}.input")
            return f"{router}.run"
        return self._combine_inputs(step, router, rule, first, [dependencies[name] for name in tested])

    def _keep_condition(self, step: Step, condition: str, first: str | None) -> str:
        """Add a router with the foreign condition, which is a problem until the user rewrites it."""
        router = self._add_router(step, condition)
        if first is not None:
            self.draft.connect(first, f"{router}.input")
        return f"{router}.run"

    def _add_router(self, step: Step, rule: str) -> str:
        rules = {"run": rule, "skip": "else"}
        branches = [{"name": name, "description": "", "when": when} for name, when in rules.items()]
        return self.draft.add("router", f"{step.id}_if", f"Run {step.id}?", {"mode": "rules", "branches": branches})

    def _combine_inputs(self, step: Step, router: str, rule: str, first: str, tested: Sequence[StepOutput]) -> str:
        """Evaluate a rule on several steps before the router, which has one input.

        Returns:
            The port behind the router that gives the value of `first`.
        """
        expression = f'{{"run": {rule}, "value": input}}'
        test = self.draft.add(
            "transform", f"{step.id}_test", f"Test for {step.id}", {"mode": "expression", "expression": expression}
        )
        self.draft.connect(first, f"{test}.input")
        for output in tested:
            self.draft.connect(output.port, f"{test}.{output.name}")
        self.draft.connect(f"{test}.output", f"{router}.input")
        value = self.draft.add(
            "transform", f"{step.id}_go", f"Go to {step.id}", {"mode": "expression", "expression": "input.value"}
        )
        self.draft.connect(f"{router}.run", f"{value}.input")
        return f"{value}.output"


def first_tested(step: Step, dependencies: Mapping[str, StepOutput]) -> str | None:
    """The dependency that a step's condition uses first, else its first dependency, else None."""
    condition = as_text(step.fields.peek("condition", "if"))
    try:
        tested = steps_in(condition, dependencies)
    except UntranslatableError:
        tested = []
    return next(iter([*tested, *dependencies]), None)


def member_resolver(outputs: Mapping[str, StepOutput], name: str = "") -> Resolve:
    """Translate members of steps in a node that gets these outputs, each under its own name or all under one name."""

    def resolve(step: str | None, member: str) -> str:
        if step is None:
            raise UntranslatableError(f"`{member}` has a value only in a loop")
        return translate_member(name or outputs[step].name, outputs[step].is_json, member)

    return resolve


def translate_member(name: str, is_json: bool, member: str) -> str:
    """Translate a member of a step whose output is called `name`.

    Raises:
        UntranslatableError: It is not the content, the result or the status.
    """
    if member == "result":
        return name
    if member == "content":
        return f"string({name})" if is_json else name
    if member == "status":
        return f'({name} == null ? "skipped" : "completed")'
    raise UntranslatableError(f"a step has no `{shown(member, 40)}` here")
