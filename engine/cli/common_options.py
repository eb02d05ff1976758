"""Arguments and options that several commands have, so that they mean the same everywhere."""

from __future__ import annotations

from typing import Annotated

import typer

SourceName = Annotated[str, typer.Argument(metavar="FILE", help="A workflow file, or the name of a bundled template.")]
IterationsCap = Annotated[int, typer.Option(min=1, metavar="N", help="The most iterations that a loop may ask for.")]
MAX_ITERATIONS_CAP = 50
"""As `engine.nodes.loop` has it; said here again, so that `--help` need not load the node types."""
