"""Run the rows of a batch: in this process, or on a `concurrent.futures` executor, such as a Dask cluster.

Each run is stored in the history under an id derived from its row, so that a finished row is found again and an
interrupted one resumes. Nobody watches a batch: a run that only waits for a person is suspended, to be answered later.

To an executor only JSON text travels: the document, the row and the run options there, and the run in the format of
`loopwright runs export` back. Keys never travel: each worker uses its own environment and keyring.
"""

from __future__ import annotations

import asyncio
import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import Executor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, Final

from engine.batch.rows import BatchRow, RowResult, refused_row, row_result
from engine.document.files import dumps, loads
from engine.document.model import Workflow
from engine.errors import EngineError, Fix
from engine.models.catalog import Models, default_model_name
from engine.plan.execution_plan import Plan
from engine.run_state.reducer import apply, reduce_events
from engine.run_state.result import RESULT_EVENTS, RunResult, result_of
from engine.run_state.state import QUESTION_EVENTS, SETTLE_S, Detail, RunState, waits_only
from engine.runner.event_loop import run_in_background_loop
from engine.runner.options import Catalog, RunOptions, options_to_json, options_with_stored
from engine.runner.retry import unexpected_error
from engine.runner.run import Run, start
from engine.store import open_store
from engine.store.resume import refuse_unknown_calls, resume, unknown_calls
from engine.store.run_file import head_of, run_from_json, run_to_json
from engine.store.store_protocol import ACTIVE, RunStatus, RunSummary, Store, StoreError

_RESUME_ROW: Final = "Check what the tool has done. Then resume this run from the history and start the batch again."
"""The remedy for a row that stopped during a tool call."""
_CONNECT_S: Final = 20
"""Timeout for the connection to a Dask scheduler, in seconds."""
_PERMISSIONS: Final = ("allow_private_addresses", "allow_code", "confirm_calls")


class RowRunner(ABC):
    """Runs rows. When cancelled, it ends the current run and returns its result.

    Args:
        store: The history; None to store nothing.
    """

    def __init__(self, store: Store | None) -> None:
        self._store = store

    async def run(self, row: BatchRow) -> RowResult:
        """Run a row, or return its stored result. Any failure is the result of this row."""
        if row.error:
            return refused_row(row, row.error)
        try:
            stored = await asyncio.to_thread(self._find, row)
            return stored if isinstance(stored, RowResult) else await self._run(row, stored)
        except EngineError as error:
            return refused_row(row, error)
        except Exception as error:  # a fault of the program or a plugin ends one row, not the batch
            return refused_row(row, unexpected_error(error))

    @abstractmethod
    async def _run(self, row: BatchRow, interrupted: RunSummary | None) -> RowResult:
        """Run a row whose run is not in the history, or has not completed."""

    def _find(self, row: BatchRow) -> RowResult | RunSummary | None:
        """The stored result of a row, the run to resume, or None."""
        if self._store is None:
            return None
        try:
            summary = self._store.find(row.run_id)
        except StoreError:
            return None
        if summary.status in ACTIVE:
            message = f"The run {summary.run_id} of this row is running in another process."
            return refused_row(row, StoreError(message, "Wait for it, or stop it."))
        if summary.status is RunStatus.COMPLETED:
            events = self._store.events(summary.run_id, kinds=RESULT_EVENTS)
            result = result_of(reduce_events(events, summary.run_id, Detail.LOOPS))
            return row_result(row, result, is_reused=True)
        return summary


