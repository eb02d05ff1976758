"""Rows on executors: the data that is sent, and a killed worker of a real Dask cluster."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from engine import BatchOptions, EngineError, RunOptions, open_store, run_batch
from engine.batch.executors import ExecutorRunner, dask_executor, run_row
from engine.batch.rows import make_rows
from tests.engine.semantics.documents import around, llm
from tests.engine.store.memory_store import MemoryStore
from tests.engine.wire.server import WireServer
from tests.wording import mentions

KEY = "sk-secret-of-the-caller-0123456789"


def workflow() -> Any:
    return around(llm("draft"), edges="loop -> draft -> exit", max_iterations=2)


def script(folder: Path, **reply: Any) -> str:
    file = folder / "replies.json"
    file.write_text(json.dumps({"default": {"text": "good", **reply}}), encoding="utf-8")
    return f"scripted:{file}"


class Recording(ThreadPoolExecutor):
    """Runs tasks in this process, and records them."""

    def __init__(self) -> None:
        super().__init__(max_workers=2)
        self.given: list[tuple[Any, ...]] = []
        self.gave: list[Any] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.given.append((fn, *args, *kwargs.values()))
        future = super().submit(fn, *args, **kwargs)
        future.add_done_callback(lambda done: self.gave.append(done.result()))
        return future


async def play(executor: Executor, model: str, rows: int = 3, **options: Any) -> Any:
    inputs = [{"text": f"row {number}"} for number in range(rows)]
    how = BatchOptions(run=RunOptions(model=model), executor=executor, **options)
    async with asyncio.timeout(120):
        return await run_batch(workflow(), inputs, how)


async def test_only_json_is_sent_to_workers_and_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Recording() as executor:
        outcome = await play(executor, script(tmp_path))
    assert [row.status for row in outcome.rows] == ["completed"] * 3
    assert all(function is run_row and isinstance(task, str) for function, task in executor.given)
    tasks = [json.loads(task) for _, task in executor.given]
    assert {tuple(sorted(task)) for task in tasks} == {
        (
            "addresses",
            "allow_code",
            "allow_private_addresses",
            "confirm_calls",
            "document",
            "folder",
            "inputs",
            "options",
            "run_id",
            "source",
        )
    }
    assert all(isinstance(text, str) and json.loads(text)["format"] == "loopwright.run" for text in executor.gave)
    assert KEY not in "".join(task for _, task in executor.given) + "".join(executor.gave)


async def test_executor_rows_are_stored_and_do_not_run_again(tmp_path: Path):
    store, model = MemoryStore(), script(tmp_path)
    with Recording() as executor:
        first = await play(executor, model, store=store)
        again = await play(executor, model, store=store)
    assert len(executor.given) == 3
    assert again.summary.reused == 3
    assert {run.run_id for run in store.runs()} == {row.run_id for row in first.rows}
    assert [(row.outputs, row.iterations) for row in again.rows] == [({"out": "good"}, 2)] * 3


async def test_local_and_executor_results_are_equal(tmp_path: Path):
    model = script(tmp_path)
    with Recording() as executor:
        elsewhere = await play(executor, model)
    inputs = [{"text": f"row {number}"} for number in range(3)]
    here = await run_batch(workflow(), inputs, BatchOptions(run=RunOptions(model=model)))
    assert elsewhere.batch == here.batch
    figures = [(row.run_id, row.outputs, row.iterations, row.exit_reason, row.tokens) for row in here.rows]
    assert [(row.run_id, row.outputs, row.iterations, row.exit_reason, row.tokens) for row in elsewhere.rows] == figures


async def test_model_missing_on_the_worker_is_reported():
    with Recording() as executor:
        outcome = await play(executor, "scripted:none.json", rows=1)
    assert outcome.rows[0].status == "failed"
    assert "none.json" in outcome.rows[0].error


def test_fix_of_a_row_that_cannot_start_is_sent_back(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise EngineError("There is no key.", "Add it.", fix="add_key:openai")

    monkeypatch.setattr("engine.batch.executors.start", refuse)
    (row,) = make_rows("batch", [{"text": "a"}])
    with Recording() as executor:
        runner = ExecutorRunner(workflow(), RunOptions(), executor, None)
        with pytest.raises(EngineError) as refused:
            runner._receive(row, run_row(json.dumps({**runner._shared, "inputs": row.inputs, "run_id": row.run_id})))
    assert (str(refused.value), refused.value.fix) == ("There is no key. Add it.", "add_key:openai")


async def test_worker_calls_models_on_the_users_own_servers(wire: WireServer):
    with Recording() as executor:
        outcome = await play(executor, "openai/plain", rows=1, addresses={"openai/plain": wire.base_url})
    assert [row.status for row in outcome.rows] == ["completed"], outcome.rows[0].error
    assert wire.requests


async def test_failing_executor_fails_its_row():
    class Broken(Recording):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_exception(RuntimeError("secret details"))
            return future

    with Broken() as executor:
        outcome = await play(executor, "fake/model", rows=1)
    assert mentions(outcome.rows[0].error, "lost … (RuntimeError)")


def test_address_without_a_scheduler_is_reported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("engine.batch.executors._CONNECT_S", 1)
    with (
        pytest.raises(EngineError, match='no Dask scheduler at "tcp://127'),
        dask_executor("tcp://127.0.0.1:1"),
    ):
        pass


def test_cluster_that_does_not_start_is_reported(monkeypatch: pytest.MonkeyPatch):
    def fail(**_: Any) -> None:
        raise RuntimeError("no worker came up")

    monkeypatch.setattr("distributed.LocalCluster", fail)
    with pytest.raises(EngineError, match="no worker came up") as failed, dask_executor():
        pass
    assert "address" not in failed.value.remedy


class Started(AbstractContextManager["Started"]):
    """What was started of Dask: the arguments, and whether it runs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs
        self.runs = True

    def __exit__(self, *_: object) -> None:
        self.runs = False

    def get_executor(self, *, pure: bool = True) -> Any:
        assert not pure, "equal rows run each"
        return self


