"""How the problems of a document are written."""

from __future__ import annotations

from collections.abc import Sequence

from engine.cli.output import Screen
from engine.document.problems import Problem, Severity
from engine.formatting import format_count


def write_problems(screen: Screen, problems: Sequence[Problem], source: str = "") -> None:
    """Write each problem on a line: file, severity, place, what is wrong, what would put it right."""
    for problem in problems:
        style = "red" if problem.severity is Severity.ERROR else "yellow"
        screen.line(f"{source}: {problem}" if source else str(problem), style=style)


def counted(problems: Sequence[Problem]) -> str:
    """How many there are, in words: `2 errors, 1 warning`."""
    errors = sum(problem.severity is Severity.ERROR for problem in problems)
    warnings = len(problems) - errors
    parts = [format_count(count, noun) for count, noun in ((errors, "error"), (warnings, "warning")) if count]
    return ", ".join(parts) or "no problems"