class LocalRunner(RowRunner):
    """Runs rows in the current event loop.

    Args:
        plan: The compiled document.
        options: The options of each run.
        models: Creates the models of a run.
        store: The history; None to store nothing.
        retry_in_flight: Whether to repeat tool calls that were in flight when a row stopped.
    """

    def __init__(
        self,
        plan: Plan,
        options: RunOptions,
        models: Callable[[], Catalog],
        store: Store | None,
        *,
        retry_in_flight: bool = False,
    ) -> None:
        super().__init__(store)
        self._plan = plan
        self._options = options
        self._models = models
        self._retry_in_flight = retry_in_flight

    async def _run(self, row: BatchRow, interrupted: RunSummary | None) -> RowResult:
        models = self._models()
        try:
            run = self._start(row, interrupted, models)
            result, questions = await _run_until_questions(run, is_stored=self._store is not None)
        finally:
            await models.close()
        if not questions:
            return row_result(row, result)
        if self._store is None or result.status != "running":
            return _unanswerable_row(row, result, questions)
        return _waiting_row(row, self._store.find(run.run_id), questions)

    def _start(self, row: BatchRow, interrupted: RunSummary | None, models: Catalog) -> Run:
        options = replace(self._options, models=models, store=self._store, run_id=row.run_id)
        if interrupted is None or self._store is None:
            return start(self._plan, row.inputs, options)
        # Starting the batch again is consent to pay for a model call twice, but not to repeat a tool's effect.
        if not self._retry_in_flight:
            calls = (call for call in unknown_calls(self._store, interrupted.run_id) if call.tool)
            refuse_unknown_calls(interrupted, calls, _RESUME_ROW)
        return resume(self._store, interrupted.run_id, options, retry_in_flight=True)


async def _run_until_questions(run: Run, *, is_stored: bool) -> tuple[RunResult, tuple[str, ...]]:
    """Wait until a run ends, or suspend it when only questions to a person are left. When cancelled, cancel the run.

    Args:
        run: The run.
        is_stored: Whether it is stored, so that it can be answered later; otherwise it is cancelled.

    Returns:
        The result, and the paths of the open questions.
    """
    state, questions = RunState(run.run_id), list[str]()
    suspension: asyncio.TimerHandle | None = None

    def suspend() -> None:
        questions.extend(state.questions)
        if is_stored and state.is_stored:
            run.suspend()
        else:
            run.cancel()

    try:
        async for event in run.events():
            apply(state, event)
            if suspension is not None:
                suspension.cancel()
            suspension = asyncio.get_running_loop().call_later(SETTLE_S, suspend) if waits_only(state) else None
    except asyncio.CancelledError:
        run.cancel()
    finally:
        if suspension is not None:
            suspension.cancel()
    result = await run.result()
    return result, tuple(questions) if result.status in {"running", "cancelled"} else ()


def _waiting_row(row: BatchRow, run: RunSummary, questions: Iterable[str]) -> RowResult:
    """The result of a row whose run waits in the history for an answer."""
    paths = tuple(questions)
    error = f"The run {run.run_id} waits for an answer at {', '.join(paths)}. Answer it, then start the "
    figures = {"iterations": run.iterations, "tokens": run.tokens, "cost_usd": run.cost_usd}
    return replace(refused_row(row, f"{error}batch again."), run_id=run.run_id, **figures)


def _unanswerable_row(row: BatchRow, result: RunResult, questions: Iterable[str]) -> RowResult:
    """The result of a row whose run asked a person and is not stored."""
    error = f"The run asks a person at {', '.join(questions)}, and is not stored. Store runs in the history to answer."
    return replace(row_result(row, result), status="failed", error=error)


