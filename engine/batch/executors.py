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
import shlex
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol, cast

from engine.batch.rows import BatchRow, RowResult, refused_row, row_result
from engine.document.files import dumps, loads
from engine.document.model import Workflow
from engine.errors import EngineError
from engine.events import AnyEvent
from engine.models.catalog import default_model_name
from engine.plan.execution_plan import Plan
from engine.run_state.reducer import apply, reduce_events
from engine.run_state.result import RESULT_EVENTS, RunResult, result_of
from engine.run_state.state import QUESTION_EVENTS, SETTLE_S, Detail, RunState, waits_only
from engine.runner.event_loop import run_and_wait
from engine.runner.options import Catalogue, RunOptions, options_to_json, options_with_stored
from engine.runner.run import Run, start
from engine.runner.run_storage import RunHead
from engine.store.memory import MemoryStore
from engine.store.resume import refuse_unknown_calls, resume, unknown_calls
from engine.store.run_file import head_of, run_from_json, run_to_json
from engine.store.store_protocol import ACTIVE, RunStatus, RunSummary, Store, StoreError


async def ended_or_asking(run: Run, *, is_kept: bool) -> tuple[RunResult, tuple[str, ...]]:
    """Wait until a run ends, or suspend it when only questions to a person are left.

    Cancelled, it stops the run and gives what has come out.

    Args:
        run: The run.
        is_kept: Whether it is kept, so that it can be answered later; else it is stopped for good.

    Returns:
        What it came to, and the paths at which it asks; none where it has come to its end.
    """
    state, asked = RunState(run.run_id), list[str]()
    leaving: asyncio.TimerHandle | None = None

    def leave() -> None:
        asked.extend(state.questions)
        if is_kept and state.is_stored:
            run.suspend()
        else:
            run.cancel()

    try:
        async for event in run.events():
            apply(state, event)
            if leaving is not None:
                leaving.cancel()
            leaving = asyncio.get_running_loop().call_later(SETTLE_S, leave) if waits_only(state) else None
    except asyncio.CancelledError:
        run.cancel()
    finally:
        if leaving is not None:
            leaving.cancel()
    result = await run.result()
    return result, tuple(asked) if result.status in {"running", "cancelled"} else ()


def asking_row(row: BatchRow, kept: RunSummary, asked: Iterable[str]) -> RowResult:
    """A row whose run waits in the history for a person's answer."""
    places = tuple(asked)
    nodes = [f" --node {shlex.quote(path)}" for path in places] if len(places) > 1 else [""]
    commands = " and ".join(f"'loopwright runs answer {kept.run_id}{node}'" for node in nodes)
    return RowResult(
        row.number,
        row.key,
        kept.run_id,
        "failed",
        row.inputs,
        iterations=kept.iterations,
        tokens=kept.tokens,
        cost_usd=kept.cost_usd,
        error=f"It waits for a person's answer at {', '.join(places)}. "
        f"Answer it in Runs or with {commands}, and start the batch again.",
    )


def unanswerable_row(row: BatchRow, result: RunResult, asked: Iterable[str]) -> RowResult:
    """A row whose run asked a person and is not kept."""
    error = f"It asks a person at {', '.join(asked)}, and is not kept. Keep runs in the history, to answer later."
    return replace(row_result(row, result), status="failed", error=error)


RESUME_ROW: Final = "Check what the tool has done. Then resume this run from the history and start the batch again."
"""What to do about a row that stopped during a call of a tool."""


class RowRunner(Protocol):
    """Runs rows; cancelled, it ends what it is at and gives what has come out."""

    async def run(self, row: BatchRow) -> RowResult:
        """Run a row. Whatever goes wrong with it is in the result."""
        ...


class LocalRows:
    """Runs rows in the event loop that is running.

    Args:
        plan: The compiled document.
        options: How each run is to be done.
        models: Makes the models of one run.
        store: Where runs are kept and found again; None: nowhere.
        retry_in_flight: Whether tool calls in flight when a row stopped may be made again.
    """

    def __init__(
        self,
        plan: Plan,
        options: RunOptions,
        models: Callable[[], Catalogue],
        store: Store | None,
        *,
        retry_in_flight: bool = False,
    ) -> None:
        self._plan = plan
        self._options = options
        self._models = models
        self._store = store
        self._retry_in_flight = retry_in_flight

    async def run(self, row: BatchRow) -> RowResult:
        """Run a row, or take what the history has of it."""
        models = self._models()
        try:
            known = await asyncio.to_thread(self._known, row)
            if isinstance(known, RowResult):
                return known
            run = self._begin(row, known, models)
            result, asked = await ended_or_asking(run, is_kept=self._store is not None)
            if not asked:
                return row_result(row, result)
            if self._store is None or result.status != "running":
                return unanswerable_row(row, result, asked)
            return asking_row(row, self._store.find(run.run_id), asked)
        except EngineError as error:
            return refused_row(row, error)
        finally:
            await models.close()

    def _known(self, row: BatchRow) -> RowResult | RunSummary | None:
        """What the history has of a row: its result, a run to go on with, or nothing."""
        if self._store is None:
            return None
        try:
            summary = self._store.find(row.run_id)
        except StoreError:
            return None
        if summary.status is RunStatus.COMPLETED:
            return row_result(row, kept_result(self._store, summary.run_id), is_reused=True)
        if summary.status in ACTIVE:
            return busy_row(row, summary)
        return summary

    def _begin(self, row: BatchRow, broken_off: RunSummary | None, models: Catalogue) -> Run:
        options = replace(self._options, models=models, store=self._store, run_id=row.run_id)
        if broken_off is None or self._store is None:
            return start(self._plan, row.inputs, options)
        # Starting the batch again is consent to paying for a model call twice, but not to a tool's effect.
        if not self._retry_in_flight:
            tools = (call for call in unknown_calls(self._store, broken_off.run_id) if call.tool)
            refuse_unknown_calls(broken_off, tools, RESUME_ROW)
        return resume(self._store, broken_off.run_id, options, retry_in_flight=True)


def busy_row(row: BatchRow, under_way: RunSummary) -> RowResult:
    """A row on whose run a process is at work already."""
    message = f"The run {under_way.run_id} of this row is under way elsewhere."
    return refused_row(row, StoreError(message, "Wait for it, or stop it."))


def kept_result(store: Store, run_id: str) -> RunResult:
    """What a run came to, by what the history has of it.

    Raises:
        StoreError: There is no such run, or it cannot be read.
    """
    return result_of(reduce_events(store.events(run_id, kinds=RESULT_EVENTS), run_id, Detail.LOOPS))


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
