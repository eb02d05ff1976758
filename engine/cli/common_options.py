"""Arguments and options that several commands have, so that they mean the same everywhere."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer


def finite(value: float | None) -> float | None:
    """Refuse an amount of money that is no number."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter("This is no amount of money.")
    return value


SourceName = Annotated[str, typer.Argument(metavar="FILE", help="A workflow file, or the name of a bundled template.")]
IterationsCap = Annotated[int, typer.Option(min=1, metavar="N", help="The most iterations that a loop may ask for.")]
ModelName = Annotated[
    str | None,
    typer.Option("--model", "-m", metavar="NAME", help="This model for every node, such as openai/gpt-4o-mini."),
]
BudgetUsd = Annotated[
    float | None, typer.Option(min=0, callback=finite, metavar="USD", help="The most that the run may spend.")
]
BudgetTokens = Annotated[int | None, typer.Option(min=0, metavar="N", help="The most tokens it may use.")]
AllowUnknownPrice = Annotated[
    bool, typer.Option("--allow-unknown-price", help="Run with a money budget and a model of unknown price.")
]
Folder = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        exists=True,
        file_okay=False,
        help="The one folder that file tools may read and write. Without it they may touch none.",
    ),
]
AllowPrivateAddresses = Annotated[
    bool, typer.Option("--allow-private-addresses", help="Let http_get reach this machine and private networks.")
]
AllowCode = Annotated[
    bool, typer.Option("--allow-code", help="Let the tools python and shell run code on this machine.")
]
EventLines = Annotated[bool, typer.Option("--events", help="Write each event as a JSON object on a line.")]
ResultJson = Annotated[bool, typer.Option("--json", help="Write the result as one JSON object.")]
