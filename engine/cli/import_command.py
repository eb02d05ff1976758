"""Implements `loopwright import`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from engine.cli.exit_codes import ExitCode
from engine.importing.registry import known_formats


def import_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help=f"The file to import: {known_formats()}.")],
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
    from engine.cli.output import err, out, write_json
    from engine.cli.problems import counted, write_problems
    from engine.document.files import save
    from engine.document.model import FILE_SUFFIX
    from engine.document.problems import DocumentError
    from engine.importing.reader import import_file
    from engine.importing.report import Outcome
    from engine.text_sanitizing import shown

    result = import_file(file)
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
    err().line(f"{shown(target)}: {result.importer.label}: {result.summary} {counted(problems).capitalize()}.")
    return ExitCode.DONE
