"""Capabilities that a workflow would use on this computer and on the network, so that a person can consent.

They are read from the document; nothing is looked up, opened or called. Models at their usual servers are not included:
they have prices and budgets.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import ValidationError

from engine.document.model import Settings, Workflow
from engine.errors import EngineError, Fix
from engine.formatting import format_money, indent_lines
from engine.models.protocol import reads_this_machine
from engine.nodes.agent_tools import AgentConfig
from engine.nodes.spec import NodeConfig
from engine.nodes.subflow import SubflowConfig
from engine.nodes.tool import ToolConfig
from engine.plan.execution_plan import GraphPlan
from engine.plan.structure import Structure, analyse
from engine.text_sanitizing import visible
from engine.tools.registry import all_tools
from engine.tools.tool import Consent
from engine.values import compact_json


class CodeNotAllowedError(EngineError):
    """A workflow runs code, which is not allowed."""


def tools_of(config: NodeConfig) -> tuple[str, ...]:
    """Return the names of the tools that a node may call."""
    if isinstance(config, ToolConfig):
        return (config.tool,)
    return tuple(config.tools) if isinstance(config, AgentConfig) else ()


def refuse_code(graph: GraphPlan) -> None:
    """Refuse a workflow that would run code, before anything runs.

    Raises:
        CodeNotAllowedError: A node may call a tool that runs code.
    """
    known = all_tools()
    for node, tool in tools_in(graph):
        if tool in known and known[tool].runs_code:
            raise CodeNotAllowedError(
                f'"{node}" may call the tool "{tool}", which runs code on this computer. This run does not allow that.',
                "If you trust the workflow, allow it to run code.",
                fix=Fix.ALLOW_CODE,
            )


def tools_in(graph: GraphPlan) -> Iterator[tuple[str, str]]:
    """Yield the title of each node that runs and may call a tool, at any depth, with the tool's name."""
    for node in graph.nodes:
        if node.does_work:
            yield from ((node.title, name) for name in tools_of(node.config))
        if node.body is not None and node.pinned is None:
            yield from tools_in(node.body)


_OURS: Final = "engine."


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Capabilities that a workflow would use: each once, in full, as plain text without hidden characters.

    Attributes:
        tools: Tools and what they do.
        hosts: Hosts in the document, other than the usual ones of model providers.
        commands: Commands and code in the document.
        calls: Arguments in the document for tools of servers.
        unknown: Values that an edge or a model provides during the run; a person is asked then.
        models: Models that read this computer's history or files.
        workflows: Files of other workflows in it.
        plugins: Node types from plugins.
        prices: Prices in the document, and whether it allows models of unknown price. Budgets use them, so a wrong
            price lets a run spend more than the person allows.
    """

    tools: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    workflows: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    prices: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))

    def lines(self) -> list[str]:
        """Return an entry for each capability: `Tool: read_file (reads a text file)`; further lines are indented."""
        kinds = (
            ("Tool", self.tools),
            ("Host", self.hosts),
            ("Command", self.commands),
            ("Call", self.calls),
            ("Known only during the run, and asked for then", self.unknown),
            ("Reads from this computer's history or files", self.models),
            ("Workflow", self.workflows),
            ("Node type of a plugin", self.plugins),
            ("Prices in the file", self.prices),
        )
        return [f"{kind}: {indent_lines(thing)}" for kind, things in kinds for thing in things]


def capabilities_of(workflow: Workflow) -> Capabilities:
    """Return the capabilities of a workflow and its subflows; the workflow may have problems."""
    return capabilities_in(analyse(workflow))


def capabilities_in(structure: Structure) -> Capabilities:
    """Return the capabilities of an analysed workflow."""
    found: dict[str, dict[str, None]] = {field.name: {} for field in fields(Capabilities)}
    for kind, thing in chain(_found(structure), _prices(structure.workflow)):
        found[kind][visible(thing)] = None
    return Capabilities(**{kind: tuple(things) for kind, things in found.items()})


def fingerprint(workflow: Workflow) -> str:
    """Return a hash of the parts of a document that affect its runs, without names and layout."""
    document = workflow.to_json()
    relevant = {key: document.get(key) for key in ("settings", "nodes", "edges")}
    return hashlib.sha256(json.dumps(relevant, sort_keys=True).encode()).hexdigest()


def _found(structure: Structure) -> Iterator[tuple[str, str]]:
    known = all_tools()
    connected_ports = {edge.target for edge in structure.workflow.edges}
    usual = structure.workflow.settings.get("model")
    yield from _models((usual,))
    for node in structure.resolution.nodes.values():
        config: Any = node.config
        if not node.spec.config.__module__.startswith(_OURS):
            yield "plugins", node.type
        for name in tools_of(config):
            if name in known:
                yield "tools", f"{name} ({known[name].help.rstrip('.')})"
        if isinstance(config, ToolConfig):
            yield from _from_arguments(config)
            connected = [port for port in node.inputs if (node.id, port) in connected_ports]
            yield from _from_edges(structure.resolution.name(node.id), config, connected)
        if isinstance(config, AgentConfig):
            agent = structure.resolution.name(node.id)
            asked = (name for name in config.tools if name in known and known[name].consents_to_calls)
            yield from (("unknown", f"the calls of {name} that the model of “{agent}” makes") for name in asked)
        if isinstance(config, SubflowConfig):
            yield "workflows", config.file
        for settings in (config, getattr(config, "judge", None)):
            host = _host(getattr(settings, "api_base", None))
            if host:
                yield "hosts", host
            yield from _models((getattr(settings, "model", None), *getattr(settings, "fallback_models", ())))
    for inner in structure.subflows.values():
        yield from _found(inner)


def _prices(workflow: Workflow) -> Iterator[tuple[str, str]]:
    """Yield the prices in the settings; those of subflows have no effect."""
    try:
        settings = Settings.model_validate(workflow.settings)
    except ValidationError:  # then it does not run
        return
    for model, price in settings.prices.items():
        per_million = (
            f"{format_money(price.input_usd_per_million)} input and {format_money(price.output_usd_per_million)} output"
        )
        yield "prices", f"{model} costs {per_million} per million tokens"
    if settings.allow_unknown_price:
        yield "prices", "models of unknown price may be used, and count as free"


def _models(names: Iterable[object]) -> Iterator[tuple[str, str]]:
    yield from (("models", name) for name in names if isinstance(name, str) and reads_this_machine(name))


def _from_arguments(config: ToolConfig) -> Iterator[tuple[str, str]]:
    """Yield the addresses, commands and arguments in the settings of a tool."""
    known = all_tools().get(config.tool)
    if known is not None and known.consent is Consent.CALL and config.arguments:
        yield "calls", f"{config.tool} {compact_json(config.arguments)}"
    for value in config.arguments.values():
        if isinstance(value, str) and known is not None and known.runs_code:
            yield "commands", value
        elif isinstance(value, str) and (host := _host(value)):
            yield "hosts", host


def _from_edges(node_name: str, config: ToolConfig, ports: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the values from edges to a tool that need consent."""
    known = all_tools().get(config.tool)
    if known is None:
        return
    if known.consents_to_calls:
        yield from (("unknown", f"the {port} of “{node_name}” ({config.tool})") for port in ports)
    elif known.consent is Consent.HOST and "url" in ports:
        yield "unknown", f"the host that “{node_name}” ({config.tool}) reaches"


def _host(address: object) -> str:
    if not isinstance(address, str):
        return ""
    try:
        parts = urlsplit(address.strip())
    except ValueError:
        return address
    return (parts.hostname or "") if parts.scheme in {"http", "https"} else ""
