"""The rows of a batch, their keys, and their results, one by one and in total.

A batch is identified by what it runs: the document without its layout, the model, and the batch's name. A row is
identified by the batch, its inputs, and the number of earlier rows with the same inputs. So the same command continues
an interrupted batch, even if rows have moved in the meantime.
"""

from __future__ import annotations

import hashlib
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from engine.batch.table import RESULT_PREFIXES, Table, TableError, is_empty
from engine.document.model import Workflow
from engine.errors import EngineError, did_you_mean
from engine.nodes.json_values import ConversionError, convert
from engine.nodes.spec import PortType
from engine.run_state.result import LoopResult, RunResult
from engine.runner.declared_inputs import DeclaredInput, declared_inputs, invalid_value, value_of_text
from engine.safe_file_io import normalize_line_ends
from engine.store.export_csv import RESULT_MARKS
from engine.text_sanitizing import shown
from engine.values import Value, compact_json, to_text

_RUN_ID_LENGTH = 16
_MIN_SIMILARITY: Final = 0.8
"""From 0 to 1; a column whose name is at least this similar to an input's counts as misspelled."""
_SPREADSHEET_ERRORS: Final = re.compile(
    r"#(N/A|GETTING_DATA|NAME\?|(REF|DIV/0|VALUE|NUM|NULL|SPILL|CALC|FIELD|BLOCKED|CONNECT|BUSY|UNKNOWN)!)"
)


class RowInputs(dict[str, Value]):
    """The inputs of a workflow from a row of a table, by name.

    Attributes:
        extra: The cells of the columns that are not inputs, by column; they are copied to the results.
        error: Why the row cannot run, and what to do; empty if it can.
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
        inputs: The inputs of the workflow, by name.
        key: A hash of batch and inputs, by which the row is found in results and history.
        extra: The cells of the table's other columns.
        error: Why the row cannot run; empty if it can.
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
        workflow: The document; its layout is ignored.
        model: The model for every node; None for the document's own.
        name: The name of the batch.
    """
    document = workflow.to_json()
    parts = {part: document[part] for part in ("nodes", "edges", "settings")}
    return _hash(compact_json({**parts, "model": model, "name": name}))[:12]


