"""Steps and agents of a foreign file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from engine.importing.fields import FieldReader, as_integer, as_list, as_number, as_object, as_text
from engine.importing.name_mapping import AGENT_TOOLS, map_model, map_tool
from engine.importing.report import ImportReport
from engine.text_sanitizing import shown


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
        prefix: The path of the step that contains it, for the report.
    """

    id: str
    agent: str
    instructions: str
    depends_on: tuple[str, ...]
    loop: dict[str, Any] | None
    fields: FieldReader
    prefix: str = ""

    @property
    def place(self) -> str:
        """How the report names the step."""
        return f"step {self.prefix}{self.id}"


def read_steps(entries: Sequence[object], report: ImportReport, prefix: str = "") -> list[Step]:
    """Read a list of steps, and report those without a usable id as left out."""
    steps: dict[str, Step] = {}
    for index, entry in enumerate(entries):
        members = as_object(entry)
        step_id = as_text(members.get("id"))
        fields = FieldReader({name: value for name, value in members.items() if name != "id"})
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
            prefix,
        )
    return list(steps.values())


def in_dependency_order(steps: Iterable[Step], report: ImportReport) -> list[tuple[Step, tuple[str, ...]]]:
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
                report.left_out(f"{step.place}, dependsOn {shown(name, 60)}", reason)
    ordered: list[tuple[Step, tuple[str, ...]]] = []
    done: set[str] = set()
    while waiting:
        ready = [step for step in waiting.values() if done.issuperset(needed[step.id])]
        for step in ready or [next(iter(waiting.values()))]:
            for name in needed[step.id]:
                if name not in done:
                    report.left_out(f"{step.place}, dependsOn {shown(name, 60)}", "The two steps wait for each other.")
            ordered.append((step, tuple(name for name in needed[step.id] if name in done)))
            done.add(step.id)
            del waiting[step.id]
    return ordered


def final_steps(ordered: Sequence[tuple[Step, tuple[str, ...]]]) -> list[str]:
    """The ids of the steps that no other step depends on."""
    needed = {name for _, dependencies in ordered for name in dependencies}
    return [step.id for step, _ in ordered if step.id not in needed]


_MAX_TURNS: Final = 50
_MAX_STOP_SEQUENCES: Final = 16
_MAX_TEMPERATURE: Final = 2


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
    fields, place = FieldReader(members), f"agent {shown(name, 60)}"
    agent = Agent()
    description = as_text(fields.pop("description")).strip()
    instructions = as_text(fields.pop("instructions", "systemPrompt", "system", "prompt")).strip()
    role = f"You are {name}: {description}" if description else f"You are {name}."
    agent.config["system"] = escape_placeholders("\n\n".join(part for part in (role, instructions) if part))
    report.carried_over(place, "The system prompt of its nodes.")
    if description:
        report.carried_over(f"{place}, description", "Part of the system prompt.")
    if instructions:
        report.carried_over(f"{place}, instructions", "Part of the system prompt.")
    _read_model(agent, fields, place, report)
    schema = fields.pop("resultSchema", "outputSchema")
    if isinstance(schema, dict):
        agent.schema = schema
        report.carried_over(f"{place}, resultSchema", "Its nodes reply with JSON by this schema (reply_schema).")
    elif schema is not None:
        report.left_out(f"{place}, resultSchema", "It is not a JSON Schema.")
    _read_tools(agent, fields, place, report)
    report.report_rest(place, fields)
    return agent


def _read_tools(agent: Agent, fields: FieldReader, place: str, report: ImportReport) -> None:
    tools = [_tool(as_text(tool), place, report) for tool in as_list(fields.pop("tools"))]
    if not any(tools):
        return
    agent.config["tools"] = list(dict.fromkeys(filter(None, tools)))
    turns = as_integer(fields.pop("maxTurns", "max_turns"))
    if turns is not None:
        agent.config["max_turns"] = min(max(turns, 1), _MAX_TURNS)
        add_entry = report.carried_over if agent.config["max_turns"] == turns else report.changed
        add_entry(f"{place}, maxTurns", f"max_turns: {agent.config['max_turns']}.")
    report.carried_over(f"{place}, tools", f"{', '.join(agent.config['tools'])}.")


def _tool(foreign_name: str, place: str, report: ImportReport) -> str:
    name = map_tool(foreign_name, AGENT_TOOLS)
    tool_place = f"{place}, tools, {shown(foreign_name, 60)}"
    if not name:
        report.left_out(tool_place, "This tool does not exist here.")
    else:
        (report.carried_over if name == foreign_name else report.changed)(tool_place, f"{name}.")
    return name


def _read_model(agent: Agent, fields: FieldReader, place: str, report: ImportReport) -> None:
    name = as_text(fields.pop("model")).strip()
    if name:
        provider = as_text(fields.pop("provider", "runtime"))
        agent.config["model"], message = map_model(name, provider)
        if provider:
            report.carried_over(f"{place}, provider", "It is the prefix of the model's name.")
        (report.carried_over if agent.config["model"] == name else report.changed)(f"{place}, model", message)
    temperature, tokens = as_number(fields.pop("temperature")), as_integer(fields.pop("maxTokens", "max_tokens"))
    if temperature is not None and 0 <= temperature <= _MAX_TEMPERATURE:
        agent.config["temperature"] = temperature
        report.carried_over(f"{place}, temperature", f"{temperature:g}.")
    top_p, stop = as_number(fields.pop("topP", "top_p")), as_list(fields.pop("stop", "stopSequences"))
    if top_p is not None and 0 < top_p <= 1:
        agent.config["top_p"] = top_p
        report.carried_over(f"{place}, topP", f"top_p: {top_p:g}.")
    if texts := [text for text in stop if isinstance(text, str) and text]:
        agent.config["stop"] = texts[:_MAX_STOP_SEQUENCES]
        report.carried_over(f"{place}, stop", "stop.")
    if tokens is not None and tokens >= 1:
        agent.config["max_tokens"] = tokens
        report.carried_over(f"{place}, maxTokens", f"max_tokens: {tokens}.")


def escape_placeholders(text: str) -> str:
    """Escape a foreign text so that it is a template without placeholders."""
    return text.replace("{{", "\\{{")
