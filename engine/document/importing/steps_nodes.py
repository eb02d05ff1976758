"""Single steps as nodes: the prompt, the edges from what they depend on, and the router where they have a condition."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from engine.document.importing.draft import Draft
from engine.document.importing.report import Report
from engine.document.importing.steps_agents import Agent, escaped
from engine.document.importing.steps_expressions import REWRITE, CannotSayError, rewritten, steps_named
from engine.document.importing.steps_model import Step
from engine.document.importing.values import as_object, as_seconds, as_text, as_whole
from engine.document.wording import shown

_RESERVED: Final = frozenset({"loop", "state", "item", "index", "nodes", "input"})
_VARIABLE: Final = re.compile(r"\\\{\{\s*(iteration|index|item)\s*\}\}")


@dataclass(frozen=True, slots=True)
class Made:
    """What a step has become.

    Attributes:
        port: The port that gives its output: `draft.output`.
        name: What prompts of other nodes call it.
        is_json: Whether it gives JSON.
    """

    port: str
    name: str
    is_json: bool


@dataclass(frozen=True, slots=True)
class Body:
    """The part that a node lies in.

    Attributes:
        port: The port that its first nodes hang on: `loop.body`.
        prompt: What the prompts of its first nodes say about what arrives there.
        variables: Our words for `{{iteration}}`, `{{index}}` and `{{item}}` in instructions.
    """

    port: str
    prompt: str
    variables: Mapping[str, str]


class NodeMaker:
    """Makes nodes of steps.

    Attributes:
        draft: The document so far.
        report: Told what became of each thing.
        agents: The agents by name.
        usual: Settings of every node of a step.
        used_agents: The names of the agents that a step has used.
    """

    def __init__(self, draft: Draft, report: Report, agents: Mapping[str, Agent]) -> None:
        self.draft = draft
        self.report = report
        self.agents = agents
        self.usual: dict[str, Any] = {}
        self.used_agents: set[str] = set()

    def agent(self, name: str, place: str) -> Agent:
        """The agent of that name; one without settings where there is none."""
        if name and name not in self.agents:
            self.report.left(
                f"{place}, agent {shown(name, 60)}", "There is no such agent; the model has no system prompt."
            )
        self.used_agents.add(name)
        return self.agents.get(name, Agent())

    def make(
        self, step: Step, before: Mapping[str, Made], body: Body | None = None, *, title: str = "", wish: str = ""
    ) -> Made:
        """Make the node of a step.

        Args:
            step: The step.
            before: What it depends on, by foreign id.
            body: The part that it begins; None where it begins none.
            title: What people call it; the step's id unless given.
            wish: What its id should be; the step's own unless given.
        """
        agent = self.agent(step.agent, step.place)
        seen = dict(before)
        passed = None if body is not None else first_tested(step, before)
        first = body.port if body is not None else before[passed].port if passed is not None else None
        gate = self.gate(step, before, first)
        parts = [self._instructions(step, body)]
        if body is not None:
            parts.append(body.prompt)
        if gate is not None and passed is not None:
            del seen[passed]
            parts.append(f"What {escaped(passed)} gave:\n{{{{input}}}}")
        parts.extend(f"What {escaped(name)} gave:\n{{{{{made.name}}}}}" for name, made in seen.items())
        config = {**self.usual, **agent.config, "prompt": "\n\n".join(part for part in parts if part)}
        if agent.schema is not None:
            config["reply_schema"] = agent.schema
        self.limits(step, config)
        node = self.draft.add(agent.node_type, wish or step.id, title or step.id, config)
        for made in seen.values():
            self.draft.connect(made.port, f"{node}.{made.name}")
        start = gate or (body.port if body is not None else None)
        if start is not None:
            self.draft.connect(start, f"{node}.input")
        told = self.report.carried if node == (wish or step.id) else self.report.changed
        told(step.place, f'The node "{node}" ({agent.node_type}).')
        self._tell_parts(step, before)
        self.report.settle(step.place, step.fields)
        return Made(f"{node}.output", node if node not in _RESERVED else f"{node}_step", agent.schema is not None)

    def _tell_parts(self, step: Step, before: Mapping[str, Made]) -> None:
        """Say of the parts of a step that were read with it where they are now."""
        told = {
            "agent": ("Its system prompt and model.", step.agent in self.agents),
            "instructions": ("The prompt.", step.instructions.strip()),
            "dependsOn": ("Edges from there.", step.depends and before),
        }
        for name, (message, is_there) in told.items():
            if is_there:
                self.report.carried(f"{step.place}, {name}", message)

    def _instructions(self, step: Step, body: Body | None) -> str:
        text = escaped(step.instructions.strip())
        for name in dict.fromkeys(found[1] for found in _VARIABLE.finditer(text)):
            if body is None or name not in body.variables:
                self.report.changed(f"{step.place}, {{{{{name}}}}}", "It stands as plain text: it has no value there.")
        return _VARIABLE.sub(
            lambda found: body.variables.get(found[1], found[0]) if body is not None else found[0], text
        )

    def limits(self, step: Step, config: dict[str, Any]) -> None:
        """Take over the step's time limit and retries."""
        given = step.fields.take("timeout")
        seconds = as_seconds(given)
        if seconds is not None and seconds > 0:
            config["timeout_s"] = seconds
            self.report.carried(f"{step.place}, timeout", f"timeout_s: {seconds:g}.")
        elif given is not None:
            self.report.left(f"{step.place}, timeout", f"{shown(given, 40)} is no duration.")
        given = step.fields.take("retries", "retry")
        retries = as_whole(as_object(given).get("max", as_object(given).get("maxAttempts"))) if given else None
        retries = as_whole(given) if retries is None else retries
        if retries is not None and retries >= 0:
            config["retries"] = min(retries, 20)
            self.report.carried(f"{step.place}, retries", f"retries: {config['retries']}.")
        elif given is not None:
            self.report.left(f"{step.place}, retries", f"{shown(given, 40)} is no number of retries.")

    def gate(self, step: Step, before: Mapping[str, Made], first: str | None) -> str | None:
        """The router that lets a step run only on its condition: the port behind which it runs. None without one.

        Args:
            step: The step; its condition is used up.
            before: What it depends on.
            first: The port whose value passes the router.
        """
        condition = as_text(step.fields.take("condition", "if")).strip()
        if not condition:
            return None
        where = f"{step.place}, condition"
        if first is None:
            self.report.left(where, f"Nothing leads to the step that it could be tested on. {REWRITE}")
            return self._undecided(step, condition, first)
        try:
            named = steps_named(condition, before)
            is_plain = all(before[name].port == first for name in named)
            rule = rewritten(condition, before, lambda name, member: _tested(name, member, before, is_plain=is_plain))
        except CannotSayError as error:
            self.report.left(where, f"{error}. {REWRITE}")
            return self._undecided(step, condition, first)
        node = self._router(step, rule if is_plain else "input.run")
        self.report.changed(where, f'The router "{node}" decides; where it is false, the step is skipped.')
        if is_plain:
            self.draft.connect(first, f"{node}.input")
            return f"{node}.run"
        return self._around(step, node, rule, first, [before[name] for name in named])

    def _undecided(self, step: Step, condition: str, first: str | None) -> str:
        """A router with the condition as it was, which has a problem until a person writes the condition anew."""
        node = self._router(step, condition)
        if first is not None:
            self.draft.connect(first, f"{node}.input")
        return f"{node}.run"

    def _router(self, step: Step, rule: str) -> str:
        rules = {"run": rule, "skip": "else"}
        branches = [{"name": name, "description": "", "when": when} for name, when in rules.items()]
        return self.draft.add("router", f"{step.id}_if", f"Run {step.id}?", {"mode": "rules", "branches": branches})

    def _around(self, step: Step, router: str, rule: str, first: str, named: Sequence[Made]) -> str:
        """Lead what a rule on several steps needs through a router's one input: the port behind that gives `first`."""
        formula = f'{{"run": {rule}, "value": input}}'
        test = self.draft.add(
            "transform", f"{step.id}_test", f"Test for {step.id}", {"mode": "expression", "expression": formula}
        )
        self.draft.connect(first, f"{test}.input")
        for made in named:
            self.draft.connect(made.port, f"{test}.{made.name}")
        self.draft.connect(f"{test}.output", f"{router}.input")
        go = self.draft.add(
            "transform", f"{step.id}_go", f"Go to {step.id}", {"mode": "expression", "expression": "input.value"}
        )
        self.draft.connect(f"{router}.run", f"{go}.input")
        return f"{go}.output"


