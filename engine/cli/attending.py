"""A run's questions on the command line: a person at the terminal answers them; where there is none, the run waits.

A run of which nothing but questions is left, and that nobody can answer here, is put aside: it stays in the history as
it stands, and goes on with `loopwright runs answer`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from engine.cli.asking import Lines, ask
from engine.cli.output import err
from engine.errors import EngineError
from engine.runner.at_work import GRACE_S

if TYPE_CHECKING:
    from engine import Run
    from engine.cli.progress import Progress
    from engine.cli.views import View
    from engine.events import AnyEvent, NodeWaiting
    from engine.nodes.context import Answer


class Attendant:
    """Looks after a run's questions.

    Args:
        run: The run.
        progress: Its state, already that after each event.
        view: What shows it.
        has_person: Whether a person is at the terminal.
    """

    def __init__(self, run: Run, progress: Progress, view: View, *, has_person: bool) -> None:
        self._run = run
        self._progress = progress
        self._view = view
        self._has_person = has_person
        self._lines = Lines()
        self._asking: asyncio.Task[None] | None = None
        self._asked: NodeWaiting | None = None
        self._held: list[AnyEvent] = []
        self._leaving: asyncio.TimerHandle | None = None

    def take(self, event: AnyEvent) -> None:
        """Show one event, or hold it back while a person is asked, and see to whatever waits."""
        if self._asked is None:
            self._view.take(event)
        else:
            self._held.append(event)
        self._see_to_questions()

    def close(self) -> None:
        """Ask no more."""
        if self._leaving is not None:
            self._leaving.cancel()
        if self._asking is not None:
            self._asking.cancel()
        self._done()

    def _see_to_questions(self) -> None:
        questions = self._progress.questions
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None
        if self._asked is not None and questions.get(self._asked.path) is not self._asked:
            assert self._asking is not None
            self._asking.cancel()  # it has been settled otherwise
            err().line()
            err().line("The question is settled: it was answered elsewhere, or is asked no more.", style="yellow")
            self._done()
        if not questions:
            return
        if self._has_person:
            if self._asked is None:
                self._asked = next(iter(questions.values()))
                self._asking = asyncio.create_task(self._ask(self._asked))
        elif self._progress.work.only_waits:
            self._leaving = asyncio.get_running_loop().call_later(GRACE_S, self._run.put_aside)

    async def _ask(self, asked: NodeWaiting) -> None:
        self._view.step_back()
        answer = await ask(asked, self._lines.next)
        self._done()
        if answer is None:
            self._has_person = False
            self._see_to_questions()
        else:
            self._answer(asked, answer)

    def _answer(self, asked: NodeWaiting, answer: Answer) -> None:
        try:
            self._run.answer(asked.path, answer)
        except EngineError as error:  # settled otherwise just now, or refused: then it is asked again
            err().line(str(error), style="yellow")
            self._see_to_questions()

    def _done(self) -> None:
        """Show what was held back."""
        if self._asked is None:
            return
        self._asked = None
        self._view.step_forward()
        held, self._held = self._held, []
        for event in held:
            self._view.take(event)
