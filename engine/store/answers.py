"""Answer the questions of a stored run, whether or not a process is running it.

Without a process, the answer is appended to the history. With one, it is left in the history file, where that process
looks for answers while it waits (`engine.runner.human_input`). The first answer counts; a later one is an error.
"""

from __future__ import annotations

import shlex
import time
from concurrent.futures import Future
from typing import Final

from engine.events import NodeAnswered, NodeWaiting
from engine.nodes.context import APPROVE, REJECT, Answer
from engine.run_state.reducer import reduce_events
from engine.run_state.state import QUESTION_EVENTS, Detail, unanswered_questions
from engine.runner.human_input import check_answer
from engine.runner.run_storage import PostedAnswer
from engine.store.store_protocol import RunHeldError, RunStatus, Store, StoreError, answered_before
from engine.text_sanitizing import shown

TAKEN_WITHIN_S: Final = 15.0
"""Seconds within which a running process accepts an answer."""
_LOOK_S: Final = 0.1


def questions_of(store: Store, run_id: str) -> dict[str, NodeWaiting]:
    """The questions of a run that nobody has answered, by path, the oldest first.

    Raises:
        StoreError: There is no such run.
    """
    run = store.find(run_id)
    if run.status is RunStatus.COMPLETED:
        return {}
    events = store.events(run.run_id, kinds=QUESTION_EVENTS)
    return unanswered_questions(reduce_events(events, run_id, Detail.SUMMARY))


def answer_command(asked: NodeWaiting, *, is_only: bool) -> str:
    """The command that answers a question, with the choices there are.

    Args:
        asked: The question.
        is_only: Whether the run waits for no other answer, so that the node need not be named.
    """
    node = "" if is_only else f" --node {shlex.quote(asked.path)}"
    if set(asked.choices) == {APPROVE, REJECT}:
        choices = "--approve or --reject"
    else:
        choices = " or ".join(f"--choice {shlex.quote(choice)}" for choice in asked.choices) or "--value TEXT"
    return f"loopwright runs answer {asked.run_id}{node} {choices}"


def question_at(store: Store, run_id: str, path: str | None = None) -> NodeWaiting:
    """The question that is meant.

    Args:
        store: Where the run is kept.
        run_id: The run.
        path: The node that asks; None where there is but one.

    Raises:
        StoreError: There is no such run, nothing waits there, or several questions wait and none is named.
    """
    waiting = questions_of(store, run_id)
    if not waiting:
        raise StoreError(
            f"The run {run_id} waits for no answer.", f"'loopwright runs show {run_id}' tells how it stands."
        )
    if path is None and len(waiting) == 1:
        return next(iter(waiting.values()))
    if path is None:
        commands = "; or ".join(answer_command(asked, is_only=False) for asked in waiting.values())
        raise StoreError(
            f"The run {run_id} waits for {len(waiting)} answers: {', '.join(waiting)}.", f"Answer one with: {commands}"
        )
    if path not in waiting:
        raise StoreError(
            f'Nothing waits for an answer at "{shown(path, 60)}".', f"The run waits at: {', '.join(waiting)}."
        )
    return waiting[path]


def give_answer(store: Store, asked: NodeWaiting, answer: Answer) -> bool:
    """Answer a run: into its history, where whoever takes the run up again has it, or by the process at work on it.

    Waits until that process has taken the answer.

    Args:
        store: Where the run is kept.
        asked: The question.
        answer: The answer; a value of null leaves what was asked about as it was.

    Returns:
        Whether a process is at work on the run and goes on with it; where not, the run is to be resumed.

    Raises:
        StoreError: Somebody else has answered before, the process at work on the run does not take it, or the answer
            cannot be kept.
        EngineError: The answer does not fit; the question stays open.
    """
    check_answer(asked, answer)
    given = answer if answer.value is not None else Answer(answer.choice, asked.value, answer.comment)
    if _recorded(store, asked, given):
        return False
    store.leave_answer(asked.run_id, PostedAnswer(asked.path, asked.seq, given))
    try:
        end = time.monotonic() + TAKEN_WITHIN_S
        while not _was_given(store, asked, given):
            if _recorded(store, asked, given):  # the process has gone meanwhile
                return False
            if time.monotonic() > end:
                raise StoreError(
                    f"A process is at work on the run {asked.run_id}, and does not take the answer.",
                    "Answer in the window or on the terminal where it runs, or stop it there first.",
                )
            time.sleep(_LOOK_S)
    finally:
        store.take_answer_back(asked.run_id, asked.seq)
    return True


def _recorded(store: Store, asked: NodeWaiting, given: Answer) -> bool:
    """Put an answer into the history of a run; false where a process is at work on it, or the answer is there."""
    try:
        journal = store.reopen(asked.run_id)
    except RunHeldError:
        return False
    safe: Future[None] = Future()
    journal.watch(lambda _seq: safe.set_result(None), safe.set_exception)
    try:
        if _was_given(store, asked, given):
            return False
        last = max(event.seq for event in store.events(asked.run_id))
        answered = (asked.path, given.choice, given.value, given.comment)
        journal.write(NodeAnswered(asked.run_id, last + 1, time.time(), *answered))
        safe.result()
    finally:
        journal.close()
    return True


def _was_given(store: Store, asked: NodeWaiting, given: Answer) -> bool:
    """Whether the question got that very answer; false while it is open.

    Raises:
        StoreError: It is open no more, and got another answer or none.
    """
    later = list(store.events(asked.run_id, kinds=QUESTION_EVENTS, after=asked.seq - 1))
    answered = next((event for event in later if isinstance(event, NodeAnswered) and event.path == asked.path), None)
    if answered is not None:
        if Answer(answered.choice, answered.value, answered.comment) == given:
            return True
        raise answered_before(asked.path)
    still = unanswered_questions(reduce_events(later, asked.run_id, Detail.SUMMARY)).get(asked.path)
    if still is None or still.seq != asked.seq:
        raise StoreError(
            f'The question at "{shown(asked.path, 60)}" is asked no more.',
            f"'loopwright runs show {asked.run_id}' tells how the run stands.",
        )
    return False
