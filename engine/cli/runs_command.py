"""Implements `loopwright runs`: list, pin, delete, export and import stored runs, and compact the history."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from engine.cli.common_options import RunName, StorePath, Yes, confirm, format_time, history, summary_json
from engine.cli.exit_codes import ExitCode
from engine.cli.output import err, out, write_exactly, write_file, write_json
from engine.cli.runs_resume_fork import runs_answer, runs_fork, runs_resume
from engine.cli.runs_show import runs_diff, runs_show
from engine.errors import EngineError
from engine.formatting import format_bytes, format_count, format_money
from engine.text_sanitizing import one_line, shown

if TYPE_CHECKING:
    from engine.store.store_protocol import RunStatus, RunSummary, Store

_MEGABYTE: Final = 1_000_000
_EXPORT_FORMATS: Final = ("markdown", "json", "csv")
_AGO: Final = re.compile(r"(\d{1,6})([mhdw])")
_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

runs_app = typer.Typer()


@runs_app.callback(invoke_without_command=True)
def runs_command(
    context: typer.Context,
    workflow: Annotated[
        str,
        typer.Option("--workflow", "-w", metavar="TEXT", help="Only workflows with this in their name or file."),
    ] = "",
    status: Annotated[
        list[str] | None,
        typer.Option(metavar="STATUS", help="Only this status, such as waiting or failed. Repeatable."),
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only runs started since: 2026-11-28, or 7d for seven days ago.")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Only runs started before.")] = None,
    parent: Annotated[str | None, typer.Option(metavar="RUN", help="Only forks of this run.")] = None,
    pinned: Annotated[bool, typer.Option("--pinned", help="Only pinned runs.")] = False,
    strategy: Annotated[
        str, typer.Option(metavar="NAME", help="Only runs with an agent of this turn strategy, such as tool_calling.")
    ] = "",
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=1_000_000, metavar="N", help="Maximum number of runs to list.")
    ] = 30,
    tree: Annotated[bool, typer.Option("--tree", help="Show forks below their parents.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write the list as one JSON object.")] = False,
    store: StorePath = None,
) -> int:
    """List stored runs, newest first.

    Example: loopwright runs --workflow refine --status failed --since 7d
    """
    context.obj = store
    if context.invoked_subcommand is not None:
        return ExitCode.DONE
    from engine.store.store_protocol import RunFilter

    with history(context, store) as stored:
        which = RunFilter(
            workflow=workflow,
            statuses=frozenset(_status(text) for text in status or ()),
            since=_moment(since, "--since"),
            until=_moment(until, "--until"),
            parent=stored.find(parent).run_id if parent else "",
            pinned=pinned,
            strategy=strategy,
        )
        runs, totals = stored.runs(which, limit=limit), stored.totals(which)
    if as_json:
        write_json({"count": totals.count, "runs": [summary_json(run) for run in runs]})
        return ExitCode.DONE
    if not runs:
        out().line("No runs match." if which != RunFilter() else "The history is empty.")
        return ExitCode.DONE
    rows = _tree(runs) if tree else [("", run) for run in runs]
    heads = ("Run", "Workflow", "Status", "Started", "Iterations", "Tokens", "Cost", "Result")
    out().table(heads, [_row(before, run) for before, run in rows])
    known = f"{format_money(totals.cost_usd)}{' and unknown prices' if totals.price_unknown else ''}"
    more = f", {len(runs)} of them shown" if len(runs) < totals.count else ""
    err().line(f"{format_count(totals.count, 'run')}{more}: {format_count(totals.tokens, 'token')}, {known}.")
    return ExitCode.DONE


def _status(text: str) -> RunStatus:
    from engine.store.store_protocol import RunStatus

    try:
        return RunStatus(text.lower())
    except ValueError:
        raise EngineError(f'"{shown(text, 40)}" is not a run status.', f"Statuses: {', '.join(RunStatus)}.") from None


def _moment(text: str | None, option: str) -> float | None:
    """Parse the time in `--since` or `--until` as seconds since the epoch.

    Args:
        text: A date (`2026-11-28`), a date with a time, or how long ago (`30m`, `12h`, `7d`, `2w`).
        option: The name of the option.

    Raises:
        EngineError: The time is malformed.
    """
    if text is None:
        return None
    ago = _AGO.fullmatch(text.strip())
    try:
        if ago is not None:
            return (datetime.now().astimezone() - timedelta(**{_UNITS[ago[2]]: int(ago[1])})).timestamp()
        return datetime.fromisoformat(text.strip()).astimezone().timestamp()
    except (ValueError, OverflowError, OSError):
        raise EngineError(
            f'"{shown(text, 60)}" is not a valid time for {option}.',
            "Use 2026-11-28, 2026-11-28T14:30, or 7d for seven days ago.",
        ) from None


def _row(before: str, run: RunSummary) -> Sequence[str]:
    from engine.exits.loop_conditions import format_exit_reason

    ended = run.error or (format_exit_reason(run.exit_reason) if run.exit_reason else "")
    return (
        f"{before}{run.run_id}",
        (one_line(run.workflow, 40) or "-") + (f", {one_line(str(run.part), 40)}" if run.part is not None else ""),
        f"{run.status}{', pinned' if run.pinned else ''}",
        format_time(run.started),
        str(run.iterations),
        format_count(run.tokens),
        format_money(run.cost_usd),
        one_line(ended, 80) if ended else "",
    )


def _tree(runs: Sequence[RunSummary]) -> Iterator[tuple[str, RunSummary]]:
    """The runs with forks and partial runs below their parents, each with the tree lines before its id."""
    listed = {run.run_id: run for run in runs}
    forks: dict[str, list[RunSummary]] = {}
    for run in reversed(runs):
        forks.setdefault(_parent_in_tree(run, listed), []).append(run)

    seen: set[str] = set()  # an imported run may name any parent, even itself

    def below(run: RunSummary, before: str) -> Iterator[tuple[str, RunSummary]]:
        children = [child for child in forks.get(run.run_id, []) if child.run_id not in seen]
        seen.update(child.run_id for child in children)
        for number, child in enumerate(children, 1):
            last = number == len(children)
            yield f"{before}{'└─ ' if last else '├─ '}", child
            yield from below(child, f"{before}{'   ' if last else '│  '}")

    for run in (*reversed(forks.get("", [])), *runs):
        if run.run_id not in seen:
            seen.add(run.run_id)
            yield "", run
            yield from below(run, "")


def _parent_in_tree(run: RunSummary, listed: Mapping[str, RunSummary]) -> str:
    """The run below which a run is shown; empty without one.

    Partial runs are siblings: each reuses the outputs of the one before, so that the tree would only grow deeper.
    """
    parent, passed = listed.get(run.parent), set[str]()
    while parent is not None and parent.parent in listed and not (run.is_fork or parent.is_fork):
        if parent.run_id in passed:
            break
        passed.add(parent.run_id)
        parent = listed[parent.parent]
    return parent.run_id if parent is not None else ""


def runs_delete(
    context: typer.Context,
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Ids of runs, or their beginnings.")],
    yes: Yes = False,
    store: StorePath = None,
) -> int:
    """Delete runs permanently.

    Running runs cannot be deleted; forks of a deleted run stay.

    Example: loopwright runs delete ab12 cd34
    """
    with history(context, store) as stored:
        found = {run.run_id: run for run in map(stored.find, runs)}
        named = ", ".join(f"{run.run_id} ({run.workflow})" if run.workflow else run.run_id for run in found.values())
        confirm(f"Permanently delete {one_line(named, 500)}?", yes=yes)
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
    """Compact the history file.

    With limits, the oldest runs are deleted first. Pinned and running runs stay.

    Example: loopwright runs vacuum --keep 200 --keep-mb 500
    """
    with history(context, store) as stored:
        deleted = 0
        if keep is not None or keep_mb is not None:
            most_bytes = None if keep_mb is None else round(keep_mb * _MEGABYTE)
            deleted = stored.retain(most_runs=keep, most_bytes=most_bytes)
        freed, size = stored.vacuum(), stored.size()
    runs = f"{format_count(deleted, 'run was', 'runs were')} deleted. " if deleted else ""
    out().line(f"{runs}{format_bytes(freed)} freed; the history takes {format_bytes(size)}.")
    return ExitCode.DONE


def runs_export(
    context: typer.Context,
    run: RunName,
    to: Annotated[str, typer.Option(metavar="KIND", help="markdown to read, json to import, csv for a spreadsheet.")],
    file: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Output file. Default: standard output.")
    ] = None,
    store: StorePath = None,
) -> int:
    """Export a run as Markdown, JSON or CSV.

    A run in JSON can be imported on another computer.

    Example: loopwright runs export ab12 --to markdown -o run.md
    """
    from engine.store.export_csv import BYTE_ORDER_MARK

    if to not in _EXPORT_FORMATS:
        raise EngineError(f'The export format "{shown(to, 40)}" is unknown.', f"Formats: {', '.join(_EXPORT_FORMATS)}.")
    with history(context, store) as stored:
        pieces = _pieces(stored, stored.find(run).run_id, to)
        if file is None:
            write_exactly(pieces)
        else:
            write_file(file, chain([BYTE_ORDER_MARK], pieces) if to == "csv" else pieces)
    return ExitCode.DONE


def runs_import(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Run that was exported as JSON; - for standard input.")],
    store: StorePath = None,
) -> int:
    """Import a run that was exported as JSON.

    Nothing in it is executed. Permissions of the run are not imported: repeat their options when you resume it.

    Example: loopwright runs import run.json
    """
    from engine.cli.arguments import STANDARD_INPUT, STANDARD_INPUT_NAME, read_standard_input
    from engine.store.run_file import MAX_BYTES, import_run_file, import_run_text

    with history(context, store) as stored:
        if str(file) == STANDARD_INPUT:
            named, run_id = import_run_text(stored, read_standard_input(MAX_BYTES), STANDARD_INPUT_NAME)
        else:
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
        return run_to_csv(state_of(store, run_id), store.document(run_id))
    return run_to_markdown(store.find(run_id), store.document(run_id), state_of(store, run_id))


runs_app.command("show")(runs_show)
runs_app.command("diff")(runs_diff)
runs_app.command("resume")(runs_resume)
runs_app.command("answer")(runs_answer)
runs_app.command("fork")(runs_fork)
runs_app.command("export")(runs_export)
runs_app.command("import")(runs_import)
runs_app.command("delete")(runs_delete)
runs_app.command("pin")(runs_pin)
runs_app.command("vacuum")(runs_vacuum)
