"""Implements `loopwright runs delete`, `pin`, `vacuum`, `export` and `import`."""

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
    from engine.store.store_protocol import Store

_MEGABYTE = 1_000_000


def runs_delete(
    context: typer.Context,
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Ids of runs, or their beginnings.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    store: StorePath = None,
) -> int:
    """Delete runs permanently. Running runs cannot be deleted; forks of a deleted run stay.

    Example: loopwright runs delete ab12 cd34
    """
    from engine.cli.output import out
    from engine.text_sanitizing import one_line

    with history(context, store) as stored:
        found = {run.run_id: run for run in map(stored.find, runs)}
        named = ", ".join(f"{run.run_id} ({run.workflow})" if run.workflow else run.run_id for run in found.values())
        if not yes:
            if not can_ask():
                raise EngineError("Deleting runs needs confirmation, and there is no terminal to ask at.", "Add --yes.")
            typer.confirm(f"Permanently delete {one_line(named, 500)}?", abort=True, err=True)
        stored.delete(found)
    out().line(f"Deleted: {', '.join(found)}.")
    return ExitCode.DONE


def runs_pin(
    context: typer.Context,
    run: RunName,
    off: Annotated[bool, typer.Option("--off", help="Unpin the run.")] = False,
    store: StorePath = None,
) -> int:
    """Pin a run, so that limits of the history never delete it.

    Example: loopwright runs pin ab12
    """
    from engine.cli.output import out

    with history(context, store) as stored:
        run_id = stored.find(run).run_id
        stored.pin(run_id, pinned=not off)
    out().line(f"{run_id} is {'no longer pinned' if off else 'pinned'}.")
    return ExitCode.DONE


def runs_vacuum(
    context: typer.Context,
    keep: Annotated[int | None, typer.Option(min=0, metavar="N", help="Keep the newest N runs.")] = None,
    keep_mb: Annotated[
        float | None,
        typer.Option(min=0, max=1e9, metavar="N", help="Keep the newest runs that fit into N megabytes."),
    ] = None,
    store: StorePath = None,
) -> int:
    """Compact the history file. With limits, delete the oldest runs first.

    Pinned and running runs stay.

    Example: loopwright runs vacuum --keep 200 --keep-mb 500
    """
    from engine.cli.output import out

    with history(context, store) as stored:
        deleted = 0
        if keep is not None or keep_mb is not None:
            most_bytes = None if keep_mb is None else round(keep_mb * _MEGABYTE)
            deleted = stored.retain(most_runs=keep, most_bytes=most_bytes)
        freed, size = stored.vacuum(), stored.size()
    runs = f"{format_count(deleted, 'run was', 'runs were')} deleted. " if deleted else ""
    out().line(f"{runs}{format_bytes(freed)} freed; the history takes {format_bytes(size)}.")
    return ExitCode.DONE


_KINDS = ("markdown", "json", "csv")


def runs_export(
    context: typer.Context,
    run: RunName,
    to: Annotated[str, typer.Option(metavar="KIND", help="markdown to read, json to import, csv for a spreadsheet.")],
    file: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Output file. Default: standard output.")
    ] = None,
    store: StorePath = None,
) -> int:
    """Export a run as Markdown, as JSON for another machine, or as CSV.

    Example: loopwright runs export ab12 --to markdown -o run.md
    """
    from engine.cli.output import write_exactly
    from engine.store.export_csv import BYTE_ORDER_MARK
    from engine.text_sanitizing import shown

    if to not in _KINDS:
        raise EngineError(f'The export format "{shown(to, 40)}" is unknown.', f"Formats: {', '.join(_KINDS)}.")
    with history(context, store) as stored:
        pieces = _pieces(stored, stored.find(run).run_id, to)
        if file is None:
            write_exactly(pieces)
        else:
            _write(file, chain([BYTE_ORDER_MARK], pieces) if to == "csv" else pieces)
    return ExitCode.DONE


def runs_import(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Run that was exported as JSON.")],
    store: StorePath = None,
) -> int:
    """Import a run that was exported as JSON. Nothing in it is executed.

    Permissions of the run are not imported: repeat their options when you resume it.

    Example: loopwright runs import run.json
    """
    from engine.cli.output import out
    from engine.store.run_file import import_run_file

    with history(context, store) as stored:
        named, run_id = import_run_file(stored, file)
    renamed = f" ({named} already exists)" if run_id != named else ""
    out().line(f"Imported as {run_id}{renamed}.")
    return ExitCode.DONE


def _pieces(store: Store, run_id: str, kind: str) -> Iterator[str]:
    from engine.store.export_csv import run_to_csv
    from engine.store.export_markdown import run_to_markdown
    from engine.store.run_file import head_of, run_to_json
    from engine.store.run_sections import state_of

    if kind == "json":
        return run_to_json(head_of(store, run_id), store.events(run_id))
    if kind == "csv":
        return run_to_csv(state_of(store, run_id))
    return run_to_markdown(store.find(run_id), store.document(run_id), state_of(store, run_id))


def _write(file: Path, pieces: Iterable[str]) -> None:
    """Replace a file atomically. A symbolic link stays; its target is replaced.

    Raises:
        EngineError: The file cannot be written, and is unchanged.
    """
    from engine.safe_file_io import replace_file
    from engine.text_sanitizing import shown

    try:
        replace_file(file, (piece.encode("utf-8", "backslashreplace") for piece in pieces))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise EngineError(
            f"{shown(file)}: The file cannot be written: {shown(reason)}.", "Check the folder, or choose another."
        ) from error
