"""What a run has come to: the report for people and the object for machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engine.cli.output import Screen
from engine.document.problems import DocumentError
from engine.errors import EngineError
from engine.formatting import format_duration, format_money, format_tokens, format_value

if TYPE_CHECKING:
    from engine import RunResult


def write_report(screen: Screen, result: RunResult) -> None:
    """Write the results, and what they took."""
    for name, value in result.outputs.items():
        screen.line()
        screen.line(f"{name}:", style="bold")
        screen.line(format_value(value))
    screen.line()
    figures = [format_duration(result.duration_s), format_tokens(result.usage), format_money(result.cost_usd)]
    screen.line(f"{_ENDINGS[result.status]} {', '.join(figures)}.", style="bold")


_ENDINGS = {"completed": "Done:", "failed": "Failed after", "cancelled": "Cancelled after"}


def write_failure(screen: Screen, result: RunResult) -> None:
    """Write why a run failed, and what to do."""
    where = f" at {result.node}" if result.node else ""
    screen.line(f"The run failed{where}: {result.error} {result.remedy}".rstrip(), style="red")


def refusal_to_json(error: EngineError) -> dict[str, Any]:
    """The object for a run that was never started."""
    problems: Sequence[Any] = error.problems if isinstance(error, DocumentError) else ()
    return {
        "status": "refused",
        "outputs": {},
        "loops": {},
        "error": error.message,
        "remedy": error.remedy,
        "problems": [problem.to_json() for problem in problems],
    }
