"""`loopwright export`: a workflow as a Python program."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from engine.cli.common_options import SourceName
from engine.cli.exit_codes import ExitCode
from engine.errors import EngineError


class Target(StrEnum):
    """What a workflow can be exported to."""

    PYTHON = "python"
    LANGGRAPH = "langgraph"


def export_command(
    file: SourceName,
    to: Annotated[
        Target, typer.Option("--to", help="python: a script for this library. langgraph: a module without it.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="PATH", help="Where it goes; else to standard output.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write program and report as one JSON object.")] = False,
) -> int:
    """Export a workflow as a Python program, and say what the program does not do that the workflow does.

    Example: loopwright export self-refine --to langgraph -o self_refine.py
    """
    from engine.cli.output import err, write_exactly, write_json
    from engine.cli.sources import open_source
    from engine.export.langgraph_module import export_langgraph
    from engine.export.python_script import export_python

    workflow = open_source(file).workflow
    exported = export_python(workflow) if to is Target.PYTHON else export_langgraph(workflow)
    if out is not None:
        _write(out, exported.text)
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


def _write(out: Path, text: str) -> None:
    from engine.safe_file_io import replace_file
    from engine.text_sanitizing import shown

    try:
        replace_file(out, text.encode())
    except (OSError, ValueError) as error:
        reason = shown(getattr(error, "strerror", None) or error)
        raise EngineError(f'"{shown(out)}" cannot be written: {reason}.', "Name another file with --out.") from error
