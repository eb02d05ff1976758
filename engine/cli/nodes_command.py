"""`loopwright nodes`: the node types, their ports and their settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from engine.cli.output import Screen
    from engine.nodes.registry import Registry
    from engine.nodes.spec import AnySpec


def nodes_command(
    node_type: Annotated[
        str | None, typer.Argument(metavar="TYPE", help="A node type; without it all are listed.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write the facts as one JSON object.")] = False,
) -> int:
    """List the node types, or show the ports and settings of one.

    With --json the settings are a JSON Schema; the ports are those that the default settings give.

    Example: loopwright nodes loop
    """
    from engine.cli.node_facts import spec_to_json
    from engine.cli.output import out, write_json
    from engine.nodes.registry import builtin_registry

    registry = builtin_registry()
    if node_type is None:
        if as_json:
            write_json({"nodes": [spec_to_json(spec) for spec in registry]})
        else:
            out().table(
                ("Type", "Category", "What it does"), [(spec.type, str(spec.category), spec.help) for spec in registry]
            )
        return ExitCode.DONE
    spec = _find(registry, node_type)
    if as_json:
        write_json(spec_to_json(spec))
    else:
        _show(out(), spec)
    return ExitCode.DONE


def _find(registry: Registry, node_type: str) -> AnySpec:
    spec = registry.find(node_type)
    if spec is None:
        from engine.errors import EngineError
        from engine.text_sanitizing import shown

        near = registry.suggestion(node_type)
        question = f'Did you mean "{near}"? ' if near else ""
        there_are = ", ".join(spec.type for spec in registry)
        raise EngineError(f'There is no node type "{shown(node_type, 60)}".', f"{question}The types are: {there_are}.")
    return spec


def _show(screen: Screen, spec: AnySpec) -> None:
    from engine.cli.node_facts import fields, port_notes, usual_ports
    from engine.text_sanitizing import one_line

    screen.line(f"{spec.title} ({spec.type}, {spec.category})", style="bold")
    screen.line(spec.help)
    for title, ports in zip(("Input", "Output"), usual_ports(spec), strict=True):
        if ports:
            screen.line()
            screen.table(
                (title, "Type", "Notes", "What it is"),
                [(port.name, str(port.type), port_notes(port), port.help) for port in ports],
            )
    screen.line()
    screen.table(
        ("Setting", "Takes", "Default", "What it does"),
        [
            (field.name, ", ".join(filter(None, (field.kind, field.limits))), one_line(field.default, 40), field.help)
            for field in fields(spec.config)
        ],
    )
