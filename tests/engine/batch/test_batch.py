from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from engine import Batch, BatchOptions, BatchResult, DocumentError, RunOptions, open_store, run_batch
from engine.batch.rows import RowInputs, batch_id, make_rows
from engine.batch.table import TableError
from engine.models.protocol import ModelError, ModelErrorKind, Price, Usage
from engine.store.store_protocol import Store
from tests.engine.semantics.documents import around, entry, flow, llm, result, transform
from tests.engine.semantics.models import Answer, Call, FakeModels, FunctionModel, Said
from tests.engine.store.memory_store import MemoryStore

TOPICS = [{"text": name} for name in ("a", "b", "c", "d")]


def refine(**loop: Any) -> Any:
    usual: dict[str, Any] = {"max_iterations": 3, "until": "size(output) >= 3", "score": "double(size(output))"}
    return around(llm("draft"), edges="loop -> draft -> exit", **{**usual, **loop})


def longer(call: Call) -> str:
    return call.prompt + call.prompt[0]


class Models:
    """One model for all runs of a batch; counts the open catalogs."""

    def __init__(self, answer: Answer | Said, **more: Any) -> None:
        self.model = FunctionModel(answer, **more)
        self.open = 0

    def __call__(self) -> Any:
        self.open += 1
        owner = self

        class Catalog(FakeModels):
            async def close(self) -> None:
                owner.open -= 1

        return Catalog(self.model)

    @property
    def asked(self) -> Counter[str]:
        return Counter(call.prompt for call in self.model.calls)


async def play(models: Models, workflow: Any = None, rows: Any = None, **options: Any) -> BatchResult:
    how = BatchOptions(models=models, **options)
    async with asyncio.timeout(60):
        outcome = await run_batch(workflow or refine(), TOPICS if rows is None else rows, how)
    assert models.open == 0
    return outcome


@pytest.fixture
def store(tmp_path: Path) -> Any:
    opened = open_store(tmp_path / "history.sqlite3")
    yield opened
    opened.close()


async def test_row_result_has_all_figures_of_its_run():
    models = Models(longer, price=Price(0.0, 0.01), usage=Usage(10, 5))
    outcome = await play(models)
    first = outcome.rows[0]
    assert [row.outputs for row in outcome.rows] == [{"out": name * 3} for name in "abcd"]
    assert (first.row, first.status, first.inputs, first.score) == (1, "completed", {"text": "a"}, 3.0)
    assert (first.iterations, first.exit_reason, first.tokens, first.is_reused) == (2, "until", 30, False)
    assert first.cost_usd == pytest.approx(0.1)
    assert first.error == ""


async def test_summary_groups_score_and_cost_by_iterations():
    models = Models(longer, price=Price(0.0, 0.01), usage=Usage(10, 5))
    outcome = await play(models, rows=[{"text": "a"}, {"text": "bb"}, {"text": "cc"}])
    summary = outcome.summary
    assert (summary.rows, summary.completed, summary.failed, summary.not_run) == (3, 3, 0, 0)
    assert (summary.tokens, summary.mean_score) == (60, 3.0)
    assert summary.cost_usd == pytest.approx(0.2)
    groups = [(group.iterations, group.rows, group.mean_score, group.exit_reasons) for group in summary.by_iterations]
    assert groups == [(1, 2, 3.0, {"until": 2}), (2, 1, 3.0, {"until": 1})]
    assert [group.mean_cost_usd for group in summary.by_iterations] == pytest.approx([0.05, 0.1])


async def test_concurrency_limits_the_running_rows():
    under_way = most = 0

    async def answer(_call: Call) -> str:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        under_way -= 1
        return "long enough"

    await play(Models(answer), rows=[{"text": str(number)} for number in range(12)], concurrency=3)
    assert most == 3


