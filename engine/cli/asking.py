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
from engine.runner.questions import check_answer, value_of_text
from engine.text_sanitizing import one_line, visible
from engine.values import Value

if TYPE_CHECKING:
    from engine.events import NodeWaiting

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
    from engine.cli.inputs import text_or_file

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
