"""CSV for spreadsheets: escaping of cells, and the export of a run with a row for each iteration or output.

Texts of models and documents are untrusted: a cell that a spreadsheet would take for a formula gets a leading
apostrophe, which is removed when the program reads its own tables.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from engine.events import LoopIterationCompleted
from engine.models.protocol import Usage
from engine.plan.structure import Structure
from engine.run_state.result import part_node, run_outputs
from engine.run_state.state import LoopExecution, RunState
from engine.store.run_sections import structure_or_empty
from engine.values import Value, to_text

COLUMNS: Final = (
    "run",
    "loop",
    "iteration",
    "returned",
    "output",
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
_EARLIER_COLUMNS: Final = tuple(column for column in COLUMNS if column != "output")
"""The columns that earlier versions wrote."""
RESULT_MARKS: Final = ("batch", "key")
"""Columns that identify the results of a batch."""
BYTE_ORDER_MARK: Final = "\ufeff"
"""Start of a file, so that Excel reads it as UTF-8."""

_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_NEGATIVE: Final = re.compile(r"-[0-9]+([.,][0-9]+)?")
_ESCAPE: Final = "'"


def csv_line(cells: Iterable[Any]) -> str:
    """Format a line of CSV. A text that a spreadsheet would take for a formula gets a leading apostrophe."""
    written = io.StringIO()
    csv.writer(written).writerow([_csv_cell(cell) for cell in cells])
    return written.getvalue()


def value_of_csv_cell(cell: str) -> str:
    """Return the original text of a cell that `csv_line` wrote."""
    return cell.removeprefix(_ESCAPE)


def is_own_table(columns: Sequence[str]) -> bool:
    """Return whether this program wrote a table with these columns, so its cells must be restored."""
    return set(RESULT_MARKS) <= set(columns) or tuple(columns) in {COLUMNS, _EARLIER_COLUMNS}


def run_to_csv(state: RunState, document: str) -> Iterator[str]:
    """Yield the lines of the table: the header, then a row for each iteration in the order of completion.

    A run without iterations has a row for each output instead, and a partial run has them too. Iterations are counted
    from 1. Numbers are not rounded.

    Args:
        state: The state after all events.
        document: The document as it ran.
    """
    iterations = [
        (iteration.seq, _iteration_row(path, loop, iteration))
        for path, loop in state.loops.items()
        for iteration in loop.all_iterations
    ]
    rows = [row for _, row in sorted(iterations, key=lambda pair: pair[0])]
    if state.part is not None or not rows:
        rows += _output_rows(state, structure_or_empty(document))
    yield csv_line(COLUMNS)
    for row in rows:
        yield csv_line({"run": state.run_id, **row}.get(column) for column in COLUMNS)


def _output_rows(state: RunState, structure: Structure) -> Iterator[dict[str, Any]]:
    """Yield a row for each output of a run; of a partial run without any, for those of its node, with its figures."""
    node = None if state.outputs else part_node(state, structure)
    prefix = "" if node is None else f"{node.node_id}."
    figures: dict[str, Any] = {}
    if node is not None:
        used = node.usage or Usage()
        figures = {"input_tokens": used.input_tokens, "output_tokens": used.output_tokens, "cost_usd": node.cost_usd}
        figures |= {"duration_s": node.duration_s, "warnings": "; ".join(node.warnings)}
    for name, value in run_outputs(state, structure).items():
        yield {**figures, "output": f"{prefix}{name}", "result": value}


def _iteration_row(path: str, loop: LoopExecution, iteration: LoopIterationCompleted) -> dict[str, Any]:
    same = ("result", "feedback", "branch", "reason", "score", "similarity", "cost_usd", "duration_s")
    return {
        **{name: getattr(iteration, name) for name in same},
        "loop": path,
        "iteration": iteration.index + 1,
        "returned": "yes" if loop.returned == iteration.index else "no",
        "input_tokens": iteration.usage.input_tokens,
        "output_tokens": iteration.usage.output_tokens,
        "warnings": "; ".join(iteration.warnings),
    }


def _csv_cell(value: Value) -> Any:
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return value
    text = to_text(value)
    is_escaped = text.startswith((*_FORMULA_STARTS, _ESCAPE)) and not _NEGATIVE.fullmatch(text)
    return f"{_ESCAPE}{text}" if is_escaped else text
