"""`loopwright graph`: a workflow as a picture that Markdown pages can show."""

from __future__ import annotations

from typing import Annotated

import typer

from engine.cli.common_options import SourceName
from engine.cli.exit_codes import ExitCode


def graph_command(
    file: SourceName,
    as_json: Annotated[bool, typer.Option("--json", help="Write the text as one JSON object.")] = False,
) -> int:
    """Draw a workflow as a Mermaid flowchart, with each loop's body as a subgraph.

    Example: loopwright graph self-refine
    """
    from engine.cli.mermaid import flowchart
    from engine.cli.output import out, write_json
    from engine.cli.sources import open_source

    text = flowchart(open_source(file).workflow)
    if as_json:
        write_json({"mermaid": text})
    else:
        out().line(text.rstrip())
    return ExitCode.DONE