async def test_failed_row_does_not_affect_others_and_runs_again():
    broken = True

    def answer(call: Call) -> Said:
        if broken and call.prompt == "bb":
            return ModelError(ModelErrorKind.AUTHENTICATION, "The key is wrong.", "Check the key.")
        return longer(call)

    store, models = MemoryStore(), Models(answer)
    outcome = await play(models, store=store)
    assert [row.status for row in outcome.rows] == ["completed", "failed", "completed", "completed"]
    assert "The key is wrong" in outcome.rows[1].error
    broken = False
    again = await play(models, store=store)
    assert [(row.status, row.is_reused) for row in again.rows] == [
        ("completed", True),
        ("completed", False),
        ("completed", True),
        ("completed", True),
    ]
    assert models.asked["b"] == 1, "what had come to its end was not asked again"
    assert models.asked["bb"] == 2


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl"])
async def test_rows_in_the_results_file_do_not_run_again(tmp_path: Path, name: str):
    models = Models(longer)
    first = await play(models, out=tmp_path / name)
    calls = len(models.model.calls)
    text = (tmp_path / name).read_text()
    again = await play(models, out=tmp_path / name)
    assert len(models.model.calls) == calls
    assert again.summary.reused == 4
    assert [row.outputs for row in again.rows] == [row.outputs for row in first.rows]
    assert (tmp_path / name).read_text() == text


async def test_rows_in_the_history_do_not_run_again(store: Store):
    models = Models(longer)
    first = await play(models, store=store)
    calls = len(models.model.calls)
    again = await play(models, store=store)
    assert len(models.model.calls) == calls
    figures = [(row.run_id, row.outputs, row.score, row.iterations, row.exit_reason) for row in first.rows]
    assert [(row.run_id, row.outputs, row.score, row.iterations, row.exit_reason) for row in again.rows] == figures
    assert {run.run_id for run in store.runs()} == {row.run_id for row in first.rows}


async def test_only_new_rows_of_a_table_run(tmp_path: Path):
    models = Models(longer)
    await play(models, rows=TOPICS[:2], out=tmp_path / "out.csv")
    models.model.calls.clear()
    outcome = await play(models, rows=[{"text": "new"}, *TOPICS[:2]], out=tmp_path / "out.csv")
    assert models.asked == Counter({"new": 1})
    assert [(row.row, row.inputs["text"], row.is_reused) for row in outcome.rows] == [
        (1, "new", False),
        (2, "a", True),
        (3, "b", True),
    ]


async def test_equal_rows_each_run(store: Store):
    models = Models("long enough")
    outcome = await play(models, rows=[{"text": "a"}] * 3, store=store)
    assert models.asked == Counter({"a": 3})
    assert len({row.run_id for row in outcome.rows}) == 3


async def test_new_name_runs_every_row_again(store: Store):
    models = Models("long enough")
    await play(models, store=store)
    outcome = await play(models, store=store, name="second")
    assert outcome.summary.reused == 0
    assert len(store.runs()) == 8


async def test_stopped_batch_keeps_results_and_resumes(store: Store, tmp_path: Path):
    held = asyncio.Event()
    reached = asyncio.Event()

    async def answer(call: Call) -> str:
        if call.prompt == "bb" and not held.is_set():
            reached.set()
            await held.wait()
        return longer(call)

    models = Models(answer)
    how = BatchOptions(models=models, store=store, out=tmp_path / "out.csv", concurrency=1)
    batch = Batch(refine(), TOPICS, how)
    running = asyncio.create_task(batch.run())
    async with asyncio.timeout(60):
        await reached.wait()
        batch.stop()
        stopped = await running
    assert batch.is_stopped
    assert [row.status for row in stopped.rows] == ["completed", "cancelled"]
    assert stopped.summary.not_run == 3
    assert models.open == 0
    held.set()
    outcome = await play(models, store=store, out=tmp_path / "out.csv", concurrency=1)
    assert [row.outputs["out"] for row in outcome.rows] == ["aaa", "bbb", "ccc", "ddd"]
    assert models.asked["a"] == models.asked["b"] == 1, "finished calls are paid for once"


async def test_run_budget_applies_to_each_row():
    models = Models(lambda _call: "x", price=Price(0.0, 1.0), usage=Usage(0, 10))
    workflow = flow(entry(), llm("draft", max_tokens=10), result(), edges="text -> draft -> out")
    outcome = await play(models, workflow, run=RunOptions(budget_usd=10.0))
    assert [row.cost_usd for row in outcome.rows] == [10.0] * 4
    outcome = await play(models, workflow, run=RunOptions(budget_usd=9.0))
    assert [row.status for row in outcome.rows] == ["failed"] * 4
    assert "budget" in outcome.rows[0].error


