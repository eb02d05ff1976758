"""Each node of a document beside its declaration: type, settings, ports. Whatever does not fit is a problem."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ValidationError

from engine.document.model import NODE_ID_PATTERN, Node, Workflow
from engine.document.problems import Problem, Severity, has_errors
from engine.nodes.registry import Registry
from engine.nodes.spec import AnySpec, NodeConfig, Port
from engine.plan.config_words import config_faults
from engine.text_sanitizing import shown

_ID: Final = re.compile(NODE_ID_PATTERN)


class Resolved:
    """A node whose type and settings are known and valid. Immutable.

    Args:
        node: The node in the document.
        spec: Its type.
        config: Its settings.
        takes_any_port: Whether edges may name ports that it does not have: it is disabled, and its settings, on which
            the ports may depend, have problems.

    Attributes:
        id: The node's id.
        type: The name of its type.
        inputs: Its input ports by name.
        outputs: Its output ports by name, `error` included where the settings ask for it.
    """

    __slots__ = ("config", "id", "inputs", "node", "outputs", "spec", "takes_any_port", "type")

    def __init__(self, node: Node, spec: AnySpec, config: Any, *, takes_any_port: bool = False) -> None:
        self.node = node
        self.spec = spec
        self.config = config
        self.takes_any_port = takes_any_port
        self.id = node.id
        self.type = node.type
        self.inputs: dict[str, Port] = {port.name: port for port in spec.inputs(config)}
        self.outputs: dict[str, Port] = {port.name: port for port in spec.all_outputs(config)}

    @property
    def title(self) -> str:
        """The name that people see."""
        return self.node.title or self.node.id


@dataclass(frozen=True)
class Resolution:
    """All nodes that could be resolved, by id, and what was wrong with the others."""

    nodes: dict[str, Resolved] = field(default_factory=dict[str, Resolved])
    problems: list[Problem] = field(default_factory=list[Problem])


def resolve(workflow: Workflow, registry: Registry) -> Resolution:
    """Find each node's type and read its settings; of nodes that share an id, the first counts."""
    resolution = Resolution()
    seen: set[str] = set()
    for node in workflow.nodes:
        if node.id in seen or node.model_extra or _ID.fullmatch(node.id) is None:
            resolution.problems.extend(_identity_problems(node, seen))
            if node.id in seen:
                continue
        seen.add(node.id)
        spec = registry.find(node.type)
        if spec is None:
            resolution.problems.append(_unknown_type(node, registry))
            continue
        try:
            config: NodeConfig = spec.config.model_validate(node.config)
        except ValidationError as error:
            resolution.problems.extend(
                Problem("bad-config", message, remedy, node=node.id, field=place)
                for place, message, remedy in config_faults(spec.config, error)
            )
            continue
        faults = list(_config_problems(node, spec, config))
        resolution.problems.extend(faults)
        takes_any_port = bool(faults) and not node.enabled and has_errors(faults)
        resolution.nodes[node.id] = Resolved(node, spec, config, takes_any_port=takes_any_port)
    return resolution


def _identity_problems(node: Node, seen: set[str]) -> Iterator[Problem]:
    if not _ID.fullmatch(node.id):
        yield Problem(
            "bad-id",
            f'"{shown(node.id, 60)}" cannot be the id of a node.',
            "An id has small letters, digits and underscores, with a letter first.",
            node=node.id,
            field="id",
        )
    if node.id in seen:
        yield Problem(
            "duplicate-id", f'Two nodes have the id "{shown(node.id, 60)}".', "Rename one.", node=node.id, field="id"
        )
    for key in node.unknown_keys:
        yield Problem(
            "unknown-key",
            f'A node has no "{shown(key, 60)}"; it is kept, and means nothing.',
            "Remove it, or open the file with the version of the program that wrote it.",
            Severity.WARNING,
            node=node.id,
            field=key,
        )


def _unknown_type(node: Node, registry: Registry) -> Problem:
    suggestion = registry.suggestion(node.type)
    hint = f'Did you mean "{suggestion}"? ' if suggestion else ""
    return Problem(
        "unknown-type",
        f'There is no node type "{shown(node.type, 60)}".',
        f"{hint}`loopwright nodes` lists the types; a type of a plugin needs the plugin.",
        node=node.id,
        field="type",
    )


def _config_problems(node: Node, spec: AnySpec, config: NodeConfig) -> Iterator[Problem]:
    known = spec.config.__pydantic_fields__  # as `model_fields`, which looks for deprecated uses at every access
    for key in node.config:
        if key not in known:
            yield Problem(
                "unknown-config-key",
                f'"{shown(key, 60)}" is no setting of the type {spec.title}; it is kept, and means nothing.',
                f"Remove it, or see `loopwright nodes {spec.type}` for the settings.",
                Severity.WARNING,
                node=node.id,
                field=key,
            )
    if config.on_error == "continue" and (ports := spec.outputs(config)) and ports[0].branch:
        yield Problem(
            "no-value-on-error",
            f"A {spec.title} that fails cannot go on with a stated value: it has to choose a branch.",
            'Choose "branch" or "fail".',
            node=node.id,
            field="on_error",
        )
    for fault in spec.check(config):
        yield Problem(fault.code, fault.message, fault.remedy, fault.severity, node=node.id, field=fault.field)
