"""`loopwright runs delete`, `pin` and `vacuum`: what stays in the history, and what goes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.exit_codes import ExitCode
from engine.cli.history import RunName, StorePath, can_ask, history
from engine.errors import EngineError
from engine.formatting import format_bytes, format_count

if TYPE_CHECKING:
    from engine.store.base import Store

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


_KINDS = ("markdown", "json", "csv")


def runs_export(
    context: typer.Context,
    run: RunName,
    to: Annotated[str, typer.Option(metavar="KIND", help="markdown to be read, json to be imported, csv for a table.")],
    file: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to write it; else standard output.")
    ] = None,
    store: StorePath = None,
) -> int:
    """Write a run as a page that people read, as a file that takes it to another machine, or as a table.

    Example: loopwright runs export ab12 --to markdown -o run.md
    """
    from engine.cli.output import write_exactly
    from engine.store.export_csv import BYTE_ORDER_MARK
    from engine.text_sanitizing import shown

    if to not in _KINDS:
        raise EngineError(f'There is no export to "{shown(to, 40)}".', f"Choose one of: {', '.join(_KINDS)}.")
    with history(context, store) as kept:
        pieces = _pieces(kept, kept.find(run).run_id, to)
        if file is None:
            write_exactly(pieces)
        else:
            _write(file, chain([BYTE_ORDER_MARK], pieces) if to == "csv" else pieces)
    return ExitCode.DONE


def runs_import(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A run that was exported as JSON.")],
    store: StorePath = None,
) -> int:
    """Import a run that was exported as JSON. Nothing of it is executed.

    What the run was allowed where it came from does not count here: say it again when you resume it.

    Example: loopwright runs import run.json
    """
    from engine.cli.output import out
    from engine.store.run_file import import_run_file

    with history(context, store) as kept:
        named, run_id = import_run_file(kept, file)
    renamed = f" (here was another {named})" if run_id != named else ""
    out().line(f"Imported as {run_id}{renamed}.")
    return ExitCode.DONE


def _pieces(store: Store, run_id: str, kind: str) -> Iterator[str]:
    from engine.store.export_csv import run_to_csv
    from engine.store.export_markdown import run_to_markdown
    from engine.store.parts import state_of
    from engine.store.run_file import head_of, run_to_json

    if kind == "json":
        return run_to_json(head_of(store, run_id), store.events(run_id))
    if kind == "csv":
        return run_to_csv(state_of(store, run_id))
    return run_to_markdown(store.find(run_id), store.document(run_id), state_of(store, run_id))


def _write(file: Path, pieces: Iterable[str]) -> None:
    """Put a text into a file, whole or not at all; a symbolic link stays, and the file that it leads to is replaced.

    Raises:
        EngineError: It cannot be written; what was there before is unchanged.
    """
    from engine.safe_file_io import replace_file
    from engine.text_sanitizing import shown

    try:
        replace_file(file, (piece.encode("utf-8", "backslashreplace") for piece in pieces))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise EngineError(
            f"{shown(file)}: The file cannot be written: {shown(reason)}.", "Check the folder, or choose another one."
        ) from error
