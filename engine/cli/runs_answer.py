"""`loopwright runs answer`: answers a run that waits for a person, and goes on with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.common_options import (
    AllowCode,
    AllowPrivateAddresses,
    EventLines,
    Folder,
    IterationsCap,
    ModelName,
    ResultJson,
)
from engine.cli.consent import Allow
from engine.cli.history import RunName, StorePath, can_ask, history
from engine.errors import EngineError
from engine.nodes.iteration_cap import MAX_ITERATIONS_CAP

if TYPE_CHECKING:
    from engine.events import NodeWaiting
    from engine.nodes.context import Answer


def runs_answer(
    context: typer.Context,
    run: RunName,
    node: Annotated[
        str | None, typer.Option(metavar="PATH", help="The node that asks, such as loop[2].check, where several do.")
    ] = None,
    approve: Annotated[bool, typer.Option("--approve", help="Let the value go on.")] = False,
    reject: Annotated[bool, typer.Option("--reject", help="Do not.")] = False,
    choice: Annotated[str, typer.Option(metavar="CHOICE", help="One of the choices, where there are others.")] = "",
    value: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="The answer, or the value as it is to go on; @FILE takes it from a file."),
    ] = None,
    comment: Annotated[str, typer.Option(metavar="TEXT", help="What there is to say about it.")] = "",
    model: ModelName = None,
    max_iterations_cap: IterationsCap = MAX_ITERATIONS_CAP,
    folder: Folder = None,
    allow_private_addresses: AllowPrivateAddresses = False,
    allow_code: AllowCode = False,
    allow: Allow = False,
    events: EventLines = False,
    as_json: ResultJson = False,
    store: StorePath = None,
) -> int:
    """Answer a run that waits for a person, and go on with it; one that a process is at work on goes on there.

    Without an answer it shows what is asked, and asks on a terminal.

    Example: loopwright runs answer ab12 --reject --comment "Shorter, please."
    """
    from engine import RunOptions
    from engine.cli.asking import ask_now, question_lines
    from engine.cli.consent import ask_consent
    from engine.cli.output import err
    from engine.cli.runs_go_on import Going, ran
    from engine.store.answering import give_answer, question_at
    from engine.store.resume import resume
    from engine.store.run_file import is_imported

    with history(context, store) as kept:
        asked = question_at(kept, kept.find(run).run_id, node)
        confirms = ask_consent(ran(kept, asked.run_id), allow=allow, is_imported=is_imported(kept, asked.run_id))
        answer = _given(asked, _choice(approve=approve, reject=reject, choice=choice), value, comment)
        if answer is None:
            if not can_ask():
                for line in question_lines(asked):
                    err().line(line)
                raise EngineError("No answer is given.", _remedy(asked))
            answer = ask_now(asked)
        if give_answer(kept, asked, answer):
            return _tell_taken(asked, as_json=as_json)
        options = RunOptions(
            max_iterations_cap=max_iterations_cap,
            folder=folder,
            allow_private_addresses=allow_private_addresses,
            allow_code=allow_code,
            confirm_calls=confirms,
        )
        going = Going(kept, options, model, events, as_json)
        return going.on(lambda given: resume(kept, asked.run_id, given))


def _tell_taken(asked: NodeWaiting, *, as_json: bool) -> int:
    """Say that the process at work on the run has taken the answer."""
    from engine.cli.exit_codes import ExitCode
    from engine.cli.output import err, write_json

    if as_json:
        write_json({"run_id": asked.run_id, "status": "running", "answered": asked.path})
    err().line(f"The process at work on the run {asked.run_id} has taken the answer; the run goes on there.")
    return ExitCode.DONE


def _choice(*, approve: bool, reject: bool, choice: str) -> str:
    from engine.nodes.context import APPROVE, REJECT

    chosen = [name for name in (approve and APPROVE, reject and REJECT, choice) if name]
    if len(chosen) > 1:
        raise EngineError("Several answers are given at once.", "Give one of --approve, --reject and --choice.")
    return chosen[0] if chosen else ""


def _given(asked: NodeWaiting, choice: str, value: str | None, comment: str) -> Answer | None:
    """The answer in the options; None where they give none."""
    from engine.cli.inputs import text_or_file
    from engine.nodes.context import Answer
    from engine.runner.questions import value_of_text

    if not choice and (asked.choices or (value is None and not comment)):
        return None
    text = None if value is None else text_or_file(value, "--value")
    return Answer(choice, None if text is None else value_of_text(asked, text), comment)


def _remedy(asked: NodeWaiting) -> str:
    from engine.nodes.context import APPROVE, REJECT

    if set(asked.choices) == {APPROVE, REJECT}:
        return "Add --approve or --reject."
    return f"Add --choice {' or --choice '.join(asked.choices)}." if asked.choices else "Add --value TEXT."
