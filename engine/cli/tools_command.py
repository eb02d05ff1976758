"""`loopwright tools`: the tools that there are, what one takes, and asking MCP servers what they offer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.exit_codes import ExitCode
from engine.formatting import format_count

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.cli.output import Screen
    from engine.tools.base import AnyTool


def tools_command(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Show what this tool takes.")] = None,
    refresh: Annotated[
        list[str] | None,
        typer.Option(metavar="SERVER", help="Ask this MCP server what it offers, and keep the answer. Repeatable."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> int:
    """List the tools, those of your MCP servers and plugins with them, or show what one takes.

    Servers are set up in a file of yours, see docs/tools.md. One is started only where --refresh names it, and when a
    run first calls one of its tools.

    Example: loopwright tools --refresh files
    """
    from engine.cli.output import out, write_json
    from engine.tools.registry import all_tools, find_tool

    if refresh:
        _refresh(refresh)
    tools = list(all_tools().values()) if name is None else [find_tool(name)]
    if as_json:
        write_json({"tools": [_to_json(tool) for tool in tools]})
    elif name is None:
        _list(out(), tools)
    else:
        _show(out(), tools[0])
    return ExitCode.DONE


def _refresh(names: Iterable[str]) -> None:
    from engine.cli.output import err
    from engine.errors import EngineError
    from engine.extensions import extensions_path, listings_path, read_extensions, refresh_server
    from engine.runner.background import run_and_wait

    path = extensions_path()
    servers = read_extensions(path).servers
    for name in names:
        if name not in servers:
            there_are = ", ".join(servers) or "none"
            raise EngineError(f'There is no MCP server "{name[:60]}" in {path}.', f"There are: {there_are}.")
        listing = run_and_wait(refresh_server(name, servers[name], listings_path(path)))
        count = len(listing.tools)
        err().line(f"{name} offers {format_count(count, 'tool')}.")
        for sentence in listing.left_out:
            err().line(sentence)


def _list(screen: Screen, tools: Iterable[AnyTool]) -> None:
    from engine.text_sanitizing import one_line

    screen.table(
        ("Tool", "Gives", "What it does"), [(tool.name, tool.output_type, one_line(tool.help, 100)) for tool in tools]
    )


def _show(screen: Screen, tool: AnyTool) -> None:
    from engine.cli.node_facts import fields
    from engine.text_sanitizing import one_line

    screen.line(f"{tool.title} ({tool.name})", style="bold")
    screen.line(tool.help)
    if tool.runs_code:
        screen.line("It runs code on this machine: only with --allow-code.")
    screen.line()
    screen.table(
        ("Parameter", "Takes", "Default", "What it is"),
        [
            (field.name, ", ".join(filter(None, (field.kind, field.limits))), one_line(field.default, 40), field.help)
            for field in fields(tool.parameters)
        ],
    )


def _to_json(tool: AnyTool) -> dict[str, object]:
    return {
        "name": tool.name,
        "title": tool.title,
        "help": tool.help,
        "output_type": tool.output_type,
        "runs_code": tool.runs_code,
        "parameters": tool.parameters.model_json_schema(),
    }
