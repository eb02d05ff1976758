"""Implements `loopwright runs resume`, `fork` and `answer`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.common_options import (
    NO_FLAGS,
    Allow,
    EventLines,
    ModelName,
    ResultJson,
    RunFlags,
    RunName,
    StorePath,
    Yes,
    ask_consent,
    can_ask,
    find_place,
    history,
    models_with,
    with_run_flags,
)
from engine.cli.exit_codes import ExitCode
from engine.cli.output import err, write_json
from engine.errors import EngineError
from engine.formatting import format_money

if TYPE_CHECKING:
    from engine import Run, RunOptions
    from engine.cli.run_monitor import OutputFormat
    from engine.document.model import Workflow
    from engine.events import NodeWaiting
    from engine.nodes.context import Answer
    from engine.store.resume import ForkPlan
    from engine.store.store_protocol import Store

OtherDocument = Annotated[
    str | None,
    typer.Option(
        "--document", metavar="FILE", help="Workflow file to use instead of the stored one; - for standard input."
    ),
]


@with_run_flags()
def runs_resume(
    context: typer.Context,
    run: RunName,
    retry_in_flight: Annotated[
        bool,
        typer.Option("--retry-in-flight", help="Repeat model and tool calls whose outcome is unknown."),
    ] = False,
    document: OtherDocument = None,
    flags: RunFlags = NO_FLAGS,
    allow: Allow = False,
    events: EventLines = False,
    as_json: ResultJson = False,
    store: StorePath = None,
) -> int:
    """Resume a run that has not completed.

    It was interrupted, failed, was stopped or used up its budget. No finished model call is repeated. A call in flight
    may have been billed, and a tool may have taken effect, so such calls are repeated only with --retry-in-flight.
    Read-only tools are always called again.

    With --document, this starts a new run that reuses finished results.

    Example: loopwright runs resume ab12 --budget-usd 1.00
    """
    from engine.cli.run_monitor import OutputFormat
    from engine.store.resume import resume, resume_with

    with history(context, store) as stored:
        run_id = stored.find(run).run_id
        source, workflow = _document(stored, run_id, document)
        options = replace(flags.options(), source=source, confirm_calls=_consent(stored, run_id, workflow, allow))
        if document is None:
            begin = partial(resume, stored, run_id, retry_in_flight=retry_in_flight)
        else:
            begin = partial(resume_with, stored, run_id, workflow, retry_in_flight=retry_in_flight)
        return _watch(begin, options, stored, OutputFormat(events, as_json))


@with_run_flags()
def runs_fork(
    context: typer.Context,
    run: RunName,
    at: Annotated[
        str,
        typer.Option(
            metavar="PLACE",
            help="Where the new run starts, with ids or titles: loop[2], loop[2].critique, counted from 0.",
        ),
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NODE.FIELD=VALUE", help="Change a setting. @FILE reads the value from a file. Repeatable."
        ),
    ] = None,
    value: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="New iteration input or node output; JSON unless it was a text. @FILE reads it from a file.",
        ),
    ] = None,
    document: OtherDocument = None,
    model: ModelName = None,
    max_iterations: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Max iterations of the loop at that place.")
    ] = None,
    flags: RunFlags = NO_FLAGS,
    allow: Allow = False,
    yes: Yes = False,
    events: EventLines = False,
    as_json: ResultJson = False,
    store: StorePath = None,
) -> int:
    """Start a new run from a place in an earlier one.

    All outputs before that place are reused. Shows what is reused, what runs again and an estimate of the cost, and
    asks for confirmation on a terminal.

    Example: loopwright runs fork ab12 --at loop[2] --set draft.temperature=0.2
    """
    from engine.cli.arguments import read_settings, text_or_file
    from engine.cli.run_monitor import OutputFormat
    from engine.store.consent import approve
    from engine.store.resume import Changes, fork, plan_fork
    from engine.store.run_sections import parse_like_stored

    with history(context, store) as stored:
        run_id = stored.find(run).run_id
        at = find_place(stored, run_id, at)
        source, workflow = _document(stored, run_id, document)
        changes = Changes(
            settings=read_settings(settings or (), workflow),
            value=None if value is None else parse_like_stored(stored, run_id, at, text_or_file(value, "--value")),
            has_value=value is not None,
            model=model,
            max_iterations=max_iterations,
            document=workflow,
        )
        options = replace(flags.options(), model=model, source=source)
        plan = plan_fork(stored, run_id, at, changes, max_iterations_cap=options.max_iterations_cap)
        confirms = _consent(stored, run_id, workflow, allow)
        if confirms:  # the user has just made these changes
            approve(plan.workflow)
        else:
            ask_consent(plan.workflow, allow=True)
        _announce(plan)
        if not yes and can_ask():
            typer.confirm("Start this run?", abort=True, err=True, default=True)
        options = replace(options, confirm_calls=confirms)
        return _watch(partial(fork, stored, plan), options, stored, OutputFormat(events, as_json))


def _document(store: Store, run_id: str, file: str | None) -> tuple[str, Workflow]:
    """The file for `--document` and its workflow; without the option no file and the workflow of the run."""
    if file is not None:
        from engine.cli.arguments import open_source

        opened = open_source(file)
        return opened.stored_path, opened.workflow
    from engine.document.files import loads

    return "", loads(store.document(run_id), source=f"run {run_id}")


def _consent(store: Store, run_id: str, workflow: Workflow, allow: bool) -> bool:
    from engine.store.run_file import is_imported

    return ask_consent(workflow, allow=allow, is_imported=is_imported(store, run_id))


def _watch(begin: Callable[[RunOptions], Run], options: RunOptions, store: Store, output: OutputFormat) -> int:
    """Start the run, watch it until it ends, and return the exit code."""
    from engine.cli.run_monitor import monitor, refusal_as_json, report
    from engine.runner.event_loop import run_in_new_loop

    with refusal_as_json(output):
        monitored = run_in_new_loop(monitor(begin, options, models_with(None, store), output))
    return report(monitored, output)


def _announce(plan: ForkPlan) -> None:
    """Show what a fork will do."""
    parent, screen = plan.parent, err()
    screen.line(
        f"Fork of {parent.run_id}{f' ({parent.workflow})' if parent.workflow else ''} at {plan.at}", style="bold"
    )
    screen.line(f"Reused: {', '.join(plan.reused) or 'nothing'}.")
    screen.line(f"Runs again: {', '.join(plan.rerun) or 'nothing'}.")
    estimate = "unknown" if plan.estimate_usd is None else f"about {format_money(plan.estimate_usd)}"
    screen.line(f"Estimated cost: {estimate}.")
    for warning in plan.warnings:
        screen.line(f"Warning: {warning}", style="yellow")


@with_run_flags("budget_usd", "budget_tokens", "allow_unknown_price")
def runs_answer(
    context: typer.Context,
    run: RunName,
    node: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Node that asks, by id or title, such as loop[2].check, if several do."),
    ] = None,
    approve: Annotated[bool, typer.Option("--approve", help="Approve the value.")] = False,
    reject: Annotated[bool, typer.Option("--reject", help="Reject the value.")] = False,
    choice: Annotated[str, typer.Option(metavar="CHOICE", help="Choose one of the offered choices.")] = "",
    value: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Answer, or edited value. @FILE reads it from a file."),
    ] = None,
    comment: Annotated[str, typer.Option(metavar="TEXT", help="Comment on the answer.")] = "",
    flags: RunFlags = NO_FLAGS,
    allow: Allow = False,
    events: EventLines = False,
    as_json: ResultJson = False,
    store: StorePath = None,
) -> int:
    """Answer the question of a waiting run, and resume it.

    If another process is running it, it continues there. Without an answer, shows the question, and asks on a terminal.

    Example: loopwright runs answer ab12 --reject --comment "Shorter, please."
    """
    from engine.cli.run_monitor import OutputFormat
    from engine.cli.terminal_questions import answer_options, ask_now, question_lines
    from engine.nodes.context import APPROVE, REJECT
    from engine.store.answers import find_question, give_answer
    from engine.store.resume import resume

    with history(context, store) as stored:
        run_id = stored.find(run).run_id
        asked = find_question(stored, run_id, None if node is None else find_place(stored, run_id, node))
        _, workflow = _document(stored, asked.run_id, None)
        options = replace(flags.options(), confirm_calls=_consent(stored, asked.run_id, workflow, allow))
        chosen = [name for name in (approve and APPROVE, reject and REJECT, choice) if name]
        if len(chosen) > 1:
            raise EngineError("There are several answers.", "Use only one of --approve, --reject and --choice.")
        answer = _parse_answer(asked, "".join(chosen), value, comment)
        if answer is None and not can_ask():
            for line in question_lines(asked):
                err().line(line)
            raise EngineError("There is no answer.", f"Add {answer_options(asked)}.")
        if give_answer(stored, asked, answer or ask_now(asked)):
            if as_json:
                write_json({"run_id": asked.run_id, "status": "running", "answered": asked.path})
            err().line(f"The process that runs {asked.run_id} has received the answer and continues.")
            return ExitCode.DONE
        return _watch(partial(resume, stored, asked.run_id), options, stored, OutputFormat(events, as_json))


def _parse_answer(asked: NodeWaiting, choice: str, value: str | None, comment: str) -> Answer | None:
    """The answer from the options; None without one."""
    from engine.cli.arguments import text_or_file
    from engine.nodes.context import Answer
    from engine.runner.human_input import value_of_text

    if not choice and (asked.choices or (value is None and not comment)):
        return None
    text = None if value is None else text_or_file(value, "--value")
    return Answer(choice, None if text is None else value_of_text(asked, text), comment)
