from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from engine.models.protocol import Usage
from engine.run_state.reducer import apply
from engine.run_state.state import RunState
from engine.store.export_csv import COLUMNS, run_to_csv
from tests.engine.cli.kit import Events


def rows(*results: Any, **fields: Any) -> list[dict[str, str]]:
    event = Events()
    state = RunState("r")
    for number, result in enumerate(results):
        apply(state, event("LoopIterationStarted", "loop", index=number, total=9, input_preview=""))
        apply(state, event.iteration("loop", number, result, **fields))
    ended = {"converged": True, "cost_usd": 0.5, "duration_s": 1}
    apply(
        state,
        event(
            "LoopCompleted", "loop", iterations_run=len(results), exit_reason="x", returned=len(results) - 1, **ended
        ),
    )
    return list(csv.DictReader(io.StringIO("".join(run_to_csv(state)), newline="")))


def test_csv_has_a_row_for_each_iteration_with_all_values():
    fields = {"feedback": {"a": 1}, "branch": "done", "reason": "r", "score": -0.5, "similarity": 0.25}
    (first, second) = rows("one", 'tw"o\nlines, é', usage=Usage(3, 4), cost_usd=None, warnings=("a", "b"), **fields)
    assert tuple(first) == COLUMNS
    assert (first["iteration"], first["returned"], second["iteration"], second["returned"]) == ("1", "no", "2", "yes")
    assert (second["result"], second["feedback"]) == ('tw"o\nlines, é', '{"a":1}')
    assert (first["score"], first["similarity"], first["cost_usd"]) == ("-0.5", "0.25", "")
    assert (first["input_tokens"], first["output_tokens"], first["warnings"]) == ("3", "4", "a; b")


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d"])
def test_csv_escapes_spreadsheet_formulas(start: str):
    text = f'{start}HYPERLINK("http://x","y")'
    (row,) = rows(text, feedback=text, branch=text, reason=text, warnings=(text,))
    for column in ("result", "feedback", "branch", "reason", "warnings"):
        assert row[column] == f"'{text}"


def test_csv_of_a_run_without_loops_has_no_rows():
    assert "".join(run_to_csv(RunState("r"))) == ",".join(COLUMNS) + "\r\n"
