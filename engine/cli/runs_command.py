"""Implements `loopwright runs`, the list of stored runs, and groups the commands below it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.exit_codes import ExitCode
from engine.cli.history import StorePath, history, moment, summary_json, when
from engine.cli.runs_diff import runs_diff
from engine.cli.runs_manage import runs_delete, runs_export, runs_import, runs_pin, runs_vacuum
from engine.cli.runs_resume_fork import runs_answer, runs_fork, runs_resume
from engine.cli.runs_show import runs_show
from engine.exits.loop_conditions import format_exit_reason
from engine.formatting import format_count, format_money

if TYPE_CHECKING:
    from engine.store.store_protocol import RunStatus, RunSummary

runs_app = typer.Typer()
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
    from engine.cli.output import err, out, write_json
    from engine.store.store_protocol import RunFilter

    with history(context, store) as stored:
        which = RunFilter(
            workflow=workflow,
            statuses=frozenset(_status(text) for text in status or ()),
            since=moment(since, "--since"),
            until=moment(until, "--until"),
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
    from engine.errors import EngineError
    from engine.store.store_protocol import RunStatus
    from engine.text_sanitizing import shown

    try:
        return RunStatus(text.lower())
    except ValueError:
        raise EngineError(f'"{shown(text, 40)}" is not a run status.', f"Statuses: {', '.join(RunStatus)}.") from None


def _row(before: str, run: RunSummary) -> Sequence[str]:
    from engine.text_sanitizing import one_line

    ended = run.error or (format_exit_reason(run.exit_reason) if run.exit_reason else "")
    return (
        f"{before}{run.run_id}",
        one_line(run.workflow, 40) or "-",
        f"{run.status}{', pinned' if run.pinned else ''}",
        when(run.started),
        str(run.iterations),
        format_count(run.tokens),
        format_money(run.cost_usd),
        one_line(ended, 80) if ended else "",
    )


def _tree(runs: Sequence[RunSummary]) -> Iterator[tuple[str, RunSummary]]:
    """The runs with forks below their parents, each with the tree lines before its id."""
    listed = {run.run_id for run in runs}
    forks: dict[str, list[RunSummary]] = {}
    for run in reversed(runs):
        forks.setdefault(run.parent if run.parent in listed else "", []).append(run)

    shown: set[str] = set()  # an imported run may name any parent, even itself

    def below(run: RunSummary, before: str) -> Iterator[tuple[str, RunSummary]]:
        children = [child for child in forks.get(run.run_id, []) if child.run_id not in shown]
        shown.update(child.run_id for child in children)
        for number, child in enumerate(children, 1):
            last = number == len(children)
            yield f"{before}{'└─ ' if last else '├─ '}", child
            yield from below(child, f"{before}{'   ' if last else '│  '}")

    for run in (*reversed(forks.get("", [])), *runs):
        if run.run_id not in shown:
            shown.add(run.run_id)
            yield "", run
            yield from below(run, "")
