"""What a card says, worked out from the document: title, summary, ports. No Qt here.

A node with an unknown type, settings that do not fit, or edges to ports that it does not have gets a card all the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

from engine.document.model import Node
from engine.nodes.registry import Registry
from engine.nodes.spec import AnySpec, Category, NodeConfig, Port, PortType
from engine.plan.structure import Structure

UNKNOWN_ICON: Final = "mdi6.help-circle-outline"


@dataclass(frozen=True, slots=True)
class PortFacts:
    """A port as a card shows it.

    Attributes:
        name: What edges call it.
        type: What may flow through it.
        help: One line for people.
        required: Whether it must be connected.
        many: Whether it takes several edges.
        known: False where only an edge names it.
    """

    name: str
    type: PortType = PortType.ANY
    help: str = ""
    required: bool = False
    many: bool = False
    known: bool = True


@dataclass(frozen=True, slots=True)
class CardFacts:
    """A node as its card shows it.

    Attributes:
        id: The node's id.
        type: Its type.
        title: What people call it.
        summary: One line that says what it will do.
        icon: Name of its icon.
        category: Its category; None where the type is unknown.
        inputs: Its input ports that are shown, from the top.
        outputs: Its output ports that are shown, from the top.
        folded: How many more output ports there are.
        enabled: Whether it is switched on.
    """

    id: str
    type: str
    title: str
    summary: str
    icon: str
    category: Category | None
    inputs: tuple[PortFacts, ...]
    outputs: tuple[PortFacts, ...]
    folded: int = 0
    enabled: bool = True


def facts_of(
    node: Node,
    registry: Registry,
    structure: Structure,
    used_inputs: Iterable[str],
    used_outputs: Iterable[str],
    *,
    unfolded: bool = False,
) -> CardFacts:
    """What the card of a node says.

    Args:
        node: The node.
        registry: The node types.
        structure: Where the node's settings may have been read already.
        used_inputs: The input ports that edges lead to.
        used_outputs: The output ports that edges leave.
        unfolded: Whether all output ports are asked for.
    """
    spec = registry.find(node.type)
    config = config_of(node, spec, structure)
    wanted_in, wanted_out = dict.fromkeys(used_inputs), dict.fromkeys(used_outputs)
    if spec is None or config is None:
        return CardFacts(
            node.id,
            node.type,
            node.title or (spec.title if spec else node.type) or node.id,
            "settings do not fit" if spec else "unknown type",
            spec.icon if spec else UNKNOWN_ICON,
            spec.category if spec else None,
            _with_unknown((), wanted_in),
            _with_unknown((), wanted_out),
            enabled=node.enabled,
        )
    outputs = spec.all_outputs(config)
    shown = outputs if unfolded else _unfolded(outputs, wanted_out)
    return CardFacts(
        node.id,
        node.type,
        node.title or spec.title,
        spec.summary(config),
        spec.icon,
        spec.category,
        _with_unknown(spec.inputs(config), wanted_in),
        _with_unknown(shown, wanted_out),
        len(outputs) - len(shown),
        node.enabled,
    )


def config_of(node: Node, spec: AnySpec | None, structure: Structure) -> NodeConfig | None:
    """The settings of a node; None where its type is unknown or they do not fit."""
    if spec is None:
        return None
    resolved = structure.resolution.nodes.get(node.id)
    if resolved is not None and resolved.node is node:
        return resolved.config
    try:
        return spec.config.model_validate(node.config)
    except ValidationError:
        return None


def _unfolded(outputs: tuple[Port, ...], used: Iterable[str]) -> tuple[Port, ...]:
    """The main output, the branches and those that edges leave; the others are folded away until asked for."""
    wanted = set(used)
    return tuple(port for index, port in enumerate(outputs) if index == 0 or port.branch or port.name in wanted)


def _with_unknown(ports: tuple[Port, ...], used: Iterable[str]) -> tuple[PortFacts, ...]:
    shown = [PortFacts(port.name, port.type, port.help, port.required, port.many) for port in ports]
    names = {port.name for port in ports}
    shown += [PortFacts(name, known=False) for name in used if name not in names]
    return tuple(shown)
