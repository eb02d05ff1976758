"""Arguments and options that several commands share."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer


def finite(value: float | None) -> float | None:
    """Reject infinity and NaN as an amount of money."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter("The amount must be a finite number.")
    return value


SourceName = Annotated[str, typer.Argument(metavar="FILE", help="Workflow file, or name of a bundled template.")]
IterationsCap = Annotated[int, typer.Option(min=1, metavar="N", help="Upper limit for the max iterations of loops.")]
ModelName = Annotated[
    str | None,
    typer.Option("--model", "-m", metavar="NAME", help="Model for all nodes, such as openai/gpt-4o-mini."),
]
BudgetUsd = Annotated[
    float | None, typer.Option(min=0, callback=finite, metavar="USD", help="Budget of the run in US dollars.")
]
BudgetTokens = Annotated[int | None, typer.Option(min=0, metavar="N", help="Token limit of the run, input and output.")]
AllowUnknownPrice = Annotated[
    bool, typer.Option("--allow-unknown-price", help="Allow models of unknown price despite a budget.")
]
Folder = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        exists=True,
        file_okay=False,
        help="Folder that file tools may read and write. Without it, they have no file access.",
    ),
]
AllowPrivateAddresses = Annotated[
    bool, typer.Option("--allow-private-addresses", help="Allow http_get to reach this machine and private networks.")
]
AllowCode = Annotated[
    bool, typer.Option("--allow-code", help="Allow the tools python and shell to run code on this machine.")
]
EventLines = Annotated[bool, typer.Option("--events", help="Write events as JSON, one object per line.")]
ResultJson = Annotated[bool, typer.Option("--json", help="Write the result as one JSON object.")]
