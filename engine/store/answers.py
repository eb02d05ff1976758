"""Answer the questions of a stored run, whether or not a process is running it.

Without a process, the answer is appended to the history. With one, it is left in the history file, where that process
looks for answers while it waits (`engine.runner.human_input`). The first answer counts; a later one is an error.
"""

from __future__ import annotations

import time
from concurrent.futures import Future
from typing import Final

from engine.errors import Fix
from engine.events import NodeAnswered, NodeWaiting
from engine.nodes.context import Answer
from engine.run_state.reducer import reduce_events
from engine.run_state.state import QUESTION_EVENTS, Detail, unanswered_questions
from engine.runner.human_input import check_answer
from engine.runner.run_storage import PostedAnswer
from engine.store.store_protocol import RunOwnedError, RunStatus, Store, StoreError, already_answered
from engine.text_sanitizing import shown

ACCEPT_TIMEOUT_S: Final = 15.0
"""Seconds within which a running process accepts an answer."""
_POLL_S: Final = 0.1


def open_questions(store: Store, run_id: str) -> dict[str, NodeWaiting]:
    """Return the unanswered questions of a run by path, oldest first.

    Raises:
        StoreError: There is no such run.
    """
    run = store.find(run_id)
    if run.status is RunStatus.COMPLETED:
        return {}
    events = store.events(run.run_id, kinds=QUESTION_EVENTS)
    return unanswered_questions(reduce_events(events, run_id, Detail.SUMMARY))


def find_question(store: Store, run_id: str, path: str | None = None) -> NodeWaiting:
    """Return the question of a run.

    Args:
        store: The history.
        run_id: The run.
        path: The node that asks; None if there is only one.

    Raises:
        StoreError: There is no such run, no such question, or there are several and `path` is None.
    """
    waiting = open_questions(store, run_id)
    if not waiting:
        raise StoreError(
            f"The run {run_id} is not waiting for an answer.", "Check its status.", fix=Fix.SHOW_RUN.of(run_id)
        )
    if path is None and len(waiting) == 1:
        return next(iter(waiting.values()))
    if path is None:
        raise StoreError(
            f"The run {run_id} is waiting for {len(waiting)} answers: {', '.join(waiting)}.",
            "Name the question to answer.",
            fix=Fix.ANSWER_QUESTION.of(run_id),
        )
    if path not in waiting:
        raise StoreError(
            f'There is no question at "{shown(path, 60)}".', f"The run is waiting at: {', '.join(waiting)}."
        )
    return waiting[path]


def give_answer(store: Store, asked: NodeWaiting, answer: Answer) -> bool:
    """Answer a question of a run.

    If a process owns the run, leave the answer for it and wait until it is accepted.

    Args:
        store: The history.
        asked: The question.
        answer: The answer; a value of None means the proposed value, unchanged.

    Returns:
        Whether a process continues the run. Otherwise the answer is stored and the run must be resumed.

    Raises:
        StoreError: The question was already answered, the owner does not accept the answer, or it cannot be stored.
        EngineError: The answer is invalid; the question stays open.
    """
    check_answer(asked, answer)
    given = answer if answer.value is not None else Answer(answer.choice, asked.value, answer.comment)
    if _recorded(store, asked, given):
        return False
    store.post_answer(asked.run_id, PostedAnswer(asked.path, asked.seq, given))
    try:
        end = time.monotonic() + ACCEPT_TIMEOUT_S
        while not _was_given(store, asked, given):
            if _recorded(store, asked, given):  # the process has ended meanwhile
                return False
            if time.monotonic() > end:
                raise StoreError(
                    f"The process that runs {asked.run_id} does not accept the answer.",
                    "Answer in its window or terminal, or stop it there first.",
                )
            time.sleep(_POLL_S)
    finally:
        store.withdraw_answer(asked.run_id, asked.seq)
    return True


def _recorded(store: Store, asked: NodeWaiting, given: Answer) -> bool:
    """Append an answer to the log of a run. Return False if a process owns the run or the answer is there already."""
    try:
        journal = store.reopen(asked.run_id)
    except RunOwnedError:
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
    """Return whether the question has this answer; False while it is open.

    Raises:
        StoreError: It has another answer, or is no longer open.
    """
    later = list(store.events(asked.run_id, kinds=QUESTION_EVENTS, after=asked.seq - 1))
    answered = next((event for event in later if isinstance(event, NodeAnswered) and event.path == asked.path), None)
    if answered is not None:
        if Answer(answered.choice, answered.value, answered.comment) == given:
            return True
        raise already_answered(asked.path)
    still = unanswered_questions(reduce_events(later, asked.run_id, Detail.SUMMARY)).get(asked.path)
    if still is None or still.seq != asked.seq:
        raise StoreError(
            f'The question at "{shown(asked.path, 60)}" is no longer open.',
            "Check the run's status.",
            fix=Fix.SHOW_RUN.of(asked.run_id),
        )
    return False
