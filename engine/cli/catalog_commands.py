"""Implements `loopwright nodes`, `tools`, `models`, `templates` and `plugins`: the commands that list what there is."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.exit_codes import ExitCode
from engine.formatting import format_count

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.cli.output import Screen
    from engine.nodes.node_registry import Registry
    from engine.nodes.spec import AnySpec
    from engine.tools.tool import AnyTool


def nodes_command(
    node_type: Annotated[str | None, typer.Argument(metavar="TYPE", help="Node type. Default: list all.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write the output as one JSON object.")] = False,
) -> int:
    """List node types, or show the ports and settings of one.

    With --json, the settings are a JSON Schema, and the ports are those of the default settings.

    Example: loopwright nodes loop
    """
    from engine.cli.output import out, write_json
    from engine.cli.spec_description import spec_to_json
    from engine.nodes.node_registry import builtin_registry

    registry = builtin_registry()
    if node_type is None:
        if as_json:
            write_json({"nodes": [spec_to_json(spec) for spec in registry]})
        else:
            out().table(
                ("Type", "Category", "Description"), [(spec.type, str(spec.category), spec.help) for spec in registry]
            )
        return ExitCode.DONE
    spec = _find_node_type(registry, node_type)
    if as_json:
        write_json(spec_to_json(spec))
    else:
        _show_node_type(out(), spec)
    return ExitCode.DONE


def _find_node_type(registry: Registry, node_type: str) -> AnySpec:
    spec = registry.find(node_type)
    if spec is None:
        from engine.errors import EngineError
        from engine.text_sanitizing import shown

        near = registry.suggestion(node_type)
        question = f'Did you mean "{near}"? ' if near else ""
        there_are = ", ".join(spec.type for spec in registry)
        raise EngineError(f'There is no node type "{shown(node_type, 60)}".', f"{question}Node types: {there_are}.")
    return spec


def _show_node_type(screen: Screen, spec: AnySpec) -> None:
    from engine.cli.spec_description import default_ports, fields, port_notes
    from engine.text_sanitizing import one_line

    screen.line(f"{spec.title} ({spec.type}, {spec.category})", style="bold")
    screen.line(spec.help)
    for title, ports in zip(("Input", "Output"), default_ports(spec), strict=True):
        if ports:
            screen.line()
            screen.table(
                (title, "Type", "Notes", "Description"),
                [(port.name, str(port.type), port_notes(port), port.help) for port in ports],
            )
    screen.line()
    screen.table(
        ("Setting", "Type", "Default", "Description"),
        [
            (field.name, ", ".join(filter(None, (field.kind, field.limits))), one_line(field.default, 40), field.help)
            for field in fields(spec.config)
        ],
    )


def tools_command(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Tool whose parameters to show. Default: list all.")
    ] = None,
    refresh: Annotated[
        list[str] | None,
        typer.Option(metavar="SERVER", help="Update the stored tool list of this MCP server. Repeatable."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> int:
    """List tools, including those of MCP servers and plugins, or show the parameters of one.

    MCP servers are configured in the extensions file; see docs/tools.md. A server starts only for --refresh and when a
    run first calls one of its tools.

    Example: loopwright tools --refresh files
    """
    from engine.cli.output import out, write_json
    from engine.tools.registry import all_tools, find_tool

    if refresh:
        _refresh(refresh)
    tools = list(all_tools().values()) if name is None else [find_tool(name)]
    if as_json:
        write_json({"tools": [_tool_to_json(tool) for tool in tools]})
    elif name is None:
        _list_tools(out(), tools)
    else:
        _show_tool(out(), tools[0])
    return ExitCode.DONE


def _refresh(names: Iterable[str]) -> None:
    from engine.cli.output import err
    from engine.errors import EngineError
    from engine.extensions import extensions_path, listings_path, read_extensions, refresh_server
    from engine.runner.event_loop import run_and_wait

    path = extensions_path()
    servers = read_extensions(path).servers
    for name in names:
        if name not in servers:
            there_are = ", ".join(servers) or "none"
            raise EngineError(f'There is no MCP server "{name[:60]}" in {path}.', f"Servers: {there_are}.")
        listing = run_and_wait(refresh_server(name, servers[name], listings_path(path)))
        count = len(listing.tools)
        err().line(f"{name} offers {format_count(count, 'tool')}.")
        for sentence in listing.left_out:
            err().line(sentence)


def _list_tools(screen: Screen, tools: Iterable[AnyTool]) -> None:
    from engine.text_sanitizing import one_line

    screen.table(
        ("Tool", "Output", "Description"), [(tool.name, tool.output_type, one_line(tool.help, 100)) for tool in tools]
    )


def _show_tool(screen: Screen, tool: AnyTool) -> None:
    from engine.cli.spec_description import fields
    from engine.text_sanitizing import one_line

    screen.line(f"{tool.title} ({tool.name})", style="bold")
    screen.line(tool.help)
    if tool.runs_code:
        screen.line("It runs code on this machine and needs --allow-code.")
    screen.line()
    screen.table(
        ("Parameter", "Type", "Default", "Description"),
        [
            (field.name, ", ".join(filter(None, (field.kind, field.limits))), one_line(field.default, 40), field.help)
            for field in fields(tool.parameters)
        ],
    )


def _tool_to_json(tool: AnyTool) -> dict[str, object]:
    return {
        "name": tool.name,
        "title": tool.title,
        "help": tool.help,
        "output_type": tool.output_type,
        "runs_code": tool.runs_code,
        "parameters": tool.parameters.model_json_schema(),
    }


models_app = typer.Typer()

ProviderName = Annotated[
    str, typer.Argument(metavar="PROVIDER", help="Provider, such as openai, or host:NAME for your own server.")
]


@models_app.callback(invoke_without_command=True)
def models_command(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Write the list as one JSON object.")] = False,
) -> int:
    """List models, and which providers have an API key. Keys are never shown.

    Example: loopwright models
    """
    if context.invoked_subcommand is not None:
        return ExitCode.DONE
    from engine.cli.output import out, write_json
    from engine.models.catalog import default_model_name, known_models
    from engine.models.keys import Keys

    default = default_model_name()
    known = known_models(Keys())
    if as_json:
        listed = [
            {
                "name": model.name,
                "title": model.title,
                "note": model.note,
                "available": model.available,
                "how_to_get": model.how_to_get,
            }
            for model in known
        ]
        write_json({"default": default, "models": listed})
        return ExitCode.DONE
    rows = [
        (
            model.name,
            model.title,
            {True: "yes", False: "no", None: "?"}[model.available],
            ". ".join(filter(None, (model.note, model.how_to_get))),
        )
        for model in known
    ]
    out().table(("Model", "Provider", "Ready", "Notes"), rows)
    out().line()
    out().line(f"Default model: {default}")
    return ExitCode.DONE


@models_app.command("set-key")
def set_key(provider: ProviderName) -> int:
    """Store a provider's API key in the system keyring. You are prompted for the key; it is not echoed.

    Example: loopwright models set-key openai
    """
    from engine.cli.output import out
    from engine.models.keys import Keys

    _check(provider)
    if sys.stdin.isatty():
        import getpass

        key = getpass.getpass(f"Key for {provider}: ")
    else:
        key = sys.stdin.readline()
    Keys().set(provider, key)
    out().line(f"Stored the key for {provider} in the keyring.")
    return ExitCode.DONE


@models_app.command("remove-key")
def remove_key(provider: ProviderName) -> int:
    """Remove a provider's API key from the system keyring.

    Example: loopwright models remove-key openai
    """
    from engine.cli.output import out
    from engine.models.keys import Keys

    _check(provider)
    Keys().delete(provider)
    out().line(f"Removed the key for {provider} from the keyring.")
    return ExitCode.DONE


def _check(provider: str) -> None:
    from engine.errors import EngineError
    from engine.models.providers import PROVIDERS
    from engine.text_sanitizing import shown

    if provider not in PROVIDERS and not provider.startswith("host:"):
        raise EngineError(
            f'There is no provider "{shown(provider, 60)}".',
            f"Providers: {', '.join(PROVIDERS)}, or host:NAME for your own server.",
        )


def templates_command(
    as_json: Annotated[bool, typer.Option("--json", help="Write the list as one JSON object.")] = False,
) -> int:
    """List the bundled templates. Run one by its name; each has a sample input.

    Example: loopwright templates
    """
    from engine.cli.arguments import template_files, template_name
    from engine.cli.output import out, write_json
    from engine.document.files import load
    from engine.runner.declared_inputs import declared_inputs

    found = [(template_name(file), file, load(file)) for file in template_files()]
    if as_json:
        listed = [
            {
                "name": name,
                "title": workflow.name,
                "description": workflow.description,
                "file": str(file),
                "inputs": [declared.to_json() for declared in declared_inputs(workflow)],
            }
            for name, file, workflow in found
        ]
        write_json({"templates": listed})
        return ExitCode.DONE
    rows = [
        (name, workflow.description or workflow.name, ", ".join(item.name for item in declared_inputs(workflow)))
        for name, _, workflow in found
    ]
    out().table(("Template", "Description", "Inputs"), rows)
    return ExitCode.DONE


def plugins_command(as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False) -> int:
    """List installed plugins. Plugins that are not enabled are not loaded.

    Enable a plugin for one call with --plugin before the command, or permanently in the extensions file.

    Example: loopwright --plugin example nodes
    """
    from engine.cli.output import out, write_json
    from engine.extensions import enable_plugin, installed_plugins

    installed = installed_plugins()
    adds = {plugin.name: enable_plugin(plugin.name).summary if plugin.is_enabled else "" for plugin in installed}
    if as_json:
        facts = [
            {"name": one.name, "package": one.package, "enabled": one.is_enabled, "adds": adds[one.name]}
            for one in installed
        ]
        write_json({"plugins": facts})
    elif not installed:
        out().line("No plugins are installed.")
    else:
        out().table(
            ("Plugin", "Package", "Enabled", "Adds"),
            [(one.name, one.package, "yes" if one.is_enabled else "no", adds[one.name]) for one in installed],
        )
    return ExitCode.DONE
