"""`loopwright runs delete`, `pin` and `vacuum`: what stays in the history, and what goes."""

from __future__ import annotations

from typing import Annotated

import typer

from engine.cli.exit_codes import ExitCode
from engine.cli.history import RunName, StorePath, can_ask, history
from engine.errors import EngineError
from engine.formatting import format_bytes, format_count

_MEGABYTE = 1_000_000


def runs_delete(
    context: typer.Context,
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Ids, or the beginnings of them.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    store: StorePath = None,
) -> int:
    """Delete runs for good. A run under way is refused; forks of a deleted run stay.

    Example: loopwright runs delete ab12 cd34
    """
    from engine.cli.output import out
    from engine.text_sanitizing import one_line

    with history(context, store) as kept:
        found = {run.run_id: run for run in map(kept.find, runs)}
        named = ", ".join(f"{run.run_id} ({run.workflow})" if run.workflow else run.run_id for run in found.values())
        if not yes:
            if not can_ask():
                raise EngineError("Runs are deleted for good, and nobody can be asked here.", "Add --yes.")
            typer.confirm(f"Delete {one_line(named, 500)} for good?", abort=True, err=True)
        kept.delete(found)
    out().line(f"Deleted: {', '.join(found)}.")
    return ExitCode.DONE


def runs_pin(
    context: typer.Context,
    run: RunName,
    off: Annotated[bool, typer.Option("--off", help="Let it go like any other again.")] = False,
    store: StorePath = None,
) -> int:
    """Keep a run whatever limits the history has.

    Example: loopwright runs pin ab12
    """
    from engine.cli.output import out

    with history(context, store) as kept:
        run_id = kept.find(run).run_id
        kept.pin(run_id, pinned=not off)
    out().line(f"{run_id} is {'no longer pinned' if off else 'pinned'}.")
    return ExitCode.DONE


def runs_vacuum(
    context: typer.Context,
    keep: Annotated[int | None, typer.Option(min=0, metavar="N", help="Delete the oldest runs but so many.")] = None,
    keep_mb: Annotated[
        float | None,
        typer.Option(min=0, max=1e9, metavar="N", help="Delete the oldest runs until so many megabytes are left."),
    ] = None,
    store: StorePath = None,
) -> int:
    """Give the free space of the history back to the disk; with limits, delete the oldest runs first.

    Pinned runs and runs under way stay.

    Example: loopwright runs vacuum --keep 200 --keep-mb 500
    """
    from engine.cli.output import out

    with history(context, store) as kept:
        deleted = 0
        if keep is not None or keep_mb is not None:
            most_bytes = None if keep_mb is None else round(keep_mb * _MEGABYTE)
            deleted = kept.retain(most_runs=keep, most_bytes=most_bytes)
        won, size = kept.vacuum(), kept.size()
    runs = f"{format_count(deleted, 'run was', 'runs were')} deleted. " if deleted else ""
    out().line(f"{runs}{format_bytes(won)} freed; the history takes {format_bytes(size)}.")
    return ExitCode.DONE
