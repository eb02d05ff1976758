"""The questions of one run that wait for a person, and how answers come to them.

An answer comes from whoever has the run in this process, or lies in the history, where another process left it; while a
question is open, the history is looked at now and then. Whichever comes first counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from engine.errors import EngineError
from engine.nodes.context import Answer
from engine.runner.journal import RunKeeper
from engine.runner.questions import Asked, check_answer

LOOK_S: Final = 0.5
"""Seconds between two looks into the history."""


@dataclass(frozen=True, slots=True)
class _Question:
    """The number of its event, where the answer is put, and what decides whether one fits."""

    number: int
    answer: asyncio.Future[Answer]
    asked: Asked


class Mailbox:
    """The open questions of a run.

    Args:
        keeper: Where other processes leave answers; None where the run is not kept.
        run_id: The run.
    """

    def __init__(self, keeper: RunKeeper | None = None, run_id: str = "") -> None:
        self._keeper = keeper
        self._run_id = run_id
        self._questions: dict[str, _Question] = {}
        self._looking: asyncio.Task[None] | None = None

    @contextmanager
    def open(self, number: int, asked: Asked) -> Generator[asyncio.Future[Answer]]:
        """Hold a question open.

        Args:
            number: The number of the event that reported the question.
            asked: The question.

        Yields:
            Where the answer is put.
        """
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._questions[asked.path] = _Question(number, answer, asked)
        if self._keeper is not None and self._looking is None:
            self._looking = asyncio.create_task(self._look(self._keeper), name=f"loopwright answers {self._run_id}")
        try:
            yield answer
        finally:
            del self._questions[asked.path]
            if self._looking is not None and not self._questions:
                self._looking.cancel()
                self._looking = None

    def put(self, path: str, answer: Answer) -> None:
        """Answer a question.

        Raises:
            EngineError: Nothing waits at that path, or the answer does not fit; the question stays open.
        """
        question = self._questions.get(path)
        if question is None or question.answer.done():
            raise EngineError(f'Nothing waits for an answer at "{path}".', "Look whether it has been answered already.")
        check_answer(question.asked, answer)
        question.answer.set_result(answer)

    async def _look(self, keeper: RunKeeper) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            with suppress(EngineError):  # a history that is busy is looked at again
                for left in await asyncio.to_thread(keeper.left_answers, self._run_id):
                    question = self._questions.get(left.path)
                    if question is not None and question.number == left.question:
                        with suppress(EngineError):  # another answer was faster, or it is none
                            self.put(left.path, left.answer)
