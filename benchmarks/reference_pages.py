"""`python -m benchmarks.reference_pages`: write `docs/reference` from the declarations.

There is a page for each node type and each command, and one each for tools, import formats and settings.
"""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel

from benchmarks.processes import ROOT
from engine.cli.catalog_commands import default_ports, fields, port_notes
from engine.importing.importers import importers
from engine.nodes.node_registry import builtin_registry
from engine.nodes.spec import AnySpec, Port
from engine.settings import SETTINGS, UserSettings, variable_of
from engine.tools.registry import builtin_tools

DOCS = ROOT / "docs"
_MARK = "<!-- Made by `make docs` from the declarations in the program; edit those instead. -->"


def pages() -> dict[str, str]:
    """All reference pages: contents by path in the folder."""
    found = {f"nodes/{spec.type}.md": _node_page(spec) for spec in builtin_registry()}
    commands = {f"commands/{name.replace(' ', '-')}.md": (name, command) for name, command in _commands()}
    found |= {path: _command_page(name, command) for path, (name, command) in commands.items()}
    overview = [
        "# Reference",
        "",
        "## Node types",
        "",
        *(f"- [{spec.title}](nodes/{spec.type}.md): {spec.help}" for spec in builtin_registry()),
        "",
        "## Tools",
        "",
        *(f"- [{tool.title}](tools.md): {tool.help}" for tool in builtin_tools().values()),
        "",
        "## Import formats",
        "",
        *(f"- [{spec.label}](import-formats.md): {spec.help}" for spec in importers()),
        "",
        "## Settings",
        "",
        "- [Settings](settings.md): every setting with its environment variable.",
        "",
        "## Commands",
        "",
        *(
            f"- [loopwright {name}]({path}): {_paragraphs(command.help)[0]}"
            for path, (name, command) in commands.items()
        ),
    ]
    return {
        "README.md": _page(overview),
        "tools.md": _tools_page(),
        "import-formats.md": _formats_page(),
        "settings.md": _settings_page(),
        **found,
    }


def write_pages(folder: Path) -> int:
    """Write all pages, and remove generated pages that are obsolete.

    Returns:
        The number of pages.

    Raises:
        OSError: The folder cannot be written.
    """
    made = pages()
    for name, text in made.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="\n")
    for file in folder.rglob("*.md"):
        if file.relative_to(folder).as_posix() not in made and file.read_text(encoding="utf-8").startswith(_MARK):
            file.unlink()
    return len(made)


def _page(lines: Iterable[str]) -> str:
    return "\n".join([_MARK, "", *lines]) + "\n"


def _node_page(spec: AnySpec) -> str:
    inputs, outputs = default_ports(spec)
    lines = [f"# {spec.title} (`{spec.type}`)", "", spec.help, "", f"Category: {spec.category}.", ""]
    for title, ports in (("Input ports", inputs), ("Output ports", outputs)):
        lines += [f"## {title}", "", *_ports(ports), ""]
    lines += [
        "These are the ports of the default settings. Names in templates, branches and `on_error` add others.",
        "",
        "## Settings",
        "",
    ]
    lines += _field_table(spec.config)
    return _page(lines)


def _tools_page() -> str:
    lines = ["# Tools", "", "Tools that a `tool` node can call. Each parameter is an input port of the node.", ""]
    for tool in builtin_tools().values():
        lines += [f"## {tool.title} (`{tool.name}`)", "", tool.help, "", f"Output: {tool.output_type}.", ""]
        lines += [*_field_table(tool.parameters), ""]
    return _page(lines[:-1])


def _formats_page() -> str:
    lines = ["# Import formats", "", "Files of other programs that `loopwright import` and the window convert.", ""]
    for spec in importers():
        suffixes = ", ".join(f"`{suffix}`" for suffix in spec.suffixes)
        lines += [f"## {spec.label}", "", spec.help, "", f"File suffixes: {suffixes}.", "", spec.review, ""]
        language = "json" if spec.suffixes[0] == ".json" else "yaml"
        lines += ["Example:", "", f"```{language}", spec.example.rstrip(), "```", ""]
    return _page(lines[:-1])


