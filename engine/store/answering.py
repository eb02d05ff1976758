"""Answering a run that waits for a person and on which no process is at work."""

from __future__ import annotations

import time
from concurrent.futures import Future

from engine.document.wording import shown
from engine.nodes.context import Answer
from engine.runner.events import NodeAnswered, NodeWaiting
from engine.runner.questions import check_choice, open_questions
from engine.store.base import RunStatus, Store, StoreError
from engine.store.fold import OPEN


def questions_of(store: Store, run_id: str) -> dict[str, NodeWaiting]:
    """The questions of a run that nobody has answered, by path, the oldest first.

    Raises:
        StoreError: There is no such run.
    """
    run = store.find(run_id)
    return {} if run.status is RunStatus.COMPLETED else open_questions(store.events(run.run_id))


def question_at(store: Store, run_id: str, path: str | None = None) -> NodeWaiting:
    """The question that is meant.

    Args:
        store: Where the run is kept.
        run_id: The run.
        path: The node that asks; None where there is but one.

    Raises:
        StoreError: There is no such run, nothing waits there, or it must be said which.
    """
    waiting = questions_of(store, run_id)
    if not waiting:
        raise StoreError(
            f"The run {run_id} waits for no answer.", f"'loopwright runs show {run_id}' tells how it stands."
        )
    if path is None and len(waiting) == 1:
        return next(iter(waiting.values()))
    if path is None:
        raise StoreError(
            f"The run {run_id} waits for {len(waiting)} answers: {', '.join(waiting)}.", "Say which with --node."
        )
    if path not in waiting:
        raise StoreError(
            f'Nothing waits for an answer at "{shown(path, 60)}".', f"The run waits at: {', '.join(waiting)}."
        )
    return waiting[path]


def record_answer(store: Store, asked: NodeWaiting, answer: Answer) -> None:
    """Put an answer into the history of a run; whoever takes the run up again has it.

    Args:
        store: Where the run is kept.
        asked: The question.
        answer: The answer; a value of null leaves what was asked about as it was.

    Raises:
        StoreError: A process is at work on the run, or the answer cannot be kept.
        EngineError: The answer is none of those to choose between.
    """
    check_choice(asked.path, answer.choice, asked.choices)
    try:
        journal = store.reopen(asked.run_id)
    except StoreError as error:
        if store.find(asked.run_id).status not in OPEN:
            raise
        raise StoreError(
            f"A process is at work on the run {asked.run_id}, and takes the answer itself.",
            "Answer in the window or on the terminal where it runs, or stop it there first.",
        ) from error
    safe: Future[None] = Future()
    journal.watch(lambda _seq: safe.set_result(None), safe.set_exception)
    try:
        last = max(event.seq for event in store.events(asked.run_id))
        value = asked.value if answer.value is None else answer.value
        now = time.time()
        journal.write(NodeAnswered(asked.run_id, last + 1, now, asked.path, answer.choice, value, answer.comment))
        safe.result()
    finally:
        journal.close()
