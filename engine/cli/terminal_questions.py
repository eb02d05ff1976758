"""Asking the person at the terminal what a run wants to know.

Lines are read by a thread that holds no lock of Python's own streams: a question that nobody answers keeps no process
from ending.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Final

from engine.cli.output import err
from engine.errors import EngineError
from engine.formatting import format_count, format_members, format_value
from engine.nodes.context import Answer
from engine.run_state.selectors import SETTLE_S, waits_only
from engine.runner.questions import check_answer, value_of_text
from engine.text_sanitizing import one_line, visible
from engine.values import Value

if TYPE_CHECKING:
    from engine import Run
    from engine.cli.run_views import View
    from engine.events import AnyEvent, NodeWaiting
    from engine.run_state.state import RunState

_LONGEST_SHOWN: Final = 4_000


def question_lines(asked: NodeWaiting) -> Iterator[str]:
    """What is asked, for people."""
    yield f"{asked.path} asks: {asked.message}"
    if asked.kind == "approval" and asked.value is not None:  # whole: nobody approves what they have not seen
        text = format_members(asked.value)
        yield text if asked.value_schema is None else visible(text)
    elif asked.value is not None:
        text = format_value(asked.value)
        yield (
            text
            if len(text) <= _LONGEST_SHOWN
            else f"{text[:_LONGEST_SHOWN]} … ({format_count(len(text), 'character')} in all)"
        )


class Lines:
    """The lines that a person types, one at a time, in the event loop that is running."""

    def __init__(self) -> None:
        self._typed: asyncio.Queue[str | None] = asyncio.Queue()
        self._is_reading = False

    async def next(self, prompt: str) -> str | None:
        """The next line, without its end; None where there will be no more.

        Args:
            prompt: What is written before it.
        """
        if not self._is_reading:
            self._is_reading = True
            threading.Thread(target=_read, args=(self._put_in(asyncio.get_running_loop()),), daemon=True).start()
        err().piece(prompt)
        return await self._typed.get()

    def _put_in(self, loop: asyncio.AbstractEventLoop) -> Callable[[str | None], None]:
        def put(line: str | None) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._typed.put_nowait, line)

        return put


def _read(put: Callable[[str | None], None]) -> None:
    waiting = b""
    while piece := os.read(sys.stdin.fileno(), 65_536):
        *lines, waiting = (waiting + piece).split(b"\n")
        for line in lines:
            put(line.decode("utf-8", "replace").rstrip("\r"))
    put(None)


async def ask(asked: NodeWaiting, next_line: Callable[[str], Awaitable[str | None]]) -> Answer | None:
    """Ask a person until the answer fits.

    Args:
        asked: The question.
        next_line: Gives the next line that they type, or None.

    Returns:
        The answer; None where nobody answers any more.
    """
    screen = err()
    screen.line()
    for number, line in enumerate(question_lines(asked)):
        screen.line(line, style="" if number else "bold")
    if not asked.choices:
        while (text := await next_line("Your answer: ")) is not None:
            if text.strip():
                return Answer(value=text)
        return None
    choice = await _chosen(asked.choices, next_line)
    if choice is None:
        return None
    value: Value = None
    if asked.kind == "approval" and asked.value is not None:
        value = await _edited(asked, choice, next_line)
    return Answer(choice, value, await next_line("Comment (Enter for none): ") or "")


async def _chosen(choices: tuple[str, ...], next_line: Callable[[str], Awaitable[str | None]]) -> str | None:
    """One of the choices; the beginning of it is enough where only one begins so."""
    while (text := await next_line(f"{' / '.join(choices)}: ")) is not None:
        fitting = [choice for choice in choices if text.strip() and choice.startswith(text.strip().casefold())]
        if len(fitting) == 1:
            return fitting[0]
        err().line(f"Write one of: {', '.join(choices)}.", style="yellow")
    return None


async def _edited(asked: NodeWaiting, choice: str, next_line: Callable[[str], Awaitable[str | None]]) -> Value:
    """Ask for a value until it fits; null leaves it unchanged."""
    from engine.cli.arguments import text_or_file

    while text := await next_line("Another value (Enter keeps it; @FILE takes it from a file): "):
        try:
            value = value_of_text(asked, text_or_file(text, "the value"))
            check_answer(asked, Answer(choice, value))
        except EngineError as error:
            err().line(one_line(str(error), 300), style="yellow")
        else:
            return value
    return None


def ask_now(asked: NodeWaiting) -> Answer:
    """Ask a person at once, where no run is under way.

    Raises:
        EngineError: Nobody answers.
    """

    async def answered() -> Answer | None:
        return await ask(asked, Lines().next)

    answer = asyncio.run(answered())
    if answer is None:
        raise EngineError("Nobody answered.", "Give the answer with --approve, --reject, --choice or --value.")
    return answer


class Attendant:
    """Looks after a run's questions.

    Args:
        run: The run.
        state: Its state, already changed by each event.
        view: What shows it.
        has_person: Whether a person is at the terminal.
    """

    def __init__(self, run: Run, state: RunState, view: View, *, has_person: bool) -> None:
        self._run = run
        self._state = state
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
        questions = self._state.questions
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
        elif waits_only(self._state):
            self._leaving = asyncio.get_running_loop().call_later(SETTLE_S, self._run.put_aside)

    async def _ask(self, asked: NodeWaiting) -> None:
        self._view.suspend()
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
        self._view.restore()
        held, self._held = self._held, []
        for event in held:
            self._view.take(event)
