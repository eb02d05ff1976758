"""The agents of a workflow in steps, as settings of our `llm` and `agent` nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from engine.document.importing.models import model_name
from engine.document.importing.report import Report
from engine.document.importing.tools import AGENT_TOOLS, our_tool
from engine.document.importing.values import Fields, as_list, as_number, as_object, as_text, as_whole
from engine.document.wording import shown


@dataclass(slots=True)
class Agent:
    """An agent.

    Attributes:
        config: The settings that every node of it has.
        schema: The JSON Schema of what it gives; None for free text.
        description: Who it is.
    """

    config: dict[str, Any] = field(default_factory=dict[str, Any])
    schema: dict[str, Any] | None = None
    description: str = ""

    @property
    def node_type(self) -> str:
        """The type of its nodes."""
        return "agent" if self.config.get("tools") else "llm"


def read_agents(value: object, report: Report) -> dict[str, Agent]:
    """The agents by name."""
    return {name: _agent(name, as_object(told), report) for name, told in as_object(value).items()}


def _agent(name: str, members: dict[str, Any], report: Report) -> Agent:
    fields, place = Fields(members), f"agent {shown(name, 60)}"
    agent = Agent(description=as_text(fields.take("description")).strip())
    more = as_text(fields.take("instructions", "systemPrompt", "system", "prompt")).strip()
    who = f"You are {name}." if not agent.description else f"You are {name}: {agent.description}"
    agent.config["system"] = escaped("\n\n".join(part for part in (who, more) if part))
    report.carried(place, "It is the system prompt of its nodes.")
    if agent.description:
        report.carried(f"{place}, description", "It stands in the system prompt.")
    if more:
        report.carried(f"{place}, instructions", "They stand in the system prompt.")
    _model(agent, fields, place, report)
    schema = fields.take("resultSchema", "outputSchema")
    if isinstance(schema, dict):
        agent.schema = schema
        report.carried(f"{place}, resultSchema", "Its nodes give JSON by that schema (reply_schema).")
    elif schema is not None:
        report.left(f"{place}, resultSchema", "It is no JSON Schema.")
    tools = [_tool(as_text(tool), place, report) for tool in as_list(fields.take("tools"))]
    if any(tools):
        agent.config["tools"] = list(dict.fromkeys(filter(None, tools)))
        turns = as_whole(fields.take("maxTurns", "max_turns"))
        if turns is not None:
            agent.config["max_turns"] = min(max(turns, 1), 50)
            told = report.carried if agent.config["max_turns"] == turns else report.changed
            told(f"{place}, maxTurns", f"max_turns: {agent.config['max_turns']}.")
        report.carried(f"{place}, tools", f"{', '.join(agent.config['tools'])}.")
    report.settle(place, fields)
    return agent


def _model(agent: Agent, fields: Fields, place: str, report: Report) -> None:
    name = as_text(fields.take("model")).strip()
    if name:
        provider = as_text(fields.take("provider", "runtime"))
        agent.config["model"], how = model_name(name, provider)
        if provider:
            report.carried(f"{place}, provider", "It stands before the model's name.")
        (report.carried if agent.config["model"] == name else report.changed)(f"{place}, model", how)
    temperature, tokens = as_number(fields.take("temperature")), as_whole(fields.take("maxTokens", "max_tokens"))
    if temperature is not None and 0 <= temperature <= 2:
        agent.config["temperature"] = temperature
        report.carried(f"{place}, temperature", f"{temperature:g}.")
    top_p, stop = as_number(fields.take("topP", "top_p")), as_list(fields.take("stop", "stopSequences"))
    if top_p is not None and 0 < top_p <= 1:
        agent.config["top_p"] = top_p
        report.carried(f"{place}, topP", f"top_p: {top_p:g}.")
    if texts := [text for text in stop if isinstance(text, str) and text]:
        agent.config["stop"] = texts[:16]
        report.carried(f"{place}, stop", "stop.")
    if tokens is not None and tokens >= 1:
        agent.config["max_tokens"] = tokens
        report.carried(f"{place}, maxTokens", f"max_tokens: {tokens}.")


def _tool(name: str, place: str, report: Report) -> str:
    ours = our_tool(name, AGENT_TOOLS)
    where = f"{place}, tools, {shown(name, 60)}"
    if not ours:
        report.left(where, "There is no such tool here.")
    else:
        (report.carried if ours == name else report.changed)(where, f"{ours}.")
    return ours


def escaped(text: str) -> str:
    """A text without names to fill in, as a template."""
    return text.replace("{{", "\\{{")
