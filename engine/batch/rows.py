"""The rows of a batch: the inputs of each run, and the keys by which it is found again.

A batch is what it runs: the document without its layout, the model, and the name that a person gave it. A row is found
by the batch, its inputs, and how many rows with the same inputs stand before it; so the same command goes on where an
earlier one broke off, wherever the row has moved to in the meantime.
"""

from __future__ import annotations

import difflib
import hashlib
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from engine.batch.table import Table, TableError, is_empty
from engine.document.model import Workflow
from engine.errors import EngineError
from engine.nodes.json_values import ConversionError, convert
from engine.nodes.spec import PortType
from engine.run_state.result import LoopResult, RunResult
from engine.runner.declared_inputs import Declared, declared_inputs, misfit, value_of_text
from engine.safe_file_io import normalize_line_ends
from engine.text_sanitizing import shown
from engine.values import Value, compact_json, to_text

_RUN_ID_LENGTH = 16
_NEAR: Final = 0.8
"""How similar a column's name is to an input's to be a slip, from 0 to 1."""
_SPREADSHEET_ERRORS: Final = re.compile(
    r"#(N/A|GETTING_DATA|NAME\?|(REF|DIV/0|VALUE|NUM|NULL|SPILL|CALC|FIELD|BLOCKED|CONNECT|BUSY|UNKNOWN)!)"
)


class RowInputs(dict[str, Value]):
    """The values of the workflow's inputs that a row of a table gives, by name.

    Attributes:
        extra: The cells of the columns that are no input's, by column; they are carried through to the results.
        error: Why the row cannot be run and what to do about it; empty where it can.
    """

    def __init__(self, values: Mapping[str, Value], extra: Mapping[str, Value] | None = None, error: str = "") -> None:
        super().__init__(values)
        self.extra = dict(extra or {})
        self.error = error


@dataclass(frozen=True, slots=True)
class BatchRow:
    """A row of a batch.

    Attributes:
        number: Its place in the table, from 1.
        inputs: The values of the workflow's inputs, by name.
        key: Finds the row again in results and history: a hash of batch and inputs.
        extra: The cells of the table's other columns.
        error: Why it cannot be run; empty where it can.
    """

    number: int
    inputs: dict[str, Value]
    key: str
    extra: dict[str, Value] = field(default_factory=dict[str, Value])
    error: str = ""

    @property
    def run_id(self) -> str:
        """The id of its run."""
        return self.key[:_RUN_ID_LENGTH]


def batch_id(workflow: Workflow, model: str | None = None, name: str = "") -> str:
    """The id of a batch.

    Args:
        workflow: What is run; where its nodes stand on the canvas does not count.
        model: The model for every node; None leaves it to the document.
        name: What a person calls the batch; another name is another batch.
    """
    document = workflow.to_json()
    what = {part: document[part] for part in ("nodes", "edges", "settings")}
    return _hash(compact_json({**what, "model": model, "name": name}))[:12]


def make_rows(batch: str, inputs: Sequence[Mapping[str, Value]]) -> list[BatchRow]:
    """The rows of a batch.

    Args:
        batch: Its id.
        inputs: Of each row the inputs, by name; with more that a table says as `RowInputs`.
    """
    seen: Counter[str] = Counter()
    rows: list[BatchRow] = []
    for number, given in enumerate(inputs, 1):
        values = given if isinstance(given, RowInputs) else RowInputs(given)
        text = compact_json(dict(values)) + values.error
        key = _hash(f"{batch}\n{seen[text]}\n{text}")[:32]
        rows.append(BatchRow(number, dict(values), key, values.extra, values.error))
        seen[text] += 1
    return rows


