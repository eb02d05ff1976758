"""What a workflow would use of this machine and of the network, so that a person can be asked before its first run.

It is read off the document; nothing is looked up, opened or called. Models called where they are served usually are no
part of it: they say what they cost, and have limits of their own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Final
from urllib.parse import urlsplit

from engine.document.model import Workflow
from engine.document.wording import one_line
from engine.nodes.registry import Registry
from engine.nodes.subflow import SubflowConfig
from engine.nodes.tool import ToolConfig
from engine.plan.structure import Structure, analyse
from engine.runner.permissions import tools_of
from engine.tools.registry import all_tools

_OURS: Final = "engine."
_LONGEST: Final = 200


@dataclass(frozen=True, slots=True)
class Reach:
    """What a workflow would use; each thing once, in words that are plain text.

    Attributes:
        tools: Tools, with what they do.
        hosts: Machines that it names, other than the usual ones of model providers.
        commands: Commands and code that stand in the document.
        workflows: Files of other workflows in it.
        plugins: Node types that plugins have added.
    """

    tools: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    workflows: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))

    def lines(self) -> list[str]:
        """What there is, a line for each kind and thing: `Tool: read_file (reads a text file)`."""
        kinds = (
            ("Tool", self.tools),
            ("Host", self.hosts),
            ("Command", self.commands),
            ("Workflow", self.workflows),
            ("Node type of a plugin", self.plugins),
        )
        return [f"{kind}: {thing}" for kind, things in kinds for thing in things]


def reach_of(workflow: Workflow, registry: Registry | None = None) -> Reach:
    """What a workflow would use, the workflows in it included; whatever else is wrong with it."""
    return reach_in(analyse(workflow, registry))


def reach_in(structure: Structure) -> Reach:
    """The same, for a document that was taken apart already."""
    found: dict[str, dict[str, None]] = {field.name: {} for field in fields(Reach)}
    for kind, thing in _things(structure):
        found[kind][one_line(thing, _LONGEST)] = None
    return Reach(**{kind: tuple(things) for kind, things in found.items()})


def fingerprint(workflow: Workflow) -> str:
    """What tells whether a document means the same as one that was approved: its looks and its words are no part."""
    document = workflow.to_json()
    meant = {key: document.get(key) for key in ("settings", "nodes", "edges")}
    return hashlib.sha256(json.dumps(meant, sort_keys=True).encode()).hexdigest()


def _things(structure: Structure) -> Iterator[tuple[str, str]]:
    known = all_tools()
    for node in structure.resolution.nodes.values():
        config: Any = node.config
        if not node.spec.config.__module__.startswith(_OURS):
            yield "plugins", node.type
        for name in tools_of(config):
            if name in known:
                yield "tools", f"{name} ({known[name].help.rstrip('.')})"
        if isinstance(config, ToolConfig):
            yield from _given(config)
        if isinstance(config, SubflowConfig):
            yield "workflows", config.file
        for settings in (config, getattr(config, "judge", None)):
            host = _host(getattr(settings, "api_base", None))
            if host:
                yield "hosts", host
    for inner in structure.parts.values():
        yield from _things(inner)


def _given(config: ToolConfig) -> Iterator[tuple[str, str]]:
    """The addresses and commands that stand in the settings of a tool."""
    known = all_tools().get(config.tool)
    for value in config.arguments.values():
        if isinstance(value, str) and known is not None and known.runs_code:
            yield "commands", value
        elif isinstance(value, str) and (host := _host(value)):
            yield "hosts", host


def _host(address: object) -> str:
    if not isinstance(address, str):
        return ""
    try:
        parts = urlsplit(address.strip())
    except ValueError:
        return address
    return (parts.hostname or "") if parts.scheme in {"http", "https"} else ""
