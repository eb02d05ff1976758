"""`loopwright validate`: every problem of every file, each with its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.common_options import IterationsCap
from engine.cli.exit_codes import ExitCode
from engine.nodes.iteration_cap import MAX_ITERATIONS_CAP

if TYPE_CHECKING:
    from engine.document.problems import Problem


def validate_command(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Workflow files, or names of bundled templates.")],
    max_iterations_cap: IterationsCap = MAX_ITERATIONS_CAP,
    as_json: Annotated[bool, typer.Option("--json", help="Write the problems as one JSON object.")] = False,
) -> int:
    """Find everything that is wrong with workflow files.

    Nothing is run. A file with errors gives the exit code 2; warnings alone do not.

    Example: loopwright validate my.loop.json other.loop.json
    """
    from engine.cli.output import out, write_json
    from engine.cli.problems import counted, write_problems
    from engine.document.problems import has_errors
    from engine.text_sanitizing import shown

    found = {name: _problems(name, max_iterations_cap) for name in files}
    if as_json:
        listed = [
            {"file": name, "problems": [problem.to_json() for problem in problems]} for name, problems in found.items()
        ]
        write_json({"ok": not any(map(has_errors, found.values())), "files": listed})
    else:
        screen = out()
        for name, problems in found.items():
            write_problems(screen, problems, shown(name))
            screen.line(f"{shown(name)}: {counted(problems)}")
    return ExitCode.REFUSED if any(map(has_errors, found.values())) else ExitCode.DONE


def _problems(name: str, max_iterations_cap: int) -> list[Problem]:
    """All that is wrong with a file; one that cannot be opened has that as its problem."""
    from engine import validate
    from engine.cli.sources import open_source
    from engine.document.problems import DocumentError, Problem

    try:
        return validate(open_source(name).workflow, max_iterations_cap=max_iterations_cap)
    except DocumentError as error:
        return list(error.problems) or [Problem("cannot-open", error.message, error.remedy)]