def inputs_of_table(
    workflow: Workflow,
    table: Table,
    columns: Mapping[str, str | None] | None = None,
    *,
    extra_columns: bool = True,
) -> list[RowInputs]:
    """The inputs of the workflow in each row of a table.

    An empty cell, and null in JSON lines, leaves an input with a default to that default. A cell that does not fit its
    input makes its row one that fails (`RowInputs.error`); the others are not affected.

    Args:
        workflow: The workflow.
        table: The table.
        columns: The column of an input's values; None leaves the input to its default. An input that is not named has
            the column of its own name, whatever its case.
        extra_columns: Whether the cells of the other columns are carried through to the results. If so, a column
            whose name is almost that of an input without a column is an error.

    Raises:
        TableError: An input without a default has no column, or a column that was named does not exist.
    """
    declared = {item.name: item for item in declared_inputs(workflow)}
    given = dict(columns or {})
    chosen = _columns(declared, table, given)
    others = [column for column in table.columns if column not in chosen.values()] if extra_columns else []
    _refuse_misspelled([name for name in declared if name not in {*chosen, *given}], table, others)
    return [_inputs(table, index, declared, chosen, others) for index in range(len(table.rows))]


def matching_column(name: str, columns: Iterable[str]) -> str | None:
    """The column with the name of an input, if need be in other case; None if there is none."""
    same_in_any_case: str | None = None
    for column in columns:
        if column == name:
            return column
        if same_in_any_case is None and column.strip().casefold() == name.casefold():
            same_in_any_case = column
    return same_in_any_case


def _columns(declared: Mapping[str, Declared], table: Table, given: dict[str, str | None]) -> dict[str, str]:
    """By input, the column that its values stand in."""
    unknown = next((name for name in given if name not in declared), None)
    if unknown is not None:
        raise TableError(f'The workflow has no input "{shown(unknown, 60)}".', _there_are(declared))
    absent = next((column for column in given.values() if column not in {None, *table.columns}), None)
    if absent is not None:
        raise TableError(f'{table.name}: There is no column "{shown(absent, 60)}".', _it_has(table))
    found = {name: matching_column(name, table.columns) for name in declared if name not in given}
    chosen = {name: column for name, column in (found | given).items() if column is not None}
    missing = [name for name, item in declared.items() if name not in chosen and item.default is None]
    if missing:
        names = ", ".join(f'"{shown(name, 60)}"' for name in missing)
        what = f"the input {names}" if len(missing) == 1 else f"the inputs {names}"
        raise TableError(f"{table.name}: There is no column for {what}.", _it_has(table))
    return chosen


def _refuse_misspelled(unmatched: list[str], table: Table, others: list[str]) -> None:
    for column in others:
        near = difflib.get_close_matches(column.casefold(), unmatched, n=1, cutoff=_NEAR)
        if near:
            raise TableError(
                f'{table.name}: The column "{shown(column, 60)}" is no input of the workflow. '
                f'Did you mean "{shown(near[0], 60)}"?',
                "Rename the column, say which input it is for, or leave extra columns out.",
            )


def _there_are(declared: Mapping[str, Declared]) -> str:
    return f"Its inputs are: {'; '.join(map(str, declared.values()))}." if declared else "It has no inputs."


def _it_has(table: Table) -> str:
    return f"Its columns are: {', '.join(shown(column, 60) for column in table.columns)}."


def _inputs(
    table: Table, index: int, declared: Mapping[str, Declared], chosen: Mapping[str, str], others: list[str]
) -> RowInputs:
    row = table.rows[index]
    extra = {column: row.get(column, "" if table.is_text else None) for column in others}
    if index in table.faults:
        return RowInputs({}, extra, f"{table.name}, {table.place(index)}: {table.faults[index]}")
    values: dict[str, Value] = {}
    errors: list[str] = []
    for name, column in chosen.items():
        if column not in row:
            if declared[name].default is None:
                place = table.place(index, column)
                errors.append(f'{table.name}, {place}: The cell for the input "{shown(name, 60)}" is missing.')
            continue
        cell = row[column]
        if not _is_left_out(cell, table) or declared[name].default is None:
            values[name] = cell
            try:
                values[name] = _value_of_cell(cell, declared[name]) if table.is_text else _fitting(cell, declared[name])
            except EngineError as error:
                errors.append(f"{table.name}, {table.place(index, column)}: {error.message} {error.remedy}")
    return RowInputs(values, extra, " ".join(errors))