def first_tested(step: Step, before: Mapping[str, Made]) -> str | None:
    """The step that a condition names first of those depended on; else the first of them; None without any."""
    condition = as_text(step.fields.peek("condition", "if"))
    try:
        named = steps_named(condition, before)
    except CannotSayError:
        named = []
    return next(iter([*named, *before]), None)


def _tested(name: str | None, member: str, before: Mapping[str, Made], *, is_plain: bool) -> str:
    if name is not None and is_plain:
        return output_word("input", before[name].is_json, member)
    return port_word(name, member, before)


def port_word(step: str | None, member: str, before: Mapping[str, Made]) -> str:
    """Our words, in a node that edges from these steps lead to, for a member of one of them.

    Raises:
        CannotSayError: It has none.
    """
    if step is None:
        raise CannotSayError(f"`{member}` has a value only in a loop")
    return output_word(before[step].name, before[step].is_json, member)


def output_word(name: str, is_json: bool, member: str) -> str:
    """Our words for a member of a step whose output is called `name`.

    Raises:
        CannotSayError: It is neither the content nor the result nor the status.
    """
    if member == "result":
        return name
    if member == "content":
        return f"string({name})" if is_json else name
    if member == "status":
        return f'({name} == null ? "skipped" : "completed")'
    raise CannotSayError(f"a step has no `{shown(member, 40)}` here: one that fails ends the run")