def _settings_page() -> str:
    lines = ["# Settings", "", "[Settings](../settings.md) explains where they are and which value applies.", ""]
    rows = [
        (f"`{one.name}`", one.title, one.type_and_limits, f"`{one.default}`", f"`{variable_of(one.name)}`", one.help)
        for one in fields(UserSettings)
        if one.name in SETTINGS
    ]
    return _page(
        [*lines, *_table(("Setting", "Label", "Type", "Default", "Environment variable", "Description"), rows)]
    )


def _field_table(model: type[BaseModel]) -> list[str]:
    rows = [
        (
            f"`{field.name}`",
            field.title,
            field.type_and_limits,
            f"`{field.default}`" if field.default else "",
            field.help,
        )
        for field in fields(model)
    ]
    return _table(("Field", "Label", "Type", "Default", "Description"), rows)


def _ports(ports: Sequence[Port]) -> list[str]:
    if not ports:
        return ["None."]
    rows = [(f"`{port.name}`", str(port.type), port_notes(port), port.help) for port in ports]
    return _table(("Port", "Type", "Notes", "Description"), rows)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    lines += [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]
    return lines


def _cell(text: str) -> str:
    text = " ".join(text.split()).replace("|", "\\|")
    # Every second part is code, in which Markdown does not decode entities.
    parts = text.split("`")
    return "`".join(part if index % 2 else part.replace("<", "&lt;") for index, part in enumerate(parts))


def _commands() -> Iterator[tuple[str, Any]]:
    """All commands with their full names, groups before their commands."""
    from engine.cli.main import app

    def walk(prefix: str, group: Any) -> Iterator[tuple[str, Any]]:
        for name, command in group.commands.items():
            full = f"{prefix} {name}".strip()
            yield full, command
            if hasattr(command, "commands"):
                yield from walk(full, command)

    return walk("", typer.main.get_command(app))


def _command_page(name: str, command: Any) -> str:
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    context = typer.Context(command, info_name=f"loopwright {name}")
    usage = " ".join(["loopwright", name, *command.collect_usage_pieces(context)])
    lines = [f"# loopwright {name}", ""]
    for paragraph in _paragraphs(command.help):
        example = paragraph.removeprefix("Example: ")
        lines += [paragraph, ""] if example == paragraph else ["```sh", example, "```", ""]
    lines += ["## Usage", "", "```text", usage, "```", ""]
    if arguments:
        rows = [(f"`{parameter.metavar or parameter.name}`", parameter.help or "") for parameter in arguments]
        lines += ["## Arguments", "", *_table(("Argument", "Description"), rows), ""]
    if options:
        lines += ["## Options", "", *_table(("Option", "Default", "Description"), map(_option_row, options)), ""]
    return _page(lines[:-1])


def _option_row(option: Any) -> tuple[str, str, str]:
    names = ", ".join(f"`{name}`" for name in option.opts)
    metavar = "" if option.is_flag else f" `{option.metavar or option.name.upper()}`"
    usual = "" if option.is_flag or option.default is None or option.default == "" else f"`{option.default}`"
    return names + metavar, usual, option.help or ""


def _paragraphs(help_text: str | None) -> list[str]:
    return [" ".join(part.split()) for part in inspect.cleandoc(help_text or "").split("\n\n")]


def main(arguments: Sequence[str] | None = None) -> None:
    """Write all pages."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reference_pages", description="Write reference pages.")
    parser.add_argument("folder", nargs="?", type=Path, default=DOCS, help="where to; docs without it")
    folder = parser.parse_args(arguments).folder
    count = write_pages(folder / "reference")
    print(f"{count} pages in {folder / 'reference'}")


if __name__ == "__main__":
    main()