async def test_output_named_score_is_the_score_without_a_loop():
    made = transform("made", mode="expression", expression="double(size(text))")
    workflow = flow(entry(), made, result("score"), edges="text -> made.text\nmade -> score")
    outcome = await play(Models(""), workflow, rows=[{"text": "abc"}])
    assert outcome.rows[0].score == 3.0


async def test_row_with_invalid_values_fails_and_the_others_run(tmp_path: Path):
    models = Models(longer)
    rows = [{"txt": "a"}, RowInputs({"text": "x"}, error="Line 3 is odd."), {"text": "b"}]
    outcome = await play(models, rows=rows, out=tmp_path / "out.jsonl")
    assert [row.status for row in outcome.rows] == ["failed", "failed", "completed"]
    assert 'no input "txt"' in outcome.rows[0].error
    assert (outcome.rows[1].error, outcome.rows[1].inputs) == ("Line 3 is odd.", {"text": "x"})
    assert set(models.asked) == {"b", "bb"}
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [(row["row"], row["status"], bool(row["error"])) for row in lines] == [
        (1, "failed", True),
        (2, "failed", True),
        (3, "completed", False),
    ]
    again = await play(models, rows=[{"text": "a"}, {"text": "x"}, {"text": "b"}], out=tmp_path / "out.jsonl")
    assert again.summary.reused == 1
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 3, "rows that were never run are not left behind"


async def test_nothing_runs_without_valid_rows():
    models = Models("x")
    with pytest.raises(TableError, match="no rows"):
        await play(models, rows=[])
    assert (await play(models, rows=[{"txt": "a"}])).summary.failed == 1
    assert models.model.calls == []


@pytest.mark.parametrize("error", [ValueError("odd"), KeyError("x"), RecursionError(), UnicodeError("x"), TypeError()])
async def test_exception_of_a_model_fails_only_its_row(error: Exception):
    def answer(call: Call) -> str:
        if call.prompt == "b":
            raise error
        return longer(call)

    outcome = await play(Models(answer))
    assert [row.status for row in outcome.rows] == ["completed", "failed", "completed", "completed"]
    assert type(error).__name__ in outcome.rows[1].error


@pytest.mark.parametrize("error", [ValueError("odd"), KeyError("x"), RuntimeError(), MemoryError()])
async def test_exception_outside_of_the_run_fails_only_its_row(error: Exception):
    class OddStore(MemoryStore):
        def find(self, prefix: str) -> Any:
            if prefix == make_rows(batch, TOPICS)[1].run_id:
                raise error
            return super().find(prefix)

    batch = batch_id(refine())
    outcome = await play(Models(longer), store=OddStore())
    assert [row.status for row in outcome.rows] == ["completed", "failed", "completed", "completed"]
    assert type(error).__name__ in outcome.rows[1].error


async def test_a_document_with_errors_is_refused():
    with pytest.raises(DocumentError):
        await play(Models("x"), flow(entry(), llm("draft", "{{"), result(), edges="text -> draft -> out"))


async def test_unwritable_results_file_ends_the_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import os

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    models = Models("long enough")
    batch = Batch(refine(), TOPICS, BatchOptions(models=models, out=tmp_path / "out.jsonl", concurrency=2))
    before = os.fsync
    monkeypatch.setattr("engine.batch.results_file.os.fsync", lambda descriptor: (before, full(descriptor)))
    monkeypatch.setattr("engine.batch.results_file.replace_file", lambda *_: None)
    (tmp_path / "out.jsonl").touch()
    async with asyncio.timeout(60):
        with pytest.raises(TableError, match="No space left on device"):
            await batch.run()
    assert models.open == 0


CENTS = {"price": Price(0.0, 0.01), "usage": Usage(10, 5)}


def five_cents() -> Any:
    """A workflow with one call, whose cost and estimated cost are five cents."""
    return flow(entry(), llm("draft", max_tokens=5), result(), edges="text -> draft -> out")


async def test_no_row_starts_after_the_batch_budget_is_used_up():
    outcome = await play(Models("fine", **CENTS), five_cents(), concurrency=1, budget_usd=0.1)
    summary = outcome.summary
    assert [row.row for row in outcome.rows] == [1, 2]
    assert (summary.completed, summary.not_run, summary.is_budget_spent) == (2, 2, True)
    assert summary.cost_usd == pytest.approx(0.1)


