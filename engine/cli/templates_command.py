"""`loopwright templates`: the workflows that come with the program."""

from __future__ import annotations

from typing import Annotated

import typer

from engine.cli.exit_codes import ExitCode


def templates_command(
    as_json: Annotated[bool, typer.Option("--json", help="Write the list as one JSON object.")] = False,
) -> int:
    """List the bundled templates. Each runs by its name, with a sample input of its own.

    Example: loopwright templates
    """
    from engine.cli.output import out, write_json
    from engine.cli.sources import template_files, template_name
    from engine.document.files import load
    from engine.runner.declared import declared_inputs

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
    out().table(("Template", "What it does", "Inputs"), rows)
    return ExitCode.DONE
