"""Runs the rows of a batch on a `concurrent.futures` executor: a pool of processes, or a Dask cluster.

Only JSON text travels: the document, the row and the run options there, and the run as `loopwright runs export` writes
it back. Keys never travel: each worker uses its own environment and keyring.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Generator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

from engine.batch.local_executor import asking_row, busy_row, ended_or_asking, kept_result, unanswerable_row
from engine.batch.result import RowResult, refused_row, row_result
from engine.batch.rows import BatchRow
from engine.document.files import dumps, loads
from engine.document.model import Workflow
from engine.errors import EngineError
from engine.events import AnyEvent
from engine.models.catalog import default_model_name
from engine.run_state.reducer import reduce_events
from engine.run_state.result import RunResult, result_of
from engine.run_state.state import QUESTION_EVENTS, Detail
from engine.runner.event_loop import run_and_wait
from engine.runner.options import RunOptions, options_to_json, options_with_stored
from engine.runner.run import start
from engine.runner.run_storage import RunHead
from engine.store.memory import MemoryStore
from engine.store.run_file import head_of, run_from_json, run_to_json
from engine.store.store_protocol import ACTIVE, RunStatus, Store, StoreError


def run_row(task: str) -> str:
    """Run a row on a worker: the one function that a cluster is asked to call.

    Args:
        task: The row, as `ExecutorRows` writes it.

    Returns:
        The run, as a JSON text; of one that could not be begun an object with `error` and `remedy`.
    """
    wanted = json.loads(task)
    store = MemoryStore()
    options = options_with_stored(
        RunOptions(
            folder=None if wanted["folder"] is None else Path(wanted["folder"]),
            allow_private_addresses=wanted["allow_private_addresses"],
            allow_code=wanted["allow_code"],
            confirm_calls=wanted["confirm_calls"],
            store=store,
            source=wanted["source"],
            run_id=wanted["run_id"],
        ),
        wanted["options"],
    )

    async def to_its_end() -> None:
        await ended_or_asking(start(loads(wanted["document"]), wanted["inputs"], options), is_kept=True)

    try:
        run_and_wait(to_its_end())
    except EngineError as error:
        return json.dumps({"error": error.message, "remedy": error.remedy})
    return "".join(run_to_json(head_of(store, wanted["run_id"]), store.events(wanted["run_id"])))


class ExecutorRows:
    """Runs rows by an executor, and takes the runs that come back into the history.

    Args:
        workflow: The document.
        options: How each run is to be done. Models and node types are those that the workers have.
        executor: Where rows are run.
        store: Where runs are kept and found again; None: nowhere.
    """

    def __init__(self, workflow: Workflow, options: RunOptions, executor: Executor, store: Store | None) -> None:
        self._executor = executor
        self._store = store
        self._shared: dict[str, Any] = {
            "document": dumps(workflow),
            "options": options_to_json(options, default_model_name()),
            "folder": None if options.folder is None else str(options.folder),
            "allow_private_addresses": options.allow_private_addresses,
            "allow_code": options.allow_code,
            "confirm_calls": options.confirm_calls,
            "source": options.source,
        }

    async def run(self, row: BatchRow) -> RowResult:
        """Run a row, or take what the history has of it.

        A worker that is lost takes nothing with it: the row is run again on another one. Cancelled, a row that has not
        been begun is not; one under way comes to its end on its worker, and nobody waits for it.
        """
        try:
            known = await asyncio.to_thread(self._known, row)
        except EngineError as error:
            return refused_row(row, error)
        if known is not None:
            return known
        task = json.dumps({**self._shared, "inputs": row.inputs, "run_id": row.run_id})
        try:
            answer = await asyncio.wrap_future(self._executor.submit(run_row, task))
        except asyncio.CancelledError:
            return row_result(row, RunResult("", "cancelled"))
        except Exception as error:  # whatever an executor raises: a worker that died, a connection that was lost
            return refused_row(row, _lost(error))
        try:
            return await asyncio.to_thread(self._taken_in, row, answer)
        except EngineError as error:
            return refused_row(row, error)

    def _known(self, row: BatchRow) -> RowResult | None:
        if self._store is None:
            return None
        try:
            summary = self._store.find(row.run_id)
        except StoreError:
            return None
        if summary.status is RunStatus.COMPLETED:
            return row_result(row, kept_result(self._store, summary.run_id), is_reused=True)
        if summary.status is RunStatus.WAITING:
            events = self._store.events(summary.run_id, kinds=QUESTION_EVENTS)
            return asking_row(row, summary, reduce_events(events, detail=Detail.SUMMARY).questions)
        if summary.status in ACTIVE:
            return busy_row(row, summary)
        return None

    def _taken_in(self, row: BatchRow, answer: str) -> RowResult:
        said: Any = json.loads(answer)
        if "error" in said:
            raise EngineError(str(said["error"]), str(cast("dict[str, Any]", said).get("remedy", "")))
        head, events = run_from_json(answer, f"row {row.number}")
        state = reduce_events(events, head.run_id, Detail.LOOPS)
        result, asked = result_of(state), state.questions
        if self._store is None:
            return unanswerable_row(row, result, asked) if asked else row_result(row, result)
        result = replace(result, run_id=self._keep(self._store, head, events))
        return asking_row(row, self._store.find(result.run_id), asked) if asked else row_result(row, result)

    def _keep(self, store: Store, head: RunHead, events: list[AnyEvent]) -> str:
        try:
            before = store.find(head.run_id)
        except StoreError:
            before = None
        if before is not None and not before.pinned:
            store.delete([head.run_id])  # it broke off or failed, and this one takes its place
        return store.import_run(head, events)


def _lost(error: Exception) -> EngineError:
    return EngineError(
        f"The row got lost on its worker ({type(error).__name__}).",
        "See the worker's log, and start the batch again: what is done is kept.",
    )


_CONNECT_S: Final = 20
"""Seconds in which a scheduler has to answer."""


@contextmanager
def dask_executor(address: str = "", workers: int = 4) -> Generator[Executor]:
    """An executor that runs what it is given on a Dask cluster.

    Args:
        address: The scheduler's (`tcp://host:8786`); empty starts a cluster of processes on this machine.
        workers: How many processes that has.

    Raises:
        EngineError: Dask is not installed, or there is no scheduler at that address.
    """
    try:
        import distributed
    except ImportError:
        raise EngineError("Dask is not installed.", "Install it with: pip install 'loopwright[batch]'.") from None
    module: Any = distributed
    with ExitStack() as stack:
        try:
            where: Any = address
            if not address:
                where = stack.enter_context(
                    module.LocalCluster(
                        n_workers=workers,
                        threads_per_worker=1,
                        processes=True,
                        dashboard_address=None,
                        silence_logs=logging.CRITICAL,
                    )
                )
            client: Any = stack.enter_context(module.Client(where, timeout=_CONNECT_S))
        except (OSError, ValueError, TypeError) as error:
            raise EngineError(
                f'There is no Dask scheduler at "{address}".' if address else f"Dask cannot be started: {error}.",
                "Check the address, such as tcp://host:8786, and whether the scheduler runs.",
            ) from error
        # Two rows may be alike, and each is to be run.
        yield client.get_executor(pure=False)
