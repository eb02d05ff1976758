"""The warnings of a batch: a column and a count in the results file, and a count in the summary."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.batch.read_table import read_table
from engine.batch.results_file import ResultsFile
from engine.batch.rows import BatchRow, RowResult, row_result, summarize
from engine.run_state.result import RunResult

WARNINGS = ("loop[0].draft: The reply was cut off.", "loop: It did not converge.")
ROWS = (
    RowResult(1, "key1", "run1", "completed", warnings=WARNINGS),
    RowResult(2, "key2", "run2", "completed"),
)


def opened(path: Path) -> tuple[ResultsFile, dict[str, RowResult]]:
    file = ResultsFile(path, "batch", [], [])
    return file, file.open()


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "out.xlsx"])
def test_warnings_have_a_column_and_a_count_and_are_read_back(tmp_path: Path, name: str) -> None:
    file, _ = opened(tmp_path / name)
    for row in ROWS:
        file.write(row)
    file.close(["key1", "key2"])

    rows = read_table(tmp_path / name).rows
    assert [str(row["warning_count"]) for row in rows] == ["2", "0"]
    if name == "out.jsonl":
        assert [row["warnings"] for row in rows] == [list(WARNINGS), []]
    else:
        assert [row.get("warnings") or "" for row in rows] == ["\n".join(WARNINGS), ""]
    again, found = opened(tmp_path / name)
    again.close(["key1", "key2"])
    assert [found[key].warnings for key in ("key1", "key2")] == [WARNINGS, ()]


def test_a_row_has_the_warnings_of_its_run_and_the_summary_counts_them() -> None:
    result = RunResult("run1", "completed", warnings=("loop[0].draft: The reply was cut off.",))

    row = row_result(BatchRow(1, {}, "key1"), result)
    summary = summarize([row, ROWS[1]], 2)

    assert (row.warnings, row.warning_count) == (("loop[0].draft: The reply was cut off.",), 1)
    assert (summary.warnings, summary.rows_with_warnings) == (1, 1)