@pytest.mark.parametrize("address", ["", "tcp://127.0.0.1:8786"])
def test_client_of_a_local_cluster_or_of_an_address(monkeypatch: pytest.MonkeyPatch, address: str):
    clusters: list[Started] = []

    def start(**kwargs: Any) -> Started:
        clusters.append(Started(**kwargs))
        return clusters[-1]

    monkeypatch.setattr("distributed.LocalCluster", start)
    monkeypatch.setattr("distributed.Client", Started)
    with dask_executor(address, workers=3) as executor:
        assert isinstance(executor, Started)
        assert executor.args == ((address,) if address else tuple(clusters))
        assert executor.runs
        for cluster in clusters:
            assert (cluster.kwargs["n_workers"], cluster.kwargs["processes"], cluster.runs) == (3, True, True)
    assert len(clusters) == (0 if address else 1)
    assert not any(one.runs for one in (executor, *clusters))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_killed_dask_worker_loses_no_row(tmp_path: Path):
    store, model = open_store(tmp_path / "history.sqlite3"), script(tmp_path, delay_s=0.2)
    killed: list[int] = []

    def kill_a_worker(_result: Any) -> None:
        """When a row has ended, kill a process that runs another one."""
        if killed:
            return
        client: Any = vars(executor)["_client"]
        busy = [address for address, tasks in client.processing().items() if tasks]
        if busy:
            (pid,) = client.run(os.getpid, workers=busy[:1]).values()
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    async def main() -> Any:
        how = BatchOptions(run=RunOptions(model=model), executor=executor, store=store, concurrency=2)
        inputs = [{"text": f"row {number}"} for number in range(6)]
        async with asyncio.timeout(120):
            return await run_batch(workflow(), inputs, how, on_row=kill_a_worker)

    try:
        with dask_executor(workers=2) as executor:
            outcome = asyncio.run(main())
        assert killed, "a worker was running a row when it was killed"
        assert [row.status for row in outcome.rows] == ["completed"] * 6
        assert [row.outputs for row in outcome.rows] == [{"out": "good"}] * 6
        assert sorted(run.run_id for run in store.runs()) == sorted(row.run_id for row in outcome.rows)
    finally:
        store.close()
