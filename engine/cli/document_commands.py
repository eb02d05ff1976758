"""Implements `loopwright validate`, `graph`, `import` and `export`: the commands on workflow files."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from engine.cli.common_options import IterationsCap, SourceName, settings_for_run
from engine.cli.exit_codes import ExitCode
from engine.cli.output import count_problems, err, out, write_exactly, write_file, write_json, write_problems
from engine.errors import EngineError
from engine.importing.importers import known_formats
from engine.text_sanitizing import shown

if TYPE_CHECKING:
    from engine.document.model import Edge, Node, Workflow
    from engine.document.problems import Problem

_PLAIN: Final = re.compile(r"[^\w .,:?!()'-]", re.ASCII)
_MAX_LABEL: Final = 80
_SHAPES: Final = {
    "input": ('(["', '"])'),
    "output": ('(["', '"])'),
    "router": ('{"', '"}'),
    "validator": ('{"', '"}'),
    "loop": ('{{"', '"}}'),
    "exit": ('{{"', '"}}'),
    "iterator": ('{{"', '"}}'),
    "aggregator": ('{{"', '"}}'),
}
_USUAL_PORTS: Final = frozenset({"output", "input", "value", "body", "item", "items"})


def validate_command(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Workflow files, names of bundled templates, or - for standard input."),
    ],
    max_iterations_cap: IterationsCap = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write the problems as one JSON object.")] = False,
) -> int:
    """Validate workflow files and list their problems.

    Nothing runs. Models whose file is missing on this computer are warnings. The exit code is 2 if a file has errors;
    warnings do not count.

    Example: loopwright validate my.loop.json other.loop.json
    """
    from engine.document.problems import has_errors

    settings = settings_for_run()
    cap = max_iterations_cap or settings.max_iterations_cap
    found = {name: _problems(name, cap, settings.model) for name in expand_patterns(files)}
    if as_json:
        listed = [
            {"file": name, "problems": [problem.to_json() for problem in problems]} for name, problems in found.items()
        ]
        write_json({"ok": not any(map(has_errors, found.values())), "files": listed})
    else:
        screen = out()
        for name, problems in found.items():
            write_problems(screen, problems, shown(name))
            screen.line(f"{shown(name)}: {count_problems(problems)}")
    return ExitCode.REFUSED if any(map(has_errors, found.values())) else ExitCode.DONE


def expand_patterns(names: Iterable[str], *, on_windows: bool = os.name == "nt") -> list[str]:
    """Replace patterns such as `*.loop.json` by the files that they match; on Windows, where no shell does that."""
    if not on_windows:
        return list(names)
    return [file for name in names for file in (sorted(glob.glob(name)) or [name])]  # noqa: PTH207 - as it was typed


def _problems(name: str, max_iterations_cap: int, default_model: str) -> list[Problem]:
    """The problems of a file, which may be that it cannot be opened."""
    from engine.cli.arguments import open_source
    from engine.document.problems import DocumentError, Problem
    from engine.plan.model_files import missing_model_files
    from engine.plan.structure import analyse
    from engine.plan.validation import validate_structure

    try:
        structure = analyse(open_source(name).workflow)
        problems = validate_structure(structure, max_iterations_cap=max_iterations_cap)
        return [*problems, *missing_model_files(structure, default_model)]
    except DocumentError as error:
        return list(error.problems) or [
            Problem("cannot-open", error.message.removeprefix(f"{shown(name)}: "), error.remedy)
        ]


def graph_command(
    file: SourceName,
    as_json: Annotated[bool, typer.Option("--json", help="Write the text as one JSON object.")] = False,
) -> int:
    """Draw a workflow as a Mermaid flowchart.

    The body of each loop is a subgraph.

    Example: loopwright graph self-refine
    """
    from engine.cli.arguments import open_source

    text = flowchart(open_source(file).workflow)
    if as_json:
        write_json({"mermaid": text})
    else:
        out().line(text.rstrip())
    return ExitCode.DONE


def import_command(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help=f"The file to import, or - for standard input: {known_formats()}.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="OUT", help="Output file. Default: NAME.loop.json beside the input."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write the report as one JSON object.")] = False,
) -> int:
    """Convert a workflow file of another program.

    Nothing in the file is executed. The report has a line for each part of the file: carried over, changed, or left
    out. Problems of the new workflow are listed but do not change the exit code.

    Example: loopwright import dev-cycle.yaml -o dev-cycle.loop.json
    """
    from engine import validate
    from engine.cli.arguments import STANDARD_INPUT, STANDARD_INPUT_NAME, read_standard_input
    from engine.document.files import MAX_BYTES, save
    from engine.document.model import FILE_SUFFIX
    from engine.document.problems import DocumentError
    from engine.importing.reader import import_file, import_text
    from engine.importing.report import Outcome

    is_piped = str(file) == STANDARD_INPUT
    if is_piped and output is None:
        raise EngineError("There is no file name for the workflow.", "Add -o OUT.")
    result = import_text(read_standard_input(MAX_BYTES), source=STANDARD_INPUT_NAME) if is_piped else import_file(file)
    target = output if output is not None else file.with_name(f"{file.stem}{FILE_SUFFIX}")
    if not force and os.path.lexists(target):  # unlike Path.exists, returns False for an impossible name
        raise DocumentError(f"{shown(target)}: The file exists.", "Choose another with -o, or add --force.")
    save(result.workflow, target)
    problems = validate(result.workflow)
    if as_json:
        listed = [problem.to_json() for problem in problems]
        write_json({"file": str(target), **result.to_json(), "problems": listed})
        return ExitCode.DONE
    styles = {Outcome.CARRIED_OVER: "", Outcome.CHANGED: "yellow", Outcome.LEFT_OUT: "red"}
    screen = out()
    for entry in result.entries:
        screen.line(str(entry), style=styles[entry.outcome])
    write_problems(screen, problems, shown(target))
    err().line(f"{shown(target)}: {result.importer.label}: {result.summary} {count_problems(problems).capitalize()}.")
    return ExitCode.DONE


class Target(StrEnum):
    """Export formats."""

    PYTHON = "python"
    LANGGRAPH = "langgraph"


def export_command(
    file: SourceName,
    to: Annotated[
        Target, typer.Option("--to", help="python: a script that uses this library. langgraph: a module that does not.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="PATH", help="Output file. Default: standard output.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write program and report as one JSON object.")] = False,
) -> int:
    """Export a workflow as a Python program.

    Features that the program lacks are reported.

    Example: loopwright export self-refine --to langgraph -o self_refine.py
    """
    from engine.cli.arguments import open_source
    from engine.export.langgraph_module import export_langgraph
    from engine.export.python_script import export_python

    workflow = open_source(file).workflow
    exported = export_python(workflow) if to is Target.PYTHON else export_langgraph(workflow)
    if out is not None:
        write_file(out, [exported.text])
    if as_json:
        write_json({"program": exported.text, "left_out": list(exported.left_out)})
        return ExitCode.DONE
    if out is None:
        write_exactly([exported.text])
    for sentence in exported.left_out:
        err().line(f"Note: {sentence}", style="yellow")
    if out is not None:
        err().line(f"Written to {out}.")
    return ExitCode.DONE


def flowchart(workflow: Workflow) -> str:
    """Draw a workflow as a Mermaid flowchart. One with problems is drawn as far as possible.

    Texts of the document cannot break out of a label: node ids are generated, and special characters are escaped.

    Returns:
        The Mermaid source, with a newline at the end.
    """
    from engine.document.model import NODE_ID_PATTERN
    from engine.nodes.spec import LOOP
    from engine.plan.structure import analyse

    structure = analyse(workflow)
    names = {
        node_id: f"n_{node_id}" if re.fullmatch(NODE_ID_PATTERN, node_id) else f"x{index}"
        for index, node_id in enumerate(workflow.nodes_by_id)
    }
    inside: dict[str | None, list[Node]] = {}
    for node in workflow.nodes_by_id.values():
        inside.setdefault(structure.parent.get(node.id), []).append(node)
    lines = ["flowchart TD", *_level(inside, names, None, 1)]
    # Nodes outside of any level, because loops overlap or nest too deeply.
    lines += (_box(node, names, 1) for nodes in inside.values() for node in nodes)
    lines += (line for edge in workflow.edges for line in _edge(edge, names))
    lines += (
        f'    {names[body.exit]} -.->|"next {"iteration" if body.kind is LOOP else "item"}"| {names[loop]}'
        for loop, body in structure.bodies.items()
    )
    return "\n".join(lines) + "\n"


def _level(inside: dict[str | None, list[Node]], names: dict[str, str], loop: str | None, depth: int) -> Iterator[str]:
    """Lines for the nodes of one level and the bodies nested in it, which are removed from `inside`."""
    from engine.plan.loop_bodies import MAX_DEPTH

    margin = "    " * depth
    for node in inside.pop(loop, ()):
        yield _box(node, names, depth)
        if node.id in inside and depth <= MAX_DEPTH:
            yield f'{margin}subgraph body_{names[node.id]}["{_escaped(node.title or node.id)}: repeated"]'
            yield from _level(inside, names, node.id, depth + 1)
            yield f"{margin}end"


def _box(node: Node, names: dict[str, str], depth: int) -> str:
    opening, closing = _SHAPES.get(node.type, ('["', '"]'))
    title = node.title or node.id
    label = title if node.type in _SHAPES and title != node.id else f"{title} ({node.type})"
    return f"{'    ' * depth}{names[node.id]}{opening}{_escaped(label)}{closing}"


def _edge(edge: Edge, names: dict[str, str]) -> Iterator[str]:
    (source, source_port), (target, target_port) = edge.source, edge.target
    if source not in names or target not in names:
        return
    ports = [port for port in (source_port, target_port) if port not in _USUAL_PORTS]
    label = f'|"{_escaped(" to ".join(ports))}"|' if ports else ""
    yield f"    {names[source]} -->{label} {names[target]}"


def _escaped(text: str) -> str:
    line = " ".join(text.split())
    shortened = line if len(line) <= _MAX_LABEL else f"{line[: _MAX_LABEL - 3]}..."
    return _PLAIN.sub(lambda found: f"#{ord(found[0])};", shortened) or "-"
