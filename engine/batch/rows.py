"""The rows of a batch: the inputs of each run, and the names under which it is found again.

A batch is what it runs: the document without its layout, the model, and the name that a person gave it. A row is found
by the batch, its inputs, and how many rows with the same inputs stand before it; so the same command goes on where an
earlier one broke off, wherever the row has moved to in the meantime.
"""

from __future__ import annotations

import difflib
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.batch.table import Table, TableError
from engine.document.model import Workflow
from engine.document.wording import shown
from engine.errors import EngineError
from engine.runner.declared import Declared, declared_inputs
from engine.runner.declared_text import value_of_text
from engine.values import Value, compact_json

_RUN_ID_LENGTH = 16


@dataclass(frozen=True, slots=True)
class BatchRow:
    """A row of a batch.

    Attributes:
        number: Its place in the table, from 1.
        inputs: The values of the workflow's inputs, by name.
        key: Finds the row again in results and history: a hash of batch and inputs.
    """

    number: int
    inputs: dict[str, Value]
    key: str

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
        inputs: Of each row the inputs, by name.
    """
    seen: Counter[str] = Counter()
    rows: list[BatchRow] = []
    for number, values in enumerate(inputs, 1):
        text = compact_json(dict(values))
        rows.append(BatchRow(number, dict(values), _hash(f"{batch}\n{seen[text]}\n{text}")[:32]))
        seen[text] += 1
    return rows


def inputs_of_table(
    workflow: Workflow,
    table: Table,
    columns: Mapping[str, str] | None = None,
    *,
    ignore_others: bool = False,
) -> list[dict[str, Value]]:
    """What each row of a table gives to the workflow's inputs.

    An empty cell of a CSV table leaves an input with a default to that default.

    Args:
        workflow: The workflow.
        table: The table.
        columns: Of an input, the column that its values stand in; one that is not named has the column of its own name.
        ignore_others: Whether columns that are no input's are left alone.

    Raises:
        TableError: The columns are not those of the inputs, or a value does not fit; one sentence says which.
    """
    declared = {item.name: item for item in declared_inputs(workflow)}
    chosen = _columns(declared, table, dict(columns or {}), ignore_others=ignore_others)
    return [_inputs(table, row, number, declared, chosen) for number, row in enumerate(table.rows, 1)]


def _columns(
    declared: Mapping[str, Declared], table: Table, given: dict[str, str], *, ignore_others: bool
) -> dict[str, str]:
    """By input, the column that its values stand in."""
    unknown = next((name for name in given if name not in declared), None)
    if unknown is not None:
        raise TableError(f'The workflow has no input "{shown(unknown, 60)}".', _there_are(declared))
    absent = next((column for column in given.values() if column not in table.columns), None)
    if absent is not None:
        raise TableError(f'{table.name}: There is no column "{shown(absent, 60)}".', _it_has(table))
    named = {name: name for name in declared if name in table.columns and name not in given}
    chosen = {**named, **given}
    missing = [name for name, item in declared.items() if name not in chosen and item.default is None]
    if missing:
        names = ", ".join(f'"{shown(name, 60)}"' for name in missing)
        what = f"the input {names}" if len(missing) == 1 else f"the inputs {names}"
        raise TableError(f"{table.name}: There is no column for {what}.", _it_has(table))
    others = [column for column in table.columns if column not in chosen.values()]
    if others and not ignore_others:
        near = difflib.get_close_matches(others[0], declared, n=1)
        hint = f'Did you mean "{near[0]}"? ' if near else ""
        raise TableError(
            f'{table.name}: The column "{shown(others[0], 60)}" is no input of the workflow.',
            f"{hint}{_there_are(declared)} Rename the column, say whose it is, or ignore other columns.",
        )
    return chosen


def _there_are(declared: Mapping[str, Declared]) -> str:
    return f"Its inputs are: {'; '.join(map(str, declared.values()))}." if declared else "It has no inputs."


def _it_has(table: Table) -> str:
    return f"Its columns are: {', '.join(shown(column, 60) for column in table.columns)}."


def _inputs(
    table: Table, row: Mapping[str, Value], number: int, declared: Mapping[str, Declared], chosen: Mapping[str, str]
) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for name, column in chosen.items():
        if column not in row:
            continue
        cell = row[column]
        if not table.is_text:
            values[name] = cell
        elif cell != "" or declared[name].default is None:
            try:
                values[name] = value_of_text(str(cell), declared[name])
            except EngineError as error:
                raise TableError(f"{table.name}, row {number}: {error.message}", error.remedy) from None
    return values


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
