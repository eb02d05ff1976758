from __future__ import annotations

import asyncio
import csv
import io
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from engine.document.model import Workflow
from engine.models.protocol import Usage
from engine.plan.partial_run import Extent, Part
from engine.run_state.reducer import apply
from engine.run_state.state import RunState
from engine.runner.options import RunOptions
from engine.runner.run import start
from engine.store import Store, open_store
from engine.store.export_csv import COLUMNS, is_own_table, run_to_csv
from engine.store.partial_runs import plan_partial_run, start_partial_run
from engine.store.run_sections import state_of
from tests.engine.cli.kit import Events
from tests.engine.semantics.documents import around, entry, flow, llm, result


def rows(*results: Any, **fields: Any) -> list[dict[str, str]]:
    event = Events()
    state = RunState("r")
    for number, value in enumerate(results):
        apply(state, event("LoopIterationStarted", "loop", index=number, total=9, input_preview=""))
        apply(state, event.iteration("loop", number, value, **fields))
    ended = {"converged": True, "cost_usd": 0.5, "duration_s": 1}
    apply(
        state,
        event(
            "LoopCompleted", "loop", iterations_run=len(results), exit_reason="x", returned=len(results) - 1, **ended
        ),
    )
    return list(csv.DictReader(io.StringIO("".join(run_to_csv(state, "")), newline="")))


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


def test_csv_of_a_run_without_results_has_no_rows():
    assert "".join(run_to_csv(RunState("r"), "")) == ",".join(COLUMNS) + "\r\n"


CHAIN = flow(entry(), llm("draft"), result(), edges="text -> draft -> out")
LOOP = around(llm("draft"), edges="loop -> draft -> exit", max_iterations=2)


def exported(workflow: Workflow, *parts: Part, tmp_path: Path) -> list[dict[str, str]]:
    """The table of the last of several runs: the whole workflow, then each part with the stored outputs before."""
    reply = {"text": "words", "usage": {"input_tokens": 3, "output_tokens": 2}}
    (tmp_path / "script.json").write_text(json.dumps({"default": reply}))

    async def runs(store: Store) -> str:
        options = RunOptions(model=f"scripted:{tmp_path / 'script.json'}", store=store)
        run = start(workflow, {"text": "sea"}, options)
        await run.result()
        for part in parts:
            planned = plan_partial_run(store, workflow, part, {}, options, last=store.find(run.run_id))
            run = start_partial_run(store, planned, options)
            await run.result()
        return run.run_id

    with closing(open_store(tmp_path / "history.sqlite3")) as store:
        run_id = asyncio.run(runs(store))
        text = "".join(run_to_csv(state_of(store, run_id), store.document(run_id)))
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_csv_of_a_run_without_loops_has_a_row_for_each_output(tmp_path: Path):
    (row,) = exported(CHAIN, tmp_path=tmp_path)
    assert (row["output"], row["result"], row["iteration"], row["input_tokens"]) == ("out", "words", "", "")


def test_csv_of_a_partial_run_has_what_its_node_produced(tmp_path: Path):
    (row,) = exported(CHAIN, Part(Extent.ONLY, "draft"), tmp_path=tmp_path)
    assert (row["output"], row["result"]) == ("draft.output", "words")
    assert (row["input_tokens"], row["output_tokens"], row["cost_usd"]) == ("3", "2", "0.0")


def test_csv_of_a_partial_run_of_a_loop_has_its_iterations_and_its_result(tmp_path: Path):
    *iterations, last = exported(LOOP, Part(Extent.ONLY, "loop"), tmp_path=tmp_path)
    assert [(row["iteration"], row["output"]) for row in iterations] == [("1", ""), ("2", "")]
    assert (last["output"], last["result"]) == ("loop.output", "words")


def test_table_of_an_earlier_version_is_still_its_own():
    assert is_own_table(COLUMNS)
    assert is_own_table([column for column in COLUMNS if column != "output"])
    assert not is_own_table(COLUMNS[1:])