def make_rows(batch: str, inputs: Sequence[Mapping[str, Value]]) -> list[BatchRow]:
    """Create the rows of a batch.

    Args:
        batch: The id of the batch.
        inputs: The inputs of each row, by name; `RowInputs` also give extra columns and errors.
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
    """Read the inputs of a workflow from each row of a table.

    An empty cell, or null in JSON Lines, leaves an input with a default at that default. A cell that does not fit its
    input is the error of its row (`RowInputs.error`), and other rows are not affected.

    Args:
        workflow: The workflow.
        table: The table.
        columns: The column of each input; None leaves the input at its default. For an input that is not listed, the
            column of the same name is used, ignoring case.
        extra_columns: Whether to copy the cells of the other columns to the results. If so, a column whose name is
            almost that of an input without a column is an error.

    Raises:
        TableError: An input without a default has no column, no input has one and none is listed, or a listed column
            does not exist.
    """
    declared = {item.name: item for item in declared_inputs(workflow)}
    given = dict(columns or {})
    chosen = _choose_columns(declared, table, given)
    extra = [column for column in table.columns if column not in chosen.values()] if extra_columns else []
    _check_spelling([name for name in declared if name not in {*chosen, *given}], table, extra)
    if declared and not chosen and not given:  # all rows would have the same inputs
        raise TableError(
            f"{table.name}: No column has the name of an input of the workflow.",
            f"{_columns_of(table)} Inputs: {'; '.join(map(str, declared.values()))}.",
        )
    return [_read_row(table, index, declared, chosen, extra) for index in range(len(table.rows))]


def matching_column(name: str, columns: Iterable[str]) -> str | None:
    """The column with the name of an input, else one that differs only in case or is of a results file, else None.

    In a whole results file the input's own column comes first: one with the plain name was an extra column.
    """
    columns = list(columns)
    own = f"{RESULT_PREFIXES['inputs']}{name}"
    names = (own, name) if {own, *RESULT_MARKS} <= set(columns) else (name, own)
    if names[0] in columns:
        return names[0]
    return next(
        (column for wanted in names for column in columns if column.strip().casefold() == wanted.casefold()), None
    )


def _columns_of(table: Table) -> str:
    return f"Its columns are: {', '.join(shown(column, 60) for column in table.columns)}."


def _choose_columns(
    declared: Mapping[str, DeclaredInput], table: Table, given: dict[str, str | None]
) -> dict[str, str]:
    """The column of each input that has one."""
    unknown = next((name for name in given if name not in declared), None)
    if unknown is not None:
        inputs = f"Its inputs are: {'; '.join(map(str, declared.values()))}." if declared else "It has no inputs."
        raise TableError(f'The workflow has no input "{shown(unknown, 60)}".', inputs)
    absent = next((column for column in given.values() if column not in {None, *table.columns}), None)
    if absent is not None:
        raise TableError(f'{table.name}: There is no column "{shown(absent, 60)}".', _columns_of(table))
    found = {name: matching_column(name, table.columns) for name in declared if name not in given}
    chosen = {name: column for name, column in (found | given).items() if column is not None}
    missing = [name for name, item in declared.items() if name not in chosen and item.default is None]
    if missing:
        names = ", ".join(f'"{shown(name, 60)}"' for name in missing)
        inputs = "the input" if len(missing) == 1 else "the inputs"
        raise TableError(f"{table.name}: There is no column for {inputs} {names}.", _columns_of(table))
    return chosen


def _check_spelling(unmatched: list[str], table: Table, extra: list[str]) -> None:
    """Reject a column whose name is almost that of an input without a column."""
    for column in extra:
        suggestion = did_you_mean(column, unmatched, min_similarity=_MIN_SIMILARITY)
        if suggestion:
            raise TableError(
                f'{table.name}: The column "{shown(column, 60)}" is not an input of the workflow. {suggestion}',
                "Rename the column, choose its input, or leave extra columns out.",
            )


def _read_row(
    table: Table, index: int, declared: Mapping[str, DeclaredInput], chosen: Mapping[str, str], extra: list[str]
) -> RowInputs:
    row = table.rows[index]
    extra_cells = {column: row.get(column, "" if table.is_text else None) for column in extra}
    if index in table.faults:
        return RowInputs({}, extra_cells, f"{table.name}, {table.place(index)}: {table.faults[index]}")
    values: dict[str, Value] = {}
    errors: list[tuple[str, str]] = []
    for name, column in chosen.items():
        item = declared[name]
        if column not in row:
            if item.default is None:
                errors.append((column, f'The cell for the input "{shown(name, 60)}" is missing.'))
            continue
        cell = row[column]
        is_blank = is_empty(cell) if table.is_text else cell is None
        if is_blank and item.default is not None:
            continue
        values[name] = cell
        try:
            values[name] = _parse_cell(cell, item) if table.is_text else _check_value(cell, item)
        except EngineError as error:
            errors.append((column, f"{error.message} {error.remedy}"))
    sentences = (f"{table.name}, {table.place(index, column)}: {error}" for column, error in errors)
    return RowInputs(values, extra_cells, " ".join(sentences))


def _check_value(value: Value, declared: DeclaredInput) -> Value:
    """Return a value from JSON Lines if it fits its input."""
    try:
        convert(value, declared.type)
    except ConversionError as error:
        raise invalid_value(compact_json(value), declared) from error
    return value


def _parse_cell(cell: Value, declared: DeclaredInput) -> Value:
    """Parse a cell of a CSV table or a workbook as the value of an input."""
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
    """The result of a row.

    Attributes:
        row: Its place in the table, from 1.
        key: The key of the row.
        run_id: The id of its run; empty if none was started.
        status: The status of the run.
        inputs: The inputs of the run.
        outputs: The outputs of the run, by name.
        score: The score of the iteration that the last loop returned; else an output named `score` that is a number;
            None without either.
        iterations: The number of iterations of all loops, nested ones included.
        exit_reason: The exit reason of the outermost loop that ended last; empty without a loop.
        tokens: Tokens used.
        cost_usd: US dollars; None if a price is unknown.
        duration_s: The running time in seconds.
        error: What failed, and what to do.
        fix: What the program offers for it, as in `EngineError`.
        warnings: The warnings of the run, each with its place.
        is_reused: Whether the row finished earlier and did not run again.
        extra: The cells of the columns that are not inputs, by column.
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
    fix: str = ""
    warnings: tuple[str, ...] = ()
    is_reused: bool = False
    extra: dict[str, Value] = field(default_factory=dict[str, Value])

    @property
    def warning_count(self) -> int:
        """The number of warnings of the run."""
        return len(self.warnings)


