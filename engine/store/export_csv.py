"""A run as a table for a spreadsheet: a row an iteration.

What models and documents say is foreign: a cell that a spreadsheet would take for a formula gets an apostrophe in
front, by which spreadsheets know that it is a text.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any, Final

from engine.runner.result import LoopResult
from engine.store.outline import RunOutline
from engine.values import to_text

COLUMNS: Final = (
    "run",
    "loop",
    "iteration",
    "returned",
    "result",
    "feedback",
    "branch",
    "reason",
    "score",
    "similarity",
    "input_tokens",
    "output_tokens",
    "cost_usd",
    "duration_s",
    "warnings",
)
FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def run_to_csv(outline: RunOutline) -> Iterator[str]:
    """The table in pieces: the heads, then a row for each iteration in the order in which they ended.

    Iterations are counted from 1. Figures are as exact as they were recorded.
    """
    rows = [
        (iteration.seq, _row(outline.result.run_id, path, loop, number))
        for path, loop in outline.loops.items()
        for number, iteration in enumerate(loop.iterations)
    ]
    yield _line(COLUMNS)
    for _, row in sorted(rows, key=lambda pair: pair[0]):
        yield _line(row)


def _row(run_id: str, path: str, loop: LoopResult, number: int) -> tuple[Any, ...]:
    iteration = loop.iterations[number]
    return (
        _cell(run_id),
        _cell(path),
        iteration.index + 1,
        "yes" if loop.returned == iteration.index else "no",
        _cell(to_text(iteration.result)),
        _cell(to_text(iteration.feedback)),
        _cell(iteration.branch or ""),
        _cell(iteration.reason or ""),
        iteration.score,
        iteration.similarity,
        iteration.usage.input_tokens,
        iteration.usage.output_tokens,
        iteration.cost_usd,
        iteration.duration_s,
        _cell("; ".join(iteration.warnings)),
    )


def _cell(text: str) -> str:
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def _line(cells: tuple[Any, ...]) -> str:
    written = io.StringIO()
    csv.writer(written).writerow(cells)
    return written.getvalue()
