"""Output of the command line: text and JSON, to a terminal, a pipe or a closed stream.

Texts of models, documents and files are untrusted: control characters are escaped, and Rich's markup is off.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from engine.errors import EngineError, reason_of
from engine.formatting import format_count
from engine.text_sanitizing import harmless, shown

if TYPE_CHECKING:
    from rich.console import Console

    from engine.document.problems import Problem


class Screen:
    """A text stream: formatted on a terminal, plain text in a pipe.

    Args:
        stream: The stream.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    @cached_property
    def console(self) -> Console:
        """The Rich console, without markup and highlighting."""
        from rich.console import Console

        return Console(file=self._stream, markup=False, emoji=False, highlight=False)

    @property
    def interactive(self) -> bool:
        """Whether the stream is a terminal that supports live updates."""
        return self._stream.isatty() and self.console.is_terminal and not self.console.is_dumb_terminal

    def line(self, text: str = "", *, style: str = "", end: str = "\n") -> None:
        """Write an escaped text and a newline. Long lines are left to the terminal to wrap."""
        from rich.text import Text

        self.console.print(Text(harmless(text), style=style), end=end, soft_wrap=True)

    def pieces(self, pieces: Iterable[tuple[str, str]]) -> None:
        """Write escaped texts, each with its style, and a newline."""
        from rich.text import Text

        line = Text()
        for text, style in pieces:
            line.append(harmless(text), style=style)
        self.console.print(line, soft_wrap=True)

    def table(self, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Write a table. On a terminal, cells wrap; in a pipe, each row is one line."""
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

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
    """Write a value to standard output as one line of JSON, and flush it.

    Non-ASCII characters are escaped, so that texts survive any encoding, lone surrogates included.
    """
    write_exactly([json.dumps(value, ensure_ascii=True, allow_nan=False) + "\n"])
    sys.stdout.flush()


def write_exactly(pieces: Iterable[str]) -> None:
    """Write a text to standard output: escaped on a terminal, unchanged elsewhere."""
    is_terminal = sys.stdout.isatty()
    for piece in pieces:
        sys.stdout.write(harmless(piece) if is_terminal else piece)


def write_file(file: Path, texts: Iterable[str]) -> None:
    """Replace a file atomically. A symbolic link stays; its target is replaced.

    Raises:
        EngineError: The file cannot be written, and is unchanged.
    """
    from engine.safe_file_io import replace_file

    try:
        replace_file(file, (text.encode("utf-8", "backslashreplace") for text in texts))
    except (OSError, ValueError) as error:
        message = f"{shown(file)}: The file cannot be written: {shown(reason_of(error))}."
        raise EngineError(message, "Check the folder, or choose another file with -o.") from error


def prepare_streams(*, on_windows: bool = os.name == "nt") -> None:
    """Make the output streams accept every character, and replace standard streams that the caller has closed.

    On Windows a file or a pipe receives UTF-8, unless PYTHONIOENCODING says otherwise: by default it would be the
    system's code page, which lacks most characters.
    """
    encoding = "utf-8" if on_windows and "PYTHONIOENCODING" not in os.environ else None
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - None if the caller has closed it
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115 - for the whole process
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - for the whole process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=encoding, errors="backslashreplace")


def discard_stdout() -> None:
    """Discard the buffer of standard output, whose reader has gone or whose disk is full."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):
        return
    null_device = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null_device, descriptor)
    os.close(null_device)


def write_problems(screen: Screen, problems: Sequence[Problem], source: str = "") -> None:
    """Write a line for each problem: file, severity, place, message, remedy."""
    for problem in problems:
        style = "red" if problem.severity == "error" else "yellow"
        screen.line(f"{source}: {problem}" if source else str(problem), style=style)


def count_problems(problems: Sequence[Problem]) -> str:
    """The number of errors and warnings: `2 errors, 1 warning`."""
    errors = sum(problem.severity == "error" for problem in problems)
    warnings = len(problems) - errors
    parts = [format_count(count, noun) for count, noun in ((errors, "error"), (warnings, "warning")) if count]
    return ", ".join(parts) or "no problems"
