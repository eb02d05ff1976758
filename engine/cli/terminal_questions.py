"""Questions of a run at the terminal.

A run whose questions nobody can answer here is suspended: it is stored, and `loopwright runs answer` resumes it. Lines
are read in a thread that holds no lock of Python's streams, so an unanswered question does not block process exit.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Final

from engine.cli.output import err
from engine.cli.remedies import quote_argument
from engine.errors import EngineError
from engine.formatting import format_count, format_members, format_value
from engine.nodes.context import APPROVE, REJECT, Answer
from engine.runner.human_input import check_answer, value_of_text
from engine.text_sanitizing import one_line, visible
from engine.values import Value

if TYPE_CHECKING:
    from engine.events import NodeWaiting

_MAX_CHARACTERS: Final = 4_000


def question_lines(asked: NodeWaiting) -> Iterator[str]:
    """The text of a question, line by line."""
    yield f"{asked.path} asks: {asked.message}"
    if asked.kind == "approval" and asked.value is not None:  # never truncated: people approve only what they have seen
        text = format_members(asked.value)
        yield text if asked.value_schema is None else visible(text)
    elif asked.value is not None:
        text = format_value(asked.value)
        more = f" … ({format_count(len(text), 'character')} in total)" if len(text) > _MAX_CHARACTERS else ""
        yield text[:_MAX_CHARACTERS] + more


class LineReader:
    """Reads lines from standard input without blocking the event loop."""

    def __init__(self) -> None:
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._is_reading = False

    async def next(self, prompt: str) -> str | None:
        """Write a prompt and return the next line without its end, or None at the end of input."""
        if not self._is_reading:
            self._is_reading = True
            threading.Thread(target=self._read, args=(asyncio.get_running_loop(),), daemon=True).start()
        err().line(prompt, end="")
        return await self._lines.get()

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        def put(line: str | None) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._lines.put_nowait, line)

        rest = b""
        # Unbuffered, so that the thread holds no lock when the process ends. `os.read` would get other bytes than UTF-8
        # from a Windows console.
        with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as stream:
            while piece := stream.read(65_536):
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    put(line.decode("utf-8", "replace").rstrip("\r"))
        put(None)


async def ask(asked: NodeWaiting, next_line: Callable[[str], Awaitable[str | None]]) -> Answer | None:
    """Ask until the answer is valid.

    Args:
        asked: The question.
        next_line: Reads a line, or returns None at the end of input.

    Returns:
        The answer, or None at the end of input.
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
    """Ask for one of the choices; an unambiguous prefix is enough."""
    while (text := await next_line(f"{' / '.join(choices)}: ")) is not None:
        fitting = [choice for choice in choices if text.strip() and choice.startswith(text.strip().casefold())]
        if len(fitting) == 1:
            return fitting[0]
        err().line(f"Enter one of: {', '.join(choices)}.", style="yellow")
    return None


async def _edited(asked: NodeWaiting, choice: str, next_line: Callable[[str], Awaitable[str | None]]) -> Value:
    """Ask for a replacement value until it is valid; None leaves the value unchanged."""
    from engine.cli.arguments import text_or_file

    while text := await next_line("New value (Enter keeps the current one, @FILE reads a file): "):
        try:
            value = value_of_text(asked, text_or_file(text, "the value"))
            check_answer(asked, Answer(choice, value))
        except EngineError as error:
            err().line(one_line(str(error), 300), style="yellow")
        else:
            return value
    return None


def ask_now(asked: NodeWaiting) -> Answer:
    """Ask outside of a run.

    Raises:
        EngineError: Input ended without an answer.
    """
    answer = asyncio.run(ask(asked, LineReader().next))
    if answer is None:
        raise EngineError("There was no answer.", "Answer with --approve, --reject, --choice or --value.")
    return answer


def answer_command(asked: NodeWaiting, *, is_only: bool) -> str:
    """Return the command that answers a question, with its choices.

    Args:
        asked: The question.
        is_only: Whether it is the run's only question, so the node can be left out.
    """
    node = "" if is_only else f" --node {quote_argument(asked.path)}"
    return f"loopwright runs answer {asked.run_id}{node} {answer_options(asked)}"


def answer_options(asked: NodeWaiting) -> str:
    """Return the options of `runs answer` that answer a question: `--approve or --reject`."""
    if set(asked.choices) == {APPROVE, REJECT}:
        return "--approve or --reject"
    return " or ".join(f"--choice {quote_argument(choice)}" for choice in asked.choices) or "--value TEXT"
