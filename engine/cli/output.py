"""How everything is written: texts for people, JSON for machines, on streams that may be a terminal, a pipe or gone.

Texts of models, documents and files are foreign: whatever could steer a terminal is written as an escape that can be
read, and nothing of them is ever taken for Rich's markup.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any

from engine.formatting import format_count

if TYPE_CHECKING:
    from rich.console import Console

    from engine.document.problems import Problem


class Screen:
    """A stream that people read. Colours and widths are those of a terminal; into a pipe goes plain text.

    Args:
        stream: Where to write.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    @cached_property
    def console(self) -> Console:
        """Rich's view of the stream, with everything off that would read meaning into a text."""
        from rich.console import Console

        return Console(file=self._stream, markup=False, emoji=False, highlight=False)

    @property
    def interactive(self) -> bool:
        """Whether it is a terminal on which a picture can be drawn again and again."""
        return self._stream.isatty() and self.console.is_terminal and not self.console.is_dumb_terminal

    def line(self, text: str = "", *, style: str = "") -> None:
        """Write a text, made harmless, and a newline. A long line is not broken: terminals do that better."""
        from rich.text import Text

        from engine.text_sanitizing import harmless

        self.console.print(Text(harmless(text), style=style), soft_wrap=True)

    def piece(self, text: str) -> None:
        """Write a text, made harmless, and stay on its line."""
        from rich.text import Text

        from engine.text_sanitizing import harmless

        self.console.print(Text(harmless(text)), end="", soft_wrap=True)

    def pieces(self, pieces: Iterable[tuple[str, str]]) -> None:
        """Write texts, made harmless, each in its style, and a newline."""
        from rich.text import Text

        from engine.text_sanitizing import harmless

        line = Text()
        for text, style in pieces:
            line.append(harmless(text), style=style)
        self.console.print(line, soft_wrap=True)

    def table(self, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Write columns below their heads. On a terminal the last columns wrap; into a pipe a row is one line."""
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        from engine.text_sanitizing import harmless

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for number, head in enumerate(heads):
            table.add_column(head, no_wrap=number == 0, overflow="fold")
        for row in rows:
            table.add_row(*(Text(harmless(cell)) for cell in row))
        if self.interactive:
            self.console.print(table)
            return
        unbounded = Console(file=io.StringIO(), width=1_000_000, color_system=None, force_terminal=False)
        with unbounded.capture() as captured:
            unbounded.print(table)
        for line in captured.get().splitlines():
            self.line(line.rstrip())


def out() -> Screen:
    """Standard output."""
    return Screen(sys.stdout)


def err() -> Screen:
    """Standard error."""
    return Screen(sys.stderr)


def write_json(value: Any) -> None:
    """Write a value to standard output as one line of JSON, at once.

    Everything outside of ASCII is escaped, so that each text survives any encoding, half characters too.
    """
    write_exactly([json.dumps(value, ensure_ascii=True, allow_nan=False) + "\n"])
    sys.stdout.flush()


def write_exactly(pieces: Iterable[str]) -> None:
    """Write a text that another program may read to standard output: unchanged, but harmless on a terminal."""
    from engine.text_sanitizing import harmless

    is_terminal = sys.stdout.isatty()
    for piece in pieces:
        sys.stdout.write(harmless(piece) if is_terminal else piece)


def prepare_streams() -> None:
    """Make both streams take every character, and all three exist even where the caller has closed them."""
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - so it is where the caller has closed it
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115 - for the whole process
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - for the whole process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def give_up_stdout() -> None:
    """Send what is still in the buffer of standard output nowhere: its reader has gone, or its disk is full."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def write_problems(screen: Screen, problems: Sequence[Problem], source: str = "") -> None:
    """Write each problem on a line: file, severity, place, what is wrong, what would put it right."""
    for problem in problems:
        style = "red" if problem.severity == "error" else "yellow"
        screen.line(f"{source}: {problem}" if source else str(problem), style=style)


def counted(problems: Sequence[Problem]) -> str:
    """How many there are, in words: `2 errors, 1 warning`."""
    errors = sum(problem.severity == "error" for problem in problems)
    warnings = len(problems) - errors
    parts = [format_count(count, noun) for count, noun in ((errors, "error"), (warnings, "warning")) if count]
    return ", ".join(parts) or "no problems"