def _is_left_out(cell: Value, table: Table) -> bool:
    return is_empty(cell) if table.is_text else cell is None


def _fitting(value: Value, declared: Declared) -> Value:
    """The value as it stands in JSON lines, if it fits its input."""
    try:
        convert(value, declared.type)
    except ConversionError as error:
        raise misfit(compact_json(value), declared) from error
    return value


def _value_of_cell(cell: Value, declared: Declared) -> Value:
    """The value of an input that a cell of a CSV table or of a workbook stands for."""
    if isinstance(cell, str):
        if _SPREADSHEET_ERRORS.fullmatch(cell.strip()):
            raise TableError(f"The cell shows the error {cell.strip()}.", "Correct it in the spreadsheet.")
        return value_of_text(normalize_line_ends(cell), declared)
    if declared.type in {PortType.ANY, PortType.JSON}:
        return cell
    return value_of_text(to_text(cell), declared)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


RowStatus = Literal["completed", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class RowResult:
    """What a row came to.

    Attributes:
        row: Its place in the table, from 1.
        key: What finds it again.
        run_id: Its run; empty where none was begun.
        status: How it ended.
        inputs: What it was given.
        outputs: Named results.
        score: How good it is: of the loop that ended last, the score of the iteration that was returned; else a result
            that is called `score` and is a number; None without one.
        iterations: How many iterations its loops made, nested ones included.
        exit_reason: Why its outermost loop stopped, of several the one that ended last; empty without one.
        tokens: Tokens used.
        cost_usd: US dollars; None where a price is unknown.
        duration_s: Seconds at work.
        error: What failed, and what to do about it.
        warnings: The warnings of its run, each with its place.
        is_reused: Whether it was done before and not run again.
        extra: The cells of the table's columns that are no input's, by column.
    """

    row: int
    key: str
    run_id: str
    status: RowStatus
    inputs: dict[str, Value] = field(default_factory=dict[str, Value])
    outputs: dict[str, Value] = field(default_factory=dict[str, Value])
    score: float | None = None
    iterations: int = 0
    exit_reason: str = ""
    tokens: int = 0
    cost_usd: float | None = 0.0
    duration_s: float = 0.0
    error: str = ""
    warnings: tuple[str, ...] = ()
    is_reused: bool = False
    extra: dict[str, Value] = field(default_factory=dict[str, Value])

    @property
    def warning_count(self) -> int:
        """How many warnings its run has."""
        return len(self.warnings)

    def to_json(self) -> dict[str, Any]:
        """A JSON object."""
        return asdict(self)


def row_result(row: BatchRow, result: RunResult, *, is_reused: bool = False) -> RowResult:
    """What a row came to, by what its run came to."""
    last = _last_outermost(result)
    return RowResult(
        row=row.number,
        key=row.key,
        run_id=result.run_id,
        status="cancelled" if result.status == "running" else result.status,
        inputs=row.inputs,
        outputs=result.outputs,
        score=_score(result, last),
        iterations=sum(loop.iterations_run for loop in result.loops.values()),
        exit_reason=last.exit_reason if last is not None else "",
        tokens=result.usage.total_tokens,
        cost_usd=result.cost_usd,
        duration_s=result.duration_s,
        error=f"{result.error} {result.remedy}".strip(),
        warnings=result.warnings,
        is_reused=is_reused,
    )


def refused_row(row: BatchRow, error: EngineError | str) -> RowResult:
    """A row whose run could not be begun."""
    return RowResult(row.number, row.key, "", "failed", row.inputs, error=str(error))


def _last_outermost(result: RunResult) -> LoopResult | None:
    outermost = [loop for path, loop in result.loops.items() if "." not in path and loop.exit_reason]
    return outermost[-1] if outermost else None


def _score(result: RunResult, loop: LoopResult | None) -> float | None:
    if loop is not None and loop.iterations:
        returned = loop.iterations[-1 if loop.returned is None else loop.returned]
        if returned.score is not None:
            return returned.score
    stated = result.outputs.get("score")
    return float(stated) if isinstance(stated, (int, float)) and not isinstance(stated, bool) else None


@dataclass(frozen=True, slots=True)
class IterationsGroup:
    """The completed rows that took the same number of iterations: quality against iterations against cost.

    Attributes:
        iterations: How many.
        rows: How many rows took that many.
        mean_score: Of those that have a score; None where none has.
        mean_cost_usd: US dollars a row; None where a price is unknown.
        exit_reasons: Why their loops stopped, and how often.
    """

    iterations: int
    rows: int
    mean_score: float | None
    mean_cost_usd: float | None
    exit_reasons: dict[str, int]


@dataclass(frozen=True, slots=True)
class BatchSummary:
    """What a batch came to.

    Attributes:
        rows: Rows of the table.
        completed: Those that came to their end, now or before.
        failed: Those that failed.
        not_run: Those that were stopped or not begun.
        reused: Those that were done before.
        tokens: Tokens of all rows.
        cost_usd: US dollars of all rows whose price is known.
        is_price_unknown: Whether the price of a row is not in it.
        duration_s: Seconds at work, all rows together.
        mean_score: Of the completed rows that have a score; None where none has.
        by_iterations: The completed rows by their number of iterations, the fewest first.
        is_budget_spent: Whether rows were not begun because the batch's budget was spent.
        rows_with_warnings: Rows whose runs have warnings.
        warnings: The warnings of all rows.
    """

    rows: int
    completed: int
    failed: int
    not_run: int
    reused: int
    tokens: int
    cost_usd: float
    is_price_unknown: bool
    duration_s: float
    mean_score: float | None
    by_iterations: tuple[IterationsGroup, ...]
    is_budget_spent: bool = False
    rows_with_warnings: int = 0
    warnings: int = 0

    def to_json(self) -> dict[str, Any]:
        """A JSON object."""
        return {**asdict(self), "by_iterations": [asdict(group) for group in self.by_iterations]}


def summarize(results: Iterable[RowResult], rows: int, *, is_budget_spent: bool = False) -> BatchSummary:
    """What the rows that have ended come to.

    Args:
        results: What rows came to.
        rows: How many rows there are.
        is_budget_spent: Whether rows were not begun because the batch's budget was spent.
    """
    ended = list(results)
    completed = [result for result in ended if result.status == "completed"]
    failed = sum(result.status == "failed" for result in ended)
    costs = [result.cost_usd for result in ended]
    counts = sorted({result.iterations for result in completed})
    return BatchSummary(
        rows=rows,
        completed=len(completed),
        failed=failed,
        not_run=rows - len(completed) - failed,
        reused=sum(result.is_reused for result in ended),
        tokens=sum(result.tokens for result in ended),
        cost_usd=sum(cost for cost in costs if cost is not None),
        is_price_unknown=None in costs,
        duration_s=sum(result.duration_s for result in ended),
        mean_score=_mean([result.score for result in completed]),
        by_iterations=tuple(
            _group(count, [result for result in completed if result.iterations == count]) for count in counts
        ),
        is_budget_spent=is_budget_spent,
        rows_with_warnings=sum(bool(result.warnings) for result in ended),
        warnings=sum(len(result.warnings) for result in ended),
    )


def _group(iterations: int, rows: list[RowResult]) -> IterationsGroup:
    costs = [row.cost_usd for row in rows]
    reasons = Counter(row.exit_reason for row in rows if row.exit_reason)
    mean_cost = None if None in costs else _mean(costs)
    return IterationsGroup(iterations, len(rows), _mean([row.score for row in rows]), mean_cost, dict(reasons))


def _mean(numbers: list[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return statistics.fmean(known) if known else None