@pytest.mark.parametrize("concurrency", [2, 3, 4])
async def test_concurrent_rows_share_the_batch_budget(concurrency: int):
    under_way = asyncio.Event()

    async def answer(_call: Call) -> str:
        asyncio.get_running_loop().call_soon(under_way.set)
        await under_way.wait()
        return "fine"

    models = Models(answer, **CENTS)
    outcome = await play(models, five_cents(), concurrency=concurrency, budget_usd=0.07)
    assert len(models.model.calls) == 1
    assert outcome.summary.cost_usd == pytest.approx(0.05)
    assert outcome.summary.completed == 1
    refused = [row.error for row in outcome.rows if row.status == "failed"]
    assert len(refused) >= concurrency - 1
    assert all("The budget of the batch is too small" in error for error in refused)


async def test_later_row_gets_the_remaining_batch_budget():
    loop = {"edges": "loop -> draft -> exit", "max_iterations": 2}
    workflow = around(llm("draft", max_tokens=5), **loop)
    outcome = await play(Models("x", **CENTS), workflow, concurrency=1, budget_usd=0.17)
    assert [(row.exit_reason, round(row.cost_usd or 0, 2)) for row in outcome.rows] == [
        ("max_iterations", 0.1),
        ("budget", 0.05),
    ]
    assert (outcome.summary.not_run, outcome.summary.is_budget_spent) == (2, True)


async def test_rows_stopped_by_the_budget_resume_without_paying_twice():
    store, models = MemoryStore(), Models("fine", **CENTS)
    twice = flow(
        entry(), llm("one", max_tokens=5), llm("two", max_tokens=5), result(), edges="text -> one -> two -> out"
    )
    first = await play(models, twice, store=store, concurrency=2, budget_usd=0.16)
    assert first.summary.cost_usd == pytest.approx(0.15)
    again = await play(models, twice, store=store, concurrency=2, budget_usd=0.4)
    assert (again.summary.completed, len(models.model.calls)) == (4, 8)
    assert again.summary.cost_usd == pytest.approx(0.4)


async def test_document_budget_applies_in_a_batch_with_a_larger_budget():
    loop = {"edges": "loop -> draft -> exit", "max_iterations": 9}
    workflow = around(llm("draft", max_tokens=5), **loop)
    workflow = workflow.model_copy(update={"settings": {"budget_usd": 0.1}})
    outcome = await play(Models("x", **CENTS), workflow, rows=[{"text": "a"}], budget_usd=5.0)
    assert outcome.summary.cost_usd == pytest.approx(0.1)


async def test_batch_resumes_with_a_higher_budget():
    store, models = MemoryStore(), Models("fine", **CENTS)
    for budget, done in ((0.05, 1), (0.05, 1), (0.15, 3), (9.0, 4)):
        outcome = await play(models, five_cents(), store=store, concurrency=1, budget_usd=budget)
        assert (outcome.summary.completed, outcome.summary.is_budget_spent) == (done, done < 4)
    assert models.asked == dict.fromkeys("abcd", 1)


async def test_results_file_counts_towards_the_batch_budget(tmp_path: Path):
    models = Models("fine", **CENTS)
    for _ in range(2):
        outcome = await play(models, five_cents(), out=tmp_path / "out.csv", concurrency=1, budget_usd=0.1)
        assert (outcome.summary.completed, outcome.summary.is_budget_spent) == (2, True)
    assert len(models.model.calls) == 2


async def test_single_row_cannot_exceed_the_batch_budget():
    loop = {"edges": "loop -> draft -> exit", "max_iterations": 50}
    workflow = around(llm("draft", max_tokens=5), **loop)
    outcome = await play(Models("x", **CENTS), workflow, concurrency=1, budget_usd=0.12)
    assert outcome.rows[0].cost_usd == pytest.approx(0.1)
    assert outcome.rows[0].exit_reason == "budget"


async def test_free_rows_use_no_budget():
    outcome = await play(Models("long enough"), budget_usd=0.0)
    assert (outcome.summary.completed, outcome.summary.is_budget_spent) == (4, False)
