"""`loopwright import`: a workflow of another program as a file of ours, with a report."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from engine.cli.exit_codes import ExitCode


def import_command(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A canvas of nodes and edges (JSON), or agents with steps (YAML).")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="OUT", help="Where to save it; without it, beside the file as NAME.loop.json."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write the report as one JSON object.")] = False,
) -> int:
    """Make a workflow of a file that another program has written.

    Nothing is run. The report has a line for each thing of the file: carried over, changed, or left out. The exit code
    is 0 also where the new workflow has problems; they are told.

    Example: loopwright import dev-cycle.yaml -o dev-cycle.loop.json
    """
    from engine import validate
    from engine.cli.output import err, out, write_json
    from engine.cli.problems import counted, write_problems
    from engine.document.files import save
    from engine.document.importing import Fate, import_file
    from engine.document.model import FILE_SUFFIX
    from engine.document.problems import DocumentError
    from engine.document.wording import shown

    imported = import_file(file)
    target = output if output is not None else file.with_name(f"{file.stem}{FILE_SUFFIX}")
    if not force and os.path.lexists(target):  # which does not mind a name that cannot be
        raise DocumentError(f"{shown(target)}: There is such a file.", "Choose another with -o, or give --force.")
    save(imported.workflow, target)
    problems = validate(imported.workflow)
    if as_json:
        listed = [problem.to_json() for problem in problems]
        write_json({"file": str(target), **imported.to_json(), "problems": listed})
        return ExitCode.DONE
    styles = {Fate.CARRIED: "", Fate.CHANGED: "yellow", Fate.LEFT: "red"}
    screen = out()
    for entry in imported.entries:
        screen.line(str(entry), style=styles[entry.fate])
    write_problems(screen, problems, shown(target))
    err().line(f"{shown(target)}: {imported.form}: {imported.summary} {counted(problems).capitalize()}.")
    return ExitCode.DONE