def row_result(row: BatchRow, result: RunResult, *, is_reused: bool = False) -> RowResult:
    """The result of a row from the result of its run."""
    outermost = [loop for path, loop in result.loops.items() if "." not in path and loop.exit_reason]
    last = outermost[-1] if outermost else None
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
        fix=result.fix,
        warnings=result.warnings,
        is_reused=is_reused,
    )


def refused_row(row: BatchRow, error: EngineError | str) -> RowResult:
    """The result of a row whose run could not start."""
    fix = error.fix if isinstance(error, EngineError) else ""
    return RowResult(row.number, row.key, "", "failed", row.inputs, error=str(error), fix=fix)


def _score(result: RunResult, loop: LoopResult | None) -> float | None:
    if loop is not None and loop.iterations:
        returned = loop.iterations[-1 if loop.returned is None else loop.returned]
        if returned.score is not None:
            return returned.score
    score = result.outputs.get("score")
    return float(score) if isinstance(score, (int, float)) and not isinstance(score, bool) else None


@dataclass(frozen=True, slots=True)
class IterationsGroup:
    """The completed rows with the same number of iterations, to compare quality and cost.

    Attributes:
        iterations: The number of iterations.
        rows: The number of rows.
        mean_score: The mean of the scores; None without scores.
        mean_cost_usd: US dollars per row; None if a price is unknown.
        exit_reasons: The exit reasons of their loops, with the number of each.
    """

    iterations: int
    rows: int
    mean_score: float | None
    mean_cost_usd: float | None
    exit_reasons: dict[str, int]


@dataclass(frozen=True, slots=True)
class BatchSummary:
    """The totals of a batch.

    Attributes:
        rows: The number of rows of the table.
        completed: Rows that completed, now or earlier.
        failed: Rows that failed.
        not_run: Rows that were cancelled or did not start.
        reused: Rows that finished earlier.
        tokens: Tokens of all rows.
        cost_usd: US dollars of all rows whose price is known.
        is_price_unknown: Whether the price of a row is unknown.
        duration_s: The running time of all rows together, in seconds.
        mean_score: The mean score of the completed rows; None without scores.
        by_iterations: The completed rows by number of iterations, ascending.
        is_budget_spent: Whether rows did not start because the budget of the batch was used up.
        rows_with_warnings: Rows whose runs have warnings.
        warnings: The number of warnings of all rows.
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
        """The JSON object."""
        return asdict(self)


def summarize(results: Iterable[RowResult], rows: int, *, is_budget_spent: bool = False) -> BatchSummary:
    """Compute the totals of a batch.

    Args:
        results: The results of the rows that have ended.
        rows: The number of rows of the table.
        is_budget_spent: Whether rows did not start because the budget of the batch was used up.
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