class ExecutorRunner(RowRunner):
    """Runs rows on an executor, and stores the runs that come back in the history.

    Args:
        workflow: The document.
        options: The options of each run. Models and node types are those that the workers have.
        executor: The executor.
        store: The history; None to store nothing.
        addresses: The addresses of the user's own servers by model.
    """

    def __init__(
        self,
        workflow: Workflow,
        options: RunOptions,
        executor: Executor,
        store: Store | None,
        addresses: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(store)
        self._executor = executor
        self._shared: dict[str, Any] = {
            "document": dumps(workflow),
            "options": options_to_json(options, default_model_name()),
            "folder": None if options.folder is None else str(options.folder),
            "source": options.source,
            "addresses": dict(addresses),
            **{name: getattr(options, name) for name in _PERMISSIONS},
        }

    async def _run(self, row: BatchRow, interrupted: RunSummary | None) -> RowResult:
        """Run a row from its start.

        If a worker is lost, the executor runs the row again on another one. When cancelled, a row that has not started
        does not start; a row that has started runs to its end on its worker, and its result is ignored.
        """
        if self._store is not None and interrupted is not None and interrupted.status is RunStatus.WAITING:
            events = self._store.events(interrupted.run_id, kinds=QUESTION_EVENTS)
            return _waiting_row(row, interrupted, reduce_events(events, detail=Detail.SUMMARY).questions)
        task = json.dumps({**self._shared, "inputs": row.inputs, "run_id": row.run_id})
        try:
            reply = await asyncio.wrap_future(self._executor.submit(run_row, task))
        except asyncio.CancelledError:
            return row_result(row, RunResult("", "cancelled"))
        except Exception as error:  # such as a worker that died or a lost connection
            raise EngineError(
                f"The row was lost on its worker ({type(error).__name__}).",
                "See the worker's log, and start the batch again; finished rows do not run again.",
            ) from error
        return await asyncio.to_thread(self._receive, row, reply)

    def _receive(self, row: BatchRow, reply: str) -> RowResult:
        parsed: dict[str, Any] = json.loads(reply)
        if "error" in parsed:
            raise EngineError(str(parsed["error"]), str(parsed.get("remedy", "")), fix=str(parsed.get("fix", "")))
        head, events = run_from_json(reply, f"row {row.number}")
        state = reduce_events(events, head.run_id, Detail.LOOPS)
        result, store = result_of(state), self._store
        if store is None:
            return _unanswerable_row(row, result, state.questions) if state.questions else row_result(row, result)
        previous = None
        with suppress(StoreError):
            previous = store.find(head.run_id)
        if previous is not None and not previous.pinned:
            store.delete([head.run_id])  # interrupted or failed, and replaced by this run
        result = replace(result, run_id=store.import_run(head, events))
        if state.questions:
            return _waiting_row(row, store.find(result.run_id), state.questions)
        return row_result(row, result)


def run_row(task: str) -> str:
    """Run a row on a worker. This is the only function that an executor calls.

    Args:
        task: The row as JSON text from `ExecutorRunner`.

    Returns:
        The run as JSON text, or an object with `error`, `remedy` and `fix` if it could not start.
    """
    given = json.loads(task)
    run_id = given["run_id"]
    options = RunOptions(
        folder=None if given["folder"] is None else Path(given["folder"]),
        source=given["source"],
        run_id=run_id,
        **{name: given[name] for name in _PERMISSIONS},
    )

    async def finished(store: Store) -> None:
        models = Models(addresses=given["addresses"])
        stored = options_with_stored(replace(options, store=store, models=models), given["options"])
        try:
            run = start(loads(given["document"]), given["inputs"], stored)
            await _run_until_questions(run, is_stored=True)
        finally:
            await models.close()

    with TemporaryDirectory(prefix="loopwright-") as folder, closing(open_store(Path(folder) / "row.sqlite3")) as store:
        try:
            run_in_background_loop(finished(store))
        except EngineError as error:
            return json.dumps({"error": error.message, "remedy": error.remedy, "fix": error.fix})
        return "".join(run_to_json(head_of(store, run_id), store.events(run_id)))


@contextmanager
def dask_executor(address: str = "", workers: int = 4) -> Generator[Executor]:
    """An executor that runs tasks on a Dask cluster.

    Args:
        address: The scheduler's address (`tcp://host:8786`); empty starts a cluster of processes on this computer.
        workers: The number of these processes.

    Raises:
        EngineError: Dask is not installed, or there is no scheduler at that address.
    """
    try:
        import distributed
    except ImportError:
        raise EngineError("Dask is not installed.", "Install it.", fix=Fix.INSTALL.of("batch")) from None
    module: Any = distributed
    with ExitStack() as stack:
        try:
            target: Any = address
            if not address:
                options = {"processes": True, "dashboard_address": None, "silence_logs": logging.CRITICAL}
                target = stack.enter_context(module.LocalCluster(n_workers=workers, threads_per_worker=1, **options))
            client: Any = stack.enter_context(module.Client(target, timeout=_CONNECT_S))
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            if address:
                message = f'There is no Dask scheduler at "{address}".'
                remedy = "Check the address, such as tcp://host:8786, and whether the scheduler runs."
            else:
                message = f"Dask cannot be started: {error}."
                remedy = "Run fewer rows at the same time, or run them without Dask."
            raise EngineError(message, remedy) from error
        yield client.get_executor(pure=False)  # not pure: equal rows run each
