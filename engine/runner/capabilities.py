"""What a workflow would use of this machine and of the network, so that a person can be asked before its first run.

It is read off the document; nothing is looked up, opened or called. Models called where they are served usually are no
part of it: they say what they cost, and have limits of their own.
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
from engine.errors import EngineError
from engine.formatting import format_money, indent_lines
from engine.models.protocol import RECORDED_PREFIX, SCRIPTED_PREFIX
from engine.nodes.agent_tools import AgentConfig
from engine.nodes.node_registry import Registry
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
    """A workflow runs code, and nobody has allowed it."""


def tools_of(config: NodeConfig) -> tuple[str, ...]:
    """The tools that a node with these settings may call, by name."""
    if isinstance(config, ToolConfig):
        return (config.tool,)
    return tuple(config.tools) if isinstance(config, AgentConfig) else ()


def refuse_code(graph: GraphPlan) -> None:
    """Refuse a workflow that would run code, before any of it has been paid for.

    Raises:
        CodeNotAllowedError: A node may call a tool that runs code.
    """
    known = all_tools()
    for node, tool in tools_in(graph):
        if tool in known and known[tool].runs_code:
            raise CodeNotAllowedError(
                f'"{node}" may call the tool "{tool}", which runs code on this machine, and this run may not do that.',
                "If you trust the workflow, allow it: with --allow-code, or with the box where a run is started.",
            )


def tools_in(graph: GraphPlan) -> Iterator[tuple[str, str]]:
    """Each enabled node that may call a tool, with the tool's name; those in loops and subflows included."""
    for node in graph.nodes:
        if node.enabled:
            yield from ((node.id, name) for name in tools_of(node.config))
        if node.body is not None:
            yield from tools_in(node.body)


_OURS: Final = "engine."
_READING_MODELS: Final = (RECORDED_PREFIX, SCRIPTED_PREFIX)


@dataclass(frozen=True, slots=True)
class Reach:
    """What a workflow would use; each thing once and whole, in plain text without hidden characters.

    Attributes:
        tools: Tools, with what they do.
        hosts: Machines that it names, other than the usual ones of model providers.
        commands: Commands and code in the document, line by line.
        calls: Arguments in the document for tools of servers.
        unknown: What is known only during the run, because an edge or a model brings it; a person is asked then.
        models: Models that read this machine's history or files.
        workflows: Files of other workflows in it.
        plugins: Node types that plugins have added.
        prices: Prices that the document states, and whether it lets models of unknown price run: a budget counts
            by them, so a wrong price lets a run spend more than the person allows.
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
        """What there is, an entry for each kind and thing: `Tool: read_file (reads a text file)`.

        What has several lines stands below its kind, farther in.
        """
        kinds = (
            ("Tool", self.tools),
            ("Host", self.hosts),
            ("Command", self.commands),
            ("Call", self.calls),
            ("Known only during the run, and asked for then", self.unknown),
            ("Reads from this machine's history or files", self.models),
            ("Workflow", self.workflows),
            ("Node type of a plugin", self.plugins),
            ("For your budget, the file says", self.prices),
        )
        return [f"{kind}: {indent_lines(thing)}" for kind, things in kinds for thing in things]


def reach_of(workflow: Workflow, registry: Registry | None = None) -> Reach:
    """What a workflow would use, the workflows in it included; whatever else is wrong with it."""
    return reach_in(analyse(workflow, registry))


def reach_in(structure: Structure) -> Reach:
    """The same, for a document that was taken apart already."""
    found: dict[str, dict[str, None]] = {field.name: {} for field in fields(Reach)}
    for kind, thing in chain(_things(structure), _prices(structure.workflow)):
        found[kind][visible(thing)] = None
    return Reach(**{kind: tuple(things) for kind, things in found.items()})


def fingerprint(workflow: Workflow) -> str:
    """What tells whether a document means the same as one that was approved: its looks and its words are no part."""
    document = workflow.to_json()
    meant = {key: document.get(key) for key in ("settings", "nodes", "edges")}
    return hashlib.sha256(json.dumps(meant, sort_keys=True).encode()).hexdigest()


def _things(structure: Structure) -> Iterator[tuple[str, str]]:
    known = all_tools()
    fed = {edge.target for edge in structure.workflow.edges}
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
            yield from _literal(config)
            yield from _fed(node.id, config, [port for port in node.inputs if (node.id, port) in fed])
        if isinstance(config, AgentConfig):
            asked = (name for name in config.tools if name in known and known[name].consents_to_calls)
            yield from (("unknown", f"the calls of {name} that the model of “{node.id}” makes") for name in asked)
        if isinstance(config, SubflowConfig):
            yield "workflows", config.file
        for settings in (config, getattr(config, "judge", None)):
            host = _host(getattr(settings, "api_base", None))
            if host:
                yield "hosts", host
            yield from _models((getattr(settings, "model", None), *getattr(settings, "fallback_models", ())))
    for inner in structure.subflows.values():
        yield from _things(inner)


def _prices(workflow: Workflow) -> Iterator[tuple[str, str]]:
    """What the settings say about prices; those of the workflows in it have no effect."""
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
    yield from (("models", name) for name in names if isinstance(name, str) and name.startswith(_READING_MODELS))


def _literal(config: ToolConfig) -> Iterator[tuple[str, str]]:
    """The addresses, commands and arguments in the settings of a tool."""
    known = all_tools().get(config.tool)
    if known is not None and known.consent is Consent.CALL and config.arguments:
        yield "calls", f"{config.tool} {compact_json(config.arguments)}"
    for value in config.arguments.values():
        if isinstance(value, str) and known is not None and known.runs_code:
            yield "commands", value
        elif isinstance(value, str) and (host := _host(value)):
            yield "hosts", host


def _fed(node_id: str, config: ToolConfig, ports: list[str]) -> Iterator[tuple[str, str]]:
    """What an edge brings to a tool that a person is asked about."""
    known = all_tools().get(config.tool)
    if known is None:
        return
    if known.consents_to_calls:
        yield from (("unknown", f"the {port} of “{node_id}” ({config.tool})") for port in ports)
    elif known.consent is Consent.HOST and "url" in ports:
        yield "unknown", f"the host that “{node_id}” ({config.tool}) reaches"


def _host(address: object) -> str:
    if not isinstance(address, str):
        return ""
    try:
        parts = urlsplit(address.strip())
    except ValueError:
        return address
    return (parts.hostname or "") if parts.scheme in {"http", "https"} else ""
